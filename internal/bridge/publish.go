package bridge

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/packager"
	"millrace/internal/media/session"
)

// cutOf is how a latency mode is cut: length of segments and of parts.
func cutOf(m live.LatencyMode) (segment, part time.Duration) {
	switch m {
	case live.Low:
		return 2 * time.Second, 330 * time.Millisecond
	case live.Reduced:
		return 2 * time.Second, time.Second
	case live.Standard:
	}
	return 4 * time.Second, time.Second
}

// resumed notes that the encoder is back in time.
func (b *broadcast) resumed(s live.Stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stream, b.away = s, time.Time{}
}

// publish opens one publication of the broadcast.
func (b *broadcast) publish(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	stands := b.edge.Standing()
	segment, part := cutOf(b.stream.Settings.LatencyMode)
	cutter := packager.Options{Edge: b.edge, Segment: segment, Part: part, At: stands.At, Began: stands.Began}
	for i, r := range stands.Lanes {
		cutter.Lanes = append(cutter.Lanes, packager.Lane{Rendition: r, Next: stands.Next[i]})
	}
	pub, stop := context.WithCancelCause(ctx)
	s := &sink{owner: b, stop: stop, audioOnly: b.stream.Settings.AudioOnly, began: stands.At}
	log := b.log.With("protocol", p.Protocol, "remote", p.Remote.String(), "encoder", p.Encoder)
	s.session = session.New(session.Options{Output: packager.New(cutter), Logger: log, Now: b.owner.opt.Now})
	b.mu.Lock()
	b.sink, b.away = s, time.Time{}
	b.mu.Unlock()
	log.Debug("publication opened", slog.Bool("reconnect", stands.Began))
	return pub, s, nil
}

// sink is one publication's way into its broadcast. The connection's goroutine writes; the broadcast's may end it.
type sink struct {
	owner     *broadcast
	stop      context.CancelCauseFunc
	audioOnly bool
	began     float64 // seconds of media time where this publication goes on

	mu      sync.Mutex
	session *session.Session
	started bool // the first frame has come
	over    bool // nothing is taken any more
	wall    time.Time
}

// Configure implements ingest.Sink.
func (s *sink) Configure(c frame.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.audioOnly && c.Kind == frame.Video {
		return nil
	}
	return s.session.Configure(c)
}

// Write implements ingest.Sink.
func (s *sink) Write(f frame.Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.audioOnly && f.Kind == frame.Video {
		return nil
	}
	if !s.started {
		s.started, s.wall = true, f.Received
		s.owner.tell(func(ctx context.Context) { s.owner.recording(ctx) })
	}
	return s.session.Write(f)
}

// Close implements ingest.Sink: the encoder is gone.
func (s *sink) Close(cause error) {
	if s.finish(cause) {
		s.owner.lost(s, cause)
	}
	s.stop(cause)
}

// finish closes the session; true for who did it.
func (s *sink) finish(cause error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.over = true
	s.session.Close(cause)
	return true
}

// conclude ends what is recorded of the publication; the connection stays.
func (s *sink) conclude(cause error) { s.finish(cause) }

// drop closes the connection.
func (s *sink) drop(cause error) { s.stop(cause) }

// linger closes the connection later: an encoder that reconnects at once would begin a new broadcast.
func (s *sink) linger(d time.Duration) { time.AfterFunc(d, func() { s.stop(ingest.ErrEnded) }) }

func (s *sink) dismiss(cause error) {
	s.conclude(cause)
	s.drop(cause)
}

// tell puts a fact into the broadcast's mailbox. Facts are few and never dropped.
func (b *broadcast) tell(fact func(ctx context.Context)) { b.mail <- fact }

func (b *broadcast) recording(ctx context.Context) {
	b.mu.Lock()
	s, p := b.stream, b.sink
	b.mu.Unlock()
	now := b.owner.opt.Now()
	if err := b.owner.opt.Streams.Recording(ctx, s.ID, s.Epoch, now); err != nil && fault.KindOf(err) != fault.Conflict {
		b.log.Warn("tell that recording began", "error", err)
	}
	if p != nil {
		b.mu.Lock()
		b.recordings = append(b.recordings, asset.Recording{StartedAt: now, Type: "content"})
		b.mu.Unlock()
	}
}

// lost says that the encoder is away. The stream's key is free for it again before this returns to the connection's goroutine.
func (b *broadcast) lost(s *sink, cause error) {
	done := make(chan struct{})
	b.tell(func(ctx context.Context) {
		defer close(done)
		b.disconnected(ctx, s, cause)
	})
	select {
	case <-done:
	case <-b.owner.root.Done():
	}
}

func (b *broadcast) disconnected(ctx context.Context, s *sink, cause error) {
	b.mu.Lock()
	if b.sink == s {
		b.sink = nil
	}
	row := b.stream
	b.mu.Unlock()
	b.closeRecording()
	now := b.owner.opt.Now()
	b.log.Debug("publication closed", "cause", cause)
	fresh, err := b.owner.opt.Streams.Disconnected(ctx, row.ID, row.Epoch, now)
	if err == nil {
		row = fresh
	} else if fault.KindOf(err) != fault.Conflict {
		b.log.Warn("tell that the encoder is away", "error", err)
	}
	b.mu.Lock()
	b.stream, b.away = row, now
	b.mu.Unlock()
	if g := (asset.Growth{Recordings: b.spans()}); len(g.Recordings) > 0 {
		if err := b.owner.opt.Assets.Grow(ctx, b.asset.ID, g, now); err != nil && fault.KindOf(err) == fault.Internal {
			b.log.Warn("store recording times", "error", err)
		}
	}
}

// closeRecording gives the open stretch its length.
func (b *broadcast) closeRecording() {
	total := b.edge.Standing()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.recordings)
	if n == 0 || b.recordings[n-1].Duration != 0 {
		return
	}
	var before float64
	for _, r := range b.recordings[:n-1] {
		before += r.Duration
	}
	b.recordings[n-1].Duration = max(total.At-total.Zero-before, 0)
}

func (b *broadcast) spans() []asset.Recording {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]asset.Recording(nil), b.recordings...)
}
