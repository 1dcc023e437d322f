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
func (b *ByteBudget) take(bytes int) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if bytes > b.free {
		return false
	}
	b.free -= bytes
	return true
}

func (b *ByteBudget) give(bytes int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
}

func newUploader(o Options) *uploader { return &uploader{opt: o, wake: make(chan struct{}, 1)} }

// room reports whether so many more bytes may be published: what players have must be kept until storage has it.
func (u *uploader) room(bytes int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	need := u.opt.Output.Held() + bytes
	if u.over || need > maxKept || !u.opt.Waiting.take(need-u.taken) {
		return false
	}
	u.taken = need
	return true
}

func (u *uploader) put(m made) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over {
		u.queue = append(u.queue, m)
		u.poke()
	}
}

func (u *uploader) poke() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// close has run end once the queue is empty.
func (u *uploader) close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.poke()
}

func (u *uploader) run(ctx context.Context) {
	defer u.drop()
	for {
		u.mu.Lock()
		var m *made
		if len(u.queue) > 0 {
			m = &u.queue[0]
		}
		closed := u.closed
		u.mu.Unlock()
		switch {
		case m != nil:
			same, err := u.insist(ctx, m)
			switch {
			case err == nil:
				u.opt.Output.Stored(m.rung.ID, m.msn, same)
			case ctx.Err() == nil: // else it is left to a process that goes on
				u.opt.Logger.WarnContext(ctx, "segment of a rung can't be kept", "rendition", m.rung.ID,
					"media_sequence", m.msn, "error", err)
				u.opt.Output.Lost(m.rung.ID, m.msn)
			}
			u.done()
			continue
		case closed || ctx.Err() != nil:
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-u.wake:
		}
	}
}

// insist stores a segment, with growing pauses while storage fails.
func (u *uploader) insist(ctx context.Context, m *made) (same bool, err error) {
	const longest = 5 * time.Second
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, longest) {
		if same, err = u.store(ctx, m); err == nil || fault.Permanent(err) {
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
func (u *uploader) done() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue[0] = made{}
	u.queue = u.queue[1:]
	if held := u.opt.Output.Held(); held < u.taken {
		u.opt.Waiting.give(u.taken - held)
		u.taken = held
	}
}

// drop discards what is left. Nothing is published from then on, although encoders that are being stopped still give
// segments.
func (u *uploader) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.opt.Waiting.give(u.taken)
	u.queue, u.taken, u.over = nil, 0, true
}

// store keeps a segment unless there is one: what was offered stays. same says that it is what is stored now.
func (u *uploader) store(ctx context.Context, m *made) (same bool, err error) {
	err = fault.Guard(func() error {
		same, err = u.keep(ctx, m)
		return err
	})
	if trace := fault.Trace(err); trace != "" {
		return false, fault.New(fault.Invalid, "store segment of a rung: %v%s", err, trace)
	}
	return same, err
}

func (u *uploader) keep(ctx context.Context, m *made) (same bool, err error) {
	if await := u.opt.AwaitStored; await != nil {
		if err = await(ctx, m.msn); err != nil {
			return false, err
		}
	}
	if m.head { // what the rest is made behind
		_, err = u.opt.Store.Keep(ctx, m.rung.HeadKey(m.msn), m.data)
		return false, err
	}
	return u.opt.Store.Keep(ctx, m.rung.Key(m.msn), m.data)
}
