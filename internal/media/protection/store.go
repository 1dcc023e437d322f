package protection

import (
	"container/list"
	"context"
	"sync"

	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
)

// Store caches encrypted media, up to so many bytes, and evicts what was least recently used. Concurrent requests for
// the same bytes are encrypted once. All its methods may be called at the same time.
type Store struct {
	// Lookups are those of segments, parts and init segments.
	Lookups metering.Lookups

	limit   int64
	buffers sync.Pool // of *[]byte: clear media is in one while it is encrypted

	mu      sync.Mutex
	size    int64
	entries map[chunkKey]*entry
	order   *list.List // of *entry, the one asked for last in front
	states  map[stateKey]*state
}

// stateKey names an encrypted presentation.
type stateKey struct{ content, media string }

// maxStates is of how many presentations playlists are kept.
const maxStates = 256

// chunkKey names bytes that never change.
type chunkKey struct {
	of, media, rendition string
	resource             hls.Resource
}

// entry is what somebody has encrypted, or is encrypting.
type entry struct {
	key     chunkKey
	done    chan struct{} // closed when body or err is there
	body    playback.Body
	err     error
	left    bool          // err is about the one who asked, who has gone
	element *list.Element // nil: it is not kept (yet)
}

// NewStore returns a store of so many bytes.
func NewStore(limit int64) *Store {
	return &Store{limit: limit, entries: map[chunkKey]*entry{}, order: list.New(), states: map[stateKey]*state{}}
}

// buffer is memory to read clear media into; it goes back to buffers.
func (s *Store) buffer() *[]byte {
	if b, ok := s.buffers.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

// state is what is kept of a presentation.
func (s *Store) state(k stateKey) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.states[k]
	if had == nil {
		for other := range s.states { // any one: what it has is soon made again
			if len(s.states) < maxStates {
				break
			}
			delete(s.states, other)
		}
		had = &state{tracks: map[trackKey]track{}, lists: map[listKey]*playlist{}, clear: map[string]bool{}}
		s.states[k] = had
	}
	return had
}

// get returns what is kept, or encrypts it.
func (s *Store) get(ctx context.Context, k chunkKey, encrypt func() (playback.Body, error)) (playback.Body, error) {
	for {
		e, mine := s.find(k)
		if mine {
			return s.fill(ctx, e, encrypt)
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return playback.Body{}, context.Cause(ctx)
		}
		if !e.left {
			return e.body, e.err
		}
	}
}

// find is what is there under a key; mine: nothing was, and the caller has to fill it.
func (s *Store) find(k chunkKey) (e *entry, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e = s.entries[k]
	s.Lookups.Count(e != nil)
	if e != nil {
		if e.element != nil {
			s.order.MoveToFront(e.element)
		}
		return e, false
	}
	e = &entry{key: k, done: make(chan struct{}), left: true}
	s.entries[k] = e
	return e, true
}

// fill fills an entry that others may wait for; a panic leaves it to the next one.
func (s *Store) fill(ctx context.Context, e *entry, encrypt func() (playback.Body, error)) (playback.Body, error) {
	defer s.finish(e)
	e.body, e.err = encrypt()
	e.left = e.err != nil && ctx.Err() != nil
	return e.body, e.err
}

// finish keeps an entry if it is good and small enough.
func (s *Store) finish(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(e.done)
	n := int64(len(e.body.Data))
	if e.err != nil || e.left || n > s.limit/8 {
		delete(s.entries, e.key)
		return
	}
	e.element = s.order.PushFront(e)
	for s.size += n; s.size > s.limit; {
		last := s.order.Back()
		old, _ := last.Value.(*entry)
		s.order.Remove(last)
		delete(s.entries, old.key)
		s.size -= int64(len(old.body.Data))
	}
}
