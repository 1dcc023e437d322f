package rig

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// kind is a kind of tests, of which a few run at once however busy the machine is. More are begun, up to go test's
// -parallel, while the machine has room for them.
type kind struct {
	least int    // how many run at once
	idle  uint64 // how much of the processors must have nothing to do before one more begins, in percent
}

// Paced marks a test that follows a player or a picture: what it sees depends on what else the machine does. It needs
// a quarter to a half of a processor. testrun runs such tests first, with nothing else beside them: at least two at
// once, and more where the machine has room. Call it first.
func Paced(t *testing.T) {
	t.Helper()
	theTurns.run(t, kind{least: 2, idle: 50})
}

// Parallel marks a test of the whole service that can run beside any others of its kind: at least four at once, and
// more where the machine has room. Call it first, in place of t.Parallel.
func Parallel(t *testing.T) {
	t.Helper()
	theTurns.run(t, kind{least: 4, idle: 25})
}

//nolint:gochecknoglobals // the tests of a process have no other thing in common
var theTurns = turns{running: map[string]bool{}, load: readLoad}

// turns says which test may begin.
type turns struct {
	load func() (load, error)

	mu      sync.Mutex
	running map[string]bool // names of tests
	mark    load            // when it was last looked at, or a test begun
	marked  time.Time
}

// look is how long the machine's load is measured, and how long a test has until its own is part of that.
const look = 2 * time.Second

// run returns when t may begin, and says how long that took in words that testrun takes off the test's duration.
func (q *turns) run(t *testing.T, k kind) {
	t.Helper()
	q.endParents(t.Name()) // soon all they do is wait for t, which go test puts behind all others
	t.Parallel()
	begin := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !q.begin(t.Name(), k, time.Now()) {
		<-tick.C
	}
	t.Cleanup(func() { q.end(t.Name()) })
	if waited := time.Since(begin); waited > time.Second {
		t.Logf("waited %.1fs for its turn", waited.Seconds())
	}
}

// begin reports whether a test may begin: few of itk kind run, or the machine has room.
func (q *turns) begin(name string, k kind, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.running) >= k.least && !q.hasRoom(k, now) {
		return false
	}
	q.running[name] = true
	q.mark, q.marked = q.read(), now
	return true
}

func (q *turns) endParents(name string) {
	for i := range name {
		if name[i] == '/' {
			q.end(name[:i])
		}
	}
}

func (q *turns) end(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, name)
}

// hasRoom reports whether enough of the processors had nothing to do for a while, in which no test has begun.
func (q *turns) hasRoom(k kind, now time.Time) bool {
	if now.Sub(q.marked) < look {
		return false
	}
	before := q.mark
	q.mark, q.marked = q.read(), now
	return 100*(q.mark.idle-before.idle) > k.idle*(q.mark.all-before.all)
}

// read gives no load where the machine doesn't tell: then it never has room.
func (q *turns) read() load {
	l, err := q.load()
	if err != nil {
		return load{}
	}
	return l
}

// load is what the processors did since the machine started, in ticks of the kernel.
type load struct{ idle, all uint64 }

// readLoad reads the first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal.
func readLoad() (l load, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return l, fmt.Errorf("read load: %w", err)
	}
	var ticks [8]uint64
	line, _, _ := strings.Cut(string(stat), "\n")
	if _, err = fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4],
		&ticks[5], &ticks[6], &ticks[7]); err != nil {
		return l, fmt.Errorf("read load: %w", err)
	}
	for _, n := range ticks {
		l.all += n
	}
	l.idle = ticks[3] + ticks[4]
	return l, nil
}
