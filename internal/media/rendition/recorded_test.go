package rendition

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// TestRungsOfARecordingTakeLess: of a recording that takes little no rung is listed, though its URL works; of any other
// they take less than it.
func TestRungsOfARecordingTakeLess(t *testing.T) {
	t.Parallel()
	for rate, want := range map[int64]int{128_000: 0, 2_000_000: 1} {
		entries := []timeline.Entry{
			{Target: 2},
			{Rendition: &timeline.RenditionInfo{ID: timeline.MainVideo, Kind: frame.Video, Timescale: 90000}},
			{
				Init: &timeline.Init{
					Rendition: timeline.MainVideo, Codec: "avc1.64001f", Width: 640, Height: 360, FrameRate: 30,
					Object: "init",
				},
			},
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
			Timeline: line, Open: func(*timeline.Timeline, *timeline.Rendition) delivered.Source { return nil },
			Whole:  true,
			Limits: Limits{Quality: "plus", MaxResolution: "2160p"},
		})
		offer := set.Variants(hls.Variant{})
		variants := offer.Below
		if len(variants) != want || len(offer.Spare) != 1-want || len(set.Renditions()) != 1 {
			t.Errorf("of %d bit/s: %d rungs are listed of %d", rate, len(variants), len(set.Renditions()))
		}
		for _, x := range variants {
			if x.Bandwidth >= rate || x.Bandwidth < rate/10 {
				t.Errorf("a rung of %d bit/s of a recording of %d", x.Bandwidth, rate)
			}
		}
	}
}

// TestShortSegmentsTakeMore: every segment may begin with a run of the encoder, which has something to spare. So one
// row of short segments makes the most that rungs are listed with more, among however many long ones; and the same
// while they are live as when they are a recording, as who asks when a broadcast ends may get either playlist.
func TestShortSegmentsTakeMore(t *testing.T) {
	t.Parallel()
	long := slices.Repeat([]int64{180000}, 100)
	row := slices.Repeat([]int64{21000}, 8)
	regular, regularLive := listed(t, long)
	if !slices.Equal(regular, regularLive) {
		t.Errorf("a recording lists %v, live %v", regular, regularLive)
	}
	rows, rowsLive := listed(t, slices.Concat(long, row, long))
	if !slices.Equal(rows, rowsLive) {
		t.Errorf("with a row of short segments: a recording lists %v, live %v", rows, rowsLive)
	}
	for i := range regular {
		if share := float64(rows[i]) / float64(regular[i]); share < 1.25 || share > 1.3 {
			t.Errorf("rung %d is listed with %d, with a row of short segments with %d", i, regular[i], rows[i])
		}
	}
}

// listed is what rungs are listed with of segments of 20 Mbit/s that last so many ticks of 90 kHz: of a recording that
// was live, and while it was.
func listed(t *testing.T, ticks []int64) (recorded, live []int64) {
	t.Helper()
	in := timeline.Init{
		Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 1920, Height: 1080, FrameRate: 30, Object: "init",
	}
	entries := []timeline.Entry{
		{Target: 2},
		{Rendition: &timeline.RenditionInfo{ID: timeline.MainVideo, Kind: frame.Video, Timescale: 90000}},
		{Init: &in},
	}
	edge := window.New(window.Options{
		Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler),
	})
	n := edge.AddInit(frame.Video, 90000, in, []byte{1})
	edge.Target(2, nil)
	var at int64
	for i, d := range ticks {
		size := 20_000_000 / 8 * d / 90000
		entries = append(entries, timeline.Entry{Segment: &timeline.Segment{MSN: int64(i), Chunks: []timeline.Chunk{
			{Rendition: timeline.MainVideo, Time: at, Duration: d, Size: size, Object: "s"},
		}}})
		edge.Begin(timeline.MainVideo, timeline.Mark{Start: time.Unix(1e9, 0)}, n, at)
		edge.Part(timeline.MainVideo, make([]byte, size), d, true)
		edge.Finish(timeline.MainVideo, d)
		at += d
	}
	line, err := timeline.Build(entries)
	if err != nil {
		t.Fatal(err)
	}
	maker := justintime.New(justintime.Options{Now: time.Now})
	limits := Limits{Quality: "plus", MaxResolution: "2160p"}
	of := NewRecorded(maker, nil, Recording{
		Timeline: line, Open: func(*timeline.Timeline, *timeline.Rendition) delivered.Source { return nil },
		Whole: true,
		Live:  true, Limits: limits,
	}).Variants(hls.Variant{}).Below
	during := NewLive(LiveOptions{
		Edge: edge, Makers: Makers{Maker: maker}, Timescale: 90000, Limits: limits,
	}).Variants(hls.Variant{}).Below
	if len(of) != 3 || len(during) != 3 {
		t.Fatalf("%d rungs, live %d", len(of), len(during))
	}
	for i := range of {
		recorded, live = append(recorded, of[i].Bandwidth), append(live, during[i].Bandwidth)
	}
	return recorded, live
}
