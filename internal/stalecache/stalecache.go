// Package stalecache caches the results of a slow source, and keeps returning them while the source does not respond:
// viewers do not need the database for what they are already watching. It must never know what is cached. Goroutines:
// one for each call that refreshes a cached value; it ends with the call, within ten seconds.
package stalecache

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"millrace/internal/fault"
)

// Cache keeps at most so many values, each for a while. Errors of kind fault.NotFound are cached too, in a map of their
// own, so that made-up keys evict nothing real. Of concurrent calls for one key only one asks the source. While the
// source fails or is slow, a value stays good for ten minutes, or for as long as GoodFor says.
type Cache[K comparable, V any] struct {
	limit int
	ttl   time.Duration
	stale time.Duration // how long a value is good for while the source does not respond

	mu     sync.Mutex
	values map[K]entry[V]
	misses map[K]entry[error]
	calls  map[K]*call[V]
}

type entry[V any] struct {
	value   V
	fetched time.Time // when the source returned it
	expires time.Time // when the source is asked again
}

const (
	// stale is Cache.stale unless GoodFor says otherwise.
	stale = 10 * time.Minute
	// prompt is how long a caller who has a cached value waits for the source: live playlists, and each part, wait for
	// this. What the source returns later is for the next caller.
	prompt = 500 * time.Millisecond
	// patience bounds one call of the source, so that one that hangs does not hold everything else up.
	patience = 10 * time.Second
)

// call is one call of the source.
type call[V any] struct {
	done  chan struct{}
	late  <-chan struct{} // closed when it takes too long for callers who have a cached value
	alarm *time.Timer     // closes late
	value V
	err   error
}

// New returns a cache of at most limit values that are each asked for again after ttl; 0: they are kept until they are
// evicted.
func New[K comparable, V any](limit int, ttl time.Duration) *Cache[K, V] {
	return &Cache[K, V]{
		limit:  limit,
		ttl:    ttl,
		stale:  stale,
		values: map[K]entry[V]{},
		misses: map[K]entry[error]{},
		calls:  map[K]*call[V]{},
	}
}

// GoodFor sets for how long a value is good while the source does not respond, and returns the cache. Call it before
// the first use.
func (c *Cache[K, V]) GoodFor(d time.Duration) *Cache[K, V] {
	c.stale = d
	return c
}

// Get returns the cached value of k, or calls ask.
func (c *Cache[K, V]) Get(ctx context.Context, k K, now time.Time, ask func(context.Context) (V, error)) (V, error) {
	return c.GetIf(ctx, k, now, func(V) bool { return true }, ask)
}

// GetIf is Get, but a cached value that does not fit is asked for again.
func (c *Cache[K, V]) GetIf(
	ctx context.Context, k K, now time.Time, fits func(V) bool, ask func(context.Context) (V, error),
) (V, error) {
	c.mu.Lock()
	cached, ok := c.values[k]
	if ok && (c.ttl == 0 || now.Before(cached.expires)) && fits(cached.value) {
		c.mu.Unlock()
		return cached.value, nil
	}
	if miss, missed := c.misses[k]; missed && now.Before(miss.expires) {
		c.mu.Unlock()
		var none V
		return none, miss.value
	}
	x, joined := c.calls[k]
	if !joined {
		late := make(chan struct{})
		x = &call[V]{
			done: make(chan struct{}), late: late, alarm: time.AfterFunc(prompt, func() { close(late) }),
			err: errors.New("the source of a cached value panicked"),
		}
		c.calls[k] = x
	}
	c.mu.Unlock()
	good := ok && now.Sub(cached.fetched) < c.stale && fits(cached.value)
	switch {
	case joined:
	case good:
		go c.fetch(ctx, k, now, x, guarded(ask), &cached)
	default:
		c.fetch(ctx, k, now, x, ask, nil)
		return x.value, x.err
	}
	var late <-chan struct{}
	if good {
		late = x.late
	}
	select {
	case <-x.done:
		return x.value, x.err
	case <-late:
		return cached.value, nil
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
}

// fetch calls ask; cached is what the source returned last, if that is still good while it does not respond.
func (c *Cache[K, V]) fetch(
	ctx context.Context, k K, now time.Time, x *call[V], ask func(context.Context) (V, error), cached *entry[V],
) {
	fetched := now
	defer func() { c.complete(k, entry[V]{x.value, fetched, now.Add(c.ttl)}, x) }()
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // other callers wait for it too
	defer cancel()
	x.value, x.err = ask(long)
	if long.Err() != nil && fault.Is(x.err, fault.Internal) {
		x.err = fault.Wrap(fault.Unavailable, x.err, "the service has to wait for a response: ask again in a moment")
	}
	if x.err != nil && cached != nil && noResponse(x.err) {
		x.value, x.err, fetched = cached.value, nil, cached.fetched
	}
}

// guarded makes an error of a panic: there may be no caller left to handle it.
func guarded[V any](ask func(context.Context) (V, error)) func(context.Context) (V, error) {
	return func(ctx context.Context) (v V, err error) {
		err = fault.Guard(func() error {
			v, err = ask(ctx)
			return err
		})
		return v, err
	}
}

// noResponse reports whether an error says nothing about the value.
func noResponse(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Internal || kind == fault.Unavailable
}

// complete ends a call and caches what it returned.
func (c *Cache[K, V]) complete(k K, e entry[V], x *call[V]) {
	defer close(x.done)
	x.alarm.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[k] != x { // dropped meanwhile: the value may be older than that
		return
	}
	delete(c.calls, k)
	if x.err == nil || !noResponse(x.err) {
		delete(c.values, k)
		delete(c.misses, k)
	}
	switch {
	case x.err == nil:
		put(c.values, c.limit, k, e)
	case c.ttl > 0 && fault.Is(x.err, fault.NotFound):
		put(c.misses, c.limit, k, entry[error]{x.err, e.fetched, e.expires})
	}
}

// Drop forgets the value of k, and a call that is under way.
func (c *Cache[K, V]) Drop(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, k)
	delete(c.misses, k)
	delete(c.calls, k)
}

// DropIf forgets the values for which drop returns true, and every call that is under way.
func (c *Cache[K, V]) DropIf(drop func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.values, func(_ K, e entry[V]) bool { return drop(e.value) })
	clear(c.calls)
}

// DropAll forgets everything, and every call that is under way.
func (c *Cache[K, V]) DropAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.values)
	clear(c.misses)
	clear(c.calls)
}

// put adds a value and evicts any other where there is no room.
func put[K comparable, V any](m map[K]entry[V], limit int, k K, e entry[V]) {
	for old := range m {
		if len(m) < limit {
			break
		}
		delete(m, old)
	}
	m[k] = e
}
