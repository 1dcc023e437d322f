// Package justintime makes the segments of a rung from those of the rendition above it, on request. A bounded encoder
// starts at the requested segment, runs a few segments ahead and ends; requests for one of these segments wait for the
// same run. Segments are stored and never made again. A frame of a rung has the presentation time of the source's
// frame, and the decoding times of the rung differ from the source's by a constant, so that one run, many runs and
// another node's runs give the same numbers.
//
// It must never know HTTP, resources, where objects are kept, or who watches. Goroutines: one for each run, which
// belong to Run.
package justintime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/metering"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
	"millrace/internal/media/turns"
)

// Store keeps what was made.
type Store interface {
	Has(ctx context.Context, key string) (bool, error)
	// PutNew stores an object unless there is one, whoever made it; created says that it was this one.
	PutNew(ctx context.Context, key string, data []byte) (created bool, err error)
	// Read is a whole object; fault.NotFound: there is none.
	Read(ctx context.Context, key string) ([]byte, error)
}

// Claims have one of several nodes make what is stored at a key.
type Claims interface {
	// Claim asks for what will be stored at keys: the first n are the caller's to make, until done is called with each
	// that is stored, and without any at the end. wanted is called when another node waits for one of them. It returns
	// soon.
	Claim(ctx context.Context, keys []string, wanted func()) (n int, done func(keys ...string))
	// Wait waits until no other node makes what is stored at key; false: that takes too long.
	Wait(ctx context.Context, key string) bool
}

// Encoder turns pictures into pictures; encode.Engine fits.
type Encoder interface {
	Rung(ctx context.Context, p encode.Priority, job encode.RungJob) error
}

// Work is one rendition that is made of another.
type Work struct {
	Prefix   string // of its storage keys, without a slash at the end
	Rung     ladder.Rung
	Timeline *timeline.Timeline
	Video    *timeline.Rendition // of the source
	Source   delivered.Source
	// Parameters says the track that the encoder gives, where another encoder with the same settings says so soon; nil:
	// none does.
	Parameters func(ctx context.Context) (frame.Config, bool)
	// Parts says after how many pictures of the source's segment a movie fragment ends, or that it ends where the
	// source's do; nil, or nothing said: one fragment has all.
	Parts func(msn int64) (ends []int, alike bool)
	// Head is what viewers have of a segment while it is not at HeadKey yet; nil, or nothing: nothing.
	Head      func(msn int64) []byte
	Dependent func(msn int64, part int) bool // playlists list the part as one without a sync sample; nil: none is
	// AwaitStored waits until what the source has of a segment stays; nil: it does. An error: what is made of it can't
	// be kept.
	AwaitStored func(ctx context.Context, msn int64) error
}

// InitKey is where the init segment is stored.
func (w *Work) InitKey() string { return w.Prefix + "/init.mp4" }

// SegmentKey is where a segment is stored.
func (w *Work) SegmentKey(msn int64) string {
	return w.Prefix + "/" + strconv.FormatInt(msn, 10) + ".m4s"
}

// HeadKey is where the first parts of a segment are that viewers had of it while it was live and that anyone who made
// it did not go on with: the segment begins with them.
func (w *Work) HeadKey(msn int64) string {
	return w.Prefix + "/" + strconv.FormatInt(msn, 10) + ".head"
}

// chunk is the source's chunk; nil where there is no media.
func (w *Work) chunk(msn int64) *timeline.Chunk {
	i := msn - w.Timeline.First
	if i < 0 || i >= int64(len(w.Video.Chunks)) || w.Video.Chunks[i].Gap {
		return nil
	}
	return &w.Video.Chunks[i]
}

// seconds is the length of the source's segment.
func (w *Work) seconds(msn int64) float64 { return w.Video.Seconds(int(msn - w.Timeline.First)) }

// continues reports whether a segment goes on where the one before ended, with the same init segment.
func (w *Work) continues(msn int64) bool {
	before, c := w.chunk(msn-1), w.chunk(msn)
	return before != nil && c != nil && before.Init == c.Init && !w.other(msn)
}

// other reports whether a segment begins behind a discontinuity.
func (w *Work) other(msn int64) bool {
	i := msn - w.Timeline.First
	return i >= 0 && i < int64(len(w.Timeline.Marks)) && w.Timeline.Marks[i].Discontinuity
}

// Options are what a Maker needs.
type Options struct {
	Encoder Encoder
	Store   Store
	Claims  Claims // nil: there is one node
	// Encoded is told of each segment that the encoder has made; nil: nobody wants to know. kept: it is the one that is
	// stored.
	Encoded func(kept bool)
	// Version is the encoder's: another one may write other parameter sets.
	Version string
	// Cores is how many processors the encoder has; 0: one.
	Cores  int
	Now    func() time.Time
	Logger *slog.Logger
}

// Maker makes segments of rungs.
type Maker struct {
	// Lookups are those of segments that viewers asked for: whether they were stored.
	Lookups metering.Lookups

	opt Options

	mu     sync.Mutex
	base   context.Context //nolint:containedctx // of all runs: they outlive the request that began them
	cancel context.CancelCauseFunc
	runs   map[string][]*run // by prefix
	known  *known
	failed map[string]failure // by key
	inits  map[string]*pendingInit
	given  *parameters
	keeps  map[string]chan struct{} // by key: closed when what is being stored is
	asked  *turns.Line              // what viewers wait for
	early  *turns.Line              // what they will ask for
	all    sync.WaitGroup
	ended  bool
}

const (
	// runLength is how much a run makes that is ahead of its viewers, in seconds: from twelve on it costs what one that
	// never ends would. One that somebody waits for makes a single segment: it does not look ahead into the next, and
	// is soon out of the way of others.
	runLength = 20
	// ahead is how much is made before it is asked for, in seconds.
	ahead = 12
	// maxRunBytes bounds the source's bytes that a run holds.
	maxRunBytes = 64 << 20
	// retryAfter is for how long a segment that could not be made is not tried again.
	retryAfter = 30 * time.Second
	// asking is how many runs that viewers wait for go to the encoder at once, where one has all processors and another
	// may be next; the others take turns by address. mostWaiting is how many do that.
	asking, mostWaiting = 2, 64
)

type failure struct {
	err   error
	until time.Time
}

// New returns a Maker; nothing is made before Run is called.
func New(o Options) *Maker {
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // ended by Run
	return &Maker{
		opt: o, base: ctx, cancel: cancel, runs: map[string][]*run{}, known: newKnown(), failed: map[string]failure{},
		inits: map[string]*pendingInit{},
		given: newParameters(), keeps: map[string]chan struct{}{},
		asked: turns.New(turns.Options{What: "renditions", Places: asking, Waiting: mostWaiting}),
		early: turns.New(turns.Options{What: "renditions", Places: max(1, o.Cores/2) + 1, Waiting: mostWaiting}),
	}
}

// Name implements lifecycle.Service.
func (m *Maker) Name() string { return "rungs" }

// Run implements lifecycle.Service: it ends what runs when ctx ends.
func (m *Maker) Run(ctx context.Context) error {
	<-ctx.Done()
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.cancel(context.Cause(ctx))
	m.all.Wait()
	return context.Cause(ctx)
}

// Rendition names a rung in URLs and keys. What its segments look like follows from the name alone: with other settings
// or another encoder it is another rendition. Only how many bits they take depends on the source as well, by the rung's
// Bound.
func (m *Maker) Rendition(r ladder.Rung) string {
	args := encode.RungArgs{
		FrameRate: r.FrameRate, Width: r.Width, Height: r.Height, Range: r.Range, Preset: r.Preset, CRF: r.CRF,
		Bitrate: r.Bitrate, Level: r.Level, NoReorder: r.NoReorder,
	}.Build()
	sum := sha256.Sum256([]byte(m.opt.Version + "\x00" + strings.Join(args, "\x00")))
	return r.Name + "-" + hex.EncodeToString(sum[:4])
}

// tries is how often what was given up for others is begun again.
const tries = 10

// Segment makes a segment unless it is stored: when it returns nil, it is. fault.Unavailable says that it may be asked
// for again.
func (m *Maker) Segment(ctx context.Context, w *Work, msn int64) (err error) {
	if w.chunk(msn) == nil {
		return fault.New(fault.NotFound, "there is no such segment")
	}
	for range tries {
		if err = m.segment(ctx, w, msn); !errors.Is(err, errNobodyWaits) && !errors.Is(err, errElsewhere) &&
			!errors.Is(err, errOthers) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (m *Maker) segment(ctx context.Context, w *Work, msn int64) error {
	stored, err := m.has(ctx, w, msn)
	if err != nil {
		return err
	}
	m.Lookups.Count(stored)
	if stored {
		return nil
	}
	m.mu.Lock()
	if f, ok := m.failed[w.SegmentKey(msn)]; ok && m.opt.Now().Before(f.until) {
		m.mu.Unlock()
		return f.err
	}
	r := m.covering(w.Prefix, msn)
	if r != nil && r.patient() && !r.started { // it may wait for long
		m.remove(r)
		r.cancel(errNobodyWaits)
		r = nil
	}
	if r == nil {
		priority := encode.OnDemand
		if !m.known.seen(w.Prefix) {
			priority = encode.FirstPlay
		}
		if r = m.begin(w, msn, priority, turns.Viewer(ctx)); r == nil {
			m.mu.Unlock()
			return stopping()
		}
	}
	if r.waiting++; !r.asked {
		r.asked = true
		close(r.hurry)
	}
	return m.await(ctx, r, msn)
}

// await waits for a segment of a run that has been told so. The caller holds the lock, which is given back.
func (m *Maker) await(ctx context.Context, r *run, msn int64) error {
	t := r.tickets[msn-r.from]
	m.mu.Unlock()
	defer m.leave(r)
	select {
	case <-t.done:
		if errors.Is(t.err, turns.ErrFull) && r.viewer != turns.Viewer(ctx) {
			return fault.Wrap(fault.Unavailable, errOthers, "the segment was given up: ask for it again")
		}
		return t.err
	case <-ctx.Done():
		return fmt.Errorf("wait for segment: %w", context.Cause(ctx))
	}
}

// Fill makes a segment unless it is stored, and a few behind it, where nobody else wants the processor: no viewer
// waits. made says that it was not. Its run may be given up for a viewer's, which makes the same segment.
func (m *Maker) Fill(ctx context.Context, w *Work, msn int64) (made bool, err error) {
	if w.chunk(msn) == nil {
		return false, fault.New(fault.NotFound, "there is no such segment")
	}
	for range tries {
		stored, err := m.has(ctx, w, msn)
		if stored || err != nil {
			return made, err
		}
		made = true
		m.mu.Lock()
		r := m.covering(w.Prefix, msn)
		if r == nil {
			r = m.begin(w, msn, encode.Background, "")
		}
		if r == nil {
			m.mu.Unlock()
			return false, stopping()
		}
		r.waiting++
		if err = m.await(ctx, r, msn); err != nil && !fault.Is(err, fault.Unavailable) {
			return false, err
		}
	}
	return false, fault.New(fault.Unavailable, "segment %d is not encoded: other requests took its place %d times", msn,
		tries)
}

// Ahead says that a segment is watched now: those behind it will be asked for next. It does not wait.
func (m *Maker) Ahead(ctx context.Context, w *Work, msn int64) {
	for next, far := msn+1, 0.0; far < ahead && w.chunk(next) != nil; next++ {
		long := w.seconds(next)
		far += long
		if stored, err := m.has(ctx, w, next); stored || err != nil {
			continue
		}
		// The run ends where something is stored.
		for later := next + 1; long < runLength && w.chunk(later) != nil; later++ {
			if stored, err := m.has(ctx, w, later); stored || err != nil {
				break
			}
			long += w.seconds(later)
		}
		m.mu.Lock()
		if m.covering(w.Prefix, next) == nil {
			m.begin(w, next, encode.Ahead, turns.Viewer(ctx))
		}
		m.mu.Unlock()
	}
}

// Keep stores a segment unless there is one: what was offered stays. same says that it is what is stored now. What
// several make of the same segment at once in this process waits for one another: not every storage can do the two in
// one step.
func (m *Maker) Keep(ctx context.Context, key string, data []byte) (same bool, err error) {
	m.mu.Lock()
	for m.keeps[key] != nil {
		other := m.keeps[key]
		m.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
		m.mu.Lock()
	}
	done := make(chan struct{})
	m.keeps[key] = done
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.keeps, key)
		m.mu.Unlock()
		close(done)
	}()
	return m.opt.Store.PutNew(ctx, key, data)
}

func stopping() error {
	return fault.New(fault.Unavailable, "the service is stopping: ask again in a moment")
}

// covering finds the run that makes a segment. The caller holds the lock.
func (m *Maker) covering(prefix string, msn int64) *run {
	for _, r := range m.runs[prefix] {
		if msn >= r.from && msn < r.from+int64(len(r.tickets)) {
			return r
		}
	}
	return nil
}

// begin starts a run from a segment on for a viewer, up to where another one, a discontinuity or a gap begins; nil when
// the service stops. The caller holds the lock.
func (m *Maker) begin(w *Work, from int64, p encode.Priority, viewer string) *run {
	if m.ended {
		return nil
	}
	ctx, cancel := context.WithCancelCause(m.base)
	r := &run{m: m, w: *w, from: from, priority: p, viewer: viewer, cancel: cancel, hurry: make(chan struct{})}
	to, bytes, long := from+1, w.chunk(from).Size, w.seconds(from)
	for r.patient() && long < runLength && w.continues(to) && m.covering(w.Prefix, to) == nil &&
		!m.known.has(w.Prefix, to) {
		if bytes += w.chunk(to).Size; bytes > maxRunBytes {
			break
		}
		long += w.seconds(to)
		to++
	}
	for range to - from {
		r.tickets = append(r.tickets, &ticket{done: make(chan struct{})})
	}
	m.runs[w.Prefix] = append(m.runs[w.Prefix], r)
	m.all.Go(func() {
		err := fault.Guard(func() error { return r.encode(ctx) }) // one stream's panic must not end the service
		if trace := fault.Trace(err); trace != "" {
			err = fmt.Errorf("make rung: %w%s", err, trace)
		}
		cancel(nil)
		m.finished(r, err)
	})
	return r
}

var (
	errNobodyWaits = errors.New("nobody waits for it any more")
	errElsewhere   = errors.New("another node makes it")
	errOthers      = errors.New("another viewer had to make way")
)

// leave takes a waiter off a run. One that waits for a free processor and that nobody waits for is given up.
func (m *Maker) leave(r *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.waiting--
	if r.waiting == 0 && !r.started {
		r.cancel(errNobodyWaits)
	}
}

// made says that a segment of a run is stored.
func (m *Maker) made(r *run, msn int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.add(r.w.Prefix, msn)
	close(r.tickets[msn-r.from].done)
	r.next = msn + 1
}

// remove takes a run away. The caller holds the lock.
func (m *Maker) remove(r *run) {
	rest := slices.DeleteFunc(slices.Clone(m.runs[r.w.Prefix]), func(x *run) bool { return x == r })
	if m.runs[r.w.Prefix] = rest; len(rest) == 0 {
		delete(m.runs, r.w.Prefix)
	}
}

// finished gives up what a run that has ended has not made.
func (m *Maker) finished(r *run, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(r)
	first := max(r.next, r.from)
	if first == r.from+int64(len(r.tickets)) {
		return
	}
	if err == nil {
		err = errors.New("the encoder left out a segment")
	}
	switch {
	case errors.Is(err, errNobodyWaits) || errors.Is(err, errElsewhere) || m.ended:
		err = fault.Wrap(fault.Unavailable, err, "the segment was given up: ask for it again")
	case fault.Is(err, fault.Unavailable): // there was no room, or no storage: there may be at once
	default:
		m.opt.Logger.Warn("encoding of a rung failed", "rendition", r.w.Prefix, "media_sequence", first, "error", err)
		m.remember(r.w.SegmentKey(first), failure{err, m.opt.Now().Add(retryAfter)})
	}
	for msn := first; msn < r.from+int64(len(r.tickets)); msn++ {
		t := r.tickets[msn-r.from]
		if t.err = err; msn > first { // it may be well by itself
			t.err = fault.Wrap(fault.Unavailable, err, "the segment could not be made: ask for it again")
		}
		close(t.done)
	}
}

// maxFailures bounds what is remembered.
const maxFailures = 1024

func (m *Maker) remember(key string, f failure) {
	now := m.opt.Now()
	for k, old := range m.failed {
		if len(m.failed) >= maxFailures || now.After(old.until) {
			delete(m.failed, k)
		}
	}
	m.failed[key] = f
}
