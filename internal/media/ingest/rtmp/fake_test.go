package rtmp

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type gateFunc func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error)

func (f gateFunc) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	return f(ctx, p)
}

// recorder is a sink that keeps everything.
type recorder struct {
	onWrite func(frame.Frame) error
	onClose func()

	mu      sync.Mutex
	configs []frame.Config
	frames  []frame.Frame
	causes  []error
	closed  chan struct{}
}

func newRecorder() *recorder { return &recorder{closed: make(chan struct{})} }

func (r *recorder) Configure(c frame.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs = append(r.configs, c)
	return nil
}

func (r *recorder) Write(f frame.Frame) error {
	r.mu.Lock()
	r.frames = append(r.frames, f)
	r.mu.Unlock()
	if r.onWrite != nil {
		return r.onWrite(f)
	}
	return nil
}

func (r *recorder) Close(cause error) {
	r.mu.Lock()
	r.causes = append(r.causes, cause)
	first := len(r.causes) == 1
	r.mu.Unlock()
	if r.onClose != nil {
		r.onClose()
	}
	if first {
		close(r.closed)
	}
}

func (r *recorder) of(k frame.Kind) (out []frame.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.frames {
		if f.Kind == k {
			out = append(out, f)
		}
	}
	return out
}

func (r *recorder) config(k frame.Kind) (frame.Config, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last frame.Config
	n := 0
	for _, c := range r.configs {
		if c.Kind == k {
			last = c
			n++
		}
	}
	return last, n
}

// cause waits for the end and checks that Close came once.
func (r *recorder) cause(t *testing.T) error {
	t.Helper()
	select {
	case <-r.closed:
	case <-t.Context().Done():
		t.Fatal("sink was not closed")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.causes) != 1 {
		t.Errorf("sink closed %d times: %v", len(r.causes), r.causes)
	}
	return r.causes[0]
}

// logBuffer keeps the log of a server.
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

// server is a running one on a loopback port.
type server struct {
	addr string
	log  *logBuffer
	stop func() // ends it and waits
}

func startServer(t *testing.T, o Options) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, o, ln, nil)
}

func serveOn(t *testing.T, o Options, ln net.Listener, secure *tls.Config) *server {
	t.Helper()
	s := &server{addr: ln.Addr().String(), log: &logBuffer{}}
	o.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // ended by stop alone
	done := make(chan error, 1)
	go func() { done <- New(o).Serve(ctx, ln, secure) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Serve did not return")
		}
	})
	t.Cleanup(s.stop)
	return s
}

// admit lets key in with sink and refuses the rest.
func admit(key string, sink ingest.Sink) ingest.Gate {
	return gateFunc(func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
		if p.Key != key {
			return nil, nil, ingest.ErrUnknownKey
		}
		return ctx, sink, nil
	})
}

var quiet = slog.New(slog.DiscardHandler)

// discard is a sink that checks frames and keeps none.
type discard struct {
	t      testing.TB
	closed int
	frames int
}

func (d *discard) Configure(frame.Config) error { return nil }

func (d *discard) Write(f frame.Frame) error {
	d.frames++
	if len(f.Data) == 0 {
		d.t.Error("empty frame")
	}
	return nil
}

func (d *discard) Close(error) { d.closed++ }
