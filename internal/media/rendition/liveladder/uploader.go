package liveladder

import (
	"context"
	"sync"
	"time"

	"millrace/internal/fault"
)

// uploader stores segments, one after another. It holds nobody up: while too much waits, nothing more is published.
type uploader struct {
	opt Options

	mu     sync.Mutex
	queue  []made
	taken  int // bytes of the budget, for what is published and not stored
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

// maxKept bounds the bytes of a broadcast that are published and wait for storage.
const maxKept = 64 << 20

// ByteBudget is what all broadcasts together may have waiting for storage.
type ByteBudget struct {
	mu   sync.Mutex
	free int // bytes
}

// NewByteBudget is a budget of so many bytes.
func NewByteBudget(bytes int) *ByteBudget { return &ByteBudget{free: bytes} }

// take takes bytes from the budget if it has them; a negative number gives bytes back.
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

// room reports whether so many more bytes may be published: what players have must be kept until storage has it.
func (k *uploader) room(bytes int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	need := k.opt.Output.Held() + bytes
	if k.over || need > maxKept || !k.opt.Waiting.take(need-k.taken) {
		return false
	}
	k.taken = need
	return true
}

func (k *uploader) put(m made) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.over {
		k.queue = append(k.queue, m)
		k.poke()
	}
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
			switch {
			case err == nil:
				k.opt.Output.Stored(m.rung.ID, m.msn, same)
			case ctx.Err() == nil: // else it is left to a process that goes on
				k.opt.Logger.WarnContext(ctx, "segment of a rung can't be kept", "rendition", m.rung.ID,
					"media_sequence", m.msn, "error", err)
				k.opt.Output.Lost(m.rung.ID, m.msn)
			}
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

// done takes the first one from the queue, and gives back what of the budget is not needed any more.
func (k *uploader) done() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue[0] = made{}
	k.queue = k.queue[1:]
	if held := k.opt.Output.Held(); held < k.taken {
		k.opt.Waiting.give(k.taken - held)
		k.taken = held
	}
}

// drop discards what is left. Nothing is published from then on, although encoders that are being stopped still give
// segments.
func (k *uploader) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opt.Waiting.give(k.taken)
	k.queue, k.taken, k.over = nil, 0, true
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
