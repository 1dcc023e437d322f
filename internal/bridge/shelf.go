package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"millrace/internal/fault"
)

// shelf keeps the newest answers of a slow source: at most limit of them, each for a while (0: until it is pushed out). That there is no
// such thing is an answer too, kept apart so that made-up names push nothing real out. Of many who ask for the same at once, one asks
// the source. While the source is away, or is silent, what it said last goes on being the answer: who watches does not need the database.
// A goroutine asks for an answer that replaces one, and ends with it.
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

const (
	// stale is how long an answer is good for while the source is away.
	stale = 10 * time.Minute
	// prompt is how long the source may take to answer before it is taken to be away by those who have its last answer: live playlists, and
	// each part, wait for this. What it says then is for who asks next.
	prompt = 500 * time.Millisecond
)

type flight[V any] struct {
	done  chan struct{}
	late  <-chan struct{} // closed when it takes too long for those who have an answer
	alarm *time.Timer     // closes late
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
		late := make(chan struct{})
		f = &flight[V]{
			done: make(chan struct{}), late: late, alarm: time.AfterFunc(prompt, func() { close(late) }),
			err: errors.New("the source of an answer broke"),
		}
		s.flights[k] = f
	}
	s.mu.Unlock()
	last := ok && now.Sub(it.said) < stale && fits(it.value)
	switch {
	case joined:
	case last:
		go s.fly(ctx, k, now, f, guarded(ask), &it)
	default:
		s.fly(ctx, k, now, f, ask, nil)
		return f.value, f.err
	}
	var late <-chan struct{}
	if last {
		late = f.late
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-late:
		return it.value, nil
	case <-ctx.Done():
		var none V
		return none, context.Cause(ctx)
	}
}

// fly asks; last is what the source said last, if that is still good while it is away.
func (s *shelf[K, V]) fly(ctx context.Context, k K, now time.Time, f *flight[V], ask func(context.Context) (V, error), last *shelved[V]) {
	said := now
	defer func() { s.land(k, shelved[V]{f.value, said, now.Add(s.ttl)}, f) }()
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // others wait for this answer
	defer cancel()
	f.value, f.err = ask(long)
	if f.err != nil && long.Err() != nil && fault.KindOf(f.err) == fault.Internal {
		f.err = fault.Wrap(fault.Unavailable, f.err, "the service has to wait for an answer: ask again in a moment")
	}
	if f.err != nil && last != nil && away(f.err) {
		f.value, f.err, said = last.value, nil, last.said
	}
}

// guarded makes an error of a panic: there may be nobody left who could be told of it.
func guarded[V any](ask func(context.Context) (V, error)) func(context.Context) (V, error) {
	return func(ctx context.Context) (v V, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the source of an answer panicked: %v", p)
			}
		}()
		return ask(ctx)
	}
}

// away says that the source has not answered.
func away(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.Internal || kind == fault.Unavailable
}

// land ends a flight and keeps its answer.
func (s *shelf[K, V]) land(k K, it shelved[V], f *flight[V]) {
	defer close(f.done)
	f.alarm.Stop()
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
