package broadcast_test

import (
	"context"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

// fleet is the rows of nodes, as PostgreSQL has them, on the bubble's clock: the database here is SQLite, which knows
// one node.
type fleet struct {
	mu    sync.Mutex
	valid map[id.Node]row
	ended map[id.Node]bool // its last process has, and so nobody has the lock on its name
}

// row is a node's row.
type row struct {
	run   string
	until time.Time
}

// rowValid is how long a node's row is valid.
const rowValid = 3 * time.Second

// renew writes a node's row, of a new run too if it begins.
func (f *fleet) renew(o live.Owner, begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if begins {
		delete(f.ended, o.Node)
	}
	if r, there := f.valid[o.Node]; begins || there && r.run == o.Run {
		f.valid[o.Node] = row{o.Run, time.Now().Add(rowValid)}
	}
}

// keep renews a node's row each second until its process has ended; renewed is told of it.
func (f *fleet) keep(ctx context.Context, o live.Owner, p *power, renewed func(asked time.Time, valid time.Duration)) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			f.mu.Lock()
			defer f.mu.Unlock()
			if r := f.valid[o.Node]; r.run == o.Run && p.reach(&p.database) == nil {
				f.valid[o.Node] = row{o.Run, time.Now()}
			}
			return
		case <-t.C:
			if p.reach(&p.database) != nil || p.unrenewed.Load() {
				continue
			}
			asked := time.Now()
			if p.slow.Load().hold(ctx, all, false) == nil {
				f.renew(o, false)
				renewed(asked, rowValid)
			}
		}
	}
}

// sure is for how long an owner's row is valid still.
func (f *fleet) sure(o live.Owner) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.valid[o.Node]
	if r.run != o.Run {
		return 0
	}
	return max(time.Until(r.until), 0)
}

// end has a node's process end; the database hears of it.
func (f *fleet) end(n id.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[n] = true
}

// unlocked reports whether nobody has the lock on a node's name.
func (f *fleet) unlocked(n id.Node) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended[n]
}

// there reports whether a node has a valid row, of whatever run, or had one no longer ago than that.
func (f *fleet) there(n id.Node, long time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.valid[n].until) < long
}
