package whip

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key      = "sk-very-secret-key"
	patience = 30 * time.Second // for anything, on a busy machine
)

type gateFunc func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error)

func (f gateFunc) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	return f(ctx, p)
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

// recorder is a sink that keeps everything.
type recorder struct {
	mu      sync.Mutex
	configs []frame.Config
	frames  []frame.Frame
	causes  []error
	news    chan struct{} // poked at each frame
	closed  chan struct{}
}

func newRecorder() *recorder {
	return &recorder{news: make(chan struct{}, 1), closed: make(chan struct{})}
}

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
	select {
	case r.news <- struct{}{}:
	default:
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

func (r *recorder) configOf(k frame.Kind) (last frame.Config, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.configs {
		if c.Kind == k {
			last = c
			n++
		}
	}
	return last, n
}

// until waits for the recorder to hold what ok wants.
func (r *recorder) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-r.news:
		case <-r.closed:
			t.Fatalf("%s: publication ended: %v", what, r.causes)
		case <-limit:
			t.Fatalf("%s: not within %v: %d pictures, %d sounds", what, patience, len(r.of(frame.Video)), len(r.of(frame.Audio)))
		}
	}
}

// cause waits for the end and checks that Close came once.
func (r *recorder) cause(t *testing.T) error {
	t.Helper()
	select {
	case <-r.closed:
	case <-time.After(patience):
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

// server is a running one on loopback ports.
type server struct {
	*Server
	url  string // of its endpoint
	log  *logBuffer
	stop func() // ends it and waits
}

func startServer(t *testing.T, o Options) *server {
	t.Helper()
	var lc net.ListenConfig
	udp, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{log: &logBuffer{}}
	o.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Server = New(o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // ended by stop alone
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, udp, tcp) }()
	web := httptest.NewServer(s.Server)
	s.url = web.URL + "/whip"
	s.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve did not return")
		}
		web.Close()
		if bytes.Contains([]byte(s.log.String()), []byte(key)) {
			t.Errorf("the stream key is in the log:\n%s", s.log)
		}
	})
	t.Cleanup(s.stop)
	s.serving(t)
	return s
}

// serving waits until the server has its sockets.
func (s *server) serving(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		s.mu.Lock()
		ok := s.sockets != nil
		s.mu.Unlock()
		if ok {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Fatal("server does not serve")
}
