package packager_test

import (
	"bytes"
	"testing"
	"time"

	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// reader reads the playlist of the picture with each part of it.
type reader struct {
	packager.Edge
	read func() []byte
	last []byte
}

func (r *reader) Part(id string, buf []byte, ticks int64, independent bool) bool {
	done := r.Edge.Part(id, buf, ticks, independent)
	if id == timeline.MainVideo {
		r.last = r.read()
	}
	return done
}

// TestNoHintBehindTheLastPart: anyone who waits for the last part of a stretch is not promised another one behind it.
func TestNoHintBehindTheLastPart(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *packager.Packager) error{
		"the encoder leaves": func(p *packager.Packager) error { return p.Close(nil) },
		"a jump":             func(p *packager.Packager) error { return p.Discontinuity("jump") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			edge := &reader{Edge: b.edge, read: func() []byte {
				text, _ := b.edge.Playlist(t.Context(), timeline.MainVideo, window.Reload{MSN: -1, Part: -1}, false)
				return text
			}}
			p := packager.New(packager.Options{Edge: edge, Segment: 2 * time.Second, Part: part})
			b.play(p, script{fps: 30, gop: 60, seconds: 5.1})
			if !bytes.Contains(edge.last, []byte("#EXT-X-PRELOAD-HINT")) {
				t.Fatalf("no hint in\n%s", edge.last)
			}
			edge.last = nil
			if err := end(p); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(edge.last, []byte("#EXT-X-PART:")) ||
				bytes.Contains(edge.last, []byte("#EXT-X-PRELOAD-HINT")) {
				t.Errorf("behind the last part\n%s", edge.last)
			}
		})
	}
}
