package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/bridge/measure"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/ingest"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// broadcast is one epoch of a live stream on this node: from its first publication to the end of its last reconnect window.
// Its goroutine tells the control plane what happens, in order, and ends it.
type broadcast struct {
	owner *Live
	id    id.LiveStream
	epoch id.Epoch
	asset asset.Asset
	edge  *window.Edge
	log   *slog.Logger
	// stored is closed when the edge's record is complete in storage.
	stored chan struct{}

	mail chan func(ctx context.Context) // facts; the goroutine is their only reader
	wake chan struct{}                  // one token: look at the stream's row

	mu         sync.Mutex
	stream     live.Stream
	sink       *sink // the current publication; nil while the encoder is away
	away       time.Time
	rows       int64 // timeline rows stored
	announced  bool  // active and ready were told
	recordings []asset.Recording
	ended      bool
}

// modeOf is how a latency mode is cut and listed. Lengths of segments and parts are in publish.go.
func modeOf(m live.LatencyMode) window.Mode {
	mode := window.Mode{Listed: 30 * time.Second, InMemory: 2}
	if m == live.Low {
		mode.Low, mode.Leading = true, 7
	}
	return mode
}

func newBroadcast(l *Live, s live.Stream, a asset.Asset, before *timeline.Timeline) *broadcast {
	b := &broadcast{
		owner: l, id: s.ID, epoch: s.Epoch, asset: a, stream: s, away: s.DisconnectedAt, recordings: a.Recordings,
		log:    l.opt.Logger.With("live_stream_id", s.ID, "asset_id", a.ID, "epoch", int64(s.Epoch)),
		stored: make(chan struct{}), mail: make(chan func(context.Context), 64), wake: make(chan struct{}, 1),
	}
	b.edge = window.New(window.Options{
		Media: string(a.Media), Mode: modeOf(s.Settings.LatencyMode), Store: l.opt.Store, Recorder: b, Timeline: before, Logger: b.log,
	})
	if before != nil {
		b.rows = int64(len(before.Entries()))
		b.announced = a.Status == asset.Ready && s.State.Status() == live.StatusActive
	}
	return b
}

func (b *broadcast) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// store runs the edge's own goroutine.
func (b *broadcast) store(ctx context.Context) {
	defer close(b.stored)
	if err := b.edge.Run(ctx); err != nil && ctx.Err() == nil {
		b.log.Error("store segments", "error", err)
	}
}

// run is the broadcast's goroutine.
func (b *broadcast) run(ctx context.Context) {
	renew := time.NewTicker(b.owner.opt.Lease / 3)
	defer renew.Stop()
	for {
		expiry, why := b.deadline()
		select {
		case <-ctx.Done():
			b.drain()
			return
		case fact := <-b.mail:
			fact(ctx)
		case <-renew.C:
			b.renew(ctx)
		case <-b.wake:
			b.renew(ctx)
		case <-expiry:
			b.end(ctx, why)
		}
		if b.isEnded() {
			b.serveRest(ctx)
			return
		}
	}
}

func (b *broadcast) isEnded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// deadline is when the broadcast ends by itself.
func (b *broadcast) deadline() (<-chan time.Time, live.EndReason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.owner.opt.Now()
	if b.stream.EndWanted != live.EndNone {
		return time.After(0), b.stream.EndWanted
	}
	last := b.stream.StartedAt.Add(time.Duration(b.stream.Settings.MaxContinuous) * time.Second)
	if b.away.IsZero() || len(b.mail) > 0 {
		return time.After(last.Sub(now)), live.EndMaxDuration
	}
	window := time.Duration(b.stream.Settings.ReconnectWindow * float64(time.Second))
	return time.After(b.away.Add(window).Sub(now)), live.EndWindow
}

// renew keeps the lease and learns what the owner of the stream wants.
func (b *broadcast) renew(ctx context.Context) {
	b.mu.Lock()
	s := b.stream
	b.mu.Unlock()
	now := b.owner.opt.Now()
	fresh, err := b.owner.opt.Streams.Renew(ctx, s.ID, s.Epoch, b.owner.opt.Node, now.Add(b.owner.opt.Lease))
	switch {
	case err == nil:
		b.mu.Lock()
		b.stream = fresh
		b.mu.Unlock()
	case fault.KindOf(err) == fault.Conflict || fault.KindOf(err) == fault.NotFound:
		b.lose(err)
	case now.After(s.LeaseUntil):
		b.lose(err)
	default:
		b.log.Warn("renew lease", "error", err)
	}
}

var errLeaseLost = errors.New("lease lost")

// lose lets go of a broadcast that is not this node's any more: whoever has it now finishes it.
func (b *broadcast) lose(err error) {
	b.log.Warn("broadcast lost", "error", err)
	b.dismiss(errLeaseLost)
	b.edge.Close()
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
}

// dismiss ends the current publication, if there is one.
func (b *broadcast) dismiss(cause error) {
	b.mu.Lock()
	s := b.sink
	b.sink = nil
	b.mu.Unlock()
	if s != nil {
		s.dismiss(cause)
	}
}

// end finishes the broadcast: the record first, the resources after it, so that a crash in between is made good at the next start.
func (b *broadcast) end(ctx context.Context, why live.EndReason) {
	b.mu.Lock()
	s, publication := b.stream, b.sink
	b.sink = nil
	b.mu.Unlock()
	if publication != nil {
		publication.conclude(ingest.ErrEnded)
		switch why {
		case live.EndComplete, live.EndMaxDuration:
			publication.linger(b.owner.opt.Linger)
		case live.EndNone, live.EndWindow, live.EndDisable, live.EndDelete, live.EndCrash:
			publication.drop(ingest.ErrEnded)
		}
		b.closeRecording()
	}
	b.edge.Close()
	select {
	case <-b.stored:
	case <-ctx.Done():
		return // the next start goes on from the row
	}
	now := b.owner.opt.Now()
	if err := b.owner.opt.Assets.EndLive(ctx, b.asset.ID, b.spans(), now); err != nil && fault.KindOf(err) != fault.NotFound {
		b.log.Error("end recording", "error", err)
		b.later()
		return
	}
	if _, err := b.owner.opt.Streams.End(ctx, s.ID, s.Epoch, why, now); err != nil && fault.KindOf(err) != fault.Conflict && fault.KindOf(err) != fault.NotFound {
		b.log.Error("end broadcast", "error", err)
		b.later()
		return
	}
	b.log.Info("broadcast ended", "reason", string(why))
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.owner.ended(b)
}

// later has the end tried again with the next renewal instead of at once.
func (b *broadcast) later() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away.IsZero() {
		b.away = b.owner.opt.Now()
	}
	window := time.Duration(b.stream.Settings.ReconnectWindow * float64(time.Second))
	b.away = b.owner.opt.Now().Add(2*time.Second - window)
	b.stream.EndWanted = live.EndNone
}

// serveRest keeps the ended edge for the viewers that are still at it.
func (b *broadcast) serveRest(ctx context.Context) {
	b.owner.ended(b)
	t := time.NewTimer(b.owner.opt.Keep)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
	b.owner.forget(b)
}

// drain is a shutdown: what is sealed is stored and told; the row says since when the encoder is away, and the next start goes on.
func (b *broadcast) drain() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.owner.root), 10*time.Second)
	defer cancel()
	for {
		select {
		case fact := <-b.mail:
			fact(ctx)
			continue
		default:
		}
		return
	}
}

// Record implements window.Recorder: stored segments become rows of the asset; the first ones make stream and asset playable.
func (b *broadcast) Record(ctx context.Context, entries []timeline.Entry) error {
	b.mu.Lock()
	first, s, announced := b.rows, b.stream, b.announced
	b.mu.Unlock()
	g := b.measured()
	for i, e := range entries {
		g.Entries = append(g.Entries, asset.TimelineEntry{Sequence: first + int64(i), Data: timeline.Encode(e)})
	}
	now := b.owner.opt.Now()
	if !announced {
		if err := b.owner.opt.Assets.Ready(ctx, b.asset.ID, g, now); err != nil {
			return gone(err)
		}
		if err := b.owner.opt.Streams.Active(ctx, s.ID, s.Epoch, now); err != nil && fault.KindOf(err) != fault.Conflict {
			return gone(err)
		}
	} else if err := b.owner.opt.Assets.Grow(ctx, b.asset.ID, g, now); err != nil {
		return gone(err)
	}
	b.mu.Lock()
	b.rows += int64(len(entries))
	b.announced = true
	b.mu.Unlock()
	return nil
}

// gone makes peace with an asset that was deleted under its broadcast: there is nothing left to record to.
func gone(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// measured is what the edge shows of the media so far.
func (b *broadcast) measured() asset.Growth {
	lanes, err := b.edge.Describe()
	if err != nil {
		return asset.Growth{}
	}
	stands := b.edge.Standing()
	var all []measure.Lane
	for _, l := range lanes {
		all = append(all, measure.Lane{ID: l.ID, Kind: l.Kind, Inits: l.Inits})
	}
	facts := measure.Facts(all, stands.At-stands.Zero)
	return asset.Growth{Facts: &facts, Tracks: measure.Tracks(all, stands.At-stands.Zero)}
}
