package broadcast

import (
	"context"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

const (
	// lookEvery is how often a node looks at the rows of all its broadcasts, in one statement.
	lookEvery = time.Second
	// searchEvery is how often it looks for broadcasts that nobody leads, and searchOthersEvery how often where
	// other nodes can be asked.
	searchEvery, searchOthersEvery = 2500 * time.Millisecond, time.Second
	// strayAfter is how long a broadcast that this process leads, by its row, may have nobody here that does.
	strayAfter = 15 * time.Second
)

// observer keeps a node's broadcasts and their rows together, for all of them at once: what it costs does not depend on
// how many there are. A broadcast whose row says something else than it knows is woken, and reads it. While the
// database does not respond nothing happens: nobody else can take a broadcast through it either. Run on one goroutine.
type observer struct {
	opt        *Options
	broadcasts *registry
	wake       chan struct{} // one token: numbers are needed at once
	blind      bool          // the last look failed
	seen       time.Time     // when this process said last that it is there

	mu     sync.Mutex
	strays map[id.LiveStream]stray
}

// stray is a broadcast that this process leads, by its row, and that nobody here leads.
type stray struct {
	row   live.Held
	since time.Time
}

func newObserver(o *Options, broadcasts *registry) *observer {
	return &observer{opt: o, broadcasts: broadcasts, wake: make(chan struct{}, 1), strays: map[id.LiveStream]stray{}}
}

// press has media sequence numbers reserved at once. It does not block.
func (o *observer) press() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run observes until ctx ends.
func (o *observer) run(ctx context.Context) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
			o.reserve(ctx)
		case <-t.C:
			o.look(ctx)
			o.reserve(ctx)
			o.see(ctx)
		}
	}
}

// call bounds one call of the database.
func call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return do(ctx)
}

// look compares every broadcast with its row.
func (o *observer) look(ctx context.Context) {
	asked, here := o.opt.Now(), o.broadcasts.all()
	var rows []live.Held
	var sure time.Duration
	err := call(ctx, func(ctx context.Context) (err error) {
		rows, sure, err = o.opt.Streams.Held(ctx, o.opt.Owner)
		return err
	})
	if err != nil {
		if !o.blind && ctx.Err() == nil {
			o.opt.Logger.WarnContext(ctx, "rows of broadcasts not read, trying again", "error", err)
		}
		o.blind = true
		return
	}
	if o.blind {
		o.blind = false
		o.opt.Logger.InfoContext(ctx, "rows of broadcasts are read again")
	}
	held := make(map[id.LiveStream]live.Held, len(rows))
	for _, r := range rows {
		held[r.Stream] = r
	}
	for _, b := range here {
		r := held[b.id]
		if r.Epoch != b.by.Epoch || r.Generation != b.by.Generation {
			b.poke() // another leads it, or it began after the look
			continue
		}
		b.recorder.assure(asked, sure)
		if r.Revision > b.revision.Load() {
			b.poke()
		}
	}
	o.find(rows)
}

// find notes the broadcasts that are missing here.
func (o *observer) find(rows []live.Held) {
	now := o.opt.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	strays := map[id.LiveStream]stray{}
	for _, r := range rows {
		if o.broadcasts.leads(r.Stream) {
			continue
		}
		s, known := o.strays[r.Stream]
		if !known || s.row.Epoch != r.Epoch || s.row.Generation != r.Generation {
			s = stray{row: r, since: now}
		}
		strays[r.Stream] = s
	}
	o.strays = strays
}

// missing are the broadcasts that have been missing here for so long that nobody is about to lead them: a defect of
// this program ended it.
func (o *observer) missing() (out []live.Held) {
	now := o.opt.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.strays {
		if now.Sub(s.since) >= strayAfter {
			out = append(out, s.row)
		}
	}
	return out
}

// reserve writes which media sequence numbers may be published, of those that have few left.
func (o *observer) reserve(ctx context.Context) {
	var all []live.Reservation
	of := map[id.LiveStream]*broadcast{}
	for _, b := range o.broadcasts.all() {
		if r, needed := b.recorder.reservation(); needed {
			all, of[b.id] = append(all, r), b
		}
	}
	if len(all) == 0 {
		return
	}
	var done []id.LiveStream
	err := call(ctx, func(ctx context.Context) (err error) {
		done, err = o.opt.Streams.Reserve(ctx, o.opt.Owner, all)
		return err
	})
	if err != nil && ctx.Err() == nil {
		o.opt.Logger.WarnContext(ctx, "media sequence numbers not reserved, trying again", "error", err)
	}
	written := map[id.LiveStream]bool{}
	for _, s := range done {
		written[s] = true
	}
	for _, r := range all {
		b := of[r.Stream]
		b.recorder.reservedTo(r.Next, written[r.Stream])
		if err == nil && !written[r.Stream] {
			b.poke() // another leads it
		}
	}
}

// see says that this process is there, while it has broadcasts.
func (o *observer) see(ctx context.Context) {
	now := o.opt.Now()
	if o.broadcasts.count() == 0 || now.Sub(o.seen) < live.SeeEvery {
		return
	}
	err := call(ctx, func(ctx context.Context) error { return o.opt.Streams.See(ctx, o.opt.Owner, now) })
	switch {
	case err == nil:
		if o.seen.IsZero() {
			err = call(ctx, func(ctx context.Context) error { return o.opt.Streams.ForgetOwners(ctx, now) })
		}
		if err == nil {
			o.seen = now
		}
	case ctx.Err() == nil:
		o.opt.Logger.DebugContext(ctx, "this process could not say that it is there", "error", err)
	}
}
