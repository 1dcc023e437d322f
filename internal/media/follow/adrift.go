package follow

import (
	"context"
	"errors"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/follow/wire"
)

// A broadcast is adrift while its owner has it no more, or does not respond, and the next owner is not known. Its
// viewers see it as it was last, from memory and from what is stored. Those who wait go on waiting, and are given what
// the next owner says.

const (
	// seekEvery is how often the next owner is looked for, and adriftFor for how long: until then another node has
	// taken up what no encoder came back to.
	seekEvery, adriftFor = 300 * time.Millisecond, 40 * time.Second
	// lookEvery is how often the next owner of what is handed over is looked for.
	lookEvery = 100 * time.Millisecond
	// doubt is how long it may take to find out that an owner is gone which did not respond to one request.
	doubt = 500 * time.Millisecond
	// catchUp is for how long viewers may be ahead of the next owner, which has less than the one before.
	catchUp = 15 * time.Second
)

// ErrHere says that this node itself has a live stream's broadcast.
var ErrHere = fault.New(fault.NotFound, "no other node has the live stream: this one has it")

// adrift is whether a broadcast is, and which one follows it.
type adrift struct {
	media *token    // of its media in memory, which the next one shares: they never change
	after bool      // another owner had it before
	since time.Time // when it was found

	mu      sync.Mutex
	begun   chan struct{} // closed when it is adrift
	decided chan struct{} // closed when the search for the next one is over
	next    *broadcast
	why     error // there is no next one
	over    bool
}

type token struct{ _ byte }

func newAdrift(before *broadcast, now time.Time) *adrift {
	a := &adrift{media: &token{}, since: now, begun: make(chan struct{}), decided: make(chan struct{})}
	if before != nil {
		a.media, a.after = before.adrift.media, true
	}
	return a
}

// begin sets it adrift.
func (a *adrift) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !closed(a.begun) {
		close(a.begun)
	}
}

// end says which one follows; nil: none, and why.
func (a *adrift) end(next *broadcast, why error) {
	a.begin()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.over, a.next, a.why = true, next, why
		close(a.decided)
	}
}

// succeeded reports whether another broadcast follows, which has the media in memory now.
func (a *adrift) succeeded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next != nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (b *broadcast) isAdrift() bool { return closed(b.adrift.begun) }

// isCatchingUp reports whether viewers may have seen more than the owner has.
func (b *broadcast) isCatchingUp() bool {
	return b.adrift.after && b.f.opt.Now().Sub(b.adrift.since) < catchUp
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// onward does something with a broadcast, and when that is lost with the one that follows it.
func onward[T any](ctx context.Context, b *broadcast, do func(*broadcast) (T, error)) (v T, err error) {
	for {
		v, err = do(b)
		if err == nil || ctx.Err() != nil || !fault.Is(err, fault.Unavailable) {
			return v, err
		}
		next := b.successor(ctx)
		if next == nil {
			if closed(b.adrift.decided) && errors.Is(b.adrift.why, ErrHere) {
				err = b.adrift.why
			}
			return v, err
		}
		b = next
	}
}

// successor waits for the broadcast that follows; nil: there is none, or this one is not lost.
func (b *broadcast) successor(ctx context.Context) *broadcast {
	if !b.isAdrift() {
		t := time.NewTimer(doubt)
		defer t.Stop()
		select {
		case <-b.adrift.begun:
		case <-t.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	select {
	case <-b.adrift.decided:
		return b.adrift.next
	case <-ctx.Done():
		return nil
	}
}

// seek looks for the next owner of a broadcast that is adrift.
func (b *broadcast) seek() {
	var missed time.Time // since when an owner is known that does not have it
	end := b.f.opt.Now().Add(adriftFor)
	for !closed(b.adrift.decided) && b.isWatched() && b.f.opt.Now().Before(end) {
		owner, err := b.meet()
		now := b.f.opt.Now()
		switch {
		case closed(b.adrift.decided):
			return
		case errors.Is(err, ErrHere):
			b.end(fault.Wrap(fault.Unavailable, err, "the live stream has come to this node: ask again in a moment"))
			return
		case !owner:
			missed = time.Time{}
		case missed.IsZero():
			missed = now
		case now.Sub(missed) >= prompt: // it has the next broadcast
			end = now
			continue
		}
		t := time.NewTimer(seekEvery)
		select {
		case <-t.C:
		case <-b.adrift.decided:
		}
		t.Stop()
	}
	b.end(fault.New(fault.Unavailable, "the live stream has changed nodes: ask again in a moment"))
}

// meet asks who has the broadcast now, and begins to follow that; owner reports whether there is one that responds.
func (b *broadcast) meet() (owner bool, err error) {
	// It outlives the viewers, and has a bound of its own.
	ctx, cancel := context.WithTimeoutCause(
		context.Background(), prompt, errSilent()) //nolint:forbidigo // see above
	defer cancel()
	b.f.opt.Directory.Lost(b.stream)
	at, err := b.f.opt.Directory.Owner(ctx, b.stream)
	if err != nil {
		return false, err
	}
	_, err = b.f.describeAt(ctx, at, wire.Of{Stream: b.stream, Media: b.about.Media})
	return !fault.Is(err, fault.Unavailable), err
}
