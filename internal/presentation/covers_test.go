package presentation

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// TestCovers: the segments of a clip that its playlist lists can be had, and no others. What was listed behind the end
// while the asset was live is part of clips that go on to there.
func TestCovers(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	entries := []timeline.Entry{
		{Target: 2},
		{Rendition: &timeline.RenditionInfo{ID: timeline.MainVideo, Kind: frame.Video, Timescale: 1}},
		{Init: &timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.640028", Object: "init"}},
	}
	for i := range 6 { // the last two are slate
		entries = append(entries, timeline.Entry{Segment: &timeline.Segment{
			MSN: 7 + int64(i), Slate: i > 3, Start: noon.Add(time.Duration(2*i) * time.Second).UnixMilli(),
			Chunks: []timeline.Chunk{{Rendition: timeline.MainVideo, Time: int64(2 * i), Duration: 2, Object: "o"}},
		}})
	}
	whole, err := timeline.Build(entries)
	if err != nil {
		t.Fatal(err)
	}
	concluded, err := whole.Concluded(0)
	if err != nil {
		t.Fatal(err)
	}
	v, err := New(Options{Now: time.Now}).present(t.Context(), asset.Asset{Media: "m", LiveStream: "live"}, concluded)
	if err != nil {
		t.Fatal(err)
	}
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	for want, c := range map[string]playback.Clip{
		"7 8 9 10 11 12": {},
		"8 9 10 11 12":   {From: 2},
		"7 8":            {To: 4},
		"8 9":            {From: 3, To: 5},
		"9 10 11":        {From: 4, To: 10},
		"10 11 12":       {Begin: at(6)},
		"7 8 9":          {End: at(5)},
		"9 10 11 ":       {Begin: at(5), End: at(10)},
	} {
		var got []string
		for i, name := range strings.Fields("6 7 8 9 10 11 12 13") {
			if v.covers(hls.Resource{Init: -1, MSN: int64(6 + i), Part: -1}, c) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != strings.TrimSpace(want) {
			t.Errorf("%+v covers %v, want %s", c, got, want)
		}
	}
	if !v.covers(hls.Resource{Init: 0, Part: -1}, playback.Clip{From: 99}) {
		t.Error("an initialization segment is not covered")
	}
}
