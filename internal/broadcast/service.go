// Package broadcast runs live streams: it leads each broadcast of this node from the admission of its first encoder to
// the end of its recording. Frames pass through it, from a publication's session to the writer of the live edge; facts
// about them become changes of resources, and what the rows say becomes deadlines. It records only while the live
// stream's row names this process. It must never know SQL, S3's API, sockets or viewers. Goroutines: Service's own, and
// three per broadcast: one leads it, one stores sealed segments, one writes the edge.
package broadcast

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/broadcast/subtitles"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/edgewriter"
	"millrace/internal/media/ingest"
	"millrace/internal/media/metering"
	"millrace/internal/media/overlay"
	"millrace/internal/media/playback"
	"millrace/internal/media/relay"
	"millrace/internal/media/transform"
	"millrace/internal/media/window"
)

// Options is what a Service needs.
type Options struct {
	Streams   live.Broadcasts
	Assets    asset.Recorder
	Store     window.Store
	Owner     live.Owner           // this process
	Keep      time.Duration        // how long an ended broadcast is still served from memory; 60 s when 0
	Linger    time.Duration        // how long an encoder stays connected after complete; 60 s when 0
	Stills    edgewriter.Stills    // encodes the slate's pictures; nil: the last key frame is shown instead
	Images    edgewriter.Images    // fetches the owners' slates
	Simulcast relay.Dialer         // connects to simulcast targets; nil: nothing is forwarded
	Encoder   transform.Encoder    // encodes pictures again that can't stay as they are; nil: none are
	Mark      overlay.Layer        // what test streams' pictures carry
	Below     *Renditions          // lower renditions of broadcasts; nil: there are none
	Speech    *subtitles.Generator // what recognises speech; nil: nothing does
	Meter     *metering.Meter      // of what viewers are sent; nil: nothing is counted
	Grace     time.Duration        // how long a shutdown waits for what is not stored or told yet; 10 s when 0
	Fleet                          // the other nodes
	Journals  Journals
	Now       func() time.Time
	Logger    *slog.Logger
}

// Fleet is how other nodes are asked.
type Fleet struct {
	// Ask asks the node that leads a broadcast to hand it over (HandOver), as an encoder has come here; lost is what
	// it could not store. fault.Conflict: its encoder is still there. nil: there is no other node.
	Ask func(ctx context.Context, s id.LiveStream, w live.Writer) (lost time.Duration, err error)
	// Others are the other nodes, where they can be asked; nil: nobody else may lead what this process leads.
	Others Others
	// Spectator says that this node takes up no broadcast but what it has led before: others have encoders.
	Spectator bool
	// Copies are what nodes copy of each other's broadcasts; nil: nothing.
	Copies Copies
}

// Service owns the broadcasts of this node. It implements ingest.Gate and srt.Secrets and is a lifecycle service.
type Service struct {
	opt  Options
	root context.Context // of the broadcasts; set by Run
	up   chan struct{}   // closed when Run accepts
	down chan struct{}   // closed when Run has ended
	wg   sync.WaitGroup

	broadcasts *registry
	admission  admission
	records    records // of the encoders' health
	pictures   *edgewriter.Pictures

	panics atomic.Int64

	observer *observer
	search   search
	tenure   *tenure
	promises *promises
	held     atomic.Int64 // bytes that wait for what may be listed again
}

// New returns a Service.
func New(o Options) *Service {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.Keep, time.Minute)
	set(&o.Linger, time.Minute)
	set(&o.Grace, 10*time.Second)
	l := &Service{
		opt: o, up: make(chan struct{}), down: make(chan struct{}), broadcasts: newRegistry(),
		records:  records{all: map[id.LiveStream]*record{}},
		pictures: edgewriter.NewPictures(o.Stills),
	}
	l.observer = newObserver(&l.opt, l.broadcasts)
	l.search.svc = l
	l.tenure, l.promises = &tenure{opt: &l.opt}, newPromises(o.Now)
	l.admission = admission{opt: &l.opt, broadcasts: l.broadcasts, promises: l.promises, begin: l.begin}
	return l
}

// Name implements lifecycle.Service.
func (svc *Service) Name() string { return "broadcasts" }

// Run recovers the broadcasts that a dead process left, looks after orphans of other nodes, and at the end waits for
// every broadcast to let go. Encoders must be gone before it is stopped.
func (svc *Service) Run(ctx context.Context) error {
	root, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer close(svc.down)
	svc.root = root
	var observer sync.WaitGroup
	observing, blind := context.WithCancel(context.WithoutCancel(ctx))
	defer observer.Wait()
	defer blind()
	observer.Go(func() { svc.observer.run(observing) })
	observer.Go(func() { svc.tenure.run(observing) })
	if err := svc.search.look(ctx, true); err != nil {
		return fmt.Errorf("recover broadcasts: %w", err)
	}
	svc.sweepJournals(ctx)
	close(svc.up)
	every := searchEvery
	if svc.opt.Others != nil {
		every = searchOthersEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.C:
			if err := svc.search.look(ctx, false); err != nil && ctx.Err() == nil {
				svc.opt.Logger.WarnContext(ctx, "look for orphaned broadcasts", "error", err)
			}
		}
	}
	svc.broadcasts.close()
	stop(ingest.ErrShutdown)
	svc.wg.Wait()
	return context.Cause(ctx)
}

// sweepJournals deletes what dead processes left of broadcasts that are over; none when it can not be told which these
// are.
func (svc *Service) sweepJournals(ctx context.Context) {
	if svc.opt.Journals.Dir == "" {
		return
	}
	going, err := svc.recordings(ctx)
	if err == nil {
		err = svc.opt.Journals.sweep(func(name string) bool { return going[id.Media(name)] })
	}
	if err != nil {
		svc.opt.Logger.WarnContext(ctx, "delete old journals", "error", err)
	}
}

// recordings are the media of every broadcast that is going on, here or elsewhere.
func (svc *Service) recordings(ctx context.Context) (map[id.Media]bool, error) {
	streams, err := svc.opt.Streams.Broadcasting(ctx)
	if err != nil {
		return nil, err
	}
	going := map[id.Media]bool{}
	for _, s := range streams {
		a, err := svc.opt.Assets.Find(ctx, s.ActiveAsset)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		going[a.Media] = true
	}
	return going, nil
}

// Recovered waits until this node has taken up what it was recording before its last end: until then stored rows do not
// tell everything that players were shown.
func (svc *Service) Recovered(ctx context.Context) error {
	select {
	case <-svc.up: // nearly always: nobody need be told when ctx ends
		return nil
	default:
	}
	select {
	case <-svc.up:
		return nil
	case <-svc.down:
		return ingest.ErrShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Changed tells the owner of a broadcast that its stream has changed; it does not block.
func (svc *Service) Changed(s id.LiveStream) {
	if b := svc.broadcasts.of(s); b != nil {
		b.poke()
	}
}

// Admit implements ingest.Gate. An encoder that comes back while its last connection, or its last broadcast, is still
// being finished waits for that for a moment instead of being refused.
func (svc *Service) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	select {
	case <-svc.up:
	case <-svc.down:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if svc.stopping() || svc.broadcasts.draining() { // before a row says that an encoder is connected
		return nil, nil, ingest.ErrShutdown
	}
	s, err := svc.admission.admit(ctx, p)
	if err != nil {
		return nil, nil, refusal(err)
	}
	return s.pub, s, nil
}

// Renewed notes that the row of this process's node was renewed, for so long from asked on.
func (svc *Service) Renewed(asked time.Time, valid time.Duration) { svc.tenure.renewed(asked, valid) }

// mostHeld bounds the bytes that wait for what may be listed again, of all broadcasts.
const mostHeld = 512 << 20

// room takes so many of them, or gives them back.
func (svc *Service) room(bytes int64) bool {
	if svc.held.Add(bytes) > mostHeld && bytes > 0 {
		svc.held.Add(-bytes)
		return false
	}
	return true
}

// Passphrase tells an SRT listener, before anybody is admitted, the secret that an encoder with this stream key must
// know.
func (svc *Service) Passphrase(ctx context.Context, key string) (string, error) {
	p, err := svc.opt.Streams.Passphrase(ctx, key)
	if err != nil {
		return "", refusal(err)
	}
	return p, nil
}

// begin runs the broadcast that a live stream's row names: it begins, or goes on from what is stored.
func (svc *Service) begin(ctx context.Context, s live.Stream, fresh bool) (*broadcast, error) {
	a, before, err := svc.record(ctx, s, fresh)
	if err != nil {
		return nil, err
	}
	return svc.start(ctx, s, a, before)
}

// start runs a broadcast, unless somebody else just did.
func (svc *Service) start(
	ctx context.Context, s live.Stream, a asset.Asset, before stored,
) (*broadcast, error) {
	policy, err := svc.renditionPolicy(ctx, s)
	if err != nil {
		return nil, err
	}
	before.copied = copied(ctx, &svc.opt, s, a.Media, before)
	return svc.broadcasts.start(s, func() *broadcast {
		b := newBroadcast(svc, s, a, before, policy)
		storing, halt := context.WithCancelCause(context.WithoutCancel(svc.root))
		b.halt = halt
		writing, full := context.WithCancel(storing)
		b.full = full
		b.spawn("store segments", func() { b.store(storing) })
		b.spawn("write edge", func() { b.writer.Run(writing) })
		if b.below != nil {
			b.spawn("make renditions", func() { b.below.Run(storing) })
		}
		for _, t := range svc.opt.Speech.Of(b.asset) {
			b.spawn("generate subtitles", func() {
				svc.opt.Speech.Run(writing, b.asset.Environment, t, b.edge, b.speechReports(), b.log)
			})
		}
		b.forward.run(svc.root, b.spawn, func(err error) {
			b.log.WarnContext(svc.root, "simulcast ended", "error", err)
		})
		b.spawn("lead broadcast", func() { b.lead(svc.root) })
		return b
	})
}

func (svc *Service) stopping() bool {
	select {
	case <-svc.down:
		return true
	default:
		return svc.broadcasts.closed()
	}
}

// Broadcasts counts the broadcasts that go on here.
func (svc *Service) Broadcasts() int { return svc.broadcasts.count() }

// Watched is the broadcast that a live stream's viewers see: the current one, or the last one while it is kept.
// NotReady: there is none in this node's memory; window.ErrMoved: it is being handed over to another node.
func (svc *Service) Watched(_ context.Context, s id.LiveStream) (playback.Broadcast, error) {
	if b := svc.broadcasts.watched(s); b != nil {
		return b.view(), nil
	}
	if svc.Leaving().Moves(s) {
		return nil, window.Fault(window.ErrMoved)
	}
	return nil, playback.Inactive()
}

// OfAsset is the broadcast of an asset, running or ended. NotFound: there is none in this node's memory.
func (svc *Service) OfAsset(_ context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error) {
	return found(svc.broadcasts.recordedAs(a), svc.Leaving().Moves(s))
}

// Earlier is a broadcast of a live stream by its media, current or kept. NotFound: there is none in this node's memory.
func (svc *Service) Earlier(_ context.Context, s id.LiveStream, m id.Media) (playback.Broadcast, error) {
	return found(svc.broadcasts.earlier(s, m), svc.Leaving().Moves(s))
}

func found(b *broadcast, moves bool) (playback.Broadcast, error) {
	switch {
	case b == nil && moves:
		return nil, window.Fault(window.ErrMoved)
	case b == nil:
		return nil, fault.New(fault.NotFound, "there is no such broadcast")
	}
	return b.view(), nil
}
