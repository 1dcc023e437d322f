package queue

import (
	"context"
	"strconv"
	"testing"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestPlaces has owners come one after the other with more jobs than there are places.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := newPlaces(16)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var leave []func()
	for i, want := range []int{8, 4, 2, 1} {
		owner, got := strconv.Itoa(i), 0
		for range 100 {
			if out, _ := p.enter(owner, now); out != nil {
				leave = append(leave, out)
				got++
			}
		}
		if got != want {
			t.Errorf("owner %d has %d places, want %d", i, got, want)
		}
	}
	var last time.Duration
	for n := range 1000 {
		_, after := p.enter("0", now)
		if after <= last {
			t.Fatalf("job %d comes back after %v, like the one before", n, after)
		}
		last = after
	}
	if last > 3*time.Minute {
		t.Errorf("the last of 1,092 jobs comes back after %v", last)
	}
	for _, out := range leave {
		out()
	}
	if p.free != 16 || len(p.held)+len(p.turn) > 0 {
		t.Errorf("left over: %+v", p)
	}
}

// TestOwnersShareAQueue has one owner ask for many times what there are places for, from hosts that never come to an
// end. Another's are fetched at once.
func TestOwnersShareAQueue(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		own := placesOf(job.Fetching, defaultWorkers) / 2
		many := 3 * own
		greedy, fetched := make(chan bool, many), make(chan bool, 1)
		run(t, d, "n", nil,
			job.Handler{Kind: "test.slow", Work: func(ctx context.Context, _ job.Job) error {
				greedy <- true
				<-ctx.Done()
				return ctx.Err()
			}},
			job.Handler{Kind: "test.fetch", Work: func(context.Context, job.Job) error {
				fetched <- true
				return nil
			}})
		ask := func(kind, key, owner string) {
			j := newJob(kind, key)
			j.Owner = owner
			must(t, d.Enqueue(t.Context(), j))
		}
		for n := range many {
			ask("test.slow", strconv.Itoa(n), "greedy")
		}
		for range own {
			got(t, greedy, "a job that waits")
		}
		ask("test.fetch", "a", "other")
		got(t, fetched, "a job of another owner")
		if len(greedy) > 0 {
			t.Errorf("one owner has more than %d places", own)
		}
	})
}
