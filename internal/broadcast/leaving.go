package broadcast

import (
	"context"
	"time"

	"millrace/internal/id"
)

// A node that leaves accepts no new encoders and disconnects the ones it has. It does so at a key frame, where a
// segment ends. Their broadcasts wait here for as long as after a node's death, until another node asks for them.

const (
	// cutPatience is for how long a key frame is waited for at which an encoder can be let go.
	cutPatience = 5 * time.Second
	// movePatience is how long an encoder may take to connect again that was asked to do so, until it is let go.
	movePatience = 5 * time.Second
)

// presence is whether the encoder of a broadcast is there.
type presence int

const (
	absent  presence = iota
	present          // it is connected
	awaited          // it was let go of, and is to come to another node
)

// Leaving is whether a node leaves, whom it has still, and which broadcasts go, or are about to be here.
type Leaving struct {
	broadcasts *registry
	now        func() time.Time
}

// Leaving has the node leave.
func (svc *Service) Leaving() Leaving { return Leaving{svc.broadcasts, svc.opt.Now} }

// Drain begins or ends leaving, and does not wait. On: the node accepts no new encoders, takes over no broadcasts of
// nodes that are gone, and disconnects its own encoders. Off: it accepts them, and takes over, again.
func (l Leaving) Drain(on bool) {
	for _, b := range l.broadcasts.drain(on) {
		b.mail.post(func() { drain(b) })
	}
}

// Draining reports whether the node takes no encoder any more.
func (l Leaving) Draining() bool { return l.broadcasts.draining() }

// Attended counts the encoders that are connected here, and those that were let go of and are awaited: no other node
// has asked for their broadcasts yet.
func (l Leaving) Attended() (connected, gone int) { return l.broadcasts.attended() }

// Moves reports whether this node has handed a live stream's broadcast over a moment ago: until the next node shows it,
// rows may still say that this one has it, or say that the next one does, which is only about to.
func (l Leaving) Moves(s id.LiveStream) bool { return l.broadcasts.moves(s, l.now()) }

// Begun waits for who is about to begin a live stream's broadcast here.
func (l Leaving) Begun(ctx context.Context, s id.LiveStream) { l.broadcasts.begun(ctx, s) }

// drain disconnects a broadcast's encoder if the node leaves, and keeps it if the node stays after all. It runs on the
// broadcast's goroutine.
func drain(b *broadcast) {
	b.schedule.leave = time.Time{}
	if b.sink == nil {
		return
	}
	if !b.owner.broadcasts.draining() {
		b.sink.asked = false
		b.sink.cutFrom(time.Time{})
		return
	}
	at := b.opt.Now()
	if b.sink.askToMove() {
		at = at.Add(movePatience)
	}
	b.sink.cutFrom(at)
	b.schedule.leave = at.Add(cutPatience)
}

// drain notes whether the node leaves, and gives the broadcasts that have to hear of it.
func (r *registry) drain(on bool) (all []*broadcast) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leaving == on {
		return nil
	}
	r.leaving = on
	for _, b := range r.current {
		all = append(all, b)
	}
	return all
}

func (r *registry) draining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaving
}

// attend notes whether the encoder of a broadcast is there.
func (r *registry) attend(b *broadcast, p presence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.presence[b] = p
}

func (r *registry) attended() (connected, gone int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.current {
		switch r.presence[b] {
		case present:
			connected++
		case awaited:
			gone++
		case absent:
		}
	}
	return connected, gone
}
