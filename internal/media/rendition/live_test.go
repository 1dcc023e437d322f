package rendition

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// objects are stored objects; it counts what is read.
type objects struct {
	all  map[string]string
	gets atomic.Int64
}

func (o *objects) Open(_ context.Context, key string, _, _ int64) (delivered.Body, error) {
	o.gets.Add(1)
	data, ok := o.all[key]
	if !ok {
		return delivered.Body{}, fault.New(fault.NotFound, "there is no %s", key)
	}
	return delivered.Body{Reader: io.NopCloser(strings.NewReader(data)), Size: int64(len(data))}, nil
}

// TestLatePartsAreReadOnce has viewers ask for the parts of a rung's segment that was late: it is read from storage
// once for all of them.
func TestLatePartsAreReadOnce(t *testing.T) {
	t.Parallel()
	store := &objects{all: map[string]string{}}
	edge := window.New(window.Options{
		Media: "m", Mode: window.Mode{Low: true, Listed: time.Minute, InMemory: 2},
		Logger: slog.New(slog.DiscardHandler),
	})
	edge.AddInit(frame.Video, 90000, timeline.Init{
		Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 1280, Height: 720, FrameRate: 30,
	}, []byte("init"))
	edge.Target(2, map[string]time.Duration{timeline.MainVideo: time.Second})
	edge.Live(true)
	edge.Begin(timeline.MainVideo, timeline.Mark{Start: time.Unix(1e9, 0)}, 0, 0)
	var buf, rung []byte
	for k := range 2 {
		p := cmaf.Sample{Duration: 90000, Sync: true, Data: []byte("picture")}
		buf = cmaf.AppendFragment(buf, 1, cmaf.TrackID, uint64(k*90000), []cmaf.Sample{p})
		edge.Sample(timeline.MainVideo, int64(k*90000), p)
		edge.Part(timeline.MainVideo, buf, 90000, true)
		rung = cmaf.AppendFragment(rung, 1, cmaf.TrackID, uint64(k*90000), []cmaf.Sample{
			{Duration: 90000, Sync: true, Data: []byte{'a' + byte(k)}},
		})
	}
	edge.Finish(timeline.MainVideo, 0)
	maker := justintime.New(justintime.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	l := NewLive(LiveOptions{
		Media: "m", Edge: edge, Makers: Makers{Maker: maker, Objects: store}, Timescale: 90000,
		Limits: Limits{Quality: "plus"}, Now: time.Now,
	})
	variants := l.Variants(hls.Variant{}).Below
	if len(variants) == 0 {
		t.Fatal("there is no rendition")
	}
	name := hls.RenditionOf(variants[0].URI)
	store.all["media/m/"+name+"/0.m4s"] = string(rung)
	for range 3 {
		for k := range 2 {
			b, err := l.Chunk(t.Context(), name, hls.Resource{MSN: 0, Part: k, Init: -1, Ext: "m4s"})
			if err != nil {
				t.Fatal(err)
			}
			data := b.Data
			if b.Reader != nil {
				if data, err = io.ReadAll(b.Reader); err != nil {
					t.Fatal(err)
				}
			}
			if f, err := cmaf.ParseFragments(data); err != nil || len(f) != 1 ||
				string(f[0].Samples[0].Data) != string(rune('a'+k)) {
				t.Errorf("part %d: %+v, %v", k, f, err)
			}
		}
	}
	if n := store.gets.Load(); n != 1 {
		t.Errorf("read %d times", n)
	}
}

// TestOfferFollowsThePicture finds out again what a broadcast is offered in when its picture changes, and not for every
// request.
func TestOfferFollowsThePicture(t *testing.T) {
	t.Parallel()
	edge := window.New(window.Options{
		Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler),
	})
	l := NewLive(LiveOptions{
		Edge: edge, Makers: Makers{Maker: justintime.New(justintime.Options{Now: time.Now})}, Timescale: 90000,
		Limits: Limits{Quality: "plus", MaxResolution: "2160p"},
	})
	if o := l.offer(); len(o.rungs) != 0 || !o.shown {
		t.Errorf("before there is anything: %+v", o)
	}
	for i, height := range []int{480, 1080} {
		in := timeline.Init{
			Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: height * 16 / 9 &^ 1, Height: height,
			FrameRate: 30,
		}
		n := edge.AddInit(frame.Video, 90000, in, []byte{byte(i)})
		edge.Begin(timeline.MainVideo, timeline.Mark{Start: time.Unix(1e9, 0), Discontinuity: i > 0}, n,
			int64(i)*180000)
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

// TestUselessRungsAreNotListed: who picks the lowest rate at the start would get a picture of a few kbit/s, and have it
// encoded. They are listed again when the source takes more.
func TestUselessRungsAreNotListed(t *testing.T) {
	t.Parallel()
	edge := window.New(window.Options{
		Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler),
	})
	l := NewLive(LiveOptions{
		Edge: edge, Makers: Makers{Maker: justintime.New(justintime.Options{Now: time.Now})}, Timescale: 90000,
		Limits: Limits{Quality: "plus", MaxResolution: "2160p"},
	})
	in := timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 1280, Height: 720, FrameRate: 30}
	n := edge.AddInit(frame.Video, 90000, in, []byte{1})
	segments := func(from, to int, rate int64) []hls.Variant {
		for i := from; i < to; i++ {
			edge.Begin(timeline.MainVideo, timeline.Mark{Start: time.Unix(1e9, 0)}, n, int64(i)*180000)
			edge.Part(timeline.MainVideo, make([]byte, rate/8*2), 180000, true)
			edge.Finish(timeline.MainVideo, 180000)
		}
		offer := l.Variants(hls.Variant{})
		if !offer.Source || len(offer.Below)+len(offer.Spare) != 2 {
			t.Fatalf("the video is not listed as it comes, or a rung is gone: %+v", offer)
		}
		return offer.Below
	}
	early := segments(0, 1, 300_000)
	if len(early) != 2 {
		t.Errorf("before it is known what the source takes: %v", early)
	}
	known := segments(1, 15, 300_000)
	if len(known) == 0 || len(known) >= len(early) {
		t.Errorf("of a source of 300 kbit/s: %d rungs", len(known))
	}
	for _, v := range known {
		if v.Bandwidth < 120_000 {
			t.Errorf("a rung of %d bit/s", v.Bandwidth)
		}
	}
	if _, ok := l.rung(l.offer().names[1]); !ok {
		t.Error("a rung that was listed is gone")
	}
	if again := segments(15, 16, 8_000_000); len(again) != len(early) {
		t.Errorf("when the source takes more: %d rungs", len(again))
	}
}

// TestRungsTakeLessThanTheirSource: players that sort by bandwidth find the picture as it comes first, however little
// it takes; rungs take more when it does, and stay the same renditions.
func TestRungsTakeLessThanTheirSource(t *testing.T) {
	t.Parallel()
	edge := window.New(window.Options{
		Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler),
	})
	l := NewLive(LiveOptions{
		Edge: edge, Makers: Makers{Maker: justintime.New(justintime.Options{Now: time.Now})}, Timescale: 90000,
		Limits: Limits{Quality: "plus", MaxResolution: "2160p"},
	})
	in := timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 640, Height: 360, FrameRate: 30}
	n := edge.AddInit(frame.Video, 90000, in, []byte{1})
	var names []string
	for i, rate := range []int64{128_000, 8_000_000} {
		edge.Begin(timeline.MainVideo, timeline.Mark{Start: time.Unix(1e9, 0)}, n, int64(i)*180000)
		edge.Part(timeline.MainVideo, make([]byte, rate/8*2), 180000, true)
		edge.Finish(timeline.MainVideo, 180000)
		variants := l.Variants(hls.Variant{}).Below
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
