package unsent_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"millrace/internal/clientaddr"
	"millrace/internal/leaktest"
	"millrace/internal/unsent"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server serves HTTP/2 in clear text, counted against a budget.
func server(t *testing.T, b *unsent.Budget, h http.Handler) (addr string) {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler: unsent.Handler(b, clientaddr.Finder{}, h), Protocols: &protocols, ConnContext: unsent.ConnContext,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100},
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-served
	})
	return ln.Addr().String()
}

// client is a connection of HTTP/2 whose windows are closed: it takes no byte of a body.
type client struct {
	net.Conn
	framer *http2.Framer
	next   uint32
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	var d net.Dialer
	nc, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	c := &client{Conn: nc, framer: http2.NewFramer(nc, nc), next: 1}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err = io.WriteString(nc, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err = c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends n requests for a path.
func (c *client) ask(t *testing.T, path string, n int) {
	t.Helper()
	var block bytes.Buffer
	packed := hpack.NewEncoder(&block)
	for range n {
		block.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}, {":path", path}} {
			if err := packed.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
				t.Fatal(err)
			}
		}
		ask := http2.HeadersFrameParam{
			StreamID: c.next, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		}
		if err := c.framer.WriteHeaders(ask); err != nil {
			t.Fatal(err)
		}
		c.next += 2
	}
}

// heads reads until n responses have begun, or the connection is closed, and counts them by status.
func (c *client) heads(n int) map[string]int {
	got := map[string]int{}
	for heard := 0; heard < n; {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			got["closed"]++
			return got
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			got[f.PseudoValue("status")]++
			heard++
		case *http2.RSTStreamFrame:
			got["reset "+strconv.Itoa(int(f.ErrCode))]++
			heard++
		}
	}
	return got
}

// inUse is what the process needs, in bytes.
func inUse() int64 {
	for range 3 { // what pools keep survives one or two
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestUnreadStreams: what streams take that nobody reads is what they are counted with, however much they ask for, and
// it is given back.
//
//nolint:paralleltest // counts everybody's memory
func TestUnreadStreams(t *testing.T) {
	const conns, streams, size = 10, 100, 2 << 20
	for name, tt := range map[string]struct {
		serve http.HandlerFunc
		each  int64 // what is counted for a stream
	}{
		"a little": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a little"))
		}, unsent.Stream},
		"from a file": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(zeros{}, size))
		}, unsent.Stream + unsent.Piece},
	} {
		t.Run(name, func(t *testing.T) {
			b := unsent.New(unsent.Limits{All: 1 << 30, Address: 1 << 30, Connection: 1 << 30})
			addr := server(t, b, tt.serve)
			before, goroutines := inUse(), runtime.NumGoroutine()
			var all []*client
			for range conns {
				c := dial(t, addr)
				c.ask(t, "/", streams)
				all = append(all, c)
			}
			for _, c := range all {
				if got := c.heads(streams); got["200"] != streams {
					t.Fatal(got)
				}
			}
			grown := inUse() - before
			t.Logf("%d bytes a stream", grown/conns/streams)
			if grown > conns*streams*tt.each {
				t.Errorf("%d bytes a stream, which is counted with %d", grown/conns/streams, tt.each)
			}
			if held := b.Held(); held != conns*streams*unsent.Stream {
				t.Errorf("%d bytes are held", held)
			}
			for _, c := range all {
				_ = c.Close()
			}
			for b.Held() > 0 || runtime.NumGoroutine() > goroutines {
				runtime.Gosched()
			}
			if left := inUse() - before; left > 4<<20 {
				t.Errorf("%d bytes are left", left)
			}
		})
	}
}

// zeros is endless.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestLimits: who asks for more is told so, others are not, and who does not read even that loses the connection.
func TestLimits(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	t.Cleanup(func() { close(block) })
	for name, tt := range map[string]struct {
		all, address, connection int64 // streams
		conns                    int
		want                     map[string]int
		closed                   bool
	}{
		"connection":    {2000, 1000, 10, 1, map[string]int{"200": 10, "429": 90}, false},
		"address":       {9000, 800, 100, 9, map[string]int{"200": 800, "429": 100}, false},
		"all":           {1600, 3200, 100, 17, map[string]int{"200": 1600, "503": 100}, false},
		"refusals":      {9000, 160, 100, 3, nil, true},
		"within limits": {100, 100, 100, 1, map[string]int{"200": 100}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := unsent.Limits{
				All: tt.all * unsent.Stream, Address: tt.address * unsent.Stream,
				Connection: tt.connection * unsent.Stream,
			}
			addr := server(t, unsent.New(limits), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-block:
				}
			}))
			got := map[string]int{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range tt.conns {
				c := dial(t, addr)
				c.ask(t, "/", 100)
				wg.Go(func() {
					found := c.heads(100)
					mu.Lock()
					defer mu.Unlock()
					for what, n := range found {
						got[what] += n
					}
				})
			}
			wg.Wait()
			if tt.closed != (got["closed"] > 0) {
				t.Errorf("%v", got)
			}
			for status, n := range tt.want {
				if got[status] != n {
					t.Errorf("%v, want %v", got, tt.want)
				}
			}
		})
	}
}
