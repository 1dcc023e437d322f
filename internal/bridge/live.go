// Package bridge is the one place where the two planes meet: facts of the media plane become changes of resources, an encoder's key
// becomes a session, a playback ID becomes something to watch. It must never know SQL, S3's API or sockets.
// Goroutines: one per broadcast, one that stores what the broadcast seals, and Live's own.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/ingest"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// LiveOptions is what Live needs.
type LiveOptions struct {
	Streams live.Broadcasts
	Assets  asset.Work
	Store   window.Store
	Node    id.Node
	Lease   time.Duration // how long a broadcast stays this node's without a sign of life; 15 s when 0
	Keep    time.Duration // how long an ended broadcast is still served from memory; 60 s when 0
	Linger  time.Duration // how long an encoder stays connected after complete; 60 s when 0
	Now     func() time.Time
	Logger  *slog.Logger
}

// Live owns the broadcasts of this node. It implements ingest.Gate and is a lifecycle service.
type Live struct {
	opt  LiveOptions
	root context.Context // of the broadcasts; set by Run
	up   chan struct{}   // closed when Run accepts
	wg   sync.WaitGroup

	mu         sync.Mutex
	closing    bool
	broadcasts map[id.LiveStream]*broadcast // the current ones
	byAsset    map[id.Asset]*broadcast      // and the ended ones that are still served from memory
}

// NewLive returns a Live.
func NewLive(o LiveOptions) *Live {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.Lease, 15*time.Second)
	set(&o.Keep, time.Minute)
	set(&o.Linger, time.Minute)
	return &Live{opt: o, up: make(chan struct{}), broadcasts: map[id.LiveStream]*broadcast{}, byAsset: map[id.Asset]*broadcast{}}
}

// Name implements lifecycle.Service.
func (l *Live) Name() string { return "broadcasts" }

// Run recovers the broadcasts that a dead process left, looks after orphans of other nodes, and at the end waits for every broadcast to
// let go. Encoders must be gone before it is stopped.
func (l *Live) Run(ctx context.Context) error {
	root, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	l.mu.Lock()
	l.root = root
	l.mu.Unlock()
	if err := l.recover(ctx, true); err != nil {
		stop(err)
		return fmt.Errorf("recover broadcasts: %w", err)
	}
	close(l.up)
	t := time.NewTicker(l.opt.Lease)
	defer t.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.C:
			if err := l.recover(ctx, false); err != nil && ctx.Err() == nil {
				l.opt.Logger.Warn("look for orphaned broadcasts", "error", err)
			}
		}
	}
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	stop(ingest.ErrShutdown)
	l.wg.Wait()
	return context.Cause(ctx)
}

// Changed tells the owner of a broadcast that its stream has changed; it does not block.
func (l *Live) Changed(s id.LiveStream) {
	l.mu.Lock()
	b := l.broadcasts[s]
	l.mu.Unlock()
	if b != nil {
		b.poke()
	}
}

// Admit implements ingest.Gate.
func (l *Live) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	select {
	case <-l.up:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	fresh := id.Asset(id.New())
	s, err := l.opt.Streams.Connect(ctx, p.Key, p.Protocol, fresh, l.opt.Node, l.opt.Lease, l.opt.Now())
	if err != nil {
		return nil, nil, refusal(err)
	}
	b, err := l.broadcast(ctx, s, s.ActiveAsset == fresh)
	if err != nil {
		if _, undo := l.opt.Streams.Disconnected(context.WithoutCancel(ctx), s.ID, s.Epoch, l.opt.Now()); undo != nil {
			err = errors.Join(err, undo)
		}
		return nil, nil, fmt.Errorf("open broadcast of live stream %s: %w", s.ID, err)
	}
	return b.publish(ctx, p)
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
	case fault.Internal, fault.Invalid, fault.Unauthorized, fault.TooLarge, fault.NotReady, fault.Unavailable:
	}
	return err
}

// broadcast finds the running broadcast of s, or begins or recovers it.
func (l *Live) broadcast(ctx context.Context, s live.Stream, fresh bool) (*broadcast, error) {
	l.mu.Lock()
	b := l.broadcasts[s.ID]
	l.mu.Unlock()
	if b != nil && b.epoch == s.Epoch {
		b.resumed(s)
		return b, nil
	}
	a, before, err := l.record(ctx, s, fresh)
	if err != nil {
		return nil, err
	}
	return l.start(s, a, before)
}

// record makes or finds the asset of a broadcast and what it holds already.
func (l *Live) record(ctx context.Context, s live.Stream, fresh bool) (asset.Asset, *timeline.Timeline, error) {
	a, err := l.opt.Assets.Find(ctx, s.ActiveAsset)
	switch {
	case err == nil && !fresh:
		before, terr := l.timeline(ctx, a.ID)
		return a, before, terr
	case err != nil && fault.KindOf(err) != fault.NotFound:
		return a, nil, err
	}
	r := asset.NewRecording{
		ID: s.ActiveAsset, Environment: s.Environment, LiveStream: s.ID, Origin: asset.FromLiveRTMP, Media: id.Media(id.New()),
	}
	if s.Settings.NewAsset != nil {
		r.Options = *s.Settings.NewAsset
	}
	a, err = l.opt.Assets.Record(ctx, r, l.opt.Now())
	return a, nil, err
}

func (l *Live) timeline(ctx context.Context, a id.Asset) (*timeline.Timeline, error) {
	rows, err := l.opt.Assets.Timeline(ctx, a, 0)
	if err != nil {
		return nil, err
	}
	return build(rows)
}

// build applies the stored rows of a growing timeline.
func build(rows []asset.TimelineEntry) (*timeline.Timeline, error) {
	t := &timeline.Timeline{}
	for _, r := range rows {
		e, err := timeline.Decode(r.Data)
		if err != nil {
			return nil, err
		}
		if err := t.Apply(e); err != nil {
			return nil, fmt.Errorf("timeline row %d: %w", r.Sequence, err)
		}
	}
	return t, nil
}

// start runs a broadcast.
func (l *Live) start(s live.Stream, a asset.Asset, before *timeline.Timeline) (*broadcast, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return nil, ingest.ErrShutdown
	}
	b := newBroadcast(l, s, a, before)
	l.broadcasts[s.ID] = b
	l.byAsset[a.ID] = b
	l.wg.Go(func() { b.store(l.root) })
	l.wg.Go(func() { b.run(l.root) })
	return b, nil
}

// ended takes a broadcast out of the current ones; it is served from memory for a while longer.
func (l *Live) ended(b *broadcast) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broadcasts[b.id] == b {
		delete(l.broadcasts, b.id)
	}
}

func (l *Live) forget(b *broadcast) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byAsset, b.asset.ID)
}

// holding is the broadcast of an asset, running or ended, if it is in this node's memory.
func (l *Live) holding(a id.Asset) *broadcast {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byAsset[a]
}

// newest is the broadcast that a live stream's viewers see: the current one, or the last one while it is kept.
func (l *Live) newest(s id.LiveStream) *broadcast {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.broadcasts[s]; b != nil {
		return b
	}
	var last *broadcast
	for _, b := range l.byAsset {
		if b.id == s && (last == nil || b.epoch > last.epoch) {
			last = b
		}
	}
	return last
}

// recover takes over broadcasts that nobody owns: at start those that this node owned in its last life, at any time those whose lease
// has run out.
func (l *Live) recover(ctx context.Context, starting bool) error {
	streams, err := l.opt.Streams.Broadcasting(ctx)
	if err != nil {
		return err
	}
	now := l.opt.Now()
	for _, s := range streams {
		l.mu.Lock()
		mine := l.broadcasts[s.ID] != nil
		l.mu.Unlock()
		if mine || now.Before(s.LeaseUntil) && !(starting && s.Node == l.opt.Node) {
			continue
		}
		if err := l.adopt(ctx, s, now); err != nil {
			l.opt.Logger.Error("recover broadcast", "live_stream_id", s.ID, "asset_id", s.ActiveAsset, "error", err)
		}
	}
	return nil
}

// adopt goes on with a broadcast whose owner died: its encoder is away since the last sign of life.
func (l *Live) adopt(ctx context.Context, s live.Stream, now time.Time) error {
	if s.DisconnectedAt.IsZero() {
		away := s.LeaseUntil.Add(-l.opt.Lease)
		if away.After(now) || s.LeaseUntil.IsZero() {
			away = now
		}
		lost, err := l.opt.Streams.Disconnected(ctx, s.ID, s.Epoch, away)
		if err != nil && fault.KindOf(err) != fault.Conflict {
			return err
		}
		if err == nil {
			s = lost
		}
		if s.DisconnectedAt.IsZero() {
			s.DisconnectedAt = away
		}
	}
	a, before, err := l.record(ctx, s, false)
	if err != nil {
		return err
	}
	_, err = l.start(s, a, before)
	if err == nil {
		l.opt.Logger.Info("broadcast recovered", "live_stream_id", s.ID, "asset_id", a.ID, "epoch", int64(s.Epoch))
	}
	return err
}
