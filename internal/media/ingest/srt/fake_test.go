package srt

import (
	"context"
	"os"
	"sync"
	"testing"

	gosrt "github.com/datarhei/gosrt"
	"go.uber.org/goleak"

	"millrace/internal/leaktest"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// TestMain lets a goroutine be that gosrt leaves behind where a caller is refused, which is never this package.
func TestMain(m *testing.M) {
	leaktest.Main(m, goleak.IgnoreAnyFunction("github.com/datarhei/gosrt.DialWithContext.func1"))
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

// server is a running one on a loopback port.
type server struct {
	addr string
	log  *ingesttest.Log
	stop func() // ends it and waits
}

func start(t *testing.T, o Options) *server {
	t.Helper()
	s := &server{log: &ingesttest.Log{}}
	o.Logger = s.log.Logger()
	if o.Secrets == nil {
		o.Secrets = secrets{}
	}
	srv, err := Listen(t.Context(), "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = srv.Addr().String()
	s.stop = ingesttest.Serve(t, srv.Serve)
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
