package encode

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Priority is whose turn it is when the processor is short.
type Priority int

// The priorities. Those that yield run where nothing else wants to (SCHED_IDLE). Of what somebody waits for, or has
// asked for, a child gets a least share of a processor all the same.
const (
	Background Priority = iota // nobody watches meanwhile: it yields, down to a least share
	Ingest                     // somebody waits for an asset or a track, which viewers go before: likewise
	Ahead                      // nobody waits for it yet, but a viewer may: it yields
	Images                     // somebody waits for a picture: what plays goes first (nice 5)
	OnDemand                   // somebody waits for it, but a live stream goes first (nice 5)
	FirstPlay                  // somebody waits who has seen nothing yet (nice 5)
	Live                       // as the service itself
)

// hasLeastShare reports whether a child is raised where it gets too little.
func (p Priority) hasLeastShare() bool { return p == Background || p == Ingest }

// apply sets the priority of every thread of pid; those it starts later inherit it.
func (p Priority) apply(pid int) {
	switch {
	case p == Live:
	case p >= Images: // also of what yielded before
		schedule(pid, raised())
	default:
		schedule(pid, yielding(MayRaise()))
	}
}

const niceRaised, niceLowest = 5, 19

// raised is behind what is live, and beside what viewers wait for.
func raised() unix.SchedAttr {
	return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: niceRaised}
}

// yielding is how a child runs where nothing else wants to. One that could not be raised again gets the least that is
// never nothing.
func yielding(mayRaise bool) unix.SchedAttr {
	if mayRaise {
		return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}
	}
	return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: niceLowest}
}

// schedule sets how the threads of pid are scheduled. Where the system forbids it the work is done all the same, so
// there is no error.
func schedule(pid int, as unix.SchedAttr) {
	for _, tid := range threads(pid) {
		if unix.SchedSetAttr(tid, &as, 0) == nil {
			continue
		}
		nice := int(as.Nice)
		if as.Policy == unix.SCHED_IDLE {
			nice = niceLowest
		}
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
	}
}

// threads are the numbers of those that pid has; none where it has ended.
func threads(pid int) (all []int) {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, tid)
		}
	}
	return all
}

// MayRaise reports whether the system lets a child that yields be raised again: with CAP_SYS_NICE, or where the limit
// of niceness (RLIMIT_NICE) allows the service's own.
func MayRaise() bool { return mayRaise() }

//nolint:gochecknoglobals // the rights of the process do not change while it runs
var mayRaise = sync.OnceValue(func() bool {
	may := make(chan bool)
	go onOwnThread(func() { may <- comesBack() })
	return <-may
})

// comesBack tries it with the calling thread, which is of no use any more where it doesn't: the system asks for the
// same right for niceness as for SCHED_IDLE. The thread never is SCHED_IDLE itself: on a busy machine it would stay
// away for seconds, perhaps with a lock of Go's runtime, and the whole service would wait for it.
func comesBack() bool {
	tid := unix.Gettid()
	own, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return false
	}
	from, to := int(own.Nice)+1, int(own.Nice)
	if own.Nice > niceRaised { // a child is raised above the service then
		from, to = int(own.Nice), niceRaised
	}
	if unix.Setpriority(unix.PRIO_PROCESS, tid, from) != nil || unix.Setpriority(unix.PRIO_PROCESS, tid, to) != nil {
		return false
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, tid, int(own.Nice)) // lowering it is never forbidden
	return true
}
