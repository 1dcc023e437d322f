package cascade

import (
	"context"
	"sync"
)

// keeper stores segments, one after another. It holds nobody up: what comes while too much waits is not stored.
type keeper struct {
	opt Options

	mu     sync.Mutex
	queue  []made
	bytes  int
	closed bool
	wake   chan struct{} // one token
}

// made is a segment of a rung.
type made struct {
	rung Rung
	msn  int64
	data []byte
}

// maxKept bounds the bytes that wait for storage.
const maxKept = 64 << 20

func newKeeper(o Options) *keeper { return &keeper{opt: o, wake: make(chan struct{}, 1)} }

func (k *keeper) put(m made) {
	k.mu.Lock()
	full := k.bytes+len(m.data) > maxKept
	if !full {
		k.queue, k.bytes = append(k.queue, m), k.bytes+len(m.data)
	}
	k.mu.Unlock()
	if full {
		k.opt.Logger.Warn("segment of a rung not kept: storage does not keep up", "rendition", m.rung.ID, "media_sequence", m.msn)
		k.opt.Edge.Kept(m.rung.ID, m.msn, false)
		return
	}
	k.poke()
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// close has run end once the queue is empty.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.poke()
}

func (k *keeper) run(ctx context.Context) {
	for {
		k.mu.Lock()
		var m *made
		if len(k.queue) > 0 {
			m = &k.queue[0]
		}
		closed := k.closed
		k.mu.Unlock()
		switch {
		case m != nil:
			same, err := k.store(ctx, m)
			if err != nil && ctx.Err() == nil {
				k.opt.Logger.WarnContext(ctx, "segment of a rung not kept", "rendition", m.rung.ID, "media_sequence", m.msn, "error", err)
			}
			k.opt.Edge.Kept(m.rung.ID, m.msn, same && err == nil)
			k.mu.Lock()
			k.bytes -= len(m.data)
			k.queue[0] = made{}
			k.queue = k.queue[1:]
			k.mu.Unlock()
			continue
		case closed || ctx.Err() != nil:
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		}
	}
}

// store keeps a segment unless there is one: what was offered stays.
func (k *keeper) store(ctx context.Context, m *made) (same bool, err error) {
	key := m.rung.Key(m.msn)
	stored, err := k.opt.Store.Has(ctx, key)
	if stored || err != nil {
		return false, err
	}
	return true, k.opt.Store.Put(ctx, key, m.data)
}
