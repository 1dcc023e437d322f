// Package bridge is the one place where the two planes meet: facts of the media plane become changes of resources, an encoder's key
// becomes a session, a playback ID becomes something to watch. It must never know SQL, S3's API or sockets.
// Goroutines: Live's own, and for each broadcast one that leads it and one that stores what it seals.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/ingest"
	"millrace/internal/media/journal"
	"millrace/internal/media/overlay"
	"millrace/internal/media/relay"
	"millrace/internal/media/transform"
	"millrace/internal/media/window"
)

// LiveOptions is what Live needs.
type LiveOptions struct {
	Streams   live.Broadcasts
	Assets    asset.Work
	Store     window.Store
	Node      id.Node
	Lease     time.Duration     // how long a broadcast stays this node's without a sign of life; 15 s when 0
	Keep      time.Duration     // how long an ended broadcast is still served from memory; 60 s when 0
	Linger    time.Duration     // how long an encoder stays connected after complete; 60 s when 0
	Stills    Stills            // encodes the slate's pictures; nil: the last key frame is shown instead
	Images    Images            // fetches the owners' slates
	Simulcast relay.Dialer      // the door to simulcast targets; nil: nothing is forwarded
	Encoder   transform.Encoder // encodes pictures anew that can't stay as they are; nil: none are
	Mark      overlay.Layer     // what test streams' pictures carry
	Rungs     *LiveRungs        // how pictures are offered in lower sizes; nil: they are not
	Grace     time.Duration     // how long a shutdown waits for what is not stored or told yet; 10 s when 0
	// Journals is the folder of this machine that keeps the parts of open segments over the end of the process; empty: they are lost with it.
	// Marks is one in its memory that says which were published (journal.Memory); empty: the database says it, less exactly.
	Journals string
	Marks    string
	Now      func() time.Time
	Logger   *slog.Logger
}

// Live owns the broadcasts of this node. It implements ingest.Gate and srt.Secrets and is a lifecycle service.
type Live struct {
	opt  LiveOptions
	root context.Context // of the broadcasts; set by Run
	up   chan struct{}   // closed when Run accepts
	down chan struct{}   // closed when Run has ended
	wg   sync.WaitGroup

	mu         sync.Mutex
	closing    bool
	broadcasts map[id.LiveStream]*broadcast // the current ones
	newest     map[id.LiveStream]*broadcast // and, without a current one, the last one that is still served from memory
	byAsset    map[id.Asset]*broadcast      // all that are in memory
	byMedia    map[id.Media]*broadcast
	records    records                 // of the encoders' health
	lost       map[id.Media]*broadcast // to other nodes, until the last of their goroutines has ended

	seen map[id.LiveStream]sighting // of other nodes' broadcasts; Run's own

	stills   stills
	decoding chan struct{} // holds a token while an image is in memory
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
	set(&o.Grace, 10*time.Second)
	return &Live{
		decoding: make(chan struct{}, 1),
		opt:      o, up: make(chan struct{}), down: make(chan struct{}), broadcasts: map[id.LiveStream]*broadcast{}, newest: map[id.LiveStream]*broadcast{},
		byAsset: map[id.Asset]*broadcast{}, byMedia: map[id.Media]*broadcast{},
		records: records{all: map[id.LiveStream]*record{}}, lost: map[id.Media]*broadcast{}, seen: map[id.LiveStream]sighting{},
	}
}

// Name implements lifecycle.Service.
func (l *Live) Name() string { return "broadcasts" }

// Run recovers the broadcasts that a dead process left, looks after orphans of other nodes, and at the end waits for every broadcast to
// let go. Encoders must be gone before it is stopped.
func (l *Live) Run(ctx context.Context) error {
	root, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer close(l.down)
	l.mu.Lock()
	l.root = root
	l.mu.Unlock()
	if err := l.recover(ctx, true); err != nil {
		return fmt.Errorf("recover broadcasts: %w", err)
	}
	l.sweepJournals(ctx)
	close(l.up)
	t := time.NewTicker(l.opt.Lease)
	defer t.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.C:
			if err := l.recover(ctx, false); err != nil && ctx.Err() == nil {
				l.opt.Logger.WarnContext(ctx, "look for orphaned broadcasts", "error", err)
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

// journal keeps the parts of one recording's open segments; nil when there is no folder for it. What this node left in it is of use
// only when nobody else has recorded since.
func (l *Live) journal(m id.Media, goOn bool, log *slog.Logger) *journal.Journal {
	if l.opt.Journals == "" {
		return nil
	}
	if !goOn {
		if err := l.sweep(func(name string) bool { return name != string(m) }); err != nil {
			log.Warn("delete old journal", "error", err)
		}
	}
	o := journal.Options{Dir: filepath.Join(l.opt.Journals, string(m)), Logger: log}
	if l.opt.Marks != "" {
		o.Mark = filepath.Join(l.opt.Marks, string(m))
	}
	return journal.New(o)
}

// sweep deletes the journals and marks that nobody keeps.
func (l *Live) sweep(keep func(media string) bool) error {
	err := journal.Sweep(l.opt.Journals, keep)
	if l.opt.Marks != "" {
		err = errors.Join(err, journal.Sweep(l.opt.Marks, keep))
	}
	return err
}

// sweepJournals deletes what dead processes left of broadcasts that are over; none when it can not be told which these are.
func (l *Live) sweepJournals(ctx context.Context) {
	if l.opt.Journals == "" {
		return
	}
	going, err := l.recordings(ctx)
	if err == nil {
		err = l.sweep(func(name string) bool { return going[id.Media(name)] })
	}
	if err != nil {
		l.opt.Logger.WarnContext(ctx, "delete old journals", "error", err)
	}
}

// recordings are the media of every broadcast that is going on, here or elsewhere.
func (l *Live) recordings(ctx context.Context) (map[id.Media]bool, error) {
	streams, err := l.opt.Streams.Broadcasting(ctx)
	if err != nil {
		return nil, err
	}
	going := map[id.Media]bool{}
	for _, s := range streams {
		a, err := l.opt.Assets.Find(ctx, s.ActiveAsset)
		if fault.KindOf(err) == fault.NotFound && err != nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		going[a.Media] = true
	}
	return going, nil
}

// Recovered waits until this node has taken up what it was recording in its last life: until then stored rows do not tell everything
// that players were shown.
func (l *Live) Recovered(ctx context.Context) error {
	select {
	case <-l.up: // nearly always: nobody need be told when ctx ends
		return nil
	default:
	}
	select {
	case <-l.up:
		return nil
	case <-l.down:
		return ingest.ErrShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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

// rekey notes a broadcast's stream key.
func (l *Live) rekey(b *broadcast, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.key = key
}

// errOvertaken is its answer to one whose admission it did not know of when it told what became of the last.
var errOvertaken = fault.New(fault.Conflict, "the last encoder left meanwhile")

// errEnding is a broadcast's answer to a publication that comes too late for it.
var errEnding = fault.New(fault.Conflict, "the broadcast is ending")

// admitPatience bounds how long an admission waits for the last publication's end to be told.
const admitPatience = 5 * time.Second

// Admit implements ingest.Gate. An encoder that comes back while its last connection, or its last broadcast, is still being finished
// waits for that for a moment instead of being refused.
func (l *Live) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	select {
	case <-l.up:
	case <-l.down:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	if l.stopping() { // before a row says that an encoder is connected
		return nil, nil, ingest.ErrShutdown
	}
	s, err := l.admit(ctx, p)
	if fault.KindOf(err) == fault.Conflict && err != nil && (l.settle(ctx, p.Key) || errors.Is(err, errEnding)) {
		s, err = l.admit(ctx, p)
	}
	if err != nil {
		return nil, nil, refusal(err)
	}
	return s.pub, s, nil
}

// Passphrase tells an SRT listener, before anybody is admitted, the secret that an encoder with this stream key must know.
func (l *Live) Passphrase(ctx context.Context, key string) (string, error) {
	p, err := l.opt.Streams.Passphrase(ctx, key)
	if err != nil {
		return "", refusal(err)
	}
	return p, nil
}

func (l *Live) admit(ctx context.Context, p ingest.Publication) (*sink, error) {
	fresh, asked := id.Asset(id.New()), l.opt.Now()
	s, err := l.opt.Streams.Connect(ctx, p.Key, p.Protocol, fresh, l.opt.Node, l.opt.Lease, asked)
	if err != nil {
		return nil, err
	}
	sink, err := l.join(ctx, s, p, s.ActiveAsset == fresh, asked)
	if err == nil {
		return sink, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, uerr := l.opt.Streams.Disconnected(undo, s.ID, s.Epoch, l.opt.Now()); uerr != nil && !fault.Permanent(uerr) {
		err = errors.Join(err, uerr)
	}
	return nil, fmt.Errorf("open broadcast of live stream %s: %w", s.ID, err)
}

// join opens a publication of the broadcast that s was admitted to, which runs already, or begins, or goes on from what is stored.
func (l *Live) join(ctx context.Context, s live.Stream, p ingest.Publication, fresh bool, asked time.Time) (*sink, error) {
	b := l.current(s.ID)
	if b == nil || b.epoch != s.Epoch {
		if !fresh { // it was another node's until now, which may be about to record its last segment
			if err := pause(ctx, handover); err != nil {
				return nil, err
			}
		}
		a, before, err := l.record(ctx, s, fresh)
		if err != nil {
			return nil, err
		}
		if b, err = l.start(ctx, s, a, before, asked); err != nil {
			return nil, err
		}
	}
	type answer struct {
		sink *sink
		err  error
	}
	done := make(chan answer, 1)
	b.mail.post(func() {
		opened, err := b.attach(ctx, s, p, asked)
		done <- answer{opened, err}
	})
	select { // not on ctx: what is opened has to be closed by somebody
	case a := <-done:
		return a.sink, a.err
	case <-b.gone:
		return nil, errEnding
	}
}

// handover is how long a write may take that another node was sure to have the right to.
const handover = 250 * time.Millisecond

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

// settle waits for the broadcast of a stream key, if it is here, to tell what has happened to it; false when that takes too long.
func (l *Live) settle(ctx context.Context, key string) bool {
	var found *broadcast
	l.mu.Lock()
	for _, b := range l.broadcasts {
		if b.key == key {
			found = b
		}
	}
	l.mu.Unlock()
	if found == nil {
		return true // it has ended in this moment, or is another node's: the row says which
	}
	ctx, cancel := context.WithTimeout(ctx, admitPatience)
	defer cancel()
	return found.settle(ctx)
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
	case fault.Internal, fault.Invalid, fault.Unauthorized, fault.TooLarge, fault.NotReady, fault.Unavailable, fault.TooMany:
	}
	return err
}

// start runs a broadcast, unless somebody else just did.
func (l *Live) start(ctx context.Context, s live.Stream, a asset.Asset, before stored, asked time.Time) (*broadcast, error) {
	rungs, err := l.rungPolicy(ctx, s)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return nil, ingest.ErrShutdown
	}
	if b := l.broadcasts[s.ID]; b != nil && b.epoch >= s.Epoch {
		if b.epoch > s.Epoch {
			return nil, errEnding
		}
		return b, nil
	}
	b := newBroadcast(l, s, a, before, rungs, asked)
	l.broadcasts[s.ID], l.newest[s.ID], l.byAsset[a.ID], l.byMedia[a.Media] = b, b, b, b
	storing, halt := context.WithCancelCause(context.WithoutCancel(l.root))
	b.halt = halt
	filling, full := context.WithCancel(storing)
	b.full = full
	l.wg.Go(func() { b.store(storing) })
	l.wg.Go(func() { b.runFiller(filling) })
	if b.lower != nil {
		l.wg.Go(func() { b.runLower(storing) })
	}
	b.forward.run(l.root, l.wg.Go, func(err error) { b.log.WarnContext(l.root, "simulcast ended", "error", err) })
	l.wg.Go(func() { b.run(l.root) })
	return b, nil
}

// ended takes a broadcast out of the current ones; it is served from memory for a while longer.
func (l *Live) ended(b *broadcast) {
	l.mu.Lock()
	defer l.mu.Unlock()
	drop(l.broadcasts, b.id, b)
}

// forget takes a broadcast out of memory.
func (l *Live) forget(b *broadcast) {
	l.mu.Lock()
	defer l.mu.Unlock()
	drop(l.broadcasts, b.id, b)
	drop(l.newest, b.id, b)
	drop(l.byAsset, b.asset.ID, b)
	drop(l.byMedia, b.asset.Media, b)
	drop(l.lost, b.asset.Media, b)
}

// lose is forget for one that another node has now. Its viewers are not to take that for the end.
func (l *Live) lose(b *broadcast) {
	l.forget(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[b.asset.Media] = b
}

// lettingGo waits until this node has let go of a recording that it lost before.
func (l *Live) lettingGo(ctx context.Context, m id.Media) error {
	l.mu.Lock()
	b := l.lost[m]
	l.mu.Unlock()
	if b == nil {
		return nil
	}
	select {
	case <-b.stored:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drop deletes b, but nothing that has taken its place.
func drop[K comparable](m map[K]*broadcast, k K, b *broadcast) {
	if m[k] == b {
		delete(m, k)
	}
}

func (l *Live) stopping() bool {
	select {
	case <-l.down:
		return true
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing
}

func (l *Live) current(s id.LiveStream) *broadcast {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broadcasts[s]
}

// holding is the broadcast of an asset, running or ended, if it is in this node's memory.
func (l *Live) holding(a id.Asset) *broadcast {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byAsset[a]
}

// watched is the broadcast that a live stream's viewers see: the current one, or the last one while it is kept.
func (l *Live) watched(s id.LiveStream) *broadcast {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest[s]
}

// earlier is a broadcast of a live stream by its media, current or kept.
func (l *Live) earlier(s id.LiveStream, m id.Media) *broadcast {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.byMedia[m]; b != nil && b.id == s {
		return b
	}
	return nil
}
