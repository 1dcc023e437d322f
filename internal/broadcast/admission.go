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
)

// admission lets encoders in: a live stream's row says who may come, and where its broadcast is.
type admission struct {
	opt        *Options
	broadcasts *registry
	promises   *promises
	// begin runs the broadcast of a row that this node has none of; fresh: nobody has recorded anything of it.
	begin func(ctx context.Context, s live.Stream, fresh bool) (*broadcast, error)
}

// What a broadcast responds to a publication that it can't take.
var (
	// It comes too late.
	errEnding = fault.New(fault.Conflict, "the broadcast is ending")
	// It was admitted without the broadcast's knowledge, which has told meanwhile what became of the last one.
	errOvertaken = fault.New(fault.Conflict, "the last encoder left meanwhile")
)

const (
	// admitPatience bounds how long an admission waits for the last publication's end to be told.
	admitPatience = 5 * time.Second
	// writeGrace is how long a write may take that another node was sure to have the right to.
	writeGrace = 250 * time.Millisecond
	// unasked is how long a living node that can't be asked keeps its broadcasts from an encoder that has left it: by
	// then the row of one that has died has expired.
	unasked = 4 * time.Second
)

// admit opens a publication. One whose stream's last connection, or last broadcast, is still being finished waits for
// that.
func (a admission) admit(ctx context.Context, p ingest.Publication) (*sink, error) {
	s, err := a.fetch(ctx, p)
	if fault.Is(err, fault.Conflict) && (a.flush(ctx, p.Key) || errors.Is(err, errEnding)) {
		return a.fetch(ctx, p)
	}
	return s, err
}

// fetch opens a publication. A broadcast that another node has is handed over first, unless its encoder is still
// there. While that node can't be asked, or does not respond, its row is looked at again: should it be dead, it is so
// when its row has expired, and at once where it refuses connections and the lock on its name is free.
func (a admission) fetch(ctx context.Context, p ingest.Publication) (*sink, error) {
	s, err := a.connect(ctx, p, handover{})
	at, elsewhere := errors.AsType[*live.ElsewhereError](err)
	if !elsewhere {
		return s, err
	}
	if a.opt.Ask == nil {
		return a.connect(ctx, p, handover{asked: at.Writer})
	}
	asking, stop := context.WithTimeout(ctx, handoverPatience+time.Second)
	defer stop()
	answer := a.ask(asking, at)
	var h handover
	for end := a.opt.Now().Add(unasked); ; {
		t := time.NewTimer(h.pause(at.For))
		select {
		case r := <-answer:
			t.Stop()
			if r.err == nil || fault.Is(r.err, fault.Conflict) {
				return a.asked(ctx, p, r)
			}
			if errors.Is(r.err, live.ErrRefused) {
				h = handover{refused: at.Writer, done: true}
			}
			a.opt.Logger.WarnContext(ctx, "the node that leads a broadcast can't be asked to hand it over",
				"live_stream_id", at.Stream, "node", at.Writer.Node, "error", r.err)
			answer = nil
			continue
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Cause(ctx)
		}
		s, err = a.connect(ctx, p, h)
		next, elsewhere := errors.AsType[*live.ElsewhereError](err)
		switch {
		case !elsewhere:
			return s, err
		case next.Writer != at.Writer:
			return nil, err // it has changed hands meanwhile: the encoder may try again
		case answer == nil && !a.opt.Now().Before(end):
			return a.connect(ctx, p, handover{asked: at.Writer})
		}
		at = next
	}
}

// asked opens a publication once the node that led the broadcast has answered.
func (a admission) asked(ctx context.Context, p ingest.Publication, r answer) (*sink, error) {
	if r.err != nil {
		return nil, r.err
	}
	return a.connect(ctx, p, r.handover)
}

const (
	// leastPause is the least time between two looks at the row of a node that can't be asked.
	leastPause = 50 * time.Millisecond
	// endPause is how long after a node has refused a connection it is looked whether its process has ended: the
	// database hears of that in the same moment.
	endPause = 100 * time.Millisecond
)

// handover is what became of asking for a broadcast.
type handover struct {
	asked   live.Writer   // the node that had it; zero: nobody was asked
	refused live.Writer   // the node that had it refuses connections; zero: none does
	done    bool          // it has let go: it writes nothing any more
	lost    time.Duration // what of its recording it could not store
}

// pause is how long to wait for a node whose row is valid for so long still.
func (h handover) pause(valid time.Duration) time.Duration {
	if h.refused != (live.Writer{}) {
		return endPause
	}
	return min(max(valid, leastPause), unasked)
}

// connect takes the live stream for an encoder, and gives it back if its publication can't be opened.
func (a admission) connect(ctx context.Context, p ingest.Publication, h handover) (*sink, error) {
	now := a.opt.Now()
	fresh := id.Asset(id.NewOrdered(now))
	var led live.Writer
	taking := taker{all: a.promises}
	defer taking.done()
	s, err := a.opt.Streams.Connect(ctx, live.Connection{
		StreamKey: p.Key, Protocol: p.Protocol, NewAsset: fresh, Owner: a.opt.Owner,
		Led:   func(s id.LiveStream) live.Writer { led = a.broadcasts.writer(s); return led },
		Asked: h.asked, Refused: h.refused, Bound: taking.bound,
	}, now)
	if err != nil {
		return nil, err
	}
	opened := a.broadcasts.open(s.ID)
	begins := s.ActiveAsset == fresh
	sink, err := a.join(ctx, p, admitted{s, led, begins, begins || h.done, h.lost})
	opened()
	if err == nil {
		return sink, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, uerr := a.opt.Streams.Disconnected(undo, s.ID, s.Writer(), a.opt.Now()); uerr != nil &&
		!fault.Permanent(uerr) {
		err = errors.Join(err, uerr)
	}
	return nil, fmt.Errorf("open broadcast of live stream %s: %w", s.ID, err)
}

// admitted is what an encoder was admitted to.
type admitted struct {
	stream   live.Stream   // its row, as the admission has left it
	led      live.Writer   // of the broadcast, as this process led it before
	begins   bool          // it is the broadcast's first encoder
	released bool          // no other node has anything to record any more
	lost     time.Duration // what the node that had the broadcast could not store
}

// lead is the broadcast that e was admitted to, as this process leads it.
func (a admission) lead(ctx context.Context, e admitted) (*broadcast, error) {
	b := a.broadcasts.of(e.stream.ID)
	switch {
	case b != nil && b.by == e.stream.Writer():
		return b, nil
	case e.stream.Writer() == e.led: // it has gone in this moment, and the next one has to be another writer
		return nil, errEnding
	}
	if err := b.supersede(ctx, e.stream); err != nil {
		return nil, err
	}
	if !e.released { // it was another node's until now, which may be about to record its last segment
		if err := pause(ctx, writeGrace); err != nil {
			return nil, err
		}
	}
	return a.begin(ctx, e.stream, e.begins)
}

// join opens a publication of the broadcast that e was admitted to, which runs already, or begins, or goes on from what
// is stored.
func (a admission) join(ctx context.Context, p ingest.Publication, e admitted) (*sink, error) {
	b, err := a.lead(ctx, e)
	if err != nil {
		return nil, err
	}
	type result struct {
		sink *sink
		err  error
	}
	done := make(chan result, 1)
	b.mail.post(func() {
		if e.lost > 0 {
			missed(b, e.lost)
		}
		opened, err := b.attach(ctx, e.stream, p)
		done <- result{opened, err}
	})
	select { // not on ctx: what is opened has to be closed by somebody
	case r := <-done:
		return r.sink, r.err
	case <-b.gone:
		return nil, errEnding
	}
}

// flush waits for the broadcast of a stream key, if it is here, to tell what has happened to it; false when that takes
// too long.
func (a admission) flush(ctx context.Context, key string) bool {
	b := a.broadcasts.byKey(key)
	if b == nil {
		return true // it has ended in this moment, or is another node's: the row says which
	}
	ctx, cancel := context.WithTimeout(ctx, admitPatience)
	defer cancel()
	return b.flush(ctx)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// refusal says no in the ingest's words.
func refusal(err error) error {
	switch fault.KindOf(err) {
	case fault.NotFound:
		return ingest.ErrUnknownKey
	case fault.Denied:
		return ingest.ErrDisabled
	case fault.Conflict:
		return ingest.ErrBusy
	case fault.Internal, fault.Invalid, fault.Unauthorized, fault.TooLarge, fault.NotReady, fault.Unavailable,
		fault.TooMany:
	}
	return err
}
