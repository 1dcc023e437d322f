package express_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/web/express"
)

// TestCrowd lets many viewers at once do what viewers do, in any order: ask, ask ahead, ask for what net/http serves,
// wait, give up, leave in the middle. Every response that somebody stays for is the right one. Worth most with the race
// detector.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	eachWay(t, testManyConnections)
}

func testManyConnections(t *testing.T, w way) { //nolint:thelper // it is the test
	viewers, steps := 200, 40
	if testing.Short() {
		viewers, steps = 50, 20
	}
	big := strings.Repeat("0123456789", 30<<10)
	later := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/big":
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			_, _ = io.WriteString(w, big)
		case "/wait":
			select {
			case <-later:
			case <-r.Context().Done():
				return
			}
			fallthrough
		default:
			fmt.Fprintf(w, "%s %s", r.URL.RawQuery, r.Header.Get("X-Who"))
		}
	})
	s := w.serve(t, h, express.Options{})
	tick := time.NewTicker(time.Millisecond)
	stop := make(chan struct{})
	var clock, running sync.WaitGroup
	clock.Go(func() { // lets one that waits go on, again and again
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			select {
			case later <- struct{}{}:
			case <-stop:
				return
			}
		}
	})
	for i := range viewers {
		running.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for n := 0; n < steps; {
				done, err := w.visit(r, s.fast, i, big, min(steps-n, 1+r.IntN(12)))
				if err != nil {
					t.Errorf("viewer %d: %v", i, err)
					return
				}
				n += done
			}
		})
	}
	running.Wait()
	close(stop)
	clock.Wait()
	if s.taken.Load() == 0 {
		t.Error("nothing was served here")
	}
}

// visit is one connection: some requests, then a good or a bad end.
func (w way) visit(r *rand.Rand, addr string, who int, big string, steps int) (int, error) {
	tcp, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer tcp.Close()
	nc := w.over(tcp.(*net.TCPConn))
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		return 0, err
	}
	br := bufio.NewReader(nc)
	for step := 0; step < steps; {
		var asked strings.Builder
		var want []string
		for k := range 1 + r.IntN(3) { // some ask ahead
			q := fmt.Sprintf("n=%d-%d", step, k)
			path, line := "/x", fmt.Sprintf("%s %d", q, who)
			switch r.IntN(8) {
			case 0:
				path, line = "/big", big
			case 1, 2:
				path = "/wait"
			case 3:
				path = "/api" // from here on it is net/http's connection
			}
			fmt.Fprintf(&asked, "GET %s?%s HTTP/1.1\r\nHost: x\r\nX-Who: %d\r\n\r\n", path, q, who)
			want = append(want, line)
		}
		if _, err := io.WriteString(nc, asked.String()); err != nil {
			return step, fmt.Errorf("ask: %w", err)
		}
		if r.IntN(10) == 0 { // gone, perhaps with a bang
			if r.IntN(2) == 0 {
				_ = nc.tcp.SetLinger(0)
			}
			return step + 1, nil
		}
		for _, line := range want {
			a, err := http.ReadResponse(br, nil)
			if err != nil {
				return step, fmt.Errorf("read response: %w", err)
			}
			body, err := io.ReadAll(a.Body)
			if err != nil || string(body) != line {
				return step, fmt.Errorf("response of %d bytes %.40q, want %.40q: %w", len(body), body, line,
					errors.Join(err, errors.New("wrong")))
			}
			step++
		}
	}
	return steps, nil
}

// TestManyIdleConnections end with the service, at once.
func TestManyIdleConnections(t *testing.T) {
	t.Parallel()
	eachWay(t, testManyIdleConnections)
}

func testManyIdleConnections(t *testing.T, w way) { //nolint:thelper // it is the test
	s := w.serve(t, newWaiter(), express.Options{})
	conns := make([]*viewer, 300)
	for i := range conns {
		conns[i] = w.dial(t, s.fast)
		write(t, conns[i], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		if r, err := http.ReadResponse(bufio.NewReader(conns[i]), nil); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", r, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.listener.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	for _, nc := range conns {
		if _, err := io.Copy(io.Discard, nc); err != nil {
			t.Error(err)
		}
	}
}
