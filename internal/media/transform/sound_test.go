package transform

import (
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
)

// written notes the times of what is written: pictures are negative.
type written struct {
	Output

	times []time.Duration
}

func (w *written) Configure(frame.Config) error { return nil }

func (w *written) Write(f frame.Frame) error {
	at := f.PTS
	if f.Kind == frame.Video {
		at = -at
	}
	w.times = append(w.times, at)
	return nil
}

// TestSoundWaitsForASlowEncoder: sound is at most half a second ahead of the pictures in the encoder, and waits for
// three seconds at most.
func TestSoundWaitsForASlowEncoder(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var out written
	r := &run{ended: make(chan struct{}), begun: true}
	w := &worker{out: &out, run: r}
	sound := func(at time.Duration) {
		t.Helper()
		if err := w.sound(frame.Frame{Kind: frame.Audio, PTS: at}); err != nil {
			t.Fatal(err)
		}
	}
	wrote := func(what string, want ...time.Duration) {
		t.Helper()
		if !slices.Equal(out.times, want) {
			t.Errorf("%s: wrote %v, want %v", what, out.times, want)
		}
		out.times = nil
	}
	sound(100 * ms)
	wrote("nothing is in the encoder", 100*ms)
	for at := 200 * ms; at <= 4000*ms; at += 1000 * ms {
		r.expect(&frame.Frame{PTS: at, DTS: at, Duration: 40 * ms})
	}
	for _, at := range []time.Duration{600 * ms, 700 * ms, 800 * ms, 1500 * ms} {
		sound(at)
	}
	wrote("the encoder has the picture at 200 ms", 600*ms, 700*ms)
	if err := w.encoded(r, flv.Tag{PTS: begin + 200*ms}); err != nil {
		t.Fatal(err)
	}
	wrote("the picture has come", -200*ms, 800*ms, 1500*ms)
	sound(2000 * ms)
	sound(4100 * ms)
	wrote("the next one has not")
	sound(4200 * ms)
	wrote("it takes too long", 2000*ms, 4100*ms, 4200*ms)
	sound(2050 * ms)
	if err := w.configure(frame.Config{Kind: frame.Audio}); err != nil {
		t.Fatal(err)
	}
	wrote("other parameters of the sound follow", 2050*ms)
	sound(2100 * ms)
	wrote("sound of a clock that goes back waits")
	close(r.ended)
	sound(2200 * ms)
	wrote("the encoder has ended", 2100*ms, 2200*ms)
}
