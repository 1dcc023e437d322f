package broadcast

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"millrace/internal/fault"
)

func TestMailboxKeepsOrderAndNeverBlocks(t *testing.T) {
	t.Parallel()
	m := newMailbox()
	var got []int
	for i := range 1000 {
		if !m.post(func() { got = append(got, i) }) {
			t.Fatal("refused")
		}
	}
	<-m.ready
	for _, job := range m.take() {
		job()
	}
	if len(got) != 1000 || !slices.IsSorted(got) {
		t.Errorf("got %d", len(got))
	}
	m.post(func() {})
	if rest := m.close(); len(rest) != 1 || m.post(func() {}) {
		t.Errorf("after close: %d left", len(rest))
	}
}

// TestOutbox plays what a database returns for the attempts of three outbox, the second of which has trouble.
func TestOutbox(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	var e outbox
	var done, failed, left []string
	results := []error{away, away, fault.New(fault.Unavailable, "away"), fault.New(fault.Conflict, "moved on")}
	note := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a message may hang")
			}
			done = append(done, name)
			return nil
		}
	}
	e.add("first", note("first"))
	e.add("second", func(context.Context) error {
		err := results[0]
		results = results[1:]
		return err
	})
	e.add("third", note("third"))
	run := func() {
		e.run(t.Context(), clock, func(what string, _ error) {
			failed = append(failed, what)
		}, func(what string, _ error) { left = append(left, what) })
	}
	run()
	run() // too early
	var pauses []time.Duration
	for {
		at, busy := e.due()
		if !busy {
			break
		}
		pauses = append(pauses, at.Sub(now))
		now = at
		run()
	}
	if !slices.Equal(done, []string{"first", "third"}) || len(failed) != 3 || !slices.Equal(left, []string{"second"}) {
		t.Errorf("done %v, failed %v, left %v", done, failed, left)
	}
	if !slices.Equal(pauses, []time.Duration{firstPause, 2 * firstPause, 4 * firstPause}) {
		t.Errorf("pauses %v", pauses)
	}
}
