package liveladder

import (
	"context"
	"sync"
	"time"

	"millrace/internal/fault"
)

// uploader stores segments, one after another. It holds nobody up: what comes while too much waits is not stored.
type uploader struct {
	opt Options

	mu     sync.Mutex
	queue  []made
	bytes  int
	closed bool
	over   bool          // run has ended
	wake   chan struct{} // one token
}

// made is a segment of a rung.
type made struct {
	rung Rung
	msn  int64
	data []byte
	head bool // only its first parts
}

// maxKept bounds the bytes of a broadcast that wait for storage.
const maxKept = 64 << 20

// ByteBudget is what all broadcasts together may have waiting for storage.
type ByteBudget struct {
	mu   sync.Mutex
	free int // bytes
}

// NewByteBudget is a budget of so many bytes.
func NewByteBudget(bytes int) *ByteBudget { return &ByteBudget{free: bytes} }

func (r *ByteBudget) take(bytes int) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes > r.free {
		return false
	}
	r.free -= bytes
	return true
}

func (r *ByteBudget) give(bytes int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += bytes
}

func newUploader(o Options) *uploader { return &uploader{opt: o, wake: make(chan struct{}, 1)} }

func (k *uploader) put(m made) {
	k.mu.Lock()
	over := k.over
	full := over || k.bytes+len(m.data) > maxKept || !k.opt.Waiting.take(len(m.data))
	if !full {
		k.queue, k.bytes = append(k.queue, m), k.bytes+len(m.data)
	}
	k.mu.Unlock()
	if full && !over {
		k.opt.Logger.Warn("segment of a rung not kept: storage does not keep up", "rendition", m.rung.ID,
			"media_sequence", m.msn)
	}
	if full {
		k.opt.Output.Stored(m.rung.ID, m.msn, false)
		return
	}
	k.poke()
}

func (k *uploader) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// close has run end once the queue is empty.
func (k *uploader) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.poke()
}

func (k *uploader) run(ctx context.Context) {
	defer k.drop()
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
			same, err := k.insist(ctx, m)
			if err != nil && ctx.Err() == nil {
				k.opt.Logger.WarnContext(ctx, "segment of a rung not kept", "rendition", m.rung.ID, "media_sequence",
					m.msn, "error", err)
			}
			k.opt.Output.Stored(m.rung.ID, m.msn, same && err == nil)
			k.done()
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

// insist stores a segment, with growing pauses while storage fails.
func (k *uploader) insist(ctx context.Context, m *made) (same bool, err error) {
	const longest = 5 * time.Second
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, longest) {
		if same, err = k.store(ctx, m); err == nil || fault.Permanent(err) {
			return same, err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return false, err
		case <-t.C:
		}
	}
}

// done takes the first one from the queue.
func (k *uploader) done() {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.queue[0].data)
	k.queue[0] = made{}
	k.queue, k.bytes = k.queue[1:], k.bytes-n
	k.opt.Waiting.give(n)
}

// drop lets go of what is left, and has nothing more taken: encoders that are being stopped still give some, whose room
// nobody would give back.
func (k *uploader) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opt.Waiting.give(k.bytes)
	k.queue, k.bytes, k.over = nil, 0, true
}

// store keeps a segment unless there is one: what was offered stays. same says that it is what is stored now.
func (k *uploader) store(ctx context.Context, m *made) (same bool, err error) {
	err = fault.Guard(func() error {
		same, err = k.keep(ctx, m)
		return err
	})
	if trace := fault.Trace(err); trace != "" {
		return false, fault.New(fault.Invalid, "store segment of a rung: %v%s", err, trace)
	}
	return same, err
}

func (k *uploader) keep(ctx context.Context, m *made) (same bool, err error) {
	if await := k.opt.AwaitStored; await != nil {
		if err = await(ctx, m.msn); err != nil {
			return false, err
		}
	}
	if m.head { // what the rest is made behind
		_, err = k.opt.Store.Keep(ctx, m.rung.HeadKey(m.msn), m.data)
		return false, err
	}
	return k.opt.Store.Keep(ctx, m.rung.Key(m.msn), m.data)
}
