package rig

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/test/bench/proc"
)

// kind is a kind of tests, of which a few run at once however busy the machine is, whichever package they are of. More
// are begun while the machine has room for them.
type kind struct {
	least int // how many run at once
	most  int // how many of one package, for each processor
	idle  int // how much of the processors must have nothing to do before one more begins, in percent
}

// Option says more of a test than its kind.
type Option int

// Long is a test that takes half a minute or more, or has a subtest that does: it begins before the others.
const Long Option = 1

// Paced marks a test that follows a player or a picture: what it sees depends on what else the machine does. It needs
// a quarter to a half of a processor. testrun runs such tests first, with nothing else beside them: at least two at
// once, and more where the machine has room. Call it first.
func Paced(t *testing.T, options ...Option) {
	t.Helper()
	theTurns.run(t, kind{least: 2, most: 2, idle: 50}, options)
}

// Parallel marks a test of the whole service that can run beside any others of its kind: at least four at once, and
// more where the machine has room. Call it first, in place of t.Parallel.
func Parallel(t *testing.T, options ...Option) {
	t.Helper()
	theTurns.run(t, kind{least: 4, most: 6, idle: 20}, options)
}

//nolint:gochecknoglobals // the tests of a process have no other thing in common
var theTurns = newTurns("../../go.mod", proc.Machine, runtime.NumCPU())

// turns says which test may begin.
type turns struct {
	file       string                        // a lock on one of its first bytes is a place, for one test of any package
	busy       func() (time.Duration, error) // processor time of the whole machine
	processors int

	mu     sync.Mutex
	queue  queue
	begun  map[string]*os.File // and the place that a test has; one that began because there was room has none
	marked time.Time           // when the machine was last looked at, or a test begun
	mark   time.Duration       // what it had been busy for by then
}

func newTurns(file string, busy func() (time.Duration, error), processors int) *turns {
	return &turns{
		file: file, busy: busy, processors: processors,
		queue: queue{tops: map[string]rank{}}, begun: map[string]*os.File{},
	}
}

// span is how long the machine's load is measured, and how long a test has until its own is part of that.
const span = time.Second

// run returns when t may begin. That t waits, and how long it did, it says in words that testrun reads.
func (tu *turns) run(t *testing.T, k kind, options []Option) {
	t.Helper()
	r := tu.arrive(t.Name(), slices.Contains(options, Long))
	t.Parallel()
	tu.wait(t.Name(), r)
	begun, err := tu.begin(t.Name(), k, time.Now())
	if !begun && err == nil {
		t.Log("waits for its turn")
		since, tick := time.Now(), time.NewTicker(100*time.Millisecond)
		defer tick.Stop()
		for !begun && err == nil {
			begun, err = tu.begin(t.Name(), k, <-tick.C)
		}
		t.Logf("waited %.1fs for its turn", time.Since(since).Seconds())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tu.end(t.Name()) })
}

// arrive gives a test its rank. The tests above it end as far as turns go: soon all they do is wait for this one.
func (tu *turns) arrive(name string, long bool) rank {
	for i := range name {
		if name[i] == '/' {
			tu.end(name[:i])
		}
	}
	tu.mu.Lock()
	defer tu.mu.Unlock()
	return tu.queue.arrive(name, long)
}

func (tu *turns) wait(name string, r rank) {
	tu.mu.Lock()
	defer tu.mu.Unlock()
	tu.queue.wait(name, r)
}

// begin reports whether a test that waits may begin: it is the next one, and there is a place for it, or the machine
// has room.
func (tu *turns) begin(name string, k kind, now time.Time) (bool, error) {
	tu.mu.Lock()
	defer tu.mu.Unlock()
	if !tu.queue.isNext(name) || len(tu.begun) >= k.most*tu.processors {
		return false, nil
	}
	place, err := tu.place(k.least)
	if err == nil && place == nil && !tu.hasRoom(k, now) {
		return false, nil
	}
	tu.queue.leave(name)
	if err != nil {
		return false, err
	}
	tu.begun[name] = place
	_ = tu.look(now) // where the machine doesn't tell, hasRoom says so
	return true, nil
}

// place takes one of the first n places, or none when tests of this package or of another have them. A place is given
// back when its file is closed, or the process has ended.
func (tu *turns) place(n int) (*os.File, error) {
	f, err := os.OpenFile(tu.file, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open file of turns: %w", err)
	}
	for i := range n {
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: int64(i), Len: 1})
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EAGAIN) {
			return nil, errors.Join(fmt.Errorf("lock file of turns: %w", err), f.Close())
		}
	}
	return nil, f.Close()
}

func (tu *turns) end(name string) {
	tu.mu.Lock()
	defer tu.mu.Unlock()
	if place := tu.begun[name]; place != nil {
		_ = place.Close() // and with it the lock
	}
	delete(tu.begun, name)
}

// hasRoom reports whether enough of the processors had nothing to do for a while, in which no test has begun.
func (tu *turns) hasRoom(k kind, now time.Time) bool {
	passed, before := now.Sub(tu.marked), tu.mark
	if passed < span {
		return false
	}
	if tu.look(now) != nil {
		return false // the machine doesn't tell
	}
	all := passed * time.Duration(tu.processors)
	return 100*(all-(tu.mark-before)) > time.Duration(k.idle)*all
}

// look notes what the machine has been busy for.
func (tu *turns) look(now time.Time) (err error) {
	tu.marked = now
	tu.mark, err = tu.busy()
	return err
}
