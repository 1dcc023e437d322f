package broadcast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/measure"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// ErrLeaseLost is why a publication ends when another node has taken its broadcast over.
var ErrLeaseLost = errors.New("lease lost")

// recorder is a broadcast's record: what the edge has stored becomes rows of the asset, and the first of it makes
// stream and asset playable. Nothing is written unless the broadcast is this node's. The edge's goroutine
// calls Record; everybody else may call the rest.
type recorder struct {
	opt   *Options
	of    id.LiveStream // whose broadcast it is
	by    live.Writer   // who leads it here
	asset asset.Asset   // as it was when the broadcast began here; only ID and Options count
	edge  *window.Edge
	sent  sent
	// refused is told, once, that nothing can be recorded any more: ErrLeaseLost, or the asset is gone.
	refused func(error)

	mu sync.Mutex
	ownership
	reserved  int64 // media sequence numbers below are, as far as it is known
	reserving bool  // others are being reserved
	over      error // nothing is recorded any more
	rows      int64 // the sequence number that the next row gets
	ready     bool  // the asset was told to be playable
	active    bool  // so was the stream
	connected bool  // an encoder is; a stream does not become active behind its back
	hushed    bool  // the row says, or may say, that it is silent
	times     *recordingTimes

	shown struct { // what the asset shows; the edge's goroutine alone
		at    time.Time
		times int
	}
}

// ownership is what is known of whose the broadcast is.
type ownership struct {
	tenure *tenure   // says whether anything may be listed
	sure   time.Time // until when at least the broadcast is this node's, on its own steady clock
	named  time.Time // when the row last said that it is
}

// Put implements window.Store: it keeps a node that was out for a while from writing over the next owner's segments.
func (l *recorder) Put(ctx context.Context, key string, r io.Reader) error {
	if mine, err := l.hold(ctx); err != nil || !mine {
		return err
	}
	return l.opt.Store.Put(ctx, key, r)
}

// Link implements window.Store.
func (l *recorder) Link(ctx context.Context, key string, f *os.File) error {
	if mine, err := l.hold(ctx); err != nil || !mine {
		return err
	}
	return l.opt.Store.Link(ctx, key, f)
}

// Record implements window.Recorder.
func (l *recorder) Record(ctx context.Context, entries []timeline.Entry) error {
	if mine, err := l.hold(ctx); err != nil || !mine {
		return err
	}
	l.mu.Lock()
	first, ready, active, connected := l.rows, l.ready, l.active, l.connected
	next := l.times.count(entries)
	l.mu.Unlock()
	now := l.opt.Now()
	// A conflict: it is active already, or the encoder has just left and it is told with what the next one sends.
	if !active && connected {
		switch err := l.opt.Streams.Active(ctx, l.of, l.by, now); {
		case err == nil:
			active = true
		case !fault.Permanent(err):
			return fmt.Errorf("tell that the stream is active: %w", err)
		}
	}
	rows := make([]asset.TimelineEntry, len(entries))
	for i, e := range entries {
		rows[i] = asset.TimelineEntry{Sequence: first + int64(i), Data: timeline.Encode(e)}
	}
	declares := slices.ContainsFunc(entries, func(e timeline.Entry) bool { return e.Segment == nil && e.Text == nil })
	if err := l.grow(ctx, ready, declares, rows, next, now); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	next.merge(l.times.list)
	l.rows, l.ready, l.active, l.times = first+int64(len(entries)), true, active || l.active, next
	return nil
}

// showEvery is how far what an asset shows (length, recording times) may be behind what is stored: writing all that
// with each segment was a sixth of the cost of a stream.
const showEvery = 10 * time.Second

// grow writes; declares: the rows have more than segments and their cues. An asset that does not grow any more ends the
// broadcast, and what was to be written is dropped.
func (l *recorder) grow(
	ctx context.Context, ready, declares bool, rows []asset.TimelineEntry, next *recordingTimes, now time.Time,
) error {
	write := l.opt.Assets.Grow
	if !ready {
		write = l.opt.Assets.Ready
	}
	var err error
	if ready && !declares && next.stored() == l.shown.times && now.Sub(l.shown.at) < showEvery {
		err = l.opt.Assets.Append(ctx, l.asset.ID, l.writer(), rows)
	} else {
		g := l.growth(next)
		g.Entries = rows
		if err = write(ctx, l.asset.ID, g, now); err == nil {
			l.shown.at, l.shown.times = now, next.stored()
		}
	}
	if err == nil || !fault.Permanent(err) {
		return err
	}
	if _, failed := l.look(ctx); failed != nil && !errors.Is(failed, ErrLeaseLost) && !fault.Permanent(failed) {
		return failed // whether another node has the broadcast now will be known later
	}
	l.stop(fmt.Errorf("record segment: %w", err)) // unless it is another node's
	return nil
}

// show makes the asset show all that is stored, once nothing comes any more.
func (l *recorder) show(ctx context.Context) error {
	l.mu.Lock()
	s, skip := l.times.concluded(), l.over != nil || !l.ready
	l.mu.Unlock()
	if skip {
		return nil
	}
	return l.opt.Assets.Grow(ctx, l.asset.ID, l.growth(s), l.opt.Now())
}

// hold makes sure that the broadcast is still this node's. When it is not, or has no asset any more, what comes is
// dropped. While no encoder is connected, or a silent one is, it may come back to another node at any time, so each
// write asks.
func (l *recorder) hold(ctx context.Context) (bool, error) {
	l.mu.Lock()
	stopped, sure := l.stopped(), l.connected && !l.hushed && l.opt.Now().Before(l.sure)
	l.mu.Unlock()
	if stopped || sure {
		return sure && !stopped, nil
	}
	_, err := l.look(ctx)
	if errors.Is(err, ErrLeaseLost) {
		return false, nil
	}
	return err == nil, err
}

// stopped reports whether nothing is recorded any more. Called with the lock.
func (l *recorder) stopped() bool { return l.over != nil }

// ended reports whether nothing is recorded any more.
func (l *recorder) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped()
}

// lost says that the broadcast is another node's now.
func (l *recorder) lost(ctx context.Context) (bool, error) {
	_, err := l.hold(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Is(l.over, ErrLeaseLost), err
}

// look reads the stream's row. When that names another writer the record ends. A database that does not respond does
// not end it: nobody else can take the broadcast over through it either.
func (l *recorder) look(ctx context.Context) (live.Stream, error) {
	asked := l.opt.Now()
	s, sure, err := l.opt.Streams.Hold(ctx, l.of, l.by)
	switch {
	case err == nil:
		l.assure(asked, sure)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.active = s.Status() == live.StatusActive
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		l.stop(ErrLeaseLost)
		return s, ErrLeaseLost
	}
	return s, err
}

// assure notes what the rows said when they were asked: the broadcast is this node's, for so long at least.
func (l *recorder) assure(asked time.Time, sure time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := asked.Add(sure); until.After(l.sure) {
		l.sure = until
	}
	if asked.After(l.named) {
		l.named = asked
	}
}

// held reports whether nothing new may be listed, as another node may have the broadcast.
func (l *recorder) held() bool {
	l.mu.Lock()
	named, bound := l.named, l.connected && !l.hushed
	l.mu.Unlock()
	return !l.tenure.lists(named, bound)
}

// ahead is how many media sequence numbers are reserved at once. Anyone who goes on after a crash and can't know better
// begins behind them, so these are more than are needed, but not many.
const ahead = 6

// reservation is what is to be reserved, if few numbers are left; reservedTo has to be told what became of it.
func (l *recorder) reservation() (r live.Reservation, needed bool) {
	next, coming := l.edge.Upcoming()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped() || l.reserving || next <= l.reserved && (!coming || next+ahead/2 <= l.reserved) {
		return r, false
	}
	l.reserving = true
	return l.numbers(next + ahead), true
}

// numbers is a reservation. Called with the lock.
func (l *recorder) numbers(next int64) live.Reservation {
	return live.Reservation{Stream: l.of, Epoch: l.by.Epoch, Generation: l.by.Generation, Next: next, Was: live.Whatever}
}

// reservedTo notes that numbers are reserved, or may be.
func (l *recorder) reservedTo(next int64, sure bool) {
	if sure {
		l.edge.Reserve(next)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserving = false
	if sure || next < l.reserved {
		l.reserved = next
	}
}

// release gives reserved numbers back that nobody was told of, when no more are coming: another node may go on.
func (l *recorder) release(ctx context.Context) error {
	next, coming := l.edge.Upcoming()
	l.mu.Lock()
	if coming || l.stopped() || l.reserving || next >= l.reserved {
		l.mu.Unlock()
		return nil
	}
	l.reserving = true
	r := l.numbers(next)
	r.Was = l.reserved
	l.mu.Unlock()
	done, err := l.opt.Streams.Reserve(ctx, l.by.Owner, []live.Reservation{r})
	l.reservedTo(next, len(done) > 0)
	return err
}

// resume takes over what an admission or an adoption has found.
func (l *recorder) resume(s live.Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active, l.hushed = s.Status() == live.StatusActive, s.Silent
}

// hush marks the encoder as silent, or as heard again, for the row: another connection may take a silent one's place.
func (l *recorder) hush(silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hushed = silent
}

// stop ends the record.
func (l *recorder) stop(why error) {
	l.mu.Lock()
	stopped := l.over != nil
	if !stopped {
		l.over = why
	}
	l.mu.Unlock()
	if !stopped {
		l.refused(why)
	}
}

// connect notes a publication's first frame.
func (l *recorder) connect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connected = true
}

// begin notes that media, or slate, begins at media time from.
func (l *recorder) begin(slate bool, started time.Time, from float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := content
	if slate {
		kind = slated
	}
	l.times.begin(kind, started, from)
}

// finish notes the end of a publication; the last segments of it come later.
func (l *recorder) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connected = false
}

// writer is who leads the broadcast here, for the asset.
func (l *recorder) writer() asset.Writer {
	return asset.Writer{
		LiveStream: l.of, Epoch: l.by.Epoch, Generation: l.by.Generation, Node: l.by.Node, Run: l.by.Run,
	}
}

// recordings is what the asset shows of a broadcast that is over.
func (l *recorder) recordings() []asset.Recording {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times.concluded().recordings()
}

// growth is what the asset shows of the media once s is stored.
func (l *recorder) growth(s *recordingTimes) asset.Growth {
	g := asset.Growth{By: l.writer(), Recordings: s.recordings()}
	renditions, err := l.edge.Describe()
	if err != nil {
		return g
	}
	var all []measure.Rendition
	for _, rendition := range renditions {
		all = append(all, measure.Rendition{ID: rendition.ID, Kind: rendition.Kind, Inits: rendition.Inits})
	}
	facts := measure.Facts(l.asset, all, s.total)
	g.Facts, g.Tracks = &facts, measure.Tracks(all, s.total)
	g.Inputs = l.sent.inputs(l.asset, g.Tracks)
	return g
}
