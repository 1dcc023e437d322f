package whip

import (
	"context"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/media/ingest/ingesttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	key      = "sk-very-secret-key"
	patience = ingesttest.Patience
)

// server is a running one on loopback ports.
type server struct {
	*Server
	url  string // of its endpoint
	log  *ingesttest.Log
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
	s := &server{log: &ingesttest.Log{}}
	o.Logger = s.log.Logger()
	s.Server = New(o)
	serve := ingesttest.Serve(t, func(ctx context.Context) error { return s.Serve(ctx, udp, tcp) })
	web := httptest.NewServer(s.Server)
	s.url = web.URL + "/whip"
	s.stop = sync.OnceFunc(func() {
		serve()
		web.Close()
		if strings.Contains(s.log.String(), key) {
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
