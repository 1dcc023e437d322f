package prune

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

type fakeStore struct {
	left   int
	calls  []time.Duration // since the beginning
	began  time.Time
	before time.Time
	broken bool
}

func (f *fakeStore) prune(_ context.Context, before time.Time, limit int) (int, error) {
	f.calls, f.before = append(f.calls, time.Since(f.began)), before
	if f.broken = !f.broken; f.broken {
		return 0, errors.New("away")
	}
	n := min(f.left, limit)
	f.left -= n
	return n, nil
}

// TestPruner removes what there is in small steps with pauses between them, and goes on after an error.
func TestPruner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{left: 250, began: time.Now()}
		p := &Pruner{
			What: "events", Prune: f.prune, Keep: time.Hour, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		if err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if f.left != 0 || len(f.calls) < 6 || f.calls[0] != every || f.calls[1] != 2*every ||
			f.calls[2] != 2*every+pause {
			t.Errorf("%d left after %v", f.left, f.calls)
		}
		if want := f.began.Add(f.calls[len(f.calls)-1] - time.Hour); !f.before.Equal(want) {
			t.Errorf("removed what is before %v, want %v", f.before, want)
		}
	})
}
