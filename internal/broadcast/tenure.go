package broadcast

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
)

// Where there are several nodes, one whose row is not valid may lose its broadcasts to an encoder that comes to
// another node. So that no two list different media it lists nothing new from shortly before then on, by its own
// clock, until the rows say that they are its own still: it may have been stopped for a while, or cut off from the
// database. A database that is away for all is no reason: the other nodes promise to ask before they take anything.

// Others are the other nodes.
type Others interface {
	// Look notes which there are, by the database.
	Look(ctx context.Context) error
	// Promise has each of them promise to take no broadcast of this process without asking for it, for PromisedFor
	// from now on. An error: one of them has not.
	Promise(ctx context.Context) error
	// Refuses reports whether the machine of a process refuses connections: it does not listen there any more.
	Refuses(ctx context.Context, o live.Owner) bool
}

const (
	// PromisedFor is how long a node keeps to its promise.
	PromisedFor = 3 * time.Second
	// shortly is how long before the end of its tenure a process stops listing: what it says may be under way for a
	// while, and clocks run at rates of their own.
	shortly = time.Second
	// promiseAt is how much of a tenure is left when others are asked: its renewal is late.
	promiseAt = 1750 * time.Millisecond
	// promiseTime bounds that question.
	promiseTime = 700 * time.Millisecond
	// tenureEvery is how often it is looked at, and othersEvery how often it is read which other nodes there are.
	tenureEvery, othersEvery = 250 * time.Millisecond, 2 * time.Second
	// unaskedFor is for how long a broadcast may be listed without a look at its row, while it may go to another node
	// that could not ask; as long that node waits.
	unaskedFor = 3 * time.Second
)

// tenure is for how long this process stays the owner of all that it leads.
type tenure struct {
	opt *Options

	mu    sync.Mutex
	since time.Time // nobody else has taken anything of it from then on,
	until time.Time // until then
	vowed time.Time // and until then nobody takes anything without asking first, whatever became of its encoder

	looked time.Time // when it was read which other nodes there are; only run uses these
	held   bool      // told that nothing is listed
	alone  bool      // told that others have not promised
}

// renewed notes that the row of this process's node was renewed, for so long from asked on.
func (t *tenure) renewed(asked time.Time, valid time.Duration) {
	now := t.opt.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now.Before(t.until) { // others may have taken something meanwhile: the rows have to be read
		t.since = now
	}
	if until := asked.Add(valid); until.After(t.until) {
		t.until = until
	}
}

// promised notes what the other nodes promised when they were asked. It counts as long as nothing could be taken
// before.
func (t *tenure) promised(asked time.Time) {
	now := t.opt.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now.Before(t.until) {
		return
	}
	t.vowed = asked.Add(PromisedFor)
	if t.vowed.After(t.until) {
		t.until = t.vowed
	}
}

// lists reports whether new media of a broadcast may be listed, whose row named this process at a time. bound: its
// encoder is there, and not silent.
func (t *tenure) lists(named time.Time, bound bool) bool {
	if t.opt.Others == nil {
		return true
	}
	now := t.opt.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return !named.Before(t.since) && now.Add(shortly).Before(t.until) &&
		(bound || now.Add(shortly).Before(named.Add(unaskedFor)) || now.Add(shortly).Before(t.vowed))
}

// run keeps the tenure until ctx ends.
func (t *tenure) run(ctx context.Context) {
	if t.opt.Others == nil {
		return
	}
	tick := time.NewTicker(tenureEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.step(ctx)
		}
	}
}

// left is how much of the tenure is left; false before it has begun.
func (t *tenure) left() (time.Duration, bool) {
	now := t.opt.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until.Sub(now), !t.until.IsZero()
}

func (t *tenure) step(ctx context.Context) {
	asked := t.opt.Now()
	left, begun := t.left()
	if !begun {
		return
	}
	t.tell(ctx, left)
	ask, cancel := context.WithTimeout(ctx, promiseTime)
	defer cancel()
	switch {
	case left <= 0: // that can't be made good by promises
	case left < promiseAt:
		err := fault.Guard(func() error { return t.opt.Others.Promise(ask) })
		if err == nil {
			t.promised(asked)
		}
		if err != nil && !t.alone && ctx.Err() == nil {
			t.opt.Logger.WarnContext(ctx, "not every other node promises to leave this node its broadcasts",
				slog.Any("error", err))
		}
		t.alone = err != nil
	case asked.Sub(t.looked) >= othersEvery:
		if err := fault.Guard(func() error { return t.opt.Others.Look(ask) }); err == nil {
			t.looked = asked
		}
	}
}

// tell logs that nothing is listed, and the end of that.
func (t *tenure) tell(ctx context.Context, left time.Duration) {
	switch held := left <= shortly; {
	case held == t.held:
	case held:
		t.held = true
		t.opt.Logger.WarnContext(ctx, "this node could not say that it is there, and others may have its broadcasts: "+
			"nothing new is listed")
	default:
		t.held = false
		t.opt.Logger.InfoContext(ctx, "this node lists what it leads again")
	}
}
