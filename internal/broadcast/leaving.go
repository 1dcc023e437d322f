package broadcast

import (
	"context"
	"time"
)

// A node that leaves takes no encoder any more, and lets go of those that it has, each at a key frame: there a segment
// ends. Their broadcasts wait here for as long as after a node's death, until another node asks for them.

const (
	// cutPatience is for how long a key frame is waited for at which an encoder can be let go.
	cutPatience = 5 * time.Second
	// movePatience is how long an encoder may take to connect again that was asked to do so, until it is let go.
	movePatience = 5 * time.Second
)

// presence is whether the encoder of a broadcast is there.
type presence = int32

const (
	absent  presence = iota
	present          // it is connected
	awaited          // it was let go of, and is to come to another node
)

// Drain has the node take no encoder any more, nor what other nodes have left behind, and lets go of the encoders that
// it has. Off: it takes them again. It does not wait.
func (svc *Service) Drain(on bool) {
	if svc.draining.Swap(on) == on {
		return
	}
	for _, b := range svc.broadcasts.all() {
		b.mail.post(b.drain)
	}
}

// Draining reports whether the node takes no encoder any more.
func (svc *Service) Draining() bool { return svc.draining.Load() }

// Attended counts the encoders that are connected here, and those that were let go of and are awaited: no other node
// has asked for their broadcasts yet.
func (svc *Service) Attended() (connected, gone int) {
	for _, b := range svc.broadcasts.all() {
		switch b.presence.Load() {
		case present:
			connected++
		case awaited:
			gone++
		}
	}
	return connected, gone
}

// drain lets go of the encoder when the node leaves, or keeps it when that has changed its mind.
func (b *broadcast) drain() {
	b.schedule.leave = time.Time{}
	if b.sink == nil {
		return
	}
	if !b.owner.Draining() {
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

// tellAway tells the stream's row that the encoder is away: it has left, or was let go of.
func (b *broadcast) tellAway(ctx context.Context, at time.Time, letGo bool) (revision int64, err error) {
	tell := b.opt.Streams.Disconnected
	if letGo {
		tell = b.opt.Streams.Dismissed
	}
	row, err := tell(ctx, b.id, b.by, at)
	return row.Revision, err
}
