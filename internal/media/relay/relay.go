// Package relay forwards a live stream to other platforms (simulcast): frames in, RTMP, RTMPS or SRT out. Nothing is
// re-encoded.
//
// A Group serves one broadcast. Each of its targets has its own goroutine and bounded queue, so that a slow, dead or
// hostile target delays neither the stream nor the other targets. What a target does not take is dropped up to the next
// key frame; a broken link is re-established with growing pauses, and one that cannot carry the stream is given up.
// Nothing is sent while no encoder is connected.
//
// It must never know resources, HLS, the database or who owns the stream. It only connects through the Dialer that it
// is given. URLs and keys are secret: only scheme and host appear in logs and errors. Goroutines: one per target, which
// Run waits for, and one per link, which reads what the destination sends and ends with the link.
package relay

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"millrace/internal/media/frame"
)

// Dialer connects to destinations. An error of a permanent kind (package fault) means that the address is not allowed.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Resolve gives an address of host:port that may be connected to.
	Resolve(ctx context.Context, network, address string) (netip.AddrPort, error)
}

// Target is one destination.
type Target struct {
	ID  string
	URL string // rtmp, rtmps or srt
	Key string // of RTMP
}

// State is what became of a target's link.
type State uint8

// The states.
const (
	Up         State = iota // the destination has taken the first frame of this publication
	Down                    // the link broke or could not be made; it is tried again
	Impossible              // the stream can not go there; it is not tried again
)

func (s State) String() string { return [...]string{"up", "down", "impossible"}[s] }

// Report is one change of a target's link.
type Report struct {
	Target      string
	State       State
	Err         error // why, unless Up
	Publication int   // which one it is about, counted from 1
}

// Options are what a Group needs.
type Options struct {
	Targets []Target
	Dial    Dialer
	// Report is told of each change, from the targets' goroutines; it must not block.
	Report func(Report)
	Roots  *x509.CertPool // who RTMPS certificates are signed by; the system's when nil
	Logger *slog.Logger
}

// Group forwards one broadcast.
type Group struct {
	opt      Options
	targets  []*target
	closing  chan struct{}
	shut     sync.Once
	linksCtx context.Context // of the links
	cut      context.CancelFunc

	mu          sync.Mutex
	publication int
	began       time.Time     // first frame of the first publication
	end         time.Duration // of what was forwarded, on the relay's clock
}

// New makes a group; nothing starts.
func New(o Options) *Group {
	g := &Group{opt: o, closing: make(chan struct{})}
	g.linksCtx, g.cut = context.WithCancel(context.Background()) //nolint:forbidigo // ended by Run
	for _, t := range o.Targets {
		g.targets = append(g.targets, newTarget(g, t))
	}
	return g
}

// Run serves the targets until ctx ends, which cuts them off, or Close is called and all have said goodbye.
func (g *Group) Run(ctx context.Context) error {
	defer g.cut()
	defer context.AfterFunc(ctx, g.cut)()
	var wg sync.WaitGroup
	for _, t := range g.targets {
		wg.Go(func() { t.run(g.linksCtx) })
	}
	wg.Wait()
	return nil
}

// Close ends the broadcast: what is queued is sent, and then each destination is told goodbye. It does not wait for
// that, which takes a few seconds at most.
func (g *Group) Close() {
	g.shut.Do(func() {
		close(g.closing)
		time.AfterFunc(farewell+2*goodbyeTime, g.cut)
	})
}

// Join begins a publication, after the last one was closed. protocol is how its encoder is connected.
func (g *Group) Join(protocol string) *Tap {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publication++
	for _, t := range g.targets {
		t.join(g.publication, protocol)
	}
	return &Tap{group: g, number: g.publication}
}

// Tap takes the frames of one publication. It never blocks and never fails; it is used by one goroutine. After Close,
// or once another publication has begun, it does nothing.
type Tap struct {
	group   *Group
	number  int
	base    time.Duration
	started bool
	closed  bool
}

// over reports whether the publication has ended. Called with the lock.
func (tap *Tap) over() bool { return tap.closed || tap.number != tap.group.publication }

// Number counts the publications of a group from 1.
func (tap *Tap) Number() int { return tap.number }

// Configure hands on a track's parameters.
func (tap *Tap) Configure(c frame.Config) {
	g := tap.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if tap.over() {
		return
	}
	for _, t := range g.targets {
		t.q.configure(c)
	}
}

// Write hands on a frame whose clock starts at 0 with the publication. On the relay's clock a publication goes on as
// long after the last one as the encoder was away.
func (tap *Tap) Write(f frame.Frame) {
	g := tap.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if tap.over() {
		return
	}
	if !tap.started {
		tap.started = true
		if g.began.IsZero() {
			g.began = f.Received
		} else {
			tap.base = max(g.end, f.Received.Sub(g.began)) - f.DTS
		}
	}
	f.DTS += tap.base
	f.PTS += tap.base
	g.end = max(g.end, f.DTS+f.Duration)
	for _, t := range g.targets {
		t.q.write(f)
	}
}

// Close ends the publication: targets wait for the next one, and hold their links for a moment.
func (tap *Tap) Close() {
	g := tap.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if tap.over() {
		return
	}
	tap.closed = true
	for _, t := range g.targets {
		t.q.leave()
	}
}

// impossibleError is a reason that trying again does not change.
type impossibleError struct{ reason string }

func (i impossibleError) Error() string { return i.reason }

func impossible(format string, args ...any) error {
	return impossibleError{fmt.Sprintf(format, args...)}
}
