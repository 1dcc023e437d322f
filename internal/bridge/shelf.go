package bridge

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"millrace/internal/fault"
)

// shelf keeps the newest answers of a slow source: at most limit of them, each for a while (0: until it is pushed out). That there is no
// such thing is an answer too, kept apart so that made-up names push nothing real out. Of many who ask for the same at once, one asks
// the source. While the source is away, what it said last goes on being the answer: who watches does not need the database.
type shelf[K comparable, V any] struct {
	limit int
	ttl   time.Duration

	mu      sync.Mutex
	items   map[K]shelved[V]
	misses  map[K]shelved[error]
	flights map[K]*flight[V]
}

type shelved[V any] struct {
	value V
	said  time.Time // when the source said so
	until time.Time // when it is asked again
}

// stale is how long an answer is good for while the source is away.
const stale = 10 * time.Minute

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

func newShelf[K comparable, V any](limit int, ttl time.Duration) *shelf[K, V] {
	return &shelf[K, V]{
		limit: limit, ttl: ttl, items: map[K]shelved[V]{}, misses: map[K]shelved[error]{}, flights: map[K]*flight[V]{},
	}
}

// get answers from the shelf or asks.
func (s *shelf[K, V]) get(ctx context.Context, k K, now time.Time, ask func(context.Context) (V, error)) (V, error) {
	return s.getIf(ctx, k, now, func(V) bool { return true }, ask)
}

// getIf is get, but what does not fit is asked for again.
func (s *shelf[K, V]) getIf(ctx context.Context, k K, now time.Time, fits func(V) bool, ask func(context.Context) (V, error)) (V, error) {
	s.mu.Lock()
	it, ok := s.items[k]
	if ok && (s.ttl == 0 || now.Before(it.until)) && fits(it.value) {
		s.mu.Unlock()
		return it.value, nil
	}
	if miss, missed := s.misses[k]; missed && now.Before(miss.until) {
		s.mu.Unlock()
		var none V
		return none, miss.value
	}
	f, joined := s.flights[k]
	if !joined {
		f = &flight[V]{done: make(chan struct{}), err: errors.New("the source of an answer broke")}
		s.flights[k] = f
	}
	s.mu.Unlock()
	if joined {
		select {
		case <-f.done:
			return f.value, f.err
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
	}
	said := now
	defer func() { s.land(k, shelved[V]{f.value, said, now.Add(s.ttl)}, f) }()
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // others wait for this answer
	defer cancel()
	f.value, f.err = ask(long)
	if f.err != nil && ok && now.Sub(it.said) < stale && away(f.err) && fits(it.value) {
		f.value, f.err, said = it.value, nil, it.said
	}
	return f.value, f.err
}

// away says that the source has not answered.
func away(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Internal || kind == fault.Unavailable
}

// land ends a flight and keeps its answer.
func (s *shelf[K, V]) land(k K, it shelved[V], f *flight[V]) {
	defer close(f.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flights[k] != f { // dropped meanwhile: the answer may be older than that
		return
	}
	delete(s.flights, k)
	if f.err == nil || !away(f.err) {
		delete(s.items, k)
		delete(s.misses, k)
	}
	switch {
	case f.err == nil:
		put(s.items, s.limit, k, it)
	case s.ttl > 0 && fault.KindOf(f.err) == fault.NotFound:
		put(s.misses, s.limit, k, shelved[error]{f.err, it.said, it.until})
	}
}

// drop forgets the answers about k, and the one that is being asked for.
func (s *shelf[K, V]) drop(k K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, k)
	delete(s.misses, k)
	delete(s.flights, k)
}

// dropIf forgets the answers that are so, and all that are being asked for.
func (s *shelf[K, V]) dropIf(so func(V) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.items, func(_ K, it shelved[V]) bool { return so(it.value) })
	clear(s.flights)
}

// put makes room by taking out any other.
func put[K comparable, V any](m map[K]shelved[V], limit int, k K, v shelved[V]) {
	for old := range m {
		if len(m) < limit {
			break
		}
		delete(m, old)
	}
	m[k] = v
}
