package fetch_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/fetch"
)

func hashOf(url string) string {
	sum := sha256.Sum256([]byte(url))
	return hex.EncodeToString(sum[:])
}

// pipes is a listener in memory, for tests in a bubble of time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubble is what a test has within its own time.
type bubble struct {
	t      *testing.T
	client *fetch.Client
}

// inBubble runs test with a client and a server that have the time of the bubble, starting at 0.
func inBubble(t *testing.T, h http.HandlerFunc, test func(b bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
		done := make(chan struct{})
		go func() { defer close(done); _ = srv.Serve(l) }()
		c := fetch.New(fetch.Options{Retry: fetch.Retry{Tries: 3, First: time.Second, Max: 20 * time.Second}})
		c.DialBy(l.dial)
		test(bubble{t: t, client: c})
		c.Close()
		_ = srv.Close()
		<-done
		synctest.Wait()
	})
}

// since checks how long something took in the time of the bubble.
func since(t *testing.T, start time.Time, least, most time.Duration) {
	t.Helper()
	if d := time.Since(start); d < least || d > most {
		t.Errorf("took %v, want %v to %v", d, least, most)
	}
}

func wantUnavailable(t *testing.T, err error, msg string) {
	t.Helper()
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(strings.Join(fault.Messages(err), " "), msg) {
		t.Errorf("%v of kind %d, want unavailable with %q", err, fault.KindOf(err), msg)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, holding([]byte("some"), 100), func(b bubble) {
		t, c := b.t, b.client
		start := time.Now()
		_, err := c.Download(t.Context(), "http://slow.example/", filepath.Join(t.TempDir(), "f"),
			fetch.Limits{MaxBytes: 100, Idle: 10 * time.Second}, nil)
		wantUnavailable(t, err, "no data came for too long")
		since(t, start, 30*time.Second, 34*time.Second) // three attempts and two waits
	})
}

// TestSlowLoris sends a byte just before each idle timeout: the total limit ends it, where it is shorter than the time
// to get faster.
func TestSlowLoris(t *testing.T) {
	t.Parallel()
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(9 * time.Second):
			case <-r.Context().Done():
			}
		}
	}
	inBubble(t, drip, func(b bubble) {
		t, c := b.t, b.client
		start := time.Now()
		limits := fetch.Limits{MaxBytes: 1 << 30, Idle: 10 * time.Second, Total: 40 * time.Second}
		_, err := c.Download(t.Context(), "http://slow.example/", filepath.Join(t.TempDir(), "f"), limits, nil)
		wantUnavailable(t, err, "it took too long")
		since(t, start, 40*time.Second, 40*time.Second)
		start = time.Now()
		_, _, err = c.Get(t.Context(), "http://slow.example/", 1<<20)
		wantUnavailable(t, err, "it took too long")
		since(t, start, time.Minute, time.Minute)
	})
}

func TestNoHeader(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	inBubble(t, silent, func(b bubble) {
		t, c := b.t, b.client
		start := time.Now()
		_, err := c.Download(t.Context(), "http://slow.example/", filepath.Join(t.TempDir(), "f"),
			fetch.Limits{MaxBytes: 100}, nil)
		wantUnavailable(t, err, "did not respond in time")
		since(t, start, 90*time.Second, 94*time.Second)
	})
}

// TestWaits heeds what the server asks for, up to a bound, and the total limit while waiting.
func TestWaits(t *testing.T) {
	t.Parallel()
	for after, want := range map[int][2]time.Duration{
		0:    {1500 * time.Millisecond, 3 * time.Second}, // about 1 s and 2 s
		7:    {14 * time.Second, 14 * time.Second},
		3600: {40 * time.Second, 40 * time.Second},
	} {
		busy := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(after))
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		inBubble(t, busy, func(b bubble) {
			t, c := b.t, b.client
			start := time.Now()
			_, _, err := c.Get(t.Context(), "http://busy.example/", 100)
			wantUnavailable(t, err, "503")
			since(t, start, want[0], want[1])
		})
	}
}

// TestTrickle has a server send a byte a second for ever: the download is given up after its first minute, and not
// tried again at once. One that is slow but steady, and one that was slow at first, are waited for.
func TestTrickle(t *testing.T) {
	t.Parallel()
	const rate = 1000
	send := func(first, then int) http.HandlerFunc { // bytes a second, in the first half minute and after
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"v"`)
			w.Header().Set("Content-Length", strconv.Itoa(200*rate))
			left := 200 * rate
			for at := 0; left > 0 && r.Context().Err() == nil; at++ {
				n := then
				if at < 30 {
					n = first
				}
				n = min(n, left)
				if _, err := w.Write(make([]byte, n)); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				left -= n
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		first, then int
		fails       bool
	}{
		"trickles":      {1, 1, true},
		"slows down":    {rate, 1, true},
		"steady":        {rate + 10, rate + 10, false},
		"slow at first": {1, 3 * rate, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, send(tt.first, tt.then), func(b bubble) {
				start := time.Now()
				_, err := b.client.Download(b.t.Context(), "http://video.example/v.mp4",
					filepath.Join(b.t.TempDir(), "f"), fetch.Limits{MaxBytes: 1 << 20, Rate: rate}, nil)
				if !tt.fails {
					if err != nil {
						b.t.Error(err)
					}
					return
				}
				wantUnavailable(b.t, err, "bytes a second; at least 1000 are needed")
				since(b.t, start, time.Minute, 62*time.Second)
			})
		})
	}
}
