package follow

import (
	"context"
	"sync"

	"millrace/internal/fault"
)

// calls makes one call of all that want the same at the same time. The zero value is ready.
type calls[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]*call[V]
}

type call[V any] struct {
	done    chan struct{}
	value   V
	err     error
	waiting int
	cancel  context.CancelFunc
}

// do gives what ask gives, which is called once for all who want k and come before it has ended. Its context is life's,
// and ends when nobody waits any more. Who gives up keeps nobody else from the result.
func (c *calls[K, V]) do(ctx, life context.Context, k K, ask func(context.Context) (V, error)) (v V, err error) {
	if err = context.Cause(life); err != nil {
		return v, err
	}
	d := c.join(life, k, ask)
	select {
	case <-d.done:
		c.leave(k, d)
		return d.value, d.err
	case <-ctx.Done():
		c.leave(k, d)
		return v, context.Cause(ctx)
	}
}

func (c *calls[K, V]) join(life context.Context, k K, ask func(context.Context) (V, error)) *call[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.all[k]
	if d == nil {
		if c.all == nil {
			c.all = map[K]*call[V]{}
		}
		ctx, cancel := context.WithCancel(life) //nolint:gosec // who waits last calls it
		d = &call[V]{done: make(chan struct{}), cancel: cancel}
		c.all[k] = d
		go c.run(ctx, k, d, ask)
	}
	d.waiting++
	return d
}

// leave ends a call that nobody waits for any more.
func (c *calls[K, V]) leave(k K, d *call[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.waiting--; d.waiting == 0 {
		d.cancel()
		if c.all[k] == d { // who comes now makes another one
			delete(c.all, k)
		}
	}
}

func (c *calls[K, V]) run(ctx context.Context, k K, d *call[V], ask func(context.Context) (V, error)) {
	err := fault.Guard(func() (err error) {
		d.value, err = ask(ctx)
		return err
	})
	c.mu.Lock()
	d.err = err
	if c.all[k] == d {
		delete(c.all, k)
	}
	c.mu.Unlock()
	close(d.done)
}
