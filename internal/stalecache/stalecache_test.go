package stalecache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
)

// source counts how often it is asked.
type source struct {
	mu    sync.Mutex
	asked int
	err   error
	slow  time.Duration
}

func (s *source) ask(ctx context.Context) (int, error) {
	s.mu.Lock()
	s.asked++
	n := s.asked
	s.mu.Unlock()
	select {
	case <-time.After(s.slow):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return n, s.err
}

func TestGet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, from := New[string, int](10, time.Second), &source{}
		for _, tt := range []struct {
			wait time.Duration
			want int
		}{{0, 1}, {999 * time.Millisecond, 1}, {time.Millisecond, 2}, {time.Hour, 3}} {
			time.Sleep(tt.wait)
			if got, err := s.Get(t.Context(), "k", time.Now(), from.ask); got != tt.want || err != nil {
				t.Errorf("after %v: %d, %v", tt.wait, got, err)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		ttl  time.Duration
		want int // asked by two gets within the time
	}{
		"no such thing is kept":           {fault.New(fault.NotFound, "no"), time.Second, 1},
		"trouble is not":                  {errors.New("away"), time.Second, 2},
		"nor what may be there the next ": {fault.New(fault.NotFound, "no"), 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, from := New[string, int](10, tt.ttl), &source{err: tt.err}
				for range 2 {
					if _, err := s.Get(t.Context(), "k", time.Now(), from.ask); !errors.Is(err, tt.err) {
						t.Errorf("got %v", err)
					}
				}
				if from.asked != tt.want {
					t.Errorf("asked %d times", from.asked)
				}
				time.Sleep(time.Second)
				from.err = nil
				if _, err := s.Get(t.Context(), "k", time.Now(), from.ask); err != nil {
					t.Errorf("a second later: %v", err)
				}
			})
		})
	}
}

func TestHerd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, from := New[string, int](10, time.Second), &source{slow: 100 * time.Millisecond}
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 100 {
			ctx := t.Context()
			if i == 0 {
				ctx = first // who asks for all may go away
			}
			wg.Go(func() {
				if got, err := s.Get(ctx, "k", time.Now(), from.ask); got != 1 || err != nil {
					t.Errorf("%d, %v", got, err)
				}
			})
			if i == 0 {
				synctest.Wait()
			}
		}
		gone, leave := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, err := s.Get(gone, "k", time.Now(), from.ask); !errors.Is(err, context.Canceled) {
				t.Errorf("who went away got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		leave()
		wg.Wait()
		if from.asked != 1 {
			t.Errorf("asked %d times", from.asked)
		}
	})
}

func TestBounded(t *testing.T) {
	t.Parallel()
	s := New[string, int](10, time.Hour)
	now := time.Now()
	missing := &source{err: fault.New(fault.NotFound, "no")}
	there := &source{}
	if _, err := s.Get(t.Context(), "real", now, there.ask); err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // made-up names push nothing real out
		_, _ = s.Get(t.Context(), fmt.Sprint(i), now, missing.ask)
	}
	if _, _ = s.Get(t.Context(), "real", now, there.ask); there.asked != 1 {
		t.Errorf("asked %d times", there.asked)
	}
	for i := range 100 {
		_, _ = s.Get(t.Context(), fmt.Sprint(-i), now, there.ask)
	}
	if len(s.values) > 10 || len(s.misses) > 10 || len(s.calls) != 0 {
		t.Errorf("%d values, %d misses, %d calls", len(s.values), len(s.misses), len(s.calls))
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	s, from := New[string, int](10, 0), &source{}
	for _, want := range []int{1, 1, 2} {
		got, err := s.GetIf(t.Context(), "k", time.Now(), func(have int) bool { return have >= want }, from.ask)
		if got != want || err != nil {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
}

// TestSurvivesAPanic does not leave those who wait hanging.
func TestSurvivesAPanic(t *testing.T) {
	t.Parallel()
	s := New[string, int](10, time.Second)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = s.Get(t.Context(), "k", time.Now(), func(context.Context) (int, error) { panic("boom") })
	}()
	if got, err := s.Get(t.Context(), "k", time.Now(), func(context.Context) (int, error) {
		return 7, nil
	}); got != 7 || err != nil {
		t.Errorf("afterwards: %d, %v", got, err)
	}
}
