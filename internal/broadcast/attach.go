package broadcast

import (
	"context"
	"errors"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

// A broadcast and its publications: how they come, fall silent and go. All of it runs on the broadcast's goroutine.

// listen asks the publication when it last had media. One whose silence was told, and that goes on, takes its place
// again.
func (b *broadcast) listen() {
	if b.sink == nil {
		return
	}
	if last := b.sink.last(); last.After(b.schedule.heard) {
		b.schedule.heard = last
		if b.schedule.quiet {
			b.hush(false)
		}
	}
}

// hush marks the connected encoder as silent, or as heard again. Another connection may take a silent one's place.
func (b *broadcast) hush(silent bool) {
	s := b.sink
	b.schedule.quiet = silent
	if silent {
		b.log.Info("encoder is silent", "since", b.schedule.heard)
		b.recorder.hush(true) // before anybody else can come in
		s.hush()
	}
	b.tell("encoder is silent", func(ctx context.Context) error {
		if b.sink != s || b.schedule.quiet != silent {
			return nil
		}
		row, err := b.opt.Streams.Silence(ctx, b.id, b.by, silent, b.opt.Now())
		if err == nil {
			b.reported = row.Revision
			b.recorder.hush(silent)
		}
		return err
	})
}

// attach opens a publication, on the goroutine of the broadcast. s is the row as the admission left it.
func (b *broadcast) attach(ctx context.Context, s live.Stream, p ingest.Publication) (*sink, error) {
	switch {
	case !b.quitting.IsZero():
		return nil, ingest.ErrShutdown
	case b.schedule.ending, b.lost, b.over:
		return nil, errEnding
	case s.Revision < b.reported:
		// what was told of the last publication came after the admission, which has to be made again
		return nil, errOvertaken
	}
	b.replace()
	b.stream = s
	b.revision.Store(s.Revision)
	b.schedule.follow(s, b.opt.Now())
	b.writer.Allow(s.Settings.Slate())
	b.owner.broadcasts.rekey(b, s.StreamKey)
	b.schedule.came(b.opt.Now())
	b.recorder.resume(s)
	b.sink, b.sampleAt = b.newSink(ctx, p), b.opt.Now().Add(sampleEvery)
	b.owner.broadcasts.attend(b, present)
	if b.owner.broadcasts.draining() { // since it was admitted
		drain(b)
	}
	return b.sink, nil
}

// replace closes the publication whose place an admission has given to another: it was silent, or its owner was dead
// for a moment.
func (b *broadcast) replace() {
	switch {
	case b.sink == nil:
	case b.schedule.quiet:
		b.log.Info("silent encoder is replaced", "silent_for", b.opt.Now().Sub(b.schedule.heard))
		b.dismiss(ingest.ErrReplaced)
	default:
		b.dismiss(ErrLeaseLost)
	}
}

// began says that an encoder's first frame was taken.
func (b *broadcast) began(s *sink) {
	now := b.opt.Now()
	b.tell("recording began", func(ctx context.Context) error {
		return b.opt.Streams.Recording(ctx, b.id, b.by, s.resumed, now)
	})
}

// closed says that an encoder is away.
func (b *broadcast) closed(s *sink, at time.Time, cause, broken error) {
	if b.sink != s {
		return // the broadcast had let go of it before
	}
	b.sink = nil
	letGo := s.asked || errors.Is(cause, ingest.ErrShutdown)
	b.schedule.left(at, letGo)
	told, is := b.opt.Streams.Disconnected, absent
	if letGo {
		told, is = b.opt.Streams.Dismissed, awaited
	}
	b.owner.broadcasts.attend(b, is)
	b.log.Debug("publication closed", "reason", cause)
	if u, ok := errors.AsType[ingest.Unsupported](cause); ok {
		b.unfit = string(u)
	}
	b.tell("encoder is away", func(ctx context.Context) error {
		if b.sink != nil {
			return nil // an admission has told it
		}
		row, err := told(ctx, b.id, b.by, at)
		if err != nil {
			return err
		}
		b.reported = row.Revision
		return b.recorder.release(ctx)
	})
	if broken != nil {
		b.crash(broken)
	}
}

// dismiss lets go of the current publication, if there is one, and closes its connection.
func (b *broadcast) dismiss(cause error) {
	s := b.sink
	b.sink = nil
	if s != nil {
		b.finish(s, cause)
		s.stop(cause)
	}
}

func (b *broadcast) finish(s *sink, cause error) {
	if _, broken := s.finish(cause); broken != nil {
		b.panicked(broken)
		b.writer.Abandon()
	}
}

// drop ends the current publication; from now on its encoder is away.
func (b *broadcast) drop(now time.Time, cause error) {
	s := b.sink
	b.log.Info("encoder is dropped", "reason", cause)
	b.dismiss(cause)
	b.sink = s
	b.closed(s, now, cause, nil)
}
