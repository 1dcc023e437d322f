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
	// handover is how long a write may take that another node was sure to have the right to.
	handover = 250 * time.Millisecond
)

// admit opens a publication. One whose stream's last connection, or last broadcast, is still being finished waits for
// that.
func (a admission) admit(ctx context.Context, p ingest.Publication) (*sink, error) {
	s, err := a.connect(ctx, p)
	if fault.Is(err, fault.Conflict) && (a.flush(ctx, p.Key) || errors.Is(err, errEnding)) {
		return a.connect(ctx, p)
	}
	return s, err
}

// connect takes the live stream for an encoder, and gives it back if its publication can't be opened.
func (a admission) connect(ctx context.Context, p ingest.Publication) (*sink, error) {
	fresh := id.Asset(id.New())
	var led live.Writer
	s, err := a.opt.Streams.Connect(ctx, live.Connection{
		StreamKey: p.Key, Protocol: p.Protocol, NewAsset: fresh, Owner: a.opt.Owner,
		Led: func(s id.LiveStream) live.Writer { led = a.broadcasts.writer(s); return led },
	}, a.opt.Now())
	if err != nil {
		return nil, err
	}
	opened := a.broadcasts.open(s.ID)
	sink, err := a.join(ctx, s, p, led, s.ActiveAsset == fresh)
	opened()
	if err == nil {
		return sink, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, uerr := a.opt.Streams.Disconnected(undo, s.ID, s.Writer(), a.opt.Now()); uerr != nil && !fault.Permanent(uerr) {
		err = errors.Join(err, uerr)
	}
	return nil, fmt.Errorf("open broadcast of live stream %s: %w", s.ID, err)
}

// led is the broadcast that s was admitted to, as this process leads it.
func (a admission) led(ctx context.Context, s live.Stream, led live.Writer, fresh bool) (*broadcast, error) {
	b := a.broadcasts.of(s.ID)
	switch {
	case b != nil && b.by == s.Writer():
		return b, nil
	case s.Writer() == led: // it has gone in this moment, and the next one has to be another writer
		return nil, errEnding
	}
	if err := b.supersede(ctx, s); err != nil {
		return nil, err
	}
	if !fresh { // it was another node's until now, which may be about to record its last segment
		if err := pause(ctx, handover); err != nil {
			return nil, err
		}
	}
	return a.begin(ctx, s, fresh)
}

// join opens a publication of the broadcast that s was admitted to, which runs already (as led), or begins, or goes on
// from what is stored.
func (a admission) join(
	ctx context.Context, s live.Stream, p ingest.Publication, led live.Writer, fresh bool,
) (*sink, error) {
	b, err := a.led(ctx, s, led, fresh)
	if err != nil {
		return nil, err
	}
	type result struct {
		sink *sink
		err  error
	}
	done := make(chan result, 1)
	b.mail.post(func() {
		opened, err := b.attach(ctx, s, p)
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
