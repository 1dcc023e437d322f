package presentation

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
)

// TestRungsBehindTheEnd has viewers ask for what was listed of a rung while the slate was shown that its recording does
// not end with.
func TestRungsBehindTheEnd(t *testing.T) {
	t.Parallel()
	store, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // it is only a test's
	entries := []timeline.Entry{
		{Target: 2}, {Rendition: &timeline.RenditionInfo{ID: timeline.MainVideo, Kind: frame.Video, Timescale: 90000}},
	}
	for i, slate := range []bool{false, true} {
		entries = append(entries, timeline.Entry{Init: &timeline.Init{
			Rendition: timeline.MainVideo, Codec: "avc1.640028", Width: 1280, Height: 720, FrameRate: 30,
			Object: "media/m/v/init.mp4",
		}}, timeline.Entry{Segment: &timeline.Segment{MSN: 7 + int64(i), Slate: slate, Chunks: []timeline.Chunk{{
			Rendition: timeline.MainVideo, Init: i, Time: int64(i) * 180000, Duration: 180000, Size: 5,
			Independent: true, Object: "media/m/v/segment",
		}}}})
	}
	whole, err := timeline.Build(entries)
	if err != nil {
		t.Fatal(err)
	}
	concluded, err := whole.Concluded(0)
	if err != nil {
		t.Fatal(err)
	}
	maker := justintime.New(justintime.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	p := New(Options{Blob: store, Renditions: maker, Now: time.Now})
	v, err := p.present(t.Context(), asset.Asset{Media: "m", LiveStream: "live"}, concluded)
	if err != nil || len(v.below.Renditions()) == 0 {
		t.Fatalf("no rendition below the source, %v", err)
	}
	name := v.below.Renditions()[0].ID
	for key, data := range map[string]string{
		"media/m/" + name + "/init.mp4": "rung init", "media/m/" + name + "/8.m4s": "rung slate",
		"media/m/v/init.mp4": "init", "media/m/v/segment": "slate",
	} {
		if err := store.Put(t.Context(), key, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	for rendition, numbers := range map[string]string{name: "7 8", timeline.MainVideo: "7 8"} {
		for number := range strings.FieldsSeq(numbers) {
			for _, ext := range []string{".vtt", ".mp4", ".0.m4s", ".0.vtt", ".aac"} {
				r, _ := hls.ParseResource(number + ext) // also of names that nobody can ask for
				if data, err := delivered.Bytes(v.Chunk(t.Context(), rendition, r)); !fault.Is(err, fault.NotFound) {
					t.Errorf("%s/%s%s: %q, %v", rendition, number, ext, data, err)
				}
			}
		}
	}
	for _, tt := range []struct {
		rendition string
		resource  hls.Resource
		want      string
	}{
		{name, hls.Resource{Init: 0, Part: -1, Ext: "mp4"}, "rung init"},
		{name, hls.Resource{Init: -1, MSN: 8, Part: -1, Ext: "m4s"}, "rung slate"},
		{timeline.MainVideo, hls.Resource{Init: 1, Part: -1, Ext: "mp4"}, "init"},
		{timeline.MainVideo, hls.Resource{Init: -1, MSN: 8, Part: -1, Ext: "m4s"}, "slate"},
		{timeline.MainVideo, hls.Resource{Init: -1, MSN: 9, Part: -1, Ext: "m4s"}, ""},
		{timeline.MainVideo, hls.Resource{Init: 2, Part: -1, Ext: "mp4"}, ""},
	} {
		data, err := delivered.Bytes(v.Chunk(t.Context(), tt.rendition, tt.resource))
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s %+v is there", tt.rendition, tt.resource)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %+v: %v", tt.rendition, tt.resource, err)
			continue
		}
		if string(data) != tt.want {
			t.Errorf("%s %+v is %q", tt.rendition, tt.resource, data)
		}
	}
}

// TestNames: each kind of rendition of a recording has resources by the names of its kind, and by no others.
func TestNames(t *testing.T) {
	t.Parallel()
	store, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // it is only a test's
	entries := []timeline.Entry{{Target: 2}}
	var chunks []timeline.Chunk
	for id, kind := range map[string]frame.Kind{timeline.MainVideo: frame.Video, timeline.MainAudio: frame.Audio} {
		entries = append(entries,
			timeline.Entry{Rendition: &timeline.RenditionInfo{ID: id, Kind: kind, Timescale: 90000}},
			timeline.Entry{Init: &timeline.Init{Rendition: id, Codec: "avc1.640028", Object: "media/m/init"}})
		chunks = append(chunks, timeline.Chunk{
			Rendition: id, Duration: 180000, Size: 5, Independent: true, Object: "media/m/segment",
		})
	}
	whole, err := timeline.Build(append(entries, timeline.Entry{Segment: &timeline.Segment{Chunks: chunks}}))
	if err != nil {
		t.Fatal(err)
	}
	for key, data := range map[string]string{
		"media/m/init": "init", "media/m/segment": "media", "media/m/cues": "WEBVTT\n",
	} {
		if err = store.Put(t.Context(), key, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	maker := justintime.New(justintime.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	row := asset.Asset{Media: "m", Tracks: []asset.Track{
		{ID: "cues", Type: asset.TextTrack, Status: asset.TrackReady, Rendition: "cues", Object: "media/m/cues"},
	}}
	v, err := New(Options{Blob: store, Renditions: maker, Now: time.Now}).present(t.Context(), row, whole)
	if err != nil {
		t.Fatal(err)
	}
	for rendition, has := range map[string]string{
		timeline.MainVideo: "init-0.mp4 0.m4s", timeline.MainAudio: "init-0.mp4 0.m4s", "cues": "0.vtt",
	} {
		for name := range strings.FieldsSeq(
			"init-0.mp4 0.m4s 0.0.m4s 0.vtt 0.0.vtt init-0.m4s init-0.vtt 0.mp4 0.0.mp4",
		) {
			r, _ := hls.ParseResource(name) // also of names that nobody can ask for
			b, err := v.Chunk(t.Context(), rendition, r)
			want := slices.Contains(strings.Fields(has), name)
			text := want && rendition == "cues"
			if want != (err == nil) || !want && !fault.Is(err, fault.NotFound) || b.Text != text {
				t.Errorf("%s/%s: %v, text %t", rendition, name, err, b.Text)
			}
			if b.Reader != nil {
				_ = b.Reader.Close()
			}
		}
	}
}
