package rtmp

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"

	"millrace/internal/leaktest"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest/ingesttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server is a running one on a loopback port.
type server struct {
	addr string
	log  *ingesttest.Log
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
	s := &server{addr: ln.Addr().String(), log: &ingesttest.Log{}}
	o.Logger = s.log.Logger()
	s.stop = ingesttest.Serve(t, func(ctx context.Context) error { return New(o).Serve(ctx, ln, secure) })
	return s
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
