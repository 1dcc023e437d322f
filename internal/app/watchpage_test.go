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
		if got := aboutStream(tt.stream, tt.recording, false); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestAboutPublic checks that what is shown to other sites is so only of what everybody may watch, and that there is
// something to see.
func TestAboutPublic(t *testing.T) {
	t.Parallel()
	measured := asset.Facts{Width: 1280, Height: 720}
	for name, tt := range map[string]struct{ got, want watch.About }{
		"stream": {
			aboutStream(live.Stream{ActiveAsset: "a"}, &asset.Asset{IsLive: true, Facts: measured}, true),
			watch.About{State: watch.OnAir, Public: true, Width: 1280, Height: 720},
		},
		"asset": {
			aboutAsset(asset.Asset{Status: asset.Ready, Facts: measured}, true),
			watch.About{State: watch.Video, Public: true, Width: 1280, Height: 720},
		},
		"signed": {
			aboutAsset(asset.Asset{Status: asset.Ready, Facts: measured}, false),
			watch.About{State: watch.Video, Width: 1280, Height: 720},
		},
		"live": {
			aboutAsset(asset.Asset{Status: asset.Preparing, IsLive: true, Facts: measured}, false),
			watch.About{State: watch.Video, Width: 1280, Height: 720},
		},
		"preparing": {
			aboutAsset(asset.Asset{Status: asset.Preparing, Facts: measured}, true),
			watch.About{State: watch.Video, Public: true},
		},
		"errored": {
			aboutAsset(asset.Asset{Status: asset.Errored, Facts: measured}, true),
			watch.About{State: watch.Video},
		},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, tt.got, tt.want)
		}
	}
}
