package db_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"millrace/internal/control/event"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// atOnce has changes wait for their turn in order, and then be written in one transaction. It gives what came of each;
// a panic is an error here.
func atOnce(
	t *testing.T, d *db.DB, changes ...func(context.Context) error,
) []chan error {
	t.Helper()
	free := d.HoldTurn()
	results := make([]chan error, len(changes))
	for i, change := range changes {
		results[i] = make(chan error, 1)
		go func() {
			defer func() {
				if p := recover(); p != nil {
					results[i] <- fmt.Errorf("it panicked: %v", p)
				}
			}()
			results[i] <- change(t.Context())
		}()
		d.AwaitWaiting(i + 1)
	}
	free()
	return results
}

// insertInto is a change that inserts a number, and does then something more.
func insertInto(d *db.DB, n int, then func() error) func(context.Context) error {
	return func(ctx context.Context) error {
		return d.InTransaction(ctx, func(exec func(context.Context, string) error) error {
			if err := exec(context.WithoutCancel(ctx), fmt.Sprintf("INSERT INTO numbers VALUES (%d)", n)); err != nil {
				return err
			}
			return then()
		})
	}
}

func nothing() error { return nil }

// TestTogether: changes that wait at the same time are committed together, in the order in which they came. One that
// fails or panics is taken back as a whole, and leaves the others alone.
func TestTogether(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	must(t, d.Exec(t.Context(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))
	failure := errors.New("a failure")
	results := atOnce(t, d,
		insertInto(d, 1, nothing),
		insertInto(d, 2, func() error { return failure }),
		insertInto(d, 3, func() error { panic("a mistake") }),
		insertInto(d, 1, nothing), // is there
		insertInto(d, 4, nothing),
	)
	for i, want := range []string{"", "a failure", "it panicked: a mistake", "UNIQUE", ""} {
		err := <-results[i]
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("change %d: %v, want %q", i, err, want)
		}
	}
	if got, err := d.Texts(t.Context(), "n", "numbers"); err != nil || fmt.Sprint(got) != "[1 4]" {
		t.Errorf("%v are there, %v", got, err)
	}
	must(t, insertInto(d, 5, nothing)(t.Context()))
}

// TestTogetherWithWhoCanRun: a change is committed with those of goroutines that can run when its own turn comes. With
// one processor the second of two that begin at once has not been able to come by then.
func TestTogetherWithWhoCanRun(t *testing.T) { //nolint:paralleltest // it has the processor for itself
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	d := dbtest.Open(t, dbtest.SQLite(t))
	must(t, d.Exec(t.Context(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))
	const rounds = 20
	together := 0
	for round := range rounds {
		var begun, told atomic.Int64
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				err := insertInto(d, 2*round+i, func() error {
					if begun.Add(1) == 2 && told.Load() == 0 {
						together++
					}
					return nil
				})(t.Context())
				told.Add(1)
				if err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	if together < rounds/2 { // the scheduler has other goroutines to run too
		t.Errorf("two changes were committed together in %d of %d rounds", together, rounds)
	}
}

// TestTogetherToldAtTheEnd: nobody is told before all of them are written.
func TestTogetherToldAtTheEnd(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	must(t, d.Exec(t.Context(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))
	var told func() int
	free, results := d.HoldTurn(), make(chan error, 2)
	go func() { results <- insertInto(d, 1, nothing)(t.Context()) }()
	d.AwaitWaiting(1)
	go func() {
		results <- insertInto(d, 2, func() error {
			if n := told(); n != 0 {
				t.Errorf("%d are told before the commit", n)
			}
			return nil
		})(t.Context())
	}()
	told = d.AwaitWaiting(2)
	free()
	must(t, <-results)
	must(t, <-results)
	if told() != 2 {
		t.Error("not all are told")
	}
}

// TestTogetherOrNone: where the commit fails nothing has happened, and all are told so.
func TestTogetherOrNone(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	must(t, d.Exec(t.Context(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))
	must(t, d.Exec(t.Context(), "CREATE TABLE parts (n REFERENCES numbers (n) DEFERRABLE INITIALLY DEFERRED)"))
	orphan := func(ctx context.Context) error {
		return d.InTransaction(ctx, func(exec func(context.Context, string) error) error {
			return exec(ctx, "INSERT INTO parts VALUES (7)")
		})
	}
	for i, r := range atOnce(t, d, insertInto(d, 1, nothing), orphan, insertInto(d, 2, nothing)) {
		if err := <-r; err == nil || !strings.Contains(err.Error(), "FOREIGN KEY") {
			t.Errorf("change %d: %v", i, err)
		}
	}
	if got, err := d.Texts(t.Context(), "n", "numbers"); err != nil || len(got) != 0 {
		t.Errorf("%v are there, %v", got, err)
	}
	must(t, insertInto(d, 3, nothing)(t.Context()))
}

// TestTogetherLeft: who leaves while waiting has changed nothing, and the others are written.
func TestTogetherLeft(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	must(t, d.Exec(t.Context(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))
	leaving, leave := context.WithCancel(t.Context())
	free, left, stayed := d.HoldTurn(), make(chan error, 1), make(chan error, 1)
	go func() { left <- insertInto(d, 1, nothing)(leaving) }()
	d.AwaitWaiting(1)
	go func() { stayed <- insertInto(d, 2, nothing)(t.Context()) }()
	d.AwaitWaiting(2)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	free()
	must(t, <-stayed)
	if got, err := d.Texts(t.Context(), "n", "numbers"); err != nil || fmt.Sprint(got) != "[2]" {
		t.Errorf("%v are there, %v", got, err)
	}
}

// TestEventsTogether: events of changes that are committed together are numbered in the order of the changes, without
// holes where one of them has failed; and who waits for them is told.
func TestEventsTogether(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	news := d.News()
	tell := func(n int, hold func()) func(context.Context) error {
		return func(ctx context.Context) error {
			return d.Tell(ctx, hold, event.New("env", "test.told", "thing", fmt.Sprint("thing", n%2), at(n), n))
		}
	}
	results := atOnce(t, d, tell(0, func() {}), tell(1, func() { panic("a mistake") }), tell(2, func() {}),
		tell(3, func() {}))
	for i, r := range results {
		if err := <-r; (err != nil) != (i == 1) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	<-news
	events, err := d.ListEvents(t.Context(), event.Query{Limit: 10})
	must(t, err)
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s=%d.%d", e.Data, e.Sequence, e.Number))
	}
	if fmt.Sprint(got) != "[0=1.1 2=2.2 3=3.1]" {
		t.Errorf("events %v", got)
	}
}
