package slate

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// TestHeld writes nothing while nothing may be written, and afterwards all that came meanwhile, when and in the order
// in which it came: media goes on as if nothing had been, and an encoder that has left is followed by slate of that
// time.
func TestHeld(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		during func(b *bench)
		want   []string
	}{
		"the encoder sends": {
			func(b *bench) { b.send(10*time.Second, frame.Video, frame.Audio) },
			[]string{"content at 0.0: 15.0/15.0"},
		},
		"the encoder leaves": {
			func(b *bench) {
				b.send(2*time.Second, frame.Video, frame.Audio)
				b.leave()
				b.pass(8 * time.Second)
			},
			[]string{"content at 0.0: 5.5/5.6", "slate at 5.5: 9.4/9.4"},
		},
		"another one comes": {
			func(b *bench) {
				b.send(2*time.Second, frame.Video, frame.Audio)
				b.leave()
				b.pass(200 * time.Millisecond)
				b.attach(picture, sound)
				b.send(7800*time.Millisecond, frame.Video, frame.Audio)
			},
			[]string{"content at 0.0: 5.0/5.1", "content at 5.2: 9.8/9.8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				b.begun()
				b.held = true
				before := len(b.stretches[0].frames[frame.Video])
				tt.during(b)
				if n := len(b.stretches[0].frames[frame.Video]); n != before || len(b.stretches) != 1 {
					t.Errorf("%d pictures are written in %d stretches while nothing may be", n-before, len(b.stretches))
				}
				b.held = false
				if b.pub == b.Writer.pub || len(b.later.jobs) > 0 {
					b.send(2*time.Second, frame.Video, frame.Audio)
				} else {
					b.pass(2 * time.Second)
				}
				if b.taken != 0 {
					t.Errorf("%d bytes are held still", b.taken)
				}
				b.want(tt.want...)
			})
		})
	}
}

// TestHeldForTooLong refuses what there is no room for, and gives all of it back.
func TestHeldForTooLong(t *testing.T) {
	t.Parallel()
	run(t, func(b *bench) {
		b.begun()
		b.held, b.most = true, 4096
		var err error
		for at := b.clock; err == nil && at < time.Minute; at += 100 * time.Millisecond {
			err = b.pub.Write(frame.Frame{
				Kind: frame.Video, DTS: at, PTS: at, Duration: 100 * time.Millisecond, Data: []byte{1},
			})
		}
		if !errors.Is(err, ErrHeld) || b.taken == 0 {
			t.Errorf("with %d bytes taken: %v", b.taken, err)
		}
		b.Stop()
		if b.taken != 0 {
			t.Errorf("%d bytes are held still", b.taken)
		}
		if err = b.stretches[0].Close(nil); err != nil { // it was left as it is
			t.Error(err)
		}
	})
}
