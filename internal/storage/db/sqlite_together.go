package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/uptrace/bun"

	"millrace/internal/fault"
)

// mostTogether is how many changes are committed together at most.
const mostTogether = 64

// waiting is a change that waits to be written, or has been.
type waiting struct {
	ctx   context.Context //nolint:containedctx // of the one call of begin that waits
	fn    func(context.Context, tx) error
	done  chan struct{} // closed when the rest holds
	err   error         // nil: it is committed
	panic *fault.PanicError
	jobs  map[string]bool // the queues of those that fn has inserted
	told  bool            // fn has told events
}

func newWaiting(ctx context.Context, fn func(context.Context, tx) error) *waiting {
	// What is begun goes on to the end, which is a matter of milliseconds: the driver has a goroutine of its own watch
	// each statement that could be broken off.
	return &waiting{ctx: context.WithoutCancel(ctx), fn: fn, done: make(chan struct{}), jobs: map[string]bool{}}
}

func (w *waiting) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// outcome is what begin returns. A panic goes on in the goroutine that it belongs to.
func (w *waiting) outcome() error {
	if w.panic != nil {
		panic(fmt.Sprintf("%v, in a transaction:\n%s", w.panic.Value, w.panic.Stack))
	}
	return w.err
}

// waitingList are the changes that wait, in the order in which they came.
type waitingList struct {
	mu  sync.Mutex
	all []*waiting
}

func (wl *waitingList) join(w *waiting) {
	wl.mu.Lock()
	defer wl.mu.Unlock()
	wl.all = append(wl.all, w)
}

// leave reports whether w still waited, and no longer does.
func (wl *waitingList) leave(w *waiting) bool {
	wl.mu.Lock()
	defer wl.mu.Unlock()
	i := slices.Index(wl.all, w)
	if i < 0 {
		return false
	}
	wl.all = slices.Delete(wl.all, i, i+1)
	return true
}

// take takes the first ones out.
func (wl *waitingList) take() []*waiting {
	wl.mu.Lock()
	defer wl.mu.Unlock()
	n := min(len(wl.all), mostTogether)
	some := slices.Clone(wl.all[:n])
	wl.all = slices.Delete(wl.all, 0, n)
	return some
}

// lead writes what waits, in order, until w is written too. The turn is the caller's, and is given back. Goroutines
// that can run are let run first: after a commit, those whose changes were in it are about to come with the next ones.
func (s *sqliteEngine) lead(w *waiting) {
	defer func() { <-s.turn }()
	for !w.isDone() {
		runtime.Gosched()
		s.writeTogether(s.waiting.take())
	}
}

var errExited = errors.New("the goroutine ended that wrote this together with what others wrote")

// writeTogether writes changes in one transaction. One that fails is taken back and leaves the others alone. Nobody is
// told before all of them are committed; where that fails, none has happened.
func (s *sqliteEngine) writeTogether(changes []*waiting) {
	err := errExited
	defer func() {
		for _, w := range changes {
			if w.err == nil {
				w.err = err
			}
			close(w.done)
		}
	}()
	err = full(s.db.RunInTx(changes[0].ctx, nil, func(_ context.Context, t bun.Tx) error {
		if len(changes) == 1 { // there is nobody else whose changes have to stay
			return s.apply(changes[0], t)
		}
		for _, w := range changes {
			if failed := s.applyOne(w, t); failed != nil {
				return failed
			}
		}
		return nil
	}))
	if err != nil {
		return
	}
	told := false
	for _, w := range changes {
		if w.err != nil {
			continue
		}
		told = told || w.told
		if len(w.jobs) > 0 {
			s.newJobs.add(w.jobs)
		}
	}
	if told {
		s.events.tell()
	}
}

// applyOne applies one of several changes, all of it or nothing. An error is about all of them.
func (s *sqliteEngine) applyOne(w *waiting, t bun.Tx) error {
	step := func(statement string) error {
		own := t.StmtContext(w.ctx, s.prepared[statement]) //nolint:sqlclosecheck // with the transaction
		if _, err := own.ExecContext(w.ctx); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		return nil
	}
	if err := step(beginOne); err != nil {
		return err
	}
	if w.err = full(s.apply(w, t)); w.err != nil {
		if err := step(undoOne); err != nil { // all is undone already where the disk is full
			return errors.Join(w.err, err)
		}
	}
	return step(endOne)
}

// apply runs a change. One that panics has failed.
func (s *sqliteEngine) apply(w *waiting, t bun.Tx) error {
	events := &inCommitOrder{}
	err := fault.Guard(func() error {
		return w.fn(w.ctx, tx{
			IDB: t, scan: s.db.ScanRows, prepared: s.prepared, bind: t.StmtContext, events: events,
			jobs: jobsIn[*sql.Tx]{client: s.jobs, tx: t.Tx, inserted: func(queue string) { w.jobs[queue] = true }},
		})
	})
	w.panic, _ = errors.AsType[*fault.PanicError](err)
	w.told = events.some
	return err
}
