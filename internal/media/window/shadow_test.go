package window

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// shadowed is a rig with a shadow of its video.
func shadowed(t *testing.T, o Options) *rig {
	t.Helper()
	o.Mode = low
	r := newRig(o)
	r.start()
	if err := r.AddShadow("s", "v"); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestShadowOfTheLost has a storage that is away: a shadow's segment that is to be made of one that is lost becomes a gap with it, as nobody
// can make it.
func TestShadowOfTheLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := shadowed(t, Options{MaxHeld: 1400})
		r.store.before = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		defer r.run(t)()
		for range 6 {
			r.segment(7, false)
		}
		have, want := r.list(t, "s", now()), r.list(t, "v", now())
		for i, s := range want.segs {
			if have.segs[i].gap != s.gap {
				t.Errorf("segment %d: gap %v, in the source %v", s.msn, have.segs[i].gap, s.gap)
			}
		}
	})
}

// TestShadowWhenTheEncoderLeaves has somebody wait for a shadow's next part when the source's encoder leaves: he is told at once that it
// does not come.
func TestShadowWhenTheEncoderLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := shadowed(t, Options{})
		r.segment(7, false)
		c := r.fetch(t.Context(), "s", 7, 7)
		waits(t, c)
		r.Live(false)
		synctest.Wait()
		select {
		case a := <-c:
			if !errors.Is(a.err, ErrUnknown) || a.after != 0 {
				t.Errorf("after %v: %v", a.after, a.err)
			}
		default:
			t.Error("he still waits")
		}
	})
}
