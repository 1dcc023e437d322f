package express_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/web/express"
)

// waiter waits on /wait for what is given to it or for the end of the request.
type waiter struct {
	began chan context.Context
	give  chan string
}

func newWaiter() *waiter { return &waiter{make(chan context.Context, 64), make(chan string)} }

func (wa *waiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/wait" {
		_, _ = io.WriteString(w, "at once")
		return
	}
	wa.began <- r.Context()
	select {
	case s := <-wa.give:
		_, _ = io.WriteString(w, s)
	case <-r.Context().Done():
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

const wait = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"

// TestViewerThatGoesAway ends the request that waits for it, here as with net/http.
func TestViewerThatGoesAway(t *testing.T) {
	t.Parallel()
	eachWay(t, testViewerThatGoesAway)
}

func testViewerThatGoesAway(t *testing.T, w way) { //nolint:thelper // it is the test
	for _, plain := range []bool{false, true} {
		h := newWaiter()
		s := w.serve(t, h, express.Options{})
		addr := s.fast
		if plain {
			addr = s.plain
		}
		for _, how := range []string{"closes", "says that nothing more comes", "resets"} {
			nc := w.dial(t, addr)
			write(t, nc, wait)
			ctx := <-h.began
			if err := ctx.Err(); err != nil {
				t.Errorf("%s: before: %v", how, err)
			}
			switch how {
			case "closes":
				_ = nc.Close()
			case "says that nothing more comes":
				_ = nc.CloseWrite()
			default:
				_ = errors.Join(nc.tcp.SetLinger(0), nc.Close())
			}
			<-ctx.Done()
			if err := ctx.Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", how, err)
			}
		}
	}
}

// TestViewerThatStays: what it sends ahead while its request waits is neither lost nor a reason to end it; and once the
// request is over, so is its context.
func TestViewerThatStays(t *testing.T) {
	t.Parallel()
	eachWay(t, testViewerThatStays)
}

func testViewerThatStays(t *testing.T, w way) { //nolint:thelper // it is the test
	h := newWaiter()
	var taken atomic.Int64
	ln := listen(t)
	nc := w.dial(t, ln.Addr().String())
	unit := 100 * time.Millisecond
	if w.secure { // a handshake has to come in time, too
		unit = 600 * time.Millisecond
	}
	said := make(chan struct{})
	go func() { // before the connection is taken: from then on the first request has little time to come
		defer close(said)
		_, _ = io.WriteString(nc, wait) // if it fails no handler begins
	}()
	if !w.secure {
		<-said
	}
	l := express.Listen(t.Context(), ln, express.Options{
		Takes: func(string) bool { return true }, TLS: w.server(), Logger: slog.New(slog.DiscardHandler),
		HeaderTimeout: 3 * unit, IdleTimeout: 2 * unit,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			taken.Add(1)
			h.ServeHTTP(w, r)
		}),
	})
	br := bufio.NewReader(nc)
	expect := func(want string) {
		t.Helper()
		r, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != want {
			t.Errorf("%q, %v; want %q", body, err, want)
		}
	}
	first := <-h.began
	write(t, nc, wait[:10])
	<-time.After(5 * unit) // longer than any time in which a request has to come
	write(t, nc, wait[10:]+"GET /x HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("y", 3000)+"\r\n\r\n"+wait)
	h.give <- "one"
	expect("one")
	second := <-h.began
	<-first.Done()
	if second.Err() != nil {
		t.Error("the second request's context ended with the first's")
	}
	h.give <- "two"
	expect("two")
	expect("at once")
	<-h.began
	h.give <- "three"
	expect("three")
	<-second.Done()
	if n := taken.Load(); n != 4 {
		t.Errorf("%d here", n)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestContextOfARequestThatIsOver has ended, for anyone who has kept it, whether or not anybody asked before.
func TestContextOfARequestThatIsOver(t *testing.T) {
	t.Parallel()
	eachWay(t, testContextOfARequestThatIsOver)
}

func testContextOfARequestThatIsOver(t *testing.T, w way) { //nolint:thelper // it is the test
	kept := make(chan context.Context, 1)
	type key struct{}
	s := w.serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, limited := r.Context().Deadline(); limited || r.Context().Value(key{}) != nil ||
			context.Cause(r.Context()) != nil {
			t.Error("a deadline, a value or a cause from nowhere")
		}
		kept <- r.Context()
	}), express.Options{})
	nc := w.dial(t, s.fast)
	for range 2 {
		write(t, nc, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(nc), nil); err != nil {
			t.Fatal(err)
		}
		ctx := <-kept
		derived, cancel := context.WithCancel(ctx)
		<-derived.Done()
		if ctx.Err() == nil || context.Cause(derived) == nil {
			t.Error("it goes on")
		}
		cancel()
	}
}

// TestPanic: a handler that panics costs its connection. The log says where, and not which path was asked for.
func TestPanic(t *testing.T) {
	t.Parallel()
	eachWay(t, testPanic)
}

func testPanic(t *testing.T, w way) { //nolint:thelper // it is the test
	var log strings.Builder
	ln := listen(t)
	l := express.Listen(t.Context(), ln, express.Options{
		Takes: func(string) bool { return true }, TLS: w.server(),
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }),
	})
	nc := w.dial(t, ln.Addr().String())
	write(t, nc, "GET /id/secret HTTP/1.1\r\nHost: x\r\n\r\n")
	if got, err := io.ReadAll(nc); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	got := log.String()
	if !strings.Contains(got, "a bug") || !strings.Contains(got, "testPanic") || strings.Contains(got, "secret") {
		t.Errorf("log %s", got)
	}
}

// TestShutdown lets a response end and closes the connections that have no whole request; a handler that goes on is cut
// off in the end.
func TestShutdown(t *testing.T) {
	t.Parallel()
	eachWay(t, testShutdown)
}

func testShutdown(t *testing.T, w way) { //nolint:thelper // it is the test
	for name, patient := range map[string]bool{"a response ends": true, "a response does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newWaiter()
			ln := listen(t)
			l := express.Listen(t.Context(), ln, express.Options{
				Takes: func(string) bool { return true }, TLS: w.server(), Logger: slog.New(slog.DiscardHandler),
				Handler: h,
			})
			viewer := func() *viewer { return w.dial(t, ln.Addr().String()) }
			idle, half, used, busy := viewer(), viewer(), viewer(), viewer()
			write(t, half, "GET /x HT")
			write(t, used, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
			if _, err := http.ReadResponse(bufio.NewReader(used), nil); err != nil {
				t.Fatal(err)
			}
			write(t, busy, wait+wait)
			<-h.began
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			over := make(chan error, 1)
			go func() { over <- l.Shutdown(ctx) }()
			for _, nc := range []io.Reader{idle, half, used} {
				// What was not read yet makes a reset of the end.
				if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("connection without a request: %v", err)
				}
			}
			if patient {
				h.give <- "whole"
			} else {
				cancel()
			}
			if err := <-over; (err == nil) != patient {
				t.Errorf("shutdown: %v", err)
			}
			got, _ := io.ReadAll(busy)
			if patient &&
				(!strings.HasSuffix(string(got), "whole") ||
					!strings.Contains(string(got), "\r\nConnection: close\r\n")) {
				t.Errorf("response %q", got)
			}
			if _, err := l.Accept(); err == nil {
				t.Error("accept afterwards")
			}
		})
	}
}

// TestServiceThatStops ends requests that wait with the cause that the service gives.
func TestServiceThatStops(t *testing.T) {
	t.Parallel()
	eachWay(t, testServiceThatStops)
}

func testServiceThatStops(t *testing.T, w way) { //nolint:thelper // it is the test
	h := newWaiter()
	ln := listen(t)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	l := express.Listen(ctx, ln, express.Options{
		Takes: func(string) bool { return true }, TLS: w.server(), Logger: slog.New(slog.DiscardHandler), Handler: h,
	})
	nc := w.dial(t, ln.Addr().String())
	write(t, nc, wait)
	waits := <-h.began
	cancel(stop)
	<-waits.Done()
	if cause := context.Cause(waits); !errors.Is(cause, stop) {
		t.Errorf("cause %v", cause)
	}
	if err := l.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(nc); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 503") {
		t.Errorf("%q, %v", got, err)
	}
}
