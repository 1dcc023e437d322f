package broadcast

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/edgewriter"
	"millrace/internal/media/ingest"
	"millrace/internal/media/metering"
	"millrace/internal/media/rendition"
	"millrace/internal/media/session"
	"millrace/internal/media/window"
)

// broadcast is one epoch of a live stream on this node: from its first publication to the end of its last reconnect
// window.
//
// One goroutine, run, has its state to itself: others post to its mailbox or wake it, and never wait while holding a
// lock. It tells the control plane what happens, in order, through its outbox. When to do what is decided by its
// schedule; what is stored, and whether this node may store at all, is its recorder's business, on the edge's
// goroutine.
type broadcast struct {
	identity
	lifetime
	state // run's own

	owner    *Service
	opt      *Options
	edge     *window.Edge
	recorder *recorder
	writer   *edgewriter.Writer
	overlays overlayFiles
	forward  forwarder
	below    *rendition.Live // nil: no renditions are made of the video
	breaks   *session.Breaks // of all publications
	mail     *mailbox
	wake     chan struct{} // one token: look at the stream's row
	revision atomic.Int64  // of the stream's row, as it was read last
	unheard  atomic.Int64  // nanoseconds of what was said that have no subtitles, as recognition was behind
}

// identity is what never changes of a broadcast, but for its stream's key.
type identity struct {
	id    id.LiveStream
	by    live.Writer // who leads it here
	key   string      // the stream key; guarded by the registry
	asset asset.Asset
	mode  live.LatencyMode
	log   *slog.Logger
	meter *metering.Counter // of what viewers are sent
	title string            // of the live stream, when the broadcast began
	fresh bool              // no earlier process has recorded anything
}

// lifetime is how a broadcast's goroutines end.
type lifetime struct {
	copying Copying                 // nil: no other node copies what is published; it ends with stored
	stored  chan struct{}           // closed when the edge's goroutine has ended
	full    context.CancelFunc      // ends the goroutine of the edge's writer
	halt    context.CancelCauseFunc // ends the edge's goroutine before it has stored everything
	gone    chan struct{}           // closed when nobody takes from the mailbox any more
}

// state is where a broadcast stands.
type state struct {
	ending
	reading

	stream   live.Stream
	schedule schedule
	sink     *sink // the current publication; nil while the encoder is away
	outbox   outbox
	sampleAt time.Time       // of the encoder's health
	reported int64           // the revision of the stream's row that the last message about the encoder has made
	unfit    string          // why the last encoder's media could not be recorded; "" when it could
	unsteady bool            // it was told that an encoder broke off all the time
	waiting  []chan struct{} // for the outbox, or for the end
}

// reading is when the broadcast reads its stream's row: when it has heard that there may be something new in it.
type reading struct {
	wanted bool
	at     time.Time     // not before
	pause  time.Duration // before the next attempt, while they fail
}

// want has the row read at once.
func (r *reading) want() { r.wanted, r.at = true, time.Time{} }

// due reports whether the row is to be read now.
func (r *reading) due(now time.Time) bool { return r.wanted && !now.Before(r.at) }

// failed plans the next attempt.
func (r *reading) failed(now time.Time) {
	r.pause = min(max(2*r.pause, firstPause), lastPause)
	r.at = now.Add(r.pause)
}

// ending is how far the end of a broadcast has come.
type ending struct {
	why      live.EndReason // of the end that has begun
	sealed   bool           // everything is stored
	over     bool           // the end is told
	lost     bool           // the broadcast is another node's now
	quitting time.Time      // the service stops: how long what is left may take; zero otherwise
}

// labels are what ties log lines about the broadcast together.
func (i *identity) labels() []any {
	return []any{"live_stream_id", i.id, "asset_id", i.asset.ID, "epoch", int64(i.by.Epoch)}
}

// newBroadcast goes on from what is stored of a broadcast.
func newBroadcast(l *Service, s live.Stream, a asset.Asset, before stored, policy Policy) *broadcast {
	b := &broadcast{
		owner: l, opt: &l.opt, mail: newMailbox(), wake: make(chan struct{}, 1), breaks: session.NewBreaks(),
		identity: identity{
			id: s.ID, by: s.Writer(), key: s.StreamKey, asset: a, mode: s.Settings.LatencyMode,
			title: s.Settings.Meta.Title, fresh: before.timeline == nil,
			meter: l.opt.Meter.Counter(metering.Asset{
				ID: string(a.ID), Environment: string(a.Environment),
				LiveStream: string(a.LiveStream),
			}),
		},
		lifetime: lifetime{stored: make(chan struct{}), gone: make(chan struct{})},
		state:    state{stream: s},
	}
	b.log = l.opt.Logger.With(b.labels()...)
	b.recorder = &recorder{
		opt:       &l.opt,
		of:        s.ID,
		by:        b.by,
		asset:     a,
		refused:   b.refused,
		rows:      before.rows,
		ready:     a.Status == asset.Ready,
		ownership: ownership{tenure: l.tenure, named: l.opt.Now()},
		reserved:  s.Reserved,
		times:     resumeRecordingTimes(a.Recordings, before.timeline, a.Limit),
	}
	b.revision.Store(s.Revision)
	b.recorder.resume(s)
	b.copying = copying(&l.opt, s, a.Media, before.copied)
	own, derived := l.opt.Journals.open(a.Media, before.own, before.copied, s.Reserved+copiedAhead, b.copying, b.log)
	b.edge = window.New(window.Options{
		Media: string(a.Media), Mode: modeOf(b.mode), Store: b.recorder, Recorder: b.recorder,
		Timeline: before.timeline, Logger: b.log,
		Journal: own, DerivedJournal: derived, Generation: s.Generation, Reserved: s.Reserved,
		Short: l.observer.press, Broken: b.broken,
	})
	b.recorder.edge = b.edge
	b.addTexts()
	now := l.opt.Now()
	b.writer = b.newWriter(edgewriter.Earlier{
		Before: before.timeline, Since: before.since(b.edge.Standing().Ends, now),
	})
	b.forward = b.newForwarder(s)
	b.below = b.newBelow(policy)
	b.schedule = schedule{began: now.Add(s.StartedAt.Sub(now)), heard: now}
	if !s.DisconnectedAt.IsZero() {
		b.schedule.away, b.schedule.adopted = now.Add(s.DisconnectedAt.Sub(now)), true
	}
	b.schedule.follow(s, now)
	b.writer.Allow(s.Settings.Slate())
	return b
}

// newWriter makes the edge's writer.
func (b *broadcast) newWriter(earlier edgewriter.Earlier) *edgewriter.Writer {
	segment, part := cutOf(b.mode)
	return edgewriter.New(edgewriter.Options{
		Edge: b.edge, Segment: segment, Part: part, Earlier: earlier, URL: b.stream.Settings.ReconnectSlateURL,
		Pictures: b.owner.pictures, Held: b.recorder.held, Room: b.owner.room,
		Images: b.opt.Images, Began: b.recorder.begin, Captions: b.captions(), Now: b.opt.Now, Logger: b.log,
		Unusable: func(ctx context.Context, why error) {
			b.log.WarnContext(ctx, "slate image can't be used, showing the default one", "error", why)
			b.warnAtFirst(live.CustomSlateUnavailable,
				"the custom slate image can't be used, the default one is shown in this recording: "+explain(why))
		},
		Broken: b.broken,
	})
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
	if b.below != nil {
		defer b.below.End()
	}
	all := false
	if b.copying != nil {
		// storage has no parts, and the next writer may be asked for those that were listed
		defer func() { b.copying.Close(all && !window.Yielded(b.edge)) }()
	}
	err := b.edge.Run(ctx)
	if all = err == nil; !all {
		b.log.WarnContext(ctx, "segments were left behind", "error", err)
	}
}

// run leads the broadcast, on its goroutine. It goes on after root has ended, until what is left is done or has taken
// too long.
func (b *broadcast) run(root context.Context) {
	ctx, down := context.WithoutCancel(root), root.Done()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		b.act(ctx)
		if b.finished() {
			break
		}
		var stored <-chan struct{}
		if !b.sealed && (b.schedule.ending || !b.quitting.IsZero()) {
			stored = b.stored
		}
		alarm.Reset(b.due())
		select {
		case <-b.mail.ready:
		case <-b.wake:
			b.want()
		case <-stored:
			b.sealed = true
			b.conclude()
		case <-alarm.C:
		case <-down:
			down = nil
			end := b.edge.Close // the next start goes on
			if b.opt.Ask != nil {
				end = b.edge.Yield // or another node
			}
			b.part(b.opt.Now().Add(b.opt.Grace), ingest.ErrShutdown, end)
		}
	}
}

// act does what is due. What has been posted comes first, and again after the row was read, which may have taken as
// long as patience allows: a deadline is judged by what is known when it is judged.
func (b *broadcast) act(ctx context.Context) {
	b.read()
	if b.reading.due(b.opt.Now()) {
		b.look(ctx)
		b.read()
	}
	now := b.opt.Now()
	b.listen()
	if t := b.schedule.next(now); !b.lost && !t.at.IsZero() && !now.Before(t.at) {
		switch {
		case t.hangUp:
			b.drop(now, ingest.ErrSilent)
		case t.letGo:
			b.drop(now, ingest.ErrShutdown)
		case t.hush:
			b.hush(true)
		case !b.recorder.held(): // else another node may have it by now, and goes on
			b.end(t.end)
		}
	}
	if b.lost {
		return
	}
	b.measure(now)
	b.outbox.run(ctx, b.opt.Now, func(what string, err error) {
		b.log.WarnContext(ctx, "control plane not reached, trying again", "doing", what, "error", err)
	}, func(what string, err error) {
		b.log.DebugContext(ctx, "control plane has moved on", "doing", what, "error", err)
	})
	if _, busy := b.outbox.due(); !busy && !b.schedule.ending && !b.reading.due(now) {
		b.reply()
	}
}

// read does what others have posted. None of it waits for anything.
func (b *broadcast) read() {
	for _, job := range b.mail.take() {
		job()
	}
}

// longestPause bounds how long a broadcast's goroutine waits for nothing in particular.
const longestPause = time.Hour

// due is how long nothing happens by itself.
func (b *broadcast) due() time.Duration {
	now := b.opt.Now()
	if b.reading.due(now) {
		return 0
	}
	next := now.Add(longestPause)
	sooner := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	if at := b.schedule.next(now).at; !at.IsZero() && !now.Before(at) && b.recorder.held() {
		sooner(now.Add(tenureEvery))
	} else {
		sooner(at)
	}
	sooner(b.quitting)
	if b.wanted {
		sooner(b.at)
	}
	if b.sink != nil {
		sooner(b.sampleAt)
	}
	if at, busy := b.outbox.due(); busy {
		sooner(at)
	}
	return max(next.Sub(now), 0)
}

func (b *broadcast) finished() bool {
	if b.lost || b.over {
		return true
	}
	if b.quitting.IsZero() {
		return false
	}
	_, busy := b.outbox.due()
	return b.sealed && !busy && !b.schedule.ending || !b.opt.Now().Before(b.quitting)
}

// tell adds an message. It is not run before it is sure that the broadcast is still this node's, and dropped when it is
// not.
func (b *broadcast) tell(what string, do func(ctx context.Context) error) {
	b.outbox.add(what, func(ctx context.Context) error {
		if lost, err := b.recorder.lost(ctx); err != nil || lost {
			return err
		}
		return do(ctx)
	})
}

// stopWriting ends what the edge's writer has open.
func (b *broadcast) stopWriting() {
	b.writer.Stop()
	b.full()
}

// look reads what the owner of the stream wants, and whether the broadcast is still this node's.
func (b *broadcast) look(ctx context.Context) {
	try, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := b.recorder.look(try)
	switch {
	case err == nil:
		b.follow(s)
	case errors.Is(err, ErrLeaseLost): // the recorder has posted it
	default:
		b.failed(b.opt.Now())
		b.log.WarnContext(ctx, "row of live stream not read, trying again", "error", err)
		return
	}
	b.reading = reading{}
}

// follow takes over what the stream's row says. An encoder that came with a key that is no more is dropped.
func (b *broadcast) follow(s live.Stream) {
	b.stream = s
	b.revision.Store(s.Revision)
	b.schedule.follow(s, b.opt.Now())
	b.writer.Allow(s.Settings.Slate())
	b.owner.broadcasts.rekey(b, s.StreamKey)
	if b.sink != nil && b.sink.key != s.StreamKey && b.schedule.wanted == live.EndNone && !b.schedule.ending {
		b.drop(b.opt.Now(), ingest.ErrKeyReset)
	}
}

// refused is the recorder's word that nothing can be recorded any more.
func (b *broadcast) refused(why error) {
	b.mail.post(func() {
		if !errors.Is(why, ErrLeaseLost) {
			b.log.Warn("asset does not take any more", "error", why)
			b.end(live.EndDelete)
			return
		}
		b.log.Warn("broadcast lost to another node")
		b.letGo(why)
	})
}

// supersede has the broadcast given up, if there is one, when s names a later writer of it: another node had it
// meanwhile, and has it no more.
func (b *broadcast) supersede(ctx context.Context, s live.Stream) error {
	if b == nil || b.by.Epoch != s.Epoch || b.by.Generation >= s.Generation {
		return nil
	}
	b.recorder.stop(ErrLeaseLost)
	done := make(chan struct{})
	b.mail.post(func() { close(done) }) // behind what the recorder has posted
	select {
	case <-done:
	case <-b.gone:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// letGo gives the broadcast up on this node. Neither its end nor an event is stored: the next owner goes on with it.
func (b *broadcast) letGo(why error) {
	b.lost = true
	b.owner.broadcasts.lose(b) // first
	b.halt(why)
	b.forward.abandon(why)
	b.dismiss(why)
	b.stopWriting()
}

// flush waits until everything that has happened so far is told, or the broadcast has ended; false when ctx ends
// before.
func (b *broadcast) flush(ctx context.Context) bool {
	done := make(chan struct{})
	b.mail.post(func() {
		b.want() // what was asked of the broadcast before counts, whether its wake-up has come or not
		b.waiting = append(b.waiting, done)
	})
	select {
	case <-done:
	case <-b.gone:
	case <-ctx.Done():
		return false
	}
	return true
}

func (b *broadcast) reply() {
	for _, w := range b.waiting {
		close(w)
	}
	b.waiting = nil
}
