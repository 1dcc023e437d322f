package tally

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/usage"
	"millrace/internal/media/metering"
)

// book is a database that can be away.
type book struct {
	mu      sync.Mutex
	away    bool
	seconds float64
	writes  int
	old     int // how often there is more to remove
	removed int
	shared  int
}

func (b *book) Add(_ context.Context, all []usage.Delivered, _ time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return errors.New("away")
	}
	b.writes++
	for _, d := range all {
		b.seconds += d.Seconds.Sum()
	}
	return nil
}

func (b *book) Forget(context.Context, time.Time) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removed++
	return b.removed < b.old, nil
}

func (b *book) share(context.Context, time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shared++
	return nil
}

func (b *book) leave(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

func (b *book) read() (seconds float64, writes, removed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seconds, b.writes, b.removed
}

func TestTally(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m metering.Meter
		b := &book{old: 3}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = New(Options{
				Meter: &m, Usage: b, Share: b.share, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
			}).Run(ctx)
		}()
		film, talk := m.Counter(metering.Asset{ID: "film"}), m.Counter(metering.Asset{ID: "talk"})
		step := func(d time.Duration, wantSeconds float64, wantWrites int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if seconds, writes, _ := b.read(); seconds != wantSeconds || writes != wantWrites {
				t.Errorf("%g seconds in %d writes, want %g in %d", seconds, writes, wantSeconds, wantWrites)
			}
		}
		film.Add(metering.Tier720, 2*time.Second)
		talk.Add(metering.AudioOnly, time.Second)
		step(every+1, 3, 1)
		step(every, 3, 1) // nothing was delivered: nothing is written
		b.leave(true)
		film.Add(metering.Tier2160, 4*time.Second)
		step(every, 3, 1)
		film.Add(metering.Tier720, 8*time.Second)
		step(every, 3, 1)
		b.leave(false)
		step(every, 15, 2)
		film.Add(metering.Tier720, 16*time.Second)
		stop()
		<-ended
		if b.shared != 5 {
			t.Errorf("other nodes were told %d times", b.shared)
		}
		if seconds, _, _ := b.read(); seconds != 31 {
			t.Errorf("%g seconds after the end, want 31", seconds)
		}
	})
}

// TestStoppedWhileItWrites: what the stop has broken off is written last, and alarms nobody, unless that fails, too.
func TestStoppedWhileItWrites(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var m metering.Meter
			var said strings.Builder
			b := &book{}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = New(Options{
					Meter: &m, Usage: slowBook{b}, Share: b.share, Now: time.Now,
					Logger: slog.New(slog.NewTextHandler(&said, nil)),
				}).Run(ctx)
			}()
			m.Counter(metering.Asset{ID: "film"}).Add(metering.Tier720, 2*time.Second)
			time.Sleep(every + slow/2)
			b.leave(away)
			stop()
			<-ended
			if seconds, writes, _ := b.read(); !away && (seconds != 2 || writes != 1) {
				t.Errorf("%g seconds in %d writes, want 2 in 1", seconds, writes)
			}
			if lines := strings.Count(said.String(), "level=WARN"); away != (lines == 1) || lines > 1 {
				t.Errorf("away %t: %s", away, said.String())
			}
		})
	}
}

// slow is how long a slowBook takes.
const slow = time.Second

// slowBook is a book whose writes can be broken off.
type slowBook struct{ *book }

func (s slowBook) Add(ctx context.Context, all []usage.Delivered, now time.Time) error {
	select {
	case <-time.After(slow):
		return s.book.Add(ctx, all, now)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestPruning looks again soon while there is more, and seldom otherwise.
func TestPruning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &book{old: 3}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = New(Options{
				Meter: &metering.Meter{}, Usage: b, Share: b.share, Now: time.Now,
				Logger: slog.New(slog.DiscardHandler),
			}).Run(ctx)
		}()
		for want, pause := range []time.Duration{0, soon, soon, soon, prune - 1, 1} {
			time.Sleep(pause)
			synctest.Wait()
			if _, _, removed := b.read(); removed != min(want, 3)+want/5 {
				t.Errorf("step %d: removed %d times", want, removed)
			}
		}
		stop()
		<-ended
	})
}
