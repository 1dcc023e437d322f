package packager_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// TestCutToSlate: slate begins with the picture that it is cut at, in every rendition; what was open before is the
// encoder's, though it is closed later, and so are the gaps of a rendition that has no media.
func TestCutToSlate(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]*script{
		"picture and sound":         nil,
		"sound has been and is not": {fps: 30, gop: 30, seconds: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			content := 5 * time.Second
			if before != nil {
				p := b.publication(2*time.Second, 290*time.Millisecond)
				b.play(p, *before)
				if err := p.Close(nil); err != nil {
					t.Fatal(err)
				}
				content += 4 * time.Second
			}
			p := b.publication(2*time.Second, 290*time.Millisecond)
			b.play(p, script{fps: 30, gop: 60, seconds: 5, noAudio: before != nil})
			p.Cut(true)
			var err error
			for i := range 3 {
				const long = 200 * time.Millisecond
				from := 5*time.Second + time.Duration(i)*long
				err = errors.Join(err, p.Write(frame.Frame{
					Kind: frame.Video, DTS: from, PTS: from, Duration: long, Key: true,
					Data: []byte{0, 0, 0, 2, 0x65, 1},
				}))
				for at := from; before == nil && at < from+long; at += long / 8 {
					err = errors.Join(err, p.Write(frame.Frame{
						Kind: frame.Audio, DTS: at, PTS: at, Duration: long / 8, Key: true, Data: make([]byte, 200),
					}))
				}
			}
			if err = errors.Join(err, p.Close(nil)); err != nil {
				t.Fatal(err)
			}
			tl := b.finish()
			b.check(tl)
			sent, stood := 0.0, 0.0
			for i, m := range tl.Marks {
				if seconds := tl.Rendition(timeline.MainVideo).Seconds(i); m.Slate {
					stood += seconds
				} else {
					sent += seconds
				}
			}
			if n := len(tl.Marks); sent != content.Seconds() || stood != 0.6 || !tl.Marks[n-1].Slate ||
				tl.Marks[n-2].Slate {
				t.Errorf("%.3f s are the encoder's and %.3f s slate: %+v", sent, stood, tl.Marks)
			}
		})
	}
}
