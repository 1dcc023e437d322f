package follow

import (
	"container/list"
	"context"
	"sync"

	"millrace/internal/media/follow/wire"
	"millrace/internal/media/metering"
)

// cache keeps responses in bounded memory; those that were used least recently make room.
type cache struct {
	lookups metering.Lookups
	most    int64

	mu    sync.Mutex
	bytes int64
	all   map[cacheKey]*list.Element
	order *list.List // of *cached; the newest in front
}

type cacheKey struct {
	of  any // a *broadcast, or what it shares with those that follow it
	ask wire.Ask
}

type cached struct {
	key  cacheKey
	what response
}

// overhead is about what an entry takes beside its bytes.
const overhead = 512

func newCache(most int64) *cache {
	return &cache{most: most, all: map[cacheKey]*list.Element{}, order: list.New()}
}

// get is what is kept.
func (c *cache) get(of any, ask wire.Ask) (response, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.all[cacheKey{of, ask}]
	c.lookups.Count(e != nil)
	if e == nil {
		return response{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).what, true //nolint:forcetypeassert // there is nothing else in it
}

// put keeps a response in place of what was there, unless life has ended. One that would take more than an eighth of
// the room is not kept.
func (c *cache) put(life context.Context, of any, ask wire.Ask, r response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := cacheKey{of, ask}
	if e := c.all[k]; e != nil {
		c.remove(e)
	}
	size := int64(len(r.data)) + overhead
	if size > c.most/8 || life.Err() != nil {
		return
	}
	c.all[k] = c.order.PushFront(&cached{k, r})
	for c.bytes += size; c.bytes > c.most; {
		c.remove(c.order.Back())
	}
}

// remove takes an entry out. Called with the lock.
func (c *cache) remove(e *list.Element) {
	had := c.order.Remove(e).(*cached) //nolint:forcetypeassert // there is nothing else in it
	delete(c.all, had.key)
	c.bytes -= int64(len(had.what.data)) + overhead
}

// drop takes out all of one key.
func (c *cache) drop(of any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.all {
		if k.of == of {
			c.remove(e)
		}
	}
}

// size is how many bytes are kept.
func (c *cache) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
