package rendition

import (
	"testing"
	"time"

	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/timeline"
)

// TestRungsOfARecordingTakeLess: of a recording that takes little no rung is listed, though its URL works; of any other
// they take less than it.
func TestRungsOfARecordingTakeLess(t *testing.T) {
	t.Parallel()
	for rate, want := range map[int64]int{128_000: 0, 2_000_000: 1} {
		entries := []timeline.Entry{
			{Target: 2},
			{Rendition: &timeline.RenditionInfo{ID: timeline.MainVideo, Kind: frame.Video, Timescale: 90000}},
			{Init: &timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.64001f", Width: 640, Height: 360, FrameRate: 30, Object: "init"}},
		}
		for i := range int64(5) {
			entries = append(entries, timeline.Entry{Segment: &timeline.Segment{MSN: i, Chunks: []timeline.Chunk{
				{Rendition: timeline.MainVideo, Time: i * 180000, Duration: 180000, Size: rate / 8 * 2, Object: "s"},
			}}})
		}
		line, err := timeline.Build(entries)
		if err != nil {
			t.Fatal(err)
		}
		set := NewRecorded(justintime.New(justintime.Options{Now: time.Now}), nil, Recording{
			Timeline: line, Open: func(*timeline.Timeline, *timeline.Rendition) delivered.Source { return nil }, Whole: true,
			Limits: Limits{Quality: "plus", MaxResolution: "2160p"},
		})
		variants, _ := set.Variants(hls.Variant{})
		if len(variants) != want || len(set.Renditions()) != 1 {
			t.Errorf("of %d bit/s: %d rungs are listed of %d", rate, len(variants), len(set.Renditions()))
		}
		for _, x := range variants {
			if x.Bandwidth >= rate || x.Bandwidth < rate/10 {
				t.Errorf("a rung of %d bit/s of a recording of %d", x.Bandwidth, rate)
			}
		}
	}
}
