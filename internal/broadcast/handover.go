package broadcast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/ingest"
	"millrace/internal/media/window"
)

// A broadcast changes nodes when its encoder comes to another one, or when its own node is gone (orphans.go). In the
// first case that node asks this one to hand it over: what was received is stored, and the other one goes on behind it.

const (
	// stillHere is for how long an encoder that is connected may be silent without losing its place to one that has
	// come to another node.
	stillHere = time.Second
	// handoverPatience bounds how long a broadcast may take to store what it has when it is handed over, and so how
	// long the encoder waits that has come to another node. What is not stored then is lost.
	handoverPatience = 5 * time.Second
	// moving is how long behind a handover it may take until the next node shows the broadcast: what is left is stored,
	// and that node reads it.
	moving = 2 * handoverPatience
)

// HandOver gives a broadcast up that writer leads here, once all that its encoder has sent is stored; lost is what
// could not be in time. It is fault.Conflict where the encoder is still there, or the broadcast is just beginning or
// ending. Nothing is done, and there is no error, if this process has no such broadcast.
func (svc *Service) HandOver(ctx context.Context, s id.LiveStream, writer live.Writer) (lost time.Duration, err error) {
	b := svc.broadcasts.of(s)
	if b == nil { // perhaps it is just being taken up, and goes to whoever has its encoder
		svc.broadcasts.begun(ctx, s)
		b = svc.broadcasts.of(s)
	}
	switch {
	case b == nil && svc.broadcasts.leads(s):
		return 0, fault.New(fault.Conflict, "the broadcast is just beginning")
	case b == nil || b.by != writer:
		return 0, nil
	}
	done := make(chan error, 1)
	b.mail.post(func() { done <- b.handOver() })
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, errEnding) { // an end takes no longer
			return 0, err
		}
	case <-b.gone:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	select {
	case <-b.gone:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if lost = window.Unstored(b.edge); lost > 0 {
		b.log.WarnContext(ctx, "broadcast is handed over, and not all of it is stored", "lost_media", lost)
	}
	return lost, nil
}

// handOver begins to give the broadcast up, on its goroutine.
func (b *broadcast) handOver() error {
	now := b.opt.Now()
	b.listen()
	switch {
	case b.schedule.ending, b.lost, b.over, !b.quitting.IsZero():
		return errEnding
	case b.sink == nil && b.schedule.away.IsZero(),
		b.sink != nil && !b.sink.asked && now.Sub(b.schedule.heard) < stillHere:
		return fault.New(fault.Conflict, "another encoder is connected to the live stream")
	}
	b.log.Info("broadcast is handed over to another node")
	b.owner.broadcasts.lose(b) // before its edge ends: nobody is to take that for the end of the stream
	b.part(now.Add(handoverPatience), ingest.ErrReplaced, b.edge.Yield)
	return nil
}

// HandoverIncomplete is the type of the warning that storage did not take the end of what one node had received
// before another one went on.
const HandoverIncomplete = "handover_incomplete"

// missed warns of what was lost with the handover to this node.
func missed(b *broadcast, lost time.Duration) {
	b.log.Warn("broadcast was handed over to this node, and not all of it is stored", "lost_media", lost)
	b.warn(HandoverIncomplete, fmt.Sprintf("%.1f s of the recording are missing where the encoder changed nodes: "+
		"storage did not accept them in time", lost.Seconds()))
}

// answer is what the node that leads a broadcast says when it is asked to hand it over.
type answer struct {
	handover

	err error // fault.Conflict: it keeps the broadcast; another one: it could not be asked
}

// ask asks the node that leads a broadcast to hand it over. Its answer is there at the latest when ctx has ended.
func (a admission) ask(ctx context.Context, at *live.ElsewhereError) <-chan answer {
	said := make(chan answer, 1)
	go func() {
		r := answer{handover: handover{asked: at.Writer, done: true}}
		r.err = fault.Guard(func() (err error) {
			r.lost, err = a.opt.Ask(ctx, at.Stream, at.Writer)
			return err
		})
		said <- r
	}()
	return said
}
