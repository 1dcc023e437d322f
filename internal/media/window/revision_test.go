package window

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// TestRevised: who waits for a change is told about it, about the end too, and is given the same revision when its time
// is over.
func TestRevised(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Logger: slog.New(slog.DiscardHandler)})
		e.AddInit(frame.Audio, 48000, timeline.Init{Rendition: timeline.MainAudio, Codec: "mp4a.40.2"}, []byte("init"))
		e.Live(true)
		now := e.Revised(t.Context(), ^uint64(0))
		for _, change := range []func(){func() { e.Live(false) }, e.Close} {
			told := make(chan Revision)
			go func() { told <- e.Revised(t.Context(), now.Number) }()
			synctest.Wait()
			change()
			next := <-told
			if next.Number <= now.Number {
				t.Errorf("%+v after %+v", next, now)
			}
			now = next
		}
		if !now.Ended {
			t.Errorf("at the end: %+v", now)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := e.Revised(ctx, now.Number); r != now || time.Since(began) != time.Second {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
	})
}
