package app

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/config"
	nodes "millrace/internal/control/node"
	"millrace/internal/storage/db"
)

const (
	// goneFor is for how long nobody has asked for anything when the viewers of a node have gone: players ask for
	// playlists more often.
	goneFor = 10 * time.Second
	// leaveEvery is how often it is looked who is left.
	leaveEvery = 50 * time.Millisecond
	// leastGrace is the least time that a listener has to end what it serves.
	leastGrace = time.Second
)

// departure is the first service to be stopped, and takes its time for it: the node takes no encoder any more and lets
// go of those that it has; those who watch are served until other nodes have the broadcasts and they have gone there.
// A node that others can't reach, or that is the only one, waits for its encoders to be let go of, and for nobody else.
type departure struct {
	told    context.Context //nolint:containedctx // ends when the process is told to stop
	limit   time.Duration   // that all of it may take, and what comes then
	live    attended
	tell    func(ctx context.Context) error // that this node leaves
	others  func(ctx context.Context) bool  // there are nodes to which encoders and viewers can go
	watched func() bool                     // somebody was sent media a short while ago
	viewers *attendance
	now     func() time.Time
	log     *slog.Logger

	mu    sync.Mutex
	began atomic.Int64 // Unix nanoseconds; 0: not yet
}

// attended is what has the encoders; broadcast.Leaving fits.
type attended interface {
	Drain(on bool)
	Attended() (connected, gone int)
}

// departureOf makes what a node does when it is told to stop.
func departureOf(n *node, told context.Context) *departure { //nolint:revive // it is no call's context
	n.departure.told, n.departure.log = told, n.log
	n.departure.others = func(ctx context.Context) bool { return successors(ctx, n) }
	n.departure.tell = func(ctx context.Context) error { return db.Drains(n.db).Drain(ctx, n.id, true) }
	n.departure.watched = func() bool { return n.watched.Count(clock()) > 0 }
	return n.departure
}

// newDeparture returns one that knows nothing but the time.
func newDeparture(limit time.Duration) *departure {
	return &departure{limit: limit, viewers: &attendance{now: clock}, now: clock}
}

// successors reports whether there are other nodes to which encoders or viewers of this one can go.
func successors(ctx context.Context, n *node) bool {
	if n.peers == nil {
		return false
	}
	all, err := n.row.Nodes(ctx)
	if err != nil {
		return false // nobody can be admitted anywhere
	}
	return slices.ContainsFunc(all, func(other nodes.Node) bool {
		return other.Name != n.id && succeeds(n.cfg.Node.Roles, &other)
	})
}

// succeeds reports whether encoders or viewers of a node with such roles can go to another one.
func succeeds(left config.Roles, other *nodes.Node) bool {
	if other.Shown() != nodes.Alive || other.AdvertiseURL == "" {
		return false
	}
	return left.Has(nodes.RoleIngest) && other.Has(nodes.RoleIngest) ||
		left.Has(nodes.RolePlayback) && other.Has(nodes.RolePlayback)
}

// Name implements lifecycle.Service.
func (*departure) Name() string { return "departure" }

// Run implements lifecycle.Service.
func (d *departure) Run(ctx context.Context) error {
	<-ctx.Done()
	if d.told.Err() == nil { // a service has failed, and nothing is to be waited for
		return context.Cause(ctx)
	}
	d.begin()
	d.viewers.watch(d.watched())
	// what is stored and told afterwards has the rest of the time
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.limit*2/3)
	defer cancel()
	others := d.others(bounded)
	if others {
		if err := d.tell(bounded); err != nil {
			d.log.WarnContext(bounded, "other nodes can't be told that this one leaves", "error", err)
		}
	}
	tick := time.NewTicker(leaveEvery)
	defer tick.Stop()
	for {
		connected, gone := d.live.Attended()
		if connected == 0 && (!others || gone == 0 && d.viewers.quiet() >= goneFor) {
			return context.Cause(ctx)
		}
		select {
		case <-bounded.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// begin has the node leave for good.
func (d *departure) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.began.Store(d.now().UnixNano())
	d.live.Drain(true)
}

// drain has the node leave as an operator wants it, or stay, unless it was told to stop.
func (d *departure) drain(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.Load() == 0 {
		d.live.Drain(on)
	}
}

// grace is how long a listener has to end what it serves.
func (d *departure) grace() time.Duration {
	left := d.limit
	if began := d.began.Load(); began != 0 {
		left -= d.now().Sub(time.Unix(0, began))
	}
	return max(left, leastGrace)
}

// attendance is whether there are viewers at a node that leaves.
type attendance struct {
	now   func() time.Time
	since atomic.Int64 // of the last request's end, or when watching began; Unix nanoseconds; 0: nobody looks yet
	under atomic.Int64 // requests under way, also those that began before
}

// watch begins to look for requests. watched: there were some a short while ago.
func (a *attendance) watch(watched bool) {
	now := a.now()
	if !watched {
		now = now.Add(-goneFor)
	}
	a.since.Store(now.UnixNano())
}

// quiet is for how long nobody has asked for anything.
func (a *attendance) quiet() time.Duration {
	if a.under.Load() > 0 {
		return 0
	}
	return a.now().Sub(time.Unix(0, a.since.Load()))
}

// of notes the requests to h.
func (a *attendance) of(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.under.Add(1)
		defer func() {
			if a.since.Load() != 0 {
				a.since.Store(a.now().UnixNano())
			}
			a.under.Add(-1)
		}()
		h.ServeHTTP(w, r)
	})
}
