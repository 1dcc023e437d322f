package broadcast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/health"
	"millrace/internal/media/ingest"
	"millrace/internal/media/packager"
	"millrace/internal/media/session"
	"millrace/internal/media/slate"
	"millrace/internal/media/transform"
	"millrace/internal/media/window"
)

// cutOf is how a latency mode is cut: length of segments and of parts.
func cutOf(m live.LatencyMode) (segment, part time.Duration) {
	switch m {
	case live.Low:
		return 2 * time.Second, 290 * time.Millisecond
	case live.Reduced:
		return 2 * time.Second, time.Second
	case live.Standard:
	}
	return 4 * time.Second, time.Second
}

// sink is one publication's way into its broadcast. The connection's goroutine writes; the broadcast's may end it.
type sink struct {
	owner     *broadcast
	pub       context.Context // ends when the connection is to be closed
	stop      context.CancelCauseFunc
	key       string // that it came with; secret
	audioOnly bool
	resumed   bool // it was admitted to a stream that is active
	out       *slate.Publication
	link      func() ingest.LinkStats // nil: the protocol has nothing to tell
	record    *record                 // of the stream's encoders
	number    int                     // its own in there
	forwarded int                     // the publication's number with the simulcast targets
	unheard   int64                   // the broadcast's, when this publication began
	parting

	mu      sync.Mutex // one writer, no reader while media flows: it is free but for the moment of an end
	session *session.Session
	meter   *health.Meter
	started bool      // the first frame has come
	heard   time.Time // when the last frame came; zero before the first
	hushed  bool      // it is told to be silent: the next frame is told as well
	inside  bool      // the session has a call that did not return: left behind by a panic
}

// parting is how a publication ends, by itself or as the node leaves.
type parting struct {
	move  func()    // asks the encoder to connect to another node; nil: it can't be asked
	asked bool      // it was asked, and is to go; the broadcast's goroutine has both
	over  bool      // nothing is taken any more; this and what follows is guarded by the sink's lock
	video bool      // it has pictures
	cut   time.Time // from then on the next key frame ends it; zero: none does
}

// newSink opens a publication that goes on where the edge stands.
func (b *broadcast) newSink(ctx context.Context, p ingest.Publication) *sink {
	s := &sink{
		owner: b, key: p.Key, audioOnly: b.stream.Settings.AudioOnly, out: b.writer.Attach(), unheard: b.unheard.Load(),
		resumed: b.stream.State == live.Active, parting: parting{move: p.Move},
	}
	s.pub, s.stop = context.WithCancelCause(ctx)
	log := b.log.With("protocol", p.Protocol, "remote", p.Remote.String(), "encoder", p.Encoder)
	s.session = session.New(session.Options{
		Output: b.tap(s, p.Protocol, b.transformed(s.out, log)), Logger: log, Now: b.opt.Now, Breaks: b.breaks,
	})
	log.DebugContext(ctx, "publication opened")
	b.recorder.sent.begin(p.Protocol)
	s.link, s.meter = p.Link, health.NewMeter(b.opt.Now())
	s.record, s.number = b.owner.records.begin(b.id, live.Encoder{
		Protocol: p.Protocol, Remote: p.Remote.String(), Name: p.Encoder, Since: b.opt.Now(),
	}, s.audioOnly, s.last)
	return s
}

// transformed puts what encodes a picture again in front of out: what has images or
// the mark of test streams over it gets them, and what players can't play becomes H.264.
func (b *broadcast) transformed(out transform.Output, log *slog.Logger) transform.Output {
	if b.opt.Encoder == nil {
		return out
	}
	t := transform.New(transform.Options{Output: out, Encoder: b.opt.Encoder, Layers: b.layers(), Logger: log})
	b.spawn("encode pictures", func() { // its end is the publication's
		if err := t.Run(context.WithoutCancel(b.owner.root)); err != nil {
			log.Error("picture transform ended", "error", err)
		}
	})
	return t
}

// LogAttributes implements ingest.Labelled.
func (s *sink) LogAttributes() []any { return s.owner.labels() }

// Configure implements ingest.Sink.
func (s *sink) Configure(c frame.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.audioOnly && c.Kind == frame.Video {
		return nil
	}
	replaced := s.owner.opt.Encoder != nil && transform.Replaces(c)
	// What can't be kept is refused now, not when its first pictures are cut.
	if err := packager.Accepts(c); err != nil && !replaced {
		s.owner.log.Warn("publication refused", "codec", c.Codec, "error", err)
		wanted := "AAC, Opus, MP3, AC-3 or FLAC"
		if c.Kind == frame.Video {
			wanted = "H.264, HEVC, AV1 or VP9"
		}
		return ingest.Unsupported(fmt.Sprintf("%s codec %s is not supported, send %s", c.Kind,
			strings.ToUpper(string(c.Codec)), wanted))
	}
	s.video = s.video || c.Kind == frame.Video
	s.meter.Configure(c)
	s.owner.recorder.sent.configure(c)
	return s.pass(func() error { return s.session.Configure(c) })
}

// Write implements ingest.Sink.
func (s *sink) Write(f frame.Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.audioOnly && f.Kind == frame.Video {
		return nil
	}
	s.heard = s.owner.opt.Now()
	if s.cuts(&f) {
		return ingest.ErrShutdown
	}
	received := f.Received
	if received.IsZero() {
		received = s.heard
	}
	s.meter.Write(&f, received)
	if s.hushed {
		s.hushed = false
		s.owner.mail.post(s.owner.listen)
	}
	if !s.started {
		s.started = true
		if f.Received.IsZero() {
			f.Received = s.heard
		}
		s.owner.recorder.connect()
		s.out.Began(f.Received)
		s.owner.mail.post(func() { s.owner.began(s) })
	}
	if f.Key && (f.Kind == frame.Video || s.audioOnly) {
		s.out.Back(received)
	}
	return s.pass(func() error { return s.session.Write(f) })
}

// cuts reports whether the publication ends before f, as the node leaves.
func (s *sink) cuts(f *frame.Frame) bool {
	return !s.cut.IsZero() && !s.heard.Before(s.cut) && (f.Kind == frame.Video && f.Key || !s.video)
}

// cutFrom has the next key frame from a time on end the publication; zero: none does.
func (s *sink) cutFrom(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = at
}

// askToMove asks the encoder to connect again, to another node, if it can be asked.
func (s *sink) askToMove() bool {
	if s.move != nil {
		s.move()
		s.move, s.asked = nil, true
	}
	return s.asked
}

// last is when media came last; zero when none has.
func (s *sink) last() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// hush asks for the broadcast to be woken by the next frame.
func (s *sink) hush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hushed = true
}

// pass notices a panic on its way to the connection, which is the one to catch it.
func (s *sink) pass(call func() error) error {
	s.inside = true
	err := call()
	s.inside = false
	if u, ok := errors.AsType[session.UnsteadyError](err); ok {
		s.owner.encoderUnsteady(u.Error())
		return ingest.Unsupported(u.Error())
	}
	return err
}

// Close implements ingest.Sink: the encoder is gone.
func (s *sink) Close(cause error) {
	if first, broken := s.finish(cause); first {
		at := s.owner.opt.Now()
		s.owner.mail.post(func() { s.owner.closed(s, at, cause, broken) })
	}
	s.stop(cause)
}

// finish ends what is recorded of the publication; the connection stays. It reports whether it was the first to do so,
// and whether the media's repair or packaging panicked on the way: then the edge holds what can not be gone on from.
func (s *sink) finish(cause error) (first bool, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false, nil
	}
	s.over, first = true, true
	s.owner.recorder.finish()
	now := s.owner.opt.Now()
	s.meter.Sample(now, s.meter.Totals().Counts)
	s.record.end(s.number, now, cause, s.meter.Totals())
	if s.inside {
		broken = fmt.Errorf("write media: %w", cause)
	}
	if err := fault.Guard(func() error { s.session.Close(cause); return nil }); err != nil {
		broken = fmt.Errorf("close publication: %w%s", err, fault.Trace(err))
	}
	return first, broken
}

// linger closes the connection later. What it still sends is dropped, and it does not stand in the way of the next
// broadcast: somebody who publishes again on the key is not held up by it.
func (s *sink) linger(d time.Duration) {
	t := time.AfterFunc(d, func() { s.stop(ingest.ErrEnded) })
	context.AfterFunc(s.pub, func() { t.Stop() })
}

// modeOf is how a latency mode is listed.
func modeOf(m live.LatencyMode) window.Mode {
	mode := window.Mode{Listed: 30 * time.Second, InMemory: 2}
	if m == live.Low {
		mode.Low, mode.Leading = true, 7
	}
	return mode
}
