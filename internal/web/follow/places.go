// Package follow sends server-sent events (HTML standard, section 9.2) to clients that follow something, and limits
// their number. It must never know what they follow. It starts no goroutine.
package follow

import (
	"context"
	"sync"
)

// Places limits how many follow at a time. Those of one key share a value, as long as there are any.
type Places[K comparable, V any] struct {
	All, Each int      // how many there may be, and how many of one key
	Make      func() V // makes the value of a key

	mu    sync.Mutex
	taken int
	of    map[K]*share[V]
}

type share[V any] struct {
	taken int
	value V
}

// Enter takes a place, if one is free.
func (p *Places[K, V]) Enter(key K) (value V, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[key]
	if p.taken >= p.All || s != nil && s.taken >= p.Each {
		return value, false
	}
	if s == nil {
		s = &share[V]{value: p.Make()}
		if p.of == nil {
			p.of = map[K]*share[V]{}
		}
		p.of[key] = s
	}
	p.taken++
	s.taken++
	return s.value, true
}

// Leave gives a place back.
func (p *Places[K, V]) Leave(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	s := p.of[key]
	if s.taken--; s.taken == 0 {
		delete(p.of, key)
	}
}

// Taken is how many follow.
func (p *Places[K, V]) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Lock is held by one at a time of those who follow; who waits for it may give up.
type Lock chan struct{}

// NewLock makes one.
func NewLock() Lock { return make(Lock, 1) }

// Lock waits until it is free.
func (l Lock) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unlock lets the next one have it.
func (l Lock) Unlock() { <-l }
