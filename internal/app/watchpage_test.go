package app

import (
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/web/watch"
)

// TestAboutStream checks what viewers of a live stream learn of it, and that they are led to public recordings alone.
func TestAboutStream(t *testing.T) {
	t.Parallel()
	ids := func(policies ...playbackid.Policy) (found []playbackid.ID) {
		for _, p := range policies {
			found = append(found, playbackid.ID{ID: id.Playback("of-" + p), Policy: p})
		}
		return found
	}
	recording := func(status asset.Status, isLive bool, policies ...playbackid.Policy) *asset.Asset {
		return &asset.Asset{Status: status, IsLive: isLive, PlaybackIDs: ids(policies...)}
	}
	titled := live.Stream{Settings: live.Settings{Meta: assetopt.Meta{Title: "T"}}}
	recent := live.Stream{RecentAssets: []id.Asset{"a"}}
	onAir := live.Stream{ActiveAsset: "b", RecentAssets: []id.Asset{"a"}}
	ended, finishing := watch.About{State: watch.Ended}, watch.About{State: watch.Finishing}
	leads := watch.About{State: watch.Ended, Recording: "of-public"}
	for name, tt := range map[string]struct {
		stream    live.Stream
		recording *asset.Asset
		want      watch.About
	}{
		"titled":         {titled, nil, watch.About{Title: "T", State: watch.Idle}},
		"on air":         {onAir, nil, watch.About{State: watch.OnAir}},
		"deleted":        {recent, nil, ended},
		"still live":     {recent, recording(asset.Ready, true, "public"), finishing},
		"preparing":      {recent, recording(asset.Preparing, false, "public"), finishing},
		"errored":        {recent, recording(asset.Errored, false, "public"), ended},
		"public":         {recent, recording(asset.Ready, false, "public"), leads},
		"signed":         {recent, recording(asset.Ready, false, "signed"), ended},
		"drm":            {recent, recording(asset.Ready, false, "drm"), ended},
		"both":           {recent, recording(asset.Ready, false, "signed", "public"), leads},
		"no playback ID": {recent, recording(asset.Ready, false), ended},
	} {
		if got := aboutStream(tt.stream, tt.recording); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
