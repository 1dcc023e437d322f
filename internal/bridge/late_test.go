package bridge

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/ladder"
	"millrace/internal/media/timeline"
	"millrace/internal/media/transcode"
	"millrace/internal/media/window"
	"millrace/internal/storage/blob"
)

// counting is a storage that counts what is read.
type counting struct {
	blob.Store
	gets atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string, off, n int64) (*blob.Reader, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, key, off, n)
}

// TestLatePartsAreReadOnce has viewers ask for the parts of a rung's segment that was late: it is read from storage once for all of them.
func TestLatePartsAreReadOnce(t *testing.T) {
	t.Parallel()
	folder, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }() // it is only a test's
	store := &counting{Store: folder}
	edge := window.New(window.Options{Media: "m", Mode: window.Mode{Low: true, Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler)})
	edge.AddInit(frame.Video, 90000, timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 1280, Height: 720, FrameRate: 30}, []byte("init"))
	edge.Target(2, map[string]time.Duration{timeline.MainVideo: time.Second})
	edge.Live(true)
	edge.Begin(timeline.MainVideo, time.Unix(1e9, 0), false, 0, 0)
	var buf, rung []byte
	for k := range 2 {
		p := cmaf.Sample{Duration: 90000, Sync: true, Data: []byte("picture")}
		buf = cmaf.AppendFragment(buf, 1, cmaf.TrackID, uint64(k*90000), []cmaf.Sample{p})
		edge.Sample(timeline.MainVideo, int64(k*90000), p)
		edge.Part(timeline.MainVideo, buf, 90000, true)
		rung = cmaf.AppendFragment(rung, 1, cmaf.TrackID, uint64(k*90000), []cmaf.Sample{{Duration: 90000, Sync: true, Data: []byte{'a' + byte(k)}}})
	}
	edge.Finish(timeline.MainVideo, 0)
	if err := edge.AddShadow("480p", timeline.MainVideo); err != nil {
		t.Fatal(err)
	}
	if err := folder.Put(t.Context(), "media/m/480p/0.m4s", strings.NewReader(string(rung))); err != nil {
		t.Fatal(err)
	}
	maker := transcode.New(transcode.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	v := &edgeView{
		p: NewPlayback(PlaybackOptions{Blob: store, Rungs: maker, Now: time.Now}), media: "m", edge: edge,
		lower: &lower{asset: asset.Asset{Media: "m"}, edge: edge, late: newShelf[lateKey, []byte](lates, 0)},
	}
	for range 3 {
		for k := range 2 {
			b, err := v.lowerChunk(t.Context(), ladder.Rung{}, "480p", hls.Resource{MSN: 0, Part: k, Init: -1, Ext: "m4s"})
			if err != nil {
				t.Fatal(err)
			}
			data := b.Data
			if b.Reader != nil {
				if data, err = io.ReadAll(b.Reader); err != nil {
					t.Fatal(err)
				}
			}
			if f, err := cmaf.ParseFragments(data); err != nil || len(f) != 1 || string(f[0].Samples[0].Data) != string(rune('a'+k)) {
				t.Errorf("part %d: %+v, %v", k, f, err)
			}
		}
	}
	if n := store.gets.Load(); n != 1 {
		t.Errorf("read %d times", n)
	}
}

// TestOfferFollowsThePicture finds out anew what a broadcast is offered in when its picture changes, and not for every request.
func TestOfferFollowsThePicture(t *testing.T) {
	t.Parallel()
	edge := window.New(window.Options{Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler)})
	l := &lower{edge: edge, maker: transcode.New(transcode.Options{Now: time.Now})}
	if o := l.offer(); len(o.rungs) != 0 || !o.shown {
		t.Errorf("before there is anything: %+v", o)
	}
	for i, height := range []int{480, 1080} {
		in := timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: height * 16 / 9 &^ 1, Height: height, FrameRate: 30}
		n := edge.AddInit(frame.Video, 90000, in, []byte{byte(i)})
		edge.Begin(timeline.MainVideo, time.Unix(1e9, 0), i > 0, n, int64(i)*180000)
		edge.Part(timeline.MainVideo, []byte("part"), 180000, true)
		edge.Finish(timeline.MainVideo, 0)
		o := l.offer()
		if want := []int{1, 3}[i]; len(o.rungs) != want || len(o.names) != want {
			t.Errorf("%d lines: %+v", height, o)
		}
		if again := l.offer(); &again.rungs[0] != &o.rungs[0] {
			t.Error("found out again")
		}
	}
}

// TestRungsTakeLessThanTheirSource: players that sort by bandwidth find the picture as it comes first, however little it takes; rungs take
// more when it does, and stay the same renditions.
func TestRungsTakeLessThanTheirSource(t *testing.T) {
	t.Parallel()
	edge := window.New(window.Options{Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler)})
	l := &lower{edge: edge, maker: transcode.New(transcode.Options{Now: time.Now}), segment: 2 * time.Second}
	in := timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 640, Height: 360, FrameRate: 30}
	n := edge.AddInit(frame.Video, 90000, in, []byte{1})
	var names []string
	for i, rate := range []int64{128_000, 8_000_000} {
		edge.Begin(timeline.MainVideo, time.Unix(1e9, 0), false, n, int64(i)*180000)
		edge.Part(timeline.MainVideo, make([]byte, rate/8*2), 180000, true)
		edge.Finish(timeline.MainVideo, 180000)
		variants, _ := l.variants(hls.Variant{})
		if len(variants) == 0 {
			t.Fatal("there is no rung")
		}
		for k, v := range variants {
			if v.Bandwidth >= rate {
				t.Errorf("a rung of %d bit/s of a source of %d", v.Bandwidth, rate)
			}
			switch {
			case i == 0:
				names = append(names, v.URI)
			case v.URI != names[k]:
				t.Errorf("%s became %s", names[k], v.URI)
			case v.Bandwidth < 400_000:
				t.Errorf("a rung of %d bit/s when the source takes enough", v.Bandwidth)
			}
		}
	}
}
