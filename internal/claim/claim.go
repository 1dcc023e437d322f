// Package claim lets one of several nodes make what viewers on all of them wait for. A claim is a lease of a few
// seconds on a storage key, which the node that makes the object renews and releases. It saves work but is not a lock:
// a node in doubt makes the object, and storage keeps the first.
//
// It must never know what is made, SQL, or the other nodes. It starts no goroutine: Run renews the claims that are
// held.
package claim

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"millrace/internal/id"
)

// Store keeps leases on what is being made, by storage key; the database fits.
type Store interface {
	// Take gives a holder leases on those keys that nobody has one on, and says which these are.
	Take(ctx context.Context, holder string, keys []string, lease time.Duration) ([]string, error)
	// Want reports whether somebody has a lease on a key, and lets the holder know that somebody waits.
	Want(ctx context.Context, key string) (held bool, err error)
	Held(ctx context.Context, key string) (bool, error)
	// Renew prolongs the leases of holders, and gives those of whom somebody wants something.
	Renew(ctx context.Context, holders []string, lease time.Duration) (wanted []string, err error)
	// Give takes back leases on keys; without any, all of the holder's.
	Give(ctx context.Context, holder string, keys ...string) error
}

// Options configures a Claimer.
type Options struct {
	Store  Store
	Node   id.Node
	Run    string // tells one life of the node from another
	Now    func() time.Time
	Logger *slog.Logger
}

// Claimer is where a node claims. What it holds is lost in seconds while Run does not run.
type Claimer struct {
	opt Options

	mu     sync.Mutex
	number int
	held   map[string]*hold // by holder
	done   []given
	wake   chan struct{} // one token
	away   time.Time     // until then the store is not asked
}

// hold is what one claim still has.
type hold struct {
	keys   []string
	wanted func() // somebody else waits for some of it
}

// given are leases to be given back.
type given struct {
	holder string
	keys   []string // none: all
}

const (
	// lease is how long a node that has died is waited for, prolong how often one that lives says so.
	lease, prolong = 4 * time.Second, time.Second
	// glance is how often a waiter looks whether the other one is ready.
	glance = 100 * time.Millisecond
	// patience is how long another node may take: who waits longer makes it himself.
	patience = 10 * time.Second
	// storeTimeout bounds one call to the store. After one that failed, the store is not asked for storePause.
	storeTimeout, storePause = 2 * time.Second, 5 * time.Second
)

// New returns a Claimer.
func New(o Options) *Claimer {
	return &Claimer{opt: o, held: map[string]*hold{}, wake: make(chan struct{}, 1)}
}

// Claim asks for what will be stored at keys: the first n are the caller's to make, until it says of each that it is
// done, or of all that are left by naming none, which it has to. wanted is called, once or more, when another node
// waits for one of them. Where the store can't be asked, all are the caller's.
func (c *Claimer) Claim(ctx context.Context, keys []string, wanted func()) (n int, done func(keys ...string)) {
	nothing := func(...string) {}
	c.mu.Lock()
	away := c.opt.Now().Before(c.away)
	c.number++
	holder := string(c.opt.Node) + "/" + c.opt.Run + "/" + strconv.Itoa(c.number)
	c.mu.Unlock()
	if away {
		return len(keys), nothing
	}
	soon, cancel := context.WithTimeout(ctx, storeTimeout)
	taken, err := c.opt.Store.Take(soon, holder, keys, lease)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			c.failed(ctx, err)
		}
		c.give(holder) // it may have been done
		return len(keys), nothing
	}
	for n < len(keys) && slices.Contains(taken, keys[n]) {
		n++
	}
	if rest := slices.DeleteFunc(taken, func(key string) bool {
		return slices.Contains(keys[:n], key)
	}); len(rest) > 0 {
		c.give(holder, rest...)
	}
	if n == 0 {
		return 0, nothing
	}
	c.mu.Lock()
	c.held[holder] = &hold{slices.Clone(keys[:n]), wanted}
	c.mu.Unlock()
	return n, func(keys ...string) { c.end(holder, keys) }
}

// end notes that a holder has no more need of keys; of none, if there are none.
func (c *Claimer) end(holder string, keys []string) {
	c.mu.Lock()
	h := c.held[holder]
	if h == nil {
		c.mu.Unlock()
		return
	}
	if len(keys) > 0 {
		h.keys = slices.DeleteFunc(h.keys, func(key string) bool { return slices.Contains(keys, key) })
	}
	last := len(keys) == 0 || len(h.keys) == 0
	if last {
		delete(c.held, holder)
		keys = nil
	}
	c.mu.Unlock()
	c.give(holder, keys...)
}

// failed has the store not be asked for a while.
func (c *Claimer) failed(ctx context.Context, err error) {
	c.mu.Lock()
	c.away = c.opt.Now().Add(storePause)
	c.mu.Unlock()
	c.opt.Logger.WarnContext(ctx, "nodes can't agree who makes what: each makes all it is asked for", "error", err)
}

// give has leases given back, soon.
func (c *Claimer) give(holder string, keys ...string) {
	c.mu.Lock()
	c.done = append(c.done, given{holder, keys})
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Wait waits until nobody makes what will be stored at key any more, and lets the one that does know. false: that takes
// too long, or can't be found out.
func (c *Claimer) Wait(ctx context.Context, key string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := c.opt.Store.Want(ctx, key)
	look := time.NewTicker(glance)
	defer look.Stop()
	for held && err == nil {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
		held, err = c.opt.Store.Held(ctx, key)
	}
	return err == nil
}

// Name implements lifecycle.Service.
func (c *Claimer) Name() string { return "claims" }

// Run implements lifecycle.Service.
func (c *Claimer) Run(ctx context.Context) error {
	tick := time.NewTicker(prolong)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			c.giveBack(context.WithoutCancel(ctx))
			return context.Cause(ctx)
		case <-c.wake:
			c.giveBack(ctx)
		case <-tick.C:
			c.prolong(ctx)
		}
	}
}

// giveBack gives back what is done. What can't be given back ends by itself.
func (c *Claimer) giveBack(ctx context.Context) {
	c.mu.Lock()
	done := c.done
	c.done = nil
	c.mu.Unlock()
	for _, g := range done {
		soon, cancel := context.WithTimeout(ctx, storeTimeout)
		err := c.opt.Store.Give(soon, g.holder, g.keys...)
		cancel()
		if err != nil {
			return
		}
	}
}

// prolong says that this node lives, and hears of what others wait for.
func (c *Claimer) prolong(ctx context.Context) {
	c.mu.Lock()
	holders := slices.Collect(maps.Keys(c.held))
	c.mu.Unlock()
	if len(holders) == 0 {
		return
	}
	soon, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	wanted, _ := c.opt.Store.Renew(soon, holders, lease) // it is tried again, while it matters
	for _, holder := range wanted {
		c.mu.Lock()
		h := c.held[holder]
		c.mu.Unlock()
		if h != nil {
			h.wanted()
		}
	}
}
