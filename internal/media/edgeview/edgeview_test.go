package edgeview_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// set is one rendition, "small", that is published at the edge.
type set struct {
	edge   *window.Edge
	source bool // the video is offered too
}

func (s set) Variants(shared hls.Variant) rendition.Offer {
	shared.URI = hls.PlaylistURI("small")
	return rendition.Offer{Below: []hls.Variant{shared}, Source: s.source}
}

func (set) Withholds() bool { return false }

func (s set) Want(rendition string) bool {
	return rendition == "small" && s.edge.Derived().Add(rendition, timeline.MainVideo) == nil
}

func (set) Chunk(context.Context, string, hls.Resource) (delivered.Body, error) {
	return delivered.Body{Data: []byte("small picture")}, nil
}

// broadcast has one whole segment of two seconds.
func broadcast() edgeview.Broadcast {
	edge := window.New(window.Options{
		Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 2}, Logger: slog.New(slog.DiscardHandler),
	})
	in := timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 1280, Height: 720, FrameRate: 30}
	edge.AddInit(frame.Video, 90000, in, []byte("init"))
	edge.Target(2, map[string]time.Duration{timeline.MainVideo: time.Second})
	edge.Live(true)
	edge.Begin(timeline.MainVideo, timeline.Mark{Start: time.Unix(1e9, 0)}, 0, 0)
	edge.Part(timeline.MainVideo, []byte("picture"), 180000, true)
	edge.Finish(timeline.MainVideo, 180000)
	return edgeview.Broadcast{ID: "m", Edge: edge, Below: rendition.None{}}
}

// TestVariants: a set says what is listed beside the video, or in its place.
func TestVariants(t *testing.T) {
	t.Parallel()
	b := broadcast()
	for name, tt := range map[string]struct {
		below rendition.Set
		want  []string
	}{
		"none":         {rendition.None{}, []string{"v.m3u8"}},
		"beside it":    {set{b.Edge, true}, []string{"v.m3u8", "small.m3u8"}},
		"in its place": {set{b.Edge, false}, []string{"small.m3u8"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := b
			b.Below = tt.below
			m, err := b.View(playback.Watch{Event: true}).Multivariant(t.Context(), playback.Clip{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range m.Variants {
				got = append(got, m.Variants[i].URI)
			}
			if len(got) != len(tt.want) || got[0] != tt.want[0] || got[len(got)-1] != tt.want[len(tt.want)-1] {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestVariantsTakeTheirSound: what is listed of the video and of what is made of it takes its sound too, at most and on
// average.
func TestVariantsTakeTheirSound(t *testing.T) {
	t.Parallel()
	b := broadcast()
	in := timeline.Init{Rendition: timeline.MainAudio, Codec: "mp4a.40.2", Channels: 2}
	n := b.Edge.AddInit(frame.Audio, 48000, in, []byte("init"))
	b.Edge.Begin(timeline.MainAudio, timeline.Mark{Start: time.Unix(1e9, 0)}, n, 0)
	b.Edge.Part(timeline.MainAudio, make([]byte, 16000), 96000, true)
	b.Edge.Finish(timeline.MainAudio, 96000)
	b.Below = set{b.Edge, true}
	m, err := b.View(playback.Watch{Event: true}).Multivariant(t.Context(), playback.Clip{})
	if err != nil || len(m.Variants) != 2 {
		t.Fatalf("%d variants, %v", len(m.Variants), err)
	}
	const sound, picture = 8 * 16000 / 2, 8 * len("picture") / 2 // bit/s; the set's own picture takes nothing
	for i, want := range []int64{sound + int64(picture), sound} {
		v := m.Variants[i]
		if v.Bandwidth != want || v.AverageBandwidth != want {
			t.Errorf("%s: %d bit/s, %d on average; want %d", v.URI, v.Bandwidth, v.AverageBandwidth, want)
		}
	}
}

// TestChunks: what is a set's comes from it, all else from the edge.
func TestChunks(t *testing.T) {
	t.Parallel()
	b := broadcast()
	b.Below = set{b.Edge, true}
	v := b.View(playback.Watch{})
	for name, tt := range map[string]struct {
		rendition string
		r         hls.Resource
		want      string // "": there is none
	}{
		"the video":         {timeline.MainVideo, hls.Resource{Init: -1, Part: -1, Ext: "m4s"}, "picture"},
		"its init segment":  {timeline.MainVideo, hls.Resource{Init: 0, Part: -1, Ext: "mp4"}, "init"},
		"the set's":         {"small", hls.Resource{Init: -1, Part: -1, Ext: "m4s"}, "small picture"},
		"another extension": {timeline.MainVideo, hls.Resource{Init: -1, Part: -1, Ext: "ts"}, ""},
		"another rendition": {"large", hls.Resource{Init: -1, Part: -1, Ext: "m4s"}, ""},
		"far ahead":         {timeline.MainVideo, hls.Resource{Init: -1, MSN: 99, Part: -1, Ext: "m4s"}, ""},
		"of another writer": {"small", hls.Resource{Init: -1, Part: -1, Ext: "m4s", Generation: 7}, ""},
	} {
		data, err := delivered.Bytes(v.Chunk(t.Context(), tt.rendition, tt.r))
		if string(data) != tt.want || (tt.want == "") != fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// TestNames: each kind of rendition has resources by the names of its kind, and by no others.
func TestNames(t *testing.T) {
	t.Parallel()
	b := broadcast()
	b.Below = set{b.Edge, true}
	b.Edge.Texts().Add("subtitles", false)
	v := b.View(playback.Watch{})
	for rendition, has := range map[string]string{
		timeline.MainVideo: "init-0.mp4 0.m4s 0.0.m4s", "small": "init-0.mp4 0.m4s 0.0.m4s", "subtitles": "0.vtt",
	} {
		for name := range strings.FieldsSeq(
			"init-0.mp4 0.m4s 0.0.m4s 0.vtt 0.0.vtt init-0.m4s init-0.vtt 0.mp4 0.0.mp4",
		) {
			r, _ := hls.ParseResource(name) // also of names that nobody can ask for
			_, err := v.Chunk(t.Context(), rendition, r)
			want := slices.Contains(strings.Fields(has), name)
			if want != (err == nil) || !want && !fault.Is(err, fault.NotFound) {
				t.Errorf("%s/%s: %v", rendition, name, err)
			}
		}
	}
}

// TestEnd: the end of a broadcast is in its playlists; nobody begins to watch what has ended.
func TestEnd(t *testing.T) {
	t.Parallel()
	b := broadcast()
	b.Edge.Close()
	if _, err := b.View(playback.Watch{}).Multivariant(t.Context(), playback.Clip{}); !fault.Is(err, fault.NotReady) {
		t.Errorf("live: %v", err)
	}
	if _, err := b.View(playback.Watch{Event: true}).Multivariant(t.Context(), playback.Clip{}); err != nil {
		t.Errorf("the asset: %v", err)
	}
}
