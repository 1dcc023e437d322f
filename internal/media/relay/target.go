package relay

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/frame"
)

const (
	openTime   = 10 * time.Second // to connect and be admitted
	writeTime  = 5 * time.Second  // for one write: a destination that does not read is given up
	holdTime   = 5 * time.Second  // a link is kept for an encoder that comes back
	farewell   = 5 * time.Second  // to send what is queued when the broadcast has ended
	firstPause = time.Second
	lastPause  = time.Minute
	healthy    = time.Minute // a link that stood so long was no failure: pauses are short again
	maxFull    = 3           // times that the queue may run over within fullTime before the link is made again
	fullTime   = time.Minute
)

var (
	errSlow  = errors.New("the destination takes the stream too slowly")
	errEnded = errors.New("the broadcast has ended")
)

// link is a connection to a destination that takes the stream.
type link interface {
	// configure and write hand on what was popped. A configuration that the protocol can't carry is an impossibleError.
	configure(c frame.Config) error
	write(f frame.Frame) error
	// broken is closed when the destination has hung up or said no; cause is why.
	broken() <-chan struct{}
	cause() error
	// close ends the link; clean says goodbye first.
	close(clean bool)
}

// target is one destination and what is on its way there.
type target struct {
	group *Group
	id    string
	addr  address
	bad   error // of the address
	q     *queue
	log   *slog.Logger

	joined chan struct{} // one token: an encoder has come

	mu       sync.Mutex
	protocol string // of the publication

	// the goroutine's own
	reported Report // last
	pause    time.Duration
}

func newTarget(g *Group, t Target) *target {
	a, err := parseAddress(t)
	log := g.opt.Logger.With("simulcast_target_id", t.ID)
	if err == nil {
		log = log.With("destination", a.String())
	}
	return &target{group: g, id: t.ID, addr: a, bad: err, q: newQueue(), log: log, joined: make(chan struct{}, 1)}
}

func (t *target) join(publication int, protocol string) {
	t.mu.Lock()
	t.protocol = protocol
	t.mu.Unlock()
	t.q.join(publication)
	select {
	case t.joined <- struct{}{}:
	default:
	}
}

// report tells a change once.
func (t *target) report(publication int, s State, err error) {
	if t.reported.Publication == publication && t.reported.State == s {
		return
	}
	t.reported = Report{Target: t.id, State: s, Err: err, Publication: publication}
	t.group.opt.Report(t.reported)
}

// run is the target's goroutine.
func (t *target) run(ctx context.Context) {
	defer t.q.shut()
	for t.await(ctx) {
		began := time.Now()
		select {
		case <-t.joined: // it is the one that is forwarded now
		default:
		}
		err := t.guarded(ctx)
		publication, _, dropped, _ := t.q.tally()
		var never impossibleError
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			t.pause = 0
			continue
		case errors.As(err, &never), fault.Permanent(err):
			t.log.WarnContext(ctx, "simulcast is not possible", "reason", err)
			t.q.shut() // before it is reported
			t.report(publication, Impossible, err)
			return
		}
		if time.Since(began) > healthy {
			t.pause = 0
		}
		t.pause = min(max(2*t.pause, firstPause), lastPause)
		wait := t.pause/2 + rand.N(t.pause/2) //nolint:gosec // jitter is no secret
		t.log.WarnContext(ctx, "simulcast link is down", "error", err, "retry_in", wait, "dropped_frames", dropped)
		t.report(publication, Down, err)
		if !t.sleep(ctx, wait) {
			return
		}
	}
}

// sleep is a pause between attempts, which an encoder that comes back cuts short. It is false when there is nothing
// more to do after it.
func (t *target) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-t.joined:
			timer.Reset(min(d, firstPause))
		case <-ctx.Done():
			return false
		case <-t.group.closing:
			return false
		}
	}
}

// await waits for a frame to begin with; false when the broadcast is over.
func (t *target) await(ctx context.Context) bool {
	for ctx.Err() == nil && !t.closing() {
		if t.q.stand().frames {
			return true
		}
		select {
		case <-t.q.wake:
		case <-ctx.Done():
		case <-t.group.closing:
		}
	}
	return false
}

func (t *target) closing() bool {
	select {
	case <-t.group.closing:
		return true
	default:
		return false
	}
}

// guarded turns a panic into an error: it is to end nothing but this link.
func (t *target) guarded(ctx context.Context) error {
	err := fault.Guard(func() error { return t.forward(ctx) })
	if p, ok := errors.AsType[*fault.PanicError](err); ok {
		t.log.ErrorContext(ctx, "simulcast panicked", "error", p, "stack", string(p.Stack))
	}
	return err
}

// forward makes a link and sends until it breaks, no encoder publishes any more (nil) or the broadcast has ended (nil).
func (t *target) forward(ctx context.Context) error {
	l, err := t.open(ctx)
	if err != nil {
		return err
	}
	clean := false
	defer func() { l.close(clean) }()
	stop := context.AfterFunc(ctx, func() { l.close(false) })
	defer stop()
	t.q.restart()
	err = t.feed(ctx, l)
	clean = err == nil
	return err
}

// open connects, once it is known that the destination can carry what is sent.
func (t *target) open(ctx context.Context) (link, error) {
	if t.bad != nil {
		return nil, t.bad
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	t.mu.Lock()
	protocol := t.protocol
	t.mu.Unlock()
	configs := t.q.stand().configs
	if t.addr.scheme == "srt" {
		if protocol != "srt" {
			return nil, impossible("an SRT destination is served only while the encoder sends SRT; it sends %s",
				protocol)
		}
		return dialSRT(ctx, t, configs)
	}
	return dialRTMP(ctx, t, configs)
}

// feed moves the queue's frames over a link.
func (t *target) feed(ctx context.Context, l link) error {
	hold := time.NewTimer(holdTime)
	defer hold.Stop()
	closing := t.group.closing
	var ending time.Time
	pace := newPatience(t.q)
	for {
		i, ok := t.q.pop()
		switch {
		case ok && i.config != nil:
			if err := l.configure(*i.config); err != nil {
				return err
			}
			continue
		case ok:
			if err := l.write(i.frame); err != nil {
				return err
			}
			t.report(i.of, Up, nil)
			hold.Reset(holdTime)
			if pace.lost(t.q) {
				return errSlow
			}
			if ending.IsZero() || time.Since(ending) < farewell {
				continue
			}
			return nil
		case !ending.IsZero():
			return nil
		}
		var gone <-chan time.Time
		if _, away, _, _ := t.q.tally(); away {
			gone = hold.C
		}
		select {
		case <-t.q.wake:
		case <-l.broken():
			return l.cause()
		case <-gone:
			return nil
		case <-closing:
			closing, ending = nil, time.Now()
		case <-ctx.Done():
			return errEnded
		}
	}
}

// patience counts how often a queue has run over while its link stood.
type patience struct {
	seen int
	at   []time.Time // when, the last few
}

func newPatience(q *queue) *patience {
	_, _, _, full := q.tally()
	return &patience{seen: full}
}

// lost reports whether it happens too often.
func (p *patience) lost(q *queue) bool {
	_, _, _, full := q.tally()
	for ; p.seen < full; p.seen++ {
		p.at = append(p.at[max(0, len(p.at)+1-maxFull):], time.Now())
	}
	return len(p.at) == maxFull && time.Since(p.at[0]) < fullTime
}
