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
func (rec *recorder) Put(ctx context.Context, key string, r io.Reader) error {
	if mine, err := rec.hold(ctx); err != nil || !mine {
		return err
	}
	return rec.opt.Store.Put(ctx, key, r)
}

// Link implements window.Store.
func (rec *recorder) Link(ctx context.Context, key string, f *os.File) error {
	if mine, err := rec.hold(ctx); err != nil || !mine {
		return err
	}
	return rec.opt.Store.Link(ctx, key, f)
}

// Record implements window.Recorder.
func (rec *recorder) Record(ctx context.Context, entries []timeline.Entry) error {
	if mine, err := rec.hold(ctx); err != nil || !mine {
		return err
	}
	rec.mu.Lock()
	first, ready, active, connected := rec.rows, rec.ready, rec.active, rec.connected
	next := rec.times.count(entries)
	rec.mu.Unlock()
	now := rec.opt.Now()
	// A conflict: it is active already, or the encoder has just left and it is told with what the next one sends.
	if !active && connected {
		switch err := rec.opt.Streams.Active(ctx, rec.of, rec.by, now); {
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
	if err := rec.grow(ctx, ready, declares, rows, next, now); err != nil {
		return err
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	next.merge(rec.times.list)
	rec.rows, rec.ready, rec.active, rec.times = first+int64(len(entries)), true, active || rec.active, next
	return nil
}

// showEvery is how far what an asset shows (length, recording times) may be behind what is stored: writing all that
// with each segment was a sixth of the cost of a stream.
const showEvery = 10 * time.Second

// grow writes; declares: the rows have more than segments and their cues. An asset that does not grow any more ends the
// broadcast, and what was to be written is dropped.
func (rec *recorder) grow(
	ctx context.Context, ready, declares bool, rows []asset.TimelineEntry, next *recordingTimes, now time.Time,
) error {
	write := rec.opt.Assets.Grow
	if !ready {
		write = rec.opt.Assets.Ready
	}
	var err error
	if ready && !declares && next.stored() == rec.shown.times && now.Sub(rec.shown.at) < showEvery {
		err = rec.opt.Assets.Append(ctx, rec.asset.ID, rec.writer(), rows)
	} else {
		g := rec.growth(next)
		g.Entries = rows
		if err = write(ctx, rec.asset.ID, g, now); err == nil {
			rec.shown.at, rec.shown.times = now, next.stored()
		}
	}
	if err == nil || !fault.Permanent(err) {
		return err
	}
	if _, failed := rec.look(ctx); failed != nil && !errors.Is(failed, ErrLeaseLost) && !fault.Permanent(failed) {
		return failed // whether another node has the broadcast now will be known later
	}
	rec.stop(fmt.Errorf("record segment: %w", err)) // unless it is another node's
	return nil
}

// show makes the asset show all that is stored, once nothing comes any more.
func (rec *recorder) show(ctx context.Context) error {
	rec.mu.Lock()
	s, skip := rec.times.concluded(), rec.over != nil || !rec.ready
	rec.mu.Unlock()
	if skip {
		return nil
	}
	return rec.opt.Assets.Grow(ctx, rec.asset.ID, rec.growth(s), rec.opt.Now())
}

// hold makes sure that the broadcast is still this node's. When it is not, or has no asset any more, what comes is
// dropped. While no encoder is connected, or a silent one is, it may come back to another node at any time, so each
// write asks.
func (rec *recorder) hold(ctx context.Context) (bool, error) {
	rec.mu.Lock()
	stopped, sure := rec.stopped(), rec.connected && !rec.hushed && rec.opt.Now().Before(rec.sure)
	rec.mu.Unlock()
	if stopped || sure {
		return sure && !stopped, nil
	}
	_, err := rec.look(ctx)
	if errors.Is(err, ErrLeaseLost) {
		return false, nil
	}
	return err == nil, err
}

// stopped reports whether nothing is recorded any more. Called with the lock.
func (rec *recorder) stopped() bool { return rec.over != nil }

// ended reports whether nothing is recorded any more.
func (rec *recorder) ended() bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.stopped()
}

// lost says that the broadcast is another node's now.
func (rec *recorder) lost(ctx context.Context) (bool, error) {
	_, err := rec.hold(ctx)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return errors.Is(rec.over, ErrLeaseLost), err
}

// look reads the stream's row. When that names another writer the record ends. A database that does not respond does
// not end it: nobody else can take the broadcast over through it either.
func (rec *recorder) look(ctx context.Context) (live.Stream, error) {
	asked := rec.opt.Now()
	s, sure, err := rec.opt.Streams.Hold(ctx, rec.of, rec.by)
	switch {
	case err == nil:
		rec.assure(asked, sure)
		rec.mu.Lock()
		defer rec.mu.Unlock()
		rec.active = s.Status() == live.StatusActive
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound):
		rec.stop(ErrLeaseLost)
		return s, ErrLeaseLost
	}
	return s, err
}

// assure notes what the rows said when they were asked: the broadcast is this node's, for so long at least.
func (rec *recorder) assure(asked time.Time, sure time.Duration) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if until := asked.Add(sure); until.After(rec.sure) {
		rec.sure = until
	}
	if asked.After(rec.named) {
		rec.named = asked
	}
}

// held reports whether nothing new may be listed, as another node may have the broadcast.
func (rec *recorder) held() bool {
	rec.mu.Lock()
	named, bound := rec.named, rec.connected && !rec.hushed
	rec.mu.Unlock()
	return !rec.tenure.lists(named, bound)
}

// ahead is how many media sequence numbers are reserved at once. Anyone who goes on after a crash and can't know better
// begins behind them, so these are more than are needed, but not many.
const ahead = 6

// reservation is what is to be reserved, if few numbers are left; reservedTo has to be told what became of it.
func (rec *recorder) reservation() (r live.Reservation, needed bool) {
	next, coming := rec.edge.Upcoming()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.stopped() || rec.reserving || next <= rec.reserved && (!coming || next+ahead/2 <= rec.reserved) {
		return r, false
	}
	rec.reserving = true
	return rec.numbers(next + ahead), true
}

// numbers is a reservation. Called with the lock.
func (rec *recorder) numbers(next int64) live.Reservation {
	return live.Reservation{
		Stream:     rec.of,
		Epoch:      rec.by.Epoch,
		Generation: rec.by.Generation,
		Next:       next,
		Was:        live.Whatever,
	}
}

// reservedTo notes that numbers are reserved, or may be.
func (rec *recorder) reservedTo(next int64, sure bool) {
	if sure {
		rec.edge.Reserve(next)
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.reserving = false
	if sure || next < rec.reserved {
		rec.reserved = next
	}
}

// release gives reserved numbers back that nobody was told of, when no more are coming: another node may go on.
func (rec *recorder) release(ctx context.Context) error {
	next, coming := rec.edge.Upcoming()
	rec.mu.Lock()
	if coming || rec.stopped() || rec.reserving || next >= rec.reserved {
		rec.mu.Unlock()
		return nil
	}
	rec.reserving = true
	r := rec.numbers(next)
	r.Was = rec.reserved
	rec.mu.Unlock()
	done, err := rec.opt.Streams.Reserve(ctx, rec.by.Owner, []live.Reservation{r})
	rec.reservedTo(next, len(done) > 0)
	return err
}

// resume takes over what an admission or an adoption has found.
func (rec *recorder) resume(s live.Stream) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.active, rec.hushed = s.Status() == live.StatusActive, s.Silent
}

// hush marks the encoder as silent, or as heard again, for the row: another connection may take a silent one's place.
func (rec *recorder) hush(silent bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.hushed = silent
}

// stop ends the record.
func (rec *recorder) stop(why error) {
	rec.mu.Lock()
	stopped := rec.over != nil
	if !stopped {
		rec.over = why
	}
	rec.mu.Unlock()
	if !stopped {
		rec.refused(why)
	}
}

// connect notes a publication's first frame.
func (rec *recorder) connect() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.connected = true
}

// begin notes that media, or slate, begins at media time from.
func (rec *recorder) begin(slate bool, started time.Time, from float64) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	kind := content
	if slate {
		kind = slated
	}
	rec.times.begin(kind, started, from)
}

// finish notes the end of a publication; the last segments of it come later.
func (rec *recorder) finish() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.connected = false
}

// writer is who leads the broadcast here, for the asset.
func (rec *recorder) writer() asset.Writer {
	return asset.Writer{
		LiveStream: rec.of, Epoch: rec.by.Epoch, Generation: rec.by.Generation, Node: rec.by.Node, Run: rec.by.Run,
	}
}

// recordings is what the asset shows of a broadcast that is over.
func (rec *recorder) recordings() []asset.Recording {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.times.concluded().recordings()
}

// growth is what the asset shows of the media once s is stored.
func (rec *recorder) growth(s *recordingTimes) asset.Growth {
	g := asset.Growth{By: rec.writer(), Recordings: s.recordings()}
	renditions, err := rec.edge.Describe()
	if err != nil {
		return g
	}
	var all []measure.Rendition
	for _, rendition := range renditions {
		all = append(all, measure.Rendition{ID: rendition.ID, Kind: rendition.Kind, Inits: rendition.Inits})
	}
	facts := measure.Facts(rec.asset, all, s.total)
	g.Facts, g.Tracks = &facts, measure.Tracks(all, s.total)
	g.Inputs = rec.sent.inputs(rec.asset, g.Tracks)
	return g
}
