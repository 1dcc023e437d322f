package encode

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// leastShare sees to it that a child which yields to everything gets on beside what never ends: it says when the child
// is to be raised for a moment, so that of the time in which it is ready to run it has a part of one processor. What is
// raised is behind all that is live still, so where there are very many of those it gets less.
type leastShare struct {
	part   int           // of one processor, as in 1/part
	every  time.Duration // between two looks: for so long a child is raised at least
	window time.Duration // for which it may get nothing where it has had its share before

	had    time.Duration // processor time beyond its share; below 0: it is behind
	raised bool
}

// twentieth is the least share of every child. All that may run at once have a twentieth of the machine for what
// becomes an asset, and a twentieth for the rest.
func twentieth() leastShare {
	const window = 10 * time.Second
	return leastShare{part: 20, every: time.Second, window: window, had: window / 20}
}

// look is told for how long the child has run since the last look, all its threads, whether it is ready to, and how
// long ago that look was. It reports whether the child is to be raised until the next one, and whether it was not, or
// was, until now. A child that waits for something else has a claim to nothing.
func (l *leastShare) look(ran time.Duration, ready bool, since time.Duration) (raise, changed bool) {
	if l.had += ran; ready {
		l.had -= since / time.Duration(l.part)
	}
	most := l.window / time.Duration(l.part)
	l.had = min(max(l.had, -most), most)
	raise = l.had < 0
	changed = raise != l.raised
	l.raised = raise
	return raise, changed
}

// followTurns changes the child's priority while it runs: for good when somebody waits for it, and for a moment time
// and again where it yields and gets less than its least share.
func (r *run) followTurns(ctx context.Context) {
	opts, least := r.process.opts, r.process.least
	var looks <-chan time.Time
	stop := func() {}
	if opts.Priority.hasLeastShare() && MayRaise() {
		ticker := time.NewTicker(least.every)
		looks, stop = ticker.C, ticker.Stop
	}
	if looks == nil && opts.Hurry == nil {
		return
	}
	r.feeding.Go(func() {
		defer stop()
		last, before := time.Now(), usage{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-opts.Hurry:
				r.reschedule(OnDemand.apply)
				return
			case now := <-looks:
				had := r.usage()
				if raise, changed := least.look(had.ran-before.ran, had.ready, now.Sub(last)); raise {
					r.reschedule(func(pid int) { schedule(pid, raised()) })
				} else if changed {
					r.reschedule(opts.Priority.apply)
				}
				last, before = now, had
			}
		}
	})
}

// reschedule has the child's threads scheduled in another way, unless it has ended.
func (r *run) reschedule(apply func(pid int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.reaped {
		apply(r.cmd.Process.Pid)
	}
}

// usage is how long all threads of a child have run, and whether one of them runs or could.
type usage struct {
	ran   time.Duration
	ready bool
}

func (r *run) usage() (u usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reaped {
		return u
	}
	pid := r.cmd.Process.Pid
	u.ran, _ = processorTime(pid)
	for _, tid := range threads(pid) {
		if isReady(pid, tid) {
			u.ready = true
			break
		}
	}
	return u
}

// isReady reports whether a thread runs or waits for a processor. What the system counts as waiting (schedstat) would
// not tell: it is added up when the wait is over.
func isReady(pid, tid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/stat")
	if err != nil {
		return false
	}
	state, found := cutLast(string(stat), ") ") // its name may have brackets
	return found && strings.HasPrefix(state, "R")
}
