package stalecache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
)

func TestDrop(t *testing.T) {
	t.Parallel()
	s, now := New[string, int](10, time.Hour), time.Now()
	is := func(n int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return n, nil }
	}
	expect := func(what string, n, want int) {
		t.Helper()
		if got, err := s.Get(t.Context(), "k", now, is(n)); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", what, got, err, want)
		}
	}
	expect("asked", 1, 1)
	expect("kept", 2, 1)
	s.Drop("k")
	expect("dropped", 3, 3)
	s.DropIf(func(n int) bool { return n == 4 })
	expect("another was dropped", 5, 3)
	s.DropIf(func(n int) bool { return n == 3 })
	if _, err := s.Get(t.Context(), "k", now, func(context.Context) (int, error) {
		s.Drop("k") // the change comes while the source responds: what it says may be older
		return 6, nil
	}); err != nil {
		t.Error(err)
	}
	expect("what was old on arrival is not kept", 7, 7)
	s.DropAll()
	expect("everything was dropped", 8, 8)
	gone := func(context.Context) (int, error) { return 0, fault.New(fault.NotFound, "gone") }
	if _, err := s.Get(t.Context(), "other", now, gone); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	s.DropAll()
	if got, err := s.Get(t.Context(), "other", now, is(9)); got != 9 || err != nil {
		t.Errorf("what was missing: %d, %v", got, err)
	}
}

// TestGoodFor: a cache may hold on to its values for a shorter time while the source does not respond.
func TestGoodFor(t *testing.T) {
	t.Parallel()
	s, began := New[string, int](10, time.Second).GoodFor(time.Minute), time.Now()
	trouble := fault.New(fault.Unavailable, "database is away")
	get := func(after time.Duration, err error) error {
		_, err = s.Get(t.Context(), "k", began.Add(after), func(context.Context) (int, error) { return 1, err })
		return err
	}
	if err := errors.Join(get(0, nil), get(59*time.Second, trouble)); err != nil {
		t.Error(err)
	}
	if err := get(61*time.Second, trouble); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after a minute: %v", err)
	}
}

func TestSourceFails(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := New[string, int](10, time.Second)
	asked := 0
	get := func(after time.Duration, says int, err error) (int, error) {
		return s.Get(t.Context(), "k", began.Add(after), func(context.Context) (int, error) {
			asked++
			return says, err
		})
	}
	trouble := fault.New(fault.Unavailable, "database is away")
	for _, step := range []struct {
		after time.Duration
		says  int
		err   error
		want  int
		fails error
		asked int
	}{
		{after: 0, says: 1, want: 1, asked: 1},
		{after: time.Second, err: trouble, want: 1, asked: 2},
		// a source that is away is not asked at every turn
		{after: 1900 * time.Millisecond, err: trouble, want: 1, asked: 2},
		{after: 3 * time.Second, err: errors.New("broken"), want: 1, asked: 3},
		{after: 5 * time.Second, says: 2, want: 2, asked: 4},
		{after: 5*time.Second + stale, err: trouble, fails: trouble, asked: 5},
		{after: 6*time.Second + stale, says: 3, want: 3, asked: 6},
		{
			after: 8*time.Second + stale, err: fault.New(fault.NotFound, "gone"),
			fails: fault.New(fault.NotFound, "gone"), asked: 7,
		},
		{after: 10*time.Second + stale, err: trouble, fails: trouble, asked: 8}, // what is gone does not come back
	} {
		got, err := get(step.after, step.says, step.err)
		if got != step.want || fault.KindOf(err) != fault.KindOf(step.fails) || (err == nil) != (step.fails == nil) ||
			asked != step.asked {
			t.Errorf("after %v: %d, %v, asked %d times; want %d, %v, %d", step.after, got, err, asked, step.want,
				step.fails, step.asked)
		}
	}
}

// TestSourceIsSlow: a database that hangs keeps nobody waiting who has a response, and says when it did not respond to
// others.
func TestSourceIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New[string, int](10, 2*time.Second)
		get := func(says int, slow time.Duration, want int, took time.Duration) {
			t.Helper()
			from, began := &source{asked: says - 1, slow: slow}, time.Now()
			got, err := s.Get(t.Context(), "k", began, from.ask)
			if got != want || err != nil || time.Since(began) != took {
				t.Errorf("%d, %v after %v; want %d after %v", got, err, time.Since(began), want, took)
			}
		}
		get(1, 0, 1, 0)
		time.Sleep(2 * time.Second)
		get(2, time.Hour, 1, prompt)
		get(3, time.Hour, 1, 0) // who comes later waits no more
		time.Sleep(patience)
		get(4, time.Hour, 1, prompt) // asked again
		time.Sleep(patience)
		get(5, 2*prompt, 1, prompt)
		time.Sleep(2 * prompt)
		get(6, 0, 5, 0) // what came late counts
		time.Sleep(2 * time.Second)
		get(7, 0, 7, 0)
		if _, err := s.Get(t.Context(), "other", time.Now(),
			(&source{slow: time.Hour}).ask); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("of what never had a response: %v of kind %v", err, fault.KindOf(err))
		}
	})
}

// TestPanicWhileRefreshing: nobody waits for it who could be told, and the process goes on.
func TestPanicWhileRefreshing(t *testing.T) {
	t.Parallel()
	s, now := New[string, int](10, 0), time.Now()
	fits := func(want int) func(int) bool { return func(have int) bool { return have >= want } }
	get := func(want int, ask func(context.Context) (int, error)) (int, error) {
		return s.GetIf(t.Context(), "k", now, fits(want), ask)
	}
	if _, err := get(1, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	s.ttl, now = time.Nanosecond, now.Add(time.Second)
	if got, err := get(1, func(context.Context) (int, error) { panic("boom") }); got != 1 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}
