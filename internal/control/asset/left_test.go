package asset_test

import (
	"slices"
	"testing"
	"time"

	"millrace/internal/control/asset"
)

func TestLeft(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	preparing, ready := asset.Asset{ID: "a", Status: asset.Preparing, UpdatedAt: now},
		asset.Asset{ID: "a", Status: asset.Ready, Index: "x", UpdatedAt: now}
	tracks := []asset.Track{
		{ID: "made", Status: asset.TrackReady, URL: "u"}, {ID: "t", Status: asset.TrackPreparing, URL: "u"},
	}
	files := []asset.StaticRendition{{ID: "made", Status: asset.FileReady}, {ID: "f", Status: asset.FilePreparing}}
	master := func(s asset.FileStatus, expires time.Time) *asset.Master {
		return &asset.Master{ID: "m", Status: s, Expires: expires}
	}
	for name, tt := range map[string]struct {
		of     asset.Asset
		change func(a *asset.Asset)
		want   []string
	}{
		"done":     {of: ready},
		"of a URL": {of: preparing, want: []string{"asset.ingest a"}},
		"with tracks": {
			of: preparing, change: func(a *asset.Asset) { a.Tracks = tracks }, want: []string{"asset.ingest a"},
		},
		"errored": {of: preparing, change: func(a *asset.Asset) { a.Status = asset.Errored }},
		"begins":  {of: preparing, change: func(a *asset.Asset) { a.LiveStream, a.IsLive = "s", true }},
		"over, unseen": {
			of: preparing, change: func(a *asset.Asset) { a.LiveStream = "s" }, want: []string{"asset.finish a"},
		},
		"live": {of: ready, change: func(a *asset.Asset) {
			a.LiveStream, a.IsLive, a.Index, a.Tracks, a.Static.Files = "s", true, "", tracks, files
		}, want: []string{"track.ingest t"}},
		"over": {
			of: ready, change: func(a *asset.Asset) { a.LiveStream, a.Index, a.Static.Files = "s", "", files },
			want: []string{"asset.finish a"},
		},
		"over for long": {of: ready, change: func(a *asset.Asset) {
			a.LiveStream, a.Index, a.Tracks, a.UpdatedAt = "s", "", tracks, now.Add(-8*24*time.Hour)
		}, want: []string{"track.ingest t"}},
		"a track, a file, a master": {of: ready, change: func(a *asset.Asset) {
			a.Tracks, a.Static.Files, a.Master = tracks, files, master(asset.FilePreparing, time.Time{})
		}, want: []string{"track.ingest t", "asset.static f", "asset.master m"}},
		"a master for hours": {
			of: ready, change: func(a *asset.Asset) { a.Master = master(asset.FileReady, now.Add(time.Hour)) },
		},
		"a master too long": {
			of: ready, change: func(a *asset.Asset) { a.Master = master(asset.FileReady, now) },
			want: []string{"asset.master m/over"},
		},
		"no master": {of: ready, change: func(a *asset.Asset) { a.Master = master(asset.FileErrored, time.Time{}) }},
	} {
		a := tt.of
		if tt.change != nil {
			tt.change(&a)
		}
		var got []string
		for _, j := range a.Left(now) {
			got = append(got, j.Kind+" "+j.Key)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: asked for %q, want %q", name, got, tt.want)
		}
		if counted := len(tt.want) > 0 && tt.want[0] != "track.ingest t"; counted && !a.Unfinished() {
			t.Errorf("%s: it is not found", name)
		}
	}
}
