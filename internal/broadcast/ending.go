package broadcast

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

// The end of a broadcast: its record is closed, then stored, then told. All of it runs on the broadcast's goroutine.

// end begins the end: the record first, the resources after it, so that a crash in between is made good at the next
// start.
func (b *broadcast) end(why live.EndReason) {
	if b.schedule.ending {
		return
	}
	b.schedule.ending, b.why = true, why
	if s := b.sink; s != nil && why.KeepsLink() {
		b.sink = nil
		b.finish(s, ingest.ErrEnded)
		s.linger(b.opt.Linger)
		b.spawn("tell that the encoder has left", func() { b.tellLeft(s) })
	}
	b.dismiss(ingest.ErrEnded)
	b.forward.end()
	b.stopWriting()
	b.edge.Close()
	b.conclude()
}

// tellLeft tells that an encoder has gone whose connection outlived the broadcast: after the broadcast's own end.
func (b *broadcast) tellLeft(s *sink) {
	<-s.pub.Done()
	now := b.opt.Now()
	<-b.gone
	if !b.over {
		return // the node that takes the broadcast up reports that there is no encoder
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.owner.root), b.opt.Grace)
	defer cancel()
	if err := b.opt.Streams.Left(ctx, b.id, b.by.Epoch, now); err != nil {
		b.log.WarnContext(ctx, "encoder's leaving can't be told", "error", err)
	}
}

// conclude tells the end, once everything is stored.
func (b *broadcast) conclude() {
	if !b.schedule.ending || !b.sealed {
		return
	}
	now := b.opt.Now()
	b.tell("recording whole", b.recorder.show)
	b.tell("recording impossible", b.giveReason)
	b.tell("recording ended", func(ctx context.Context) error {
		return b.opt.Assets.EndLive(ctx, b.asset.ID, b.recorder.writer(), b.recorder.recordings(), now)
	})
	b.tell("broadcast ended", func(ctx context.Context) error {
		_, err := b.opt.Streams.End(ctx, b.id, b.by, b.why, now)
		return err
	})
	b.outbox.add("broadcast over", func(context.Context) error { // not told: the row names nobody any more
		b.over = true
		return nil
	})
}

// giveReason tells why an asset has nothing in it, where the ingest protocol knows.
func (b *broadcast) giveReason(ctx context.Context) error {
	if b.unfit == "" {
		return nil
	}
	a, err := b.opt.Assets.Find(ctx, b.asset.ID)
	if err != nil || a.Entries > 0 || a.Status != asset.Preparing {
		return err
	}
	return b.opt.Assets.Fail(ctx, a.ID, asset.Errors{Type: "invalid_input", Messages: []string{b.unfit}}, b.opt.Now())
}

// part lets go of the encoder and the edge: what is sealed is stored and told until a time. The row says since when the
// encoder is away, and whoever leads the broadcast next goes on from there.
func (b *broadcast) part(until time.Time, cause error, end func()) {
	b.quitting = until
	if b.sink != nil {
		b.drop(b.opt.Now(), cause)
	}
	b.forward.end()
	if b.recorder.held() { // nobody knows whether it ends
		end = b.edge.Yield
	}
	b.stopWriting()
	end()
	b.tell("numbers given back", b.recorder.release)
}

// leave ends the goroutine: anyone who waits for it is told, and an edge that has ended is served for a while to those
// who watch it.
func (b *broadcast) leave(root context.Context) {
	b.full()
	b.halt(ingest.ErrShutdown)
	b.owner.broadcasts.ended(b)
	b.mail.close()
	close(b.gone)
	if b.over {
		b.log.InfoContext(root, "broadcast ended", "reason", string(b.why))
		t := time.NewTimer(b.opt.Keep)
		defer t.Stop()
		select {
		case <-root.Done():
		case <-t.C:
		}
	}
	if b.lost {
		<-b.stored
	}
	b.owner.broadcasts.forget(b)
	b.edge.Release()
}
