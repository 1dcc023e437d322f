package bridge

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
)

func TestShelfDrop(t *testing.T) {
	t.Parallel()
	s, now := newShelf[string, int](10, time.Hour), time.Now()
	is := func(n int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return n, nil }
	}
	expect := func(what string, n, want int) {
		t.Helper()
		if got, err := s.get(t.Context(), "k", now, is(n)); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", what, got, err, want)
		}
	}
	expect("asked", 1, 1)
	expect("kept", 2, 1)
	s.drop("k")
	expect("dropped", 3, 3)
	s.dropIf(func(n int) bool { return n == 4 })
	expect("another was dropped", 5, 3)
	s.dropIf(func(n int) bool { return n == 3 })
	if _, err := s.get(t.Context(), "k", now, func(context.Context) (int, error) {
		s.drop("k") // the change comes while the source answers: what it says may be older
		return 6, nil
	}); err != nil {
		t.Error(err)
	}
	expect("what was old on arrival is not kept", 7, 7)
}

func TestShelfWhileTheSourceIsAway(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := newShelf[string, int](10, time.Second)
	asked := 0
	get := func(after time.Duration, says int, err error) (int, error) {
		return s.get(t.Context(), "k", began.Add(after), func(context.Context) (int, error) { asked++; return says, err })
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
		{after: 1900 * time.Millisecond, err: trouble, want: 1, asked: 2}, // a source that is away is not asked at every turn
		{after: 3 * time.Second, err: errors.New("broken"), want: 1, asked: 3},
		{after: 5 * time.Second, says: 2, want: 2, asked: 4},
		{after: 5*time.Second + stale, err: trouble, fails: trouble, asked: 5},
		{after: 6*time.Second + stale, says: 3, want: 3, asked: 6},
		{after: 8*time.Second + stale, err: fault.New(fault.NotFound, "gone"), fails: fault.New(fault.NotFound, "gone"), asked: 7},
		{after: 10*time.Second + stale, err: trouble, fails: trouble, asked: 8}, // what is gone does not come back
	} {
		got, err := get(step.after, step.says, step.err)
		if got != step.want || fault.KindOf(err) != fault.KindOf(step.fails) || (err == nil) != (step.fails == nil) || asked != step.asked {
			t.Errorf("after %v: %d, %v, asked %d times; want %d, %v, %d", step.after, got, err, asked, step.want, step.fails, step.asked)
		}
	}
}

// TestShelfWhileTheSourceIsSilent: a database that hangs keeps nobody waiting who has an answer, and says when it did not answer others.
func TestShelfWhileTheSourceIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[string, int](10, 2*time.Second)
		get := func(says int, slow time.Duration, want int, took time.Duration) {
			t.Helper()
			from, began := &source{asked: says - 1, slow: slow}, time.Now()
			got, err := s.get(t.Context(), "k", began, from.ask)
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
		if _, err := s.get(t.Context(), "other", time.Now(), (&source{slow: time.Hour}).ask); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("of what was never answered: %v of kind %v", err, fault.KindOf(err))
		}
	})
}

// TestShelfPanicsBehindAnAnswer: nobody waits for it who could be told, and the process goes on.
func TestShelfPanicsBehindAnAnswer(t *testing.T) {
	t.Parallel()
	s, now := newShelf[string, int](10, 0), time.Now()
	fits := func(want int) func(int) bool { return func(have int) bool { return have >= want } }
	get := func(want int, ask func(context.Context) (int, error)) (int, error) {
		return s.getIf(t.Context(), "k", now, fits(want), ask)
	}
	if _, err := get(1, func(context.Context) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	s.ttl, now = time.Nanosecond, now.Add(time.Second)
	if got, err := get(1, func(context.Context) (int, error) { panic("boom") }); got != 1 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}
