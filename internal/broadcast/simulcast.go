package broadcast

import (
	"context"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/relay"
	"millrace/internal/media/session"
)

// forwarder sends a broadcast's publications on to its simulcast targets; the zero one has none.
type forwarder struct {
	group *relay.Group
	cut   context.CancelCauseFunc // ends it at once
}

// newForwarder takes the targets of a broadcast. They do not change while it runs; one that was given up before stays
// so.
func (b *broadcast) newForwarder(s live.Stream) forwarder {
	var targets []relay.Target
	for _, t := range s.Settings.SimulcastTargets {
		if t.State != live.TargetFatal {
			targets = append(targets, relay.Target{ID: string(t.ID), URL: t.URL, Key: t.StreamKey})
		}
	}
	if len(targets) == 0 || b.opt.Simulcast == nil {
		return forwarder{}
	}
	return forwarder{group: relay.New(relay.Options{
		Targets: targets, Dial: b.opt.Simulcast, Report: b.forwarded,
		Logger: b.log,
	})}
}

// run starts the goroutine that waits for the targets'.
func (f *forwarder) run(root context.Context, spawn func(string, func()), failed func(error)) {
	if f.group == nil {
		return
	}
	ctx, cut := context.WithCancelCause(context.WithoutCancel(root))
	f.cut = cut
	spawn("forward to simulcast targets", func() {
		defer cut(nil)
		if err := f.group.Run(ctx); err != nil {
			failed(err)
		}
	})
}

// end lets the targets say goodbye.
func (f *forwarder) end() {
	if f.group != nil {
		f.group.Close()
	}
}

// abandon cuts the targets off: the broadcast is another node's.
func (f *forwarder) abandon(why error) {
	if f.cut != nil {
		f.cut(why)
	}
}

// tap gives a session's output, with the targets beside what is recorded. They get what the encoder sent, repaired, and
// no slate.
func (b *broadcast) tap(s *sink, protocol string, out session.Output) session.Output {
	if b.forward.group == nil {
		return out
	}
	t := b.forward.group.Join(protocol)
	s.forwarded = t.Number()
	return session.Tee(out, t)
}

// forwarded tells what became of a target, from its goroutine.
func (b *broadcast) forwarded(r relay.Report) {
	at := b.opt.Now()
	b.mail.post(func() {
		if !b.forwards(r.Publication) {
			return
		}
		b.tell("simulcast target is "+r.State.String(), func(ctx context.Context) error {
			if !b.forwards(r.Publication) {
				return nil // the end of the publication was told before
			}
			return b.opt.Streams.Target(ctx, b.id, b.by, id.SimulcastTarget(r.Target), factOf(r.State),
				at.UTC().Truncate(time.Millisecond))
		})
	})
}

// forwards reports whether a publication is the current one: the row knows nothing of links that outlive it.
func (b *broadcast) forwards(publication int) bool {
	return b.sink != nil && b.sink.forwarded == publication
}

func factOf(s relay.State) live.TargetFact {
	switch s {
	case relay.Up:
		return live.LinkUp
	case relay.Impossible:
		return live.LinkImpossible
	case relay.Down:
	}
	return live.LinkDown
}
