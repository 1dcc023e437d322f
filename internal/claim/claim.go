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
func (d *Claimer) Claim(ctx context.Context, keys []string, wanted func()) (n int, done func(keys ...string)) {
	nothing := func(...string) {}
	d.mu.Lock()
	away := d.opt.Now().Before(d.away)
	d.number++
	holder := string(d.opt.Node) + "/" + d.opt.Run + "/" + strconv.Itoa(d.number)
	d.mu.Unlock()
	if away {
		return len(keys), nothing
	}
	soon, cancel := context.WithTimeout(ctx, storeTimeout)
	taken, err := d.opt.Store.Take(soon, holder, keys, lease)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			d.failed(ctx, err)
		}
		d.give(holder) // it may have been done
		return len(keys), nothing
	}
	for n < len(keys) && slices.Contains(taken, keys[n]) {
		n++
	}
	if rest := slices.DeleteFunc(taken, func(key string) bool { return slices.Contains(keys[:n], key) }); len(rest) > 0 {
		d.give(holder, rest...)
	}
	if n == 0 {
		return 0, nothing
	}
	d.mu.Lock()
	d.held[holder] = &hold{slices.Clone(keys[:n]), wanted}
	d.mu.Unlock()
	return n, func(keys ...string) { d.end(holder, keys) }
}

// end notes that a holder has no more need of keys; of none, if there are none.
func (d *Claimer) end(holder string, keys []string) {
	d.mu.Lock()
	h := d.held[holder]
	if h == nil {
		d.mu.Unlock()
		return
	}
	if len(keys) > 0 {
		h.keys = slices.DeleteFunc(h.keys, func(key string) bool { return slices.Contains(keys, key) })
	}
	last := len(keys) == 0 || len(h.keys) == 0
	if last {
		delete(d.held, holder)
		keys = nil
	}
	d.mu.Unlock()
	d.give(holder, keys...)
}

// failed has the store not be asked for a while.
func (d *Claimer) failed(ctx context.Context, err error) {
	d.mu.Lock()
	d.away = d.opt.Now().Add(storePause)
	d.mu.Unlock()
	d.opt.Logger.WarnContext(ctx, "nodes can't agree who makes what: each makes all it is asked for", "error", err)
}

// give has leases given back, soon.
func (d *Claimer) give(holder string, keys ...string) {
	d.mu.Lock()
	d.done = append(d.done, given{holder, keys})
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Wait waits until nobody makes what will be stored at key any more, and lets the one that does know. false: that takes
// too long, or can't be found out.
func (d *Claimer) Wait(ctx context.Context, key string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := d.opt.Store.Want(ctx, key)
	look := time.NewTicker(glance)
	defer look.Stop()
	for held && err == nil {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
		held, err = d.opt.Store.Held(ctx, key)
	}
	return err == nil
}

// Name implements lifecycle.Service.
func (d *Claimer) Name() string { return "claims" }

// Run implements lifecycle.Service.
func (d *Claimer) Run(ctx context.Context) error {
	tick := time.NewTicker(prolong)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.giveBack(context.WithoutCancel(ctx))
			return context.Cause(ctx)
		case <-d.wake:
			d.giveBack(ctx)
		case <-tick.C:
			d.prolong(ctx)
		}
	}
}

// giveBack gives back what is done. What can't be given back ends by itself.
func (d *Claimer) giveBack(ctx context.Context) {
	d.mu.Lock()
	done := d.done
	d.done = nil
	d.mu.Unlock()
	for _, g := range done {
		soon, cancel := context.WithTimeout(ctx, storeTimeout)
		err := d.opt.Store.Give(soon, g.holder, g.keys...)
		cancel()
		if err != nil {
			return
		}
	}
}

// prolong says that this node lives, and hears of what others wait for.
func (d *Claimer) prolong(ctx context.Context) {
	d.mu.Lock()
	holders := slices.Collect(maps.Keys(d.held))
	d.mu.Unlock()
	if len(holders) == 0 {
		return
	}
	soon, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	wanted, _ := d.opt.Store.Renew(soon, holders, lease) // it is tried again, while it matters
	for _, holder := range wanted {
		d.mu.Lock()
		h := d.held[holder]
		d.mu.Unlock()
		if h != nil {
			h.wanted()
		}
	}
}
