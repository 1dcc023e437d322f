package srt

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	gosrt "github.com/datarhei/gosrt"
	"go.uber.org/goleak"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

// TestMain lets a goroutine be that gosrt leaves behind where a caller is refused, which is never this package.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/datarhei/gosrt.DialWithContext.func1"))
}

const (
	key        = "sk-very-secret-key"
	passphrase = "a very secret passphrase"
)

// gate admits key with its sink, or refuses everybody with err.
type gate struct {
	sink ingest.Sink
	err  error
	ctx  func(context.Context) context.Context // of the publication

	mu   sync.Mutex
	seen []ingest.Publication
}

func (g *gate) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, p)
	if g.err != nil {
		return nil, nil, g.err
	}
	if g.ctx != nil {
		ctx = g.ctx(ctx)
	}
	return ctx, g.sink, nil
}

func (g *gate) asked() []ingest.Publication {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}

// secrets knows key alone.
type secrets struct{ err error }

func (s secrets) Passphrase(_ context.Context, k string) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	if k != key {
		return "", ingest.ErrUnknownKey
	}
	return passphrase, nil
}

// recorder is a sink that keeps everything.
type recorder struct {
	onWrite func(frame.Frame) error

	mu      sync.Mutex
	configs []frame.Config
	frames  []frame.Frame
	causes  []error
	first   chan struct{} // closed with the first frame
	closed  chan struct{}
}

func newRecorder() *recorder {
	return &recorder{first: make(chan struct{}), closed: make(chan struct{})}
}

func (r *recorder) Configure(c frame.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs = append(r.configs, c)
	return nil
}

func (r *recorder) Write(f frame.Frame) error {
	r.mu.Lock()
	if r.frames = append(r.frames, f); len(r.frames) == 1 {
		close(r.first)
	}
	r.mu.Unlock()
	if r.onWrite != nil {
		return r.onWrite(f)
	}
	return nil
}

func (r *recorder) Close(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.causes = append(r.causes, cause); len(r.causes) == 1 {
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

// cause waits for the end and checks that Close came once.
func (r *recorder) cause(t *testing.T) error {
	t.Helper()
	wait(t, r.closed, "the sink's end")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.causes) != 1 {
		t.Errorf("sink closed %d times: %v", len(r.causes), r.causes)
	}
	return r.causes[0]
}

func wait[T any](t *testing.T, c <-chan T, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("waited in vain for %s", what)
	}
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

func start(t *testing.T, o Options) *server {
	t.Helper()
	s := &server{log: &logBuffer{}}
	o.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.Secrets == nil {
		o.Secrets = secrets{}
	}
	srv, err := Listen(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = srv.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ctx) }()
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

// dial connects as a caller.
func dial(t *testing.T, addr string, change func(*gosrt.Config)) (gosrt.Conn, error) {
	t.Helper()
	c := gosrt.DefaultConfig()
	c.StreamId, c.Passphrase = key, passphrase
	if change != nil {
		change(&c)
	}
	conn, err := gosrt.Dial("srt", addr, c)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func connect(t *testing.T, addr string) gosrt.Conn {
	t.Helper()
	c, err := dial(t, addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// media is a transport stream with a second of pictures and sound.
func media(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/second.ts")
	if err != nil {
		t.Fatal(err)
	}
	return b
}
