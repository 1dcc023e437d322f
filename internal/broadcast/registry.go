package broadcast

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/ingest"
)

// registry is the broadcasts that are in this node's memory.
type registry struct {
	mu      sync.Mutex
	closing bool
	leaving bool // no encoder is taken any more
	current map[id.LiveStream]*broadcast
	// The current one; without one, the last one that is still served from memory.
	newest  map[id.LiveStream]*broadcast
	byAsset map[id.Asset]*broadcast // all that are in memory
	byMedia map[id.Media]*broadcast
	lost    map[id.Media]*broadcast // to other nodes, until the last of their goroutines has ended
	opening map[id.LiveStream]int   // admissions that may begin one
	opened  chan struct{}           // closed when an admission has ended; nil: nobody waits for that
	// When other nodes came to have the broadcasts of streams.
	moved map[id.LiveStream]time.Time
	// Of the encoders of the current ones.
	presence map[*broadcast]presence
}

func newRegistry() *registry {
	return &registry{
		current: map[id.LiveStream]*broadcast{}, newest: map[id.LiveStream]*broadcast{},
		byAsset: map[id.Asset]*broadcast{},
		byMedia: map[id.Media]*broadcast{}, lost: map[id.Media]*broadcast{},
		opening: map[id.LiveStream]int{}, moved: map[id.LiveStream]time.Time{}, presence: map[*broadcast]presence{},
	}
}

// start adds the broadcast that begin starts, unless there is one of the same writer, or of a later one.
func (r *registry) start(s live.Stream, begin func() *broadcast) (*broadcast, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, ingest.ErrShutdown
	}
	if b := r.current[s.ID]; b != nil {
		switch w := s.Writer(); {
		case b.by == w:
			return b, nil
		case b.by.Epoch > w.Epoch, b.by.Epoch == w.Epoch && b.by.Generation >= w.Generation:
			return nil, errEnding
		}
	}
	b := begin()
	r.current[s.ID], r.newest[s.ID], r.byAsset[b.asset.ID], r.byMedia[b.asset.Media] = b, b, b, b
	return b, nil
}

// close has no broadcast start any more.
func (r *registry) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
}

func (r *registry) closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closing
}

func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.current)
}

// all are the current broadcasts.
func (r *registry) all() []*broadcast {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.current))
}

// open notes that an admission, or a look for orphans, may begin a stream's broadcast, until what it returns is called.
func (r *registry) open(s id.LiveStream) (opened func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opening[s]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.opening[s]--; r.opening[s] == 0 {
			delete(r.opening, s)
		}
		if r.opened != nil {
			close(r.opened)
			r.opened = nil
		}
	}
}

// begun waits until nobody is about to begin a stream's broadcast.
func (r *registry) begun(ctx context.Context, s id.LiveStream) {
	for {
		r.mu.Lock()
		if r.opening[s] == 0 {
			r.mu.Unlock()
			return
		}
		if r.opened == nil {
			r.opened = make(chan struct{})
		}
		opened := r.opened
		r.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return
		}
	}
}

// leads reports whether a stream's broadcast is led here, or about to be.
func (r *registry) leads(s id.LiveStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current[s] != nil || r.opening[s] > 0
}

// writer is who leads a stream's broadcast here; zero when nobody does.
func (r *registry) writer(s id.LiveStream) live.Writer {
	if b := r.of(s); b != nil {
		return b.by
	}
	return live.Writer{}
}

// of is the current broadcast of a stream; nil when there is none.
func (r *registry) of(s id.LiveStream) *broadcast {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current[s]
}

// byKey is the current broadcast of a stream key; nil when there is none.
func (r *registry) byKey(key string) (found *broadcast) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.current {
		if b.key == key {
			found = b
		}
	}
	return found
}

// rekey notes a broadcast's stream key.
func (r *registry) rekey(b *broadcast, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.key = key
}

// watched is what a stream's viewers see: the current broadcast, or the last one while it is kept; nil when there is
// none.
func (r *registry) watched(s id.LiveStream) *broadcast {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest[s]
}

// recordedAs is the broadcast of an asset, running or ended; nil when there is none.
func (r *registry) recordedAs(a id.Asset) *broadcast {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byAsset[a]
}

// earlier is a broadcast of a stream by its media, current or kept; nil when there is none.
func (r *registry) earlier(s id.LiveStream, m id.Media) *broadcast {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.byMedia[m]; b != nil && b.id == s {
		return b
	}
	return nil
}

// ended takes a broadcast out of the current ones; it is served from memory for a while longer.
func (r *registry) ended(b *broadcast) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.presence, b)
	drop(r.current, b.id, b)
}

// forget takes a broadcast out of memory.
func (r *registry) forget(b *broadcast) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.presence, b)
	drop(r.current, b.id, b)
	drop(r.newest, b.id, b)
	drop(r.byAsset, b.asset.ID, b)
	drop(r.byMedia, b.asset.Media, b)
	drop(r.lost, b.asset.Media, b)
}

// lose is forget for a broadcast that another node has now. Its viewers are not to take that for the end.
func (r *registry) lose(b *broadcast) {
	r.forget(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[b.asset.Media] = b
	now := b.opt.Now()
	maps.DeleteFunc(r.moved, func(_ id.LiveStream, at time.Time) bool { return now.Sub(at) >= moving })
	r.moved[b.id] = now
}

// moves reports whether another node came to have a stream's broadcast a moment before now, and may not show it yet.
func (r *registry) moves(s id.LiveStream, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.moved[s]
	return ok && now.Sub(at) < moving && r.current[s] == nil && r.opening[s] == 0
}

// released waits until this node has let go of a recording that it lost before.
func (r *registry) released(ctx context.Context, m id.Media) error {
	r.mu.Lock()
	b := r.lost[m]
	r.mu.Unlock()
	if b == nil {
		return nil
	}
	select {
	case <-b.stored:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drop deletes b, but nothing that has taken its place.
func drop[K comparable](m map[K]*broadcast, k K, b *broadcast) {
	if m[k] == b {
		delete(m, k)
	}
}
