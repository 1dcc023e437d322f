package streams

import (
	"context"
	"strconv"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/follow"
)

const (
	countPause      = time.Second // between two counts of one environment
	maxEnvironments = 100         // whose counts are kept
)

// counter has how many live streams there are, counted once for all pages.
type counter struct {
	lock follow.Lock
	of   map[id.Environment]counted
}

type counted struct {
	sequence int64 // what happened up to this one is in it
	at       time.Time
	live.Numbers
}

func newCounter() *counter { return &counter{lock: follow.NewLock(), of: map[id.Environment]counted{}} }

// count counts the live streams of an environment, with what happened up to a sequence. now is one that has happened
// already. again: these numbers are those of a moment ago, and it is the time until they may be counted again; 0: they
// are new.
func (rm *room) count(
	ctx context.Context, env id.Environment, sequence, now int64,
) (_ live.Numbers, again time.Duration, err error) {
	if err = rm.counter.lock.Lock(ctx); err != nil {
		return live.Numbers{}, 0, err
	}
	defer rm.counter.lock.Unlock()
	c, ok := rm.counter.of[env]
	if ok && c.sequence >= sequence {
		return c.Numbers, 0, nil
	}
	if again = countPause - time.Since(c.at); ok && again > 0 {
		return c.Numbers, again, nil
	}
	c = counted{sequence: now, at: time.Now()}
	if c.Numbers, err = rm.Live.Count(ctx, env); err != nil {
		return live.Numbers{}, 0, err
	}
	if len(rm.counter.of) >= maxEnvironments {
		clear(rm.counter.of)
	}
	rm.counter.of[env] = c
	return c.Numbers, 0, nil
}

// Count is the number of one status; empty: of all. A search has none.
func (l listing) Count(status string) shell.Count {
	n, known := l.counts.Of[live.Status(status)]
	out := shell.Count{Of: status}
	if status == "" {
		n, known, out.Of = l.counts.All, true, "all"
	}
	switch {
	case l.Query != "" || !known:
	case n > live.MaxCounted:
		out.N = "1,000+"
	default:
		out.N = strconv.Itoa(n)
	}
	return out
}

// Counts are the numbers of all choices.
func (l listing) Counts() []shell.Count {
	return []shell.Count{
		l.Count(""), l.Count(string(live.StatusActive)), l.Count(string(live.StatusIdle)),
		l.Count(string(live.StatusDisabled)),
	}
}
