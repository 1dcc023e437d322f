package relay

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"millrace/internal/leaktest"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/rtmp"
)

// TestMain: gosrt's dialer now and then leaves the goroutine behind that wants to tell its last error.
func TestMain(m *testing.M) {
	leaktest.Main(m, goleak.IgnoreAnyFunction("github.com/datarhei/gosrt.DialWithContext.func1"))
}

var discard = slog.New(slog.DiscardHandler)

const streamKey = "very-secret-key"

// dialFunc is a door.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

func (d dialFunc) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	return d(ctx, address)
}

func (d dialFunc) Resolve(_ context.Context, _, address string) (netip.AddrPort, error) {
	return netip.ParseAddrPort(address)
}

var loopback = dialFunc(func(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
})

// logBuffer keeps a log, which must hold no secret.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is a running group.
type world struct {
	*Group
	t    *testing.T
	log  *logBuffer
	stop func() // ends it cleanly and waits

	mu      sync.Mutex
	reports []Report
	heard   chan struct{} // one token: there are more reports
}

func start(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{t: t, log: &logBuffer{}, heard: make(chan struct{}, 1)}
	o.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	also := o.Report
	o.Report = func(r Report) {
		if also != nil {
			also(r)
		}
		w.mu.Lock()
		w.reports = append(w.reports, r)
		w.mu.Unlock()
		select {
		case w.heard <- struct{}{}:
		default:
		}
	}
	w.Group = New(o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	w.stop = sync.OnceFunc(func() {
		w.Close()
		<-done
		cancel()
	})
	t.Cleanup(w.stop)
	return w
}

// said gives the states that were reported of a target.
func (w *world) said(target string) (states []State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.reports {
		if r.Target == target {
			states = append(states, r.State)
		}
	}
	return states
}

// last is the last report about a target.
func (w *world) last(target string) (r Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, have := range w.reports {
		if have.Target == target {
			r = have
		}
	}
	return r
}

// await waits until a target was reported to be in a state, at least n times.
func (w *world) await(target string, s State, n int) {
	w.t.Helper()
	for {
		times := 0
		for _, have := range w.said(target) {
			if have == s {
				times++
			}
		}
		if times >= n {
			return
		}
		select {
		case <-w.heard:
		case <-w.t.Context().Done():
			w.t.Fatalf("%s was not %s: %v\n%s", target, s, w.said(target), w.log)
		}
	}
}

// receiver is a platform that takes what is sent on streamKey: this service's own RTMP server with a sink for each
// publication.
type receiver struct {
	t  *testing.T
	mu sync.Mutex
	// onWrite may end a publication.
	onWrite func(n int) error
	refuse  error
	taken   []*taken
	fresh   chan struct{} // one token: something has come
}

// taken is one publication as it came.
type taken struct {
	r       *receiver
	configs []frame.Config
	frames  []frame.Frame
	cause   error
	closed  bool
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	return &receiver{t: t, fresh: make(chan struct{}, 1)}
}

func (r *receiver) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return nil, nil, r.refuse
	}
	if p.Key != streamKey {
		return nil, nil, ingest.ErrUnknownKey
	}
	s := &taken{r: r}
	r.taken = append(r.taken, s)
	return ctx, s, nil
}

func (t *taken) Configure(c frame.Config) error {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.configs = append(t.configs, c)
	return nil
}

func (t *taken) Write(f frame.Frame) error {
	t.r.mu.Lock()
	t.frames = append(t.frames, f)
	n := len(t.frames)
	t.r.mu.Unlock()
	t.r.ring()
	if t.r.onWrite != nil {
		return t.r.onWrite(n)
	}
	return nil
}

func (t *taken) Close(cause error) {
	t.r.mu.Lock()
	t.cause, t.closed = cause, true
	t.r.mu.Unlock()
	t.r.ring()
}

func (r *receiver) ring() {
	select {
	case r.fresh <- struct{}{}:
	default:
	}
}

// publications waits until ok is content with what has come.
func (r *receiver) publications(what string, ok func(all []taken) bool) []taken {
	r.t.Helper()
	for {
		r.mu.Lock()
		all := make([]taken, 0, len(r.taken))
		for _, s := range r.taken {
			all = append(all, *s)
		}
		r.mu.Unlock()
		if ok(all) {
			return all
		}
		select {
		case <-r.fresh:
		case <-r.t.Context().Done():
			r.t.Fatalf("%s did not come: %d publications", what, len(all))
		}
	}
}

// ended waits for n publications that are over.
func (r *receiver) ended(n int) []taken {
	r.t.Helper()
	return r.publications("the end", func(all []taken) bool {
		for _, s := range all {
			if !s.closed {
				return false
			}
		}
		return len(all) >= n
	})
}

func (t taken) of(k frame.Kind) (out []frame.Frame) {
	for _, f := range t.frames {
		if f.Kind == k {
			out = append(out, f)
		}
	}
	return out
}

// serve runs an RTMP server of ours on a listener until the test ends.
func (r *receiver) serve(ln net.Listener) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- rtmp.New(rtmp.Options{Gate: r, Logger: slog.New(slog.DiscardHandler)}).Serve(ctx, ln, nil)
	}()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Serve: %v", err)
		}
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// pipes is a listener of connections without a kernel, which is also the way to it.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, errors.New("nobody listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
