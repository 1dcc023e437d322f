package socket_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/internal/socket"
)

// startPoller runs a poller until the test's connections are closed.
func startPoller(t *testing.T, round time.Duration) *socket.Poller {
	t.Helper()
	p, err := socket.NewPoller(round)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Run() }()
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestClose while the poller begins to run: each descriptor is closed once, and used by nobody after that.
func TestClose(t *testing.T) {
	t.Parallel()
	for range 20_000 {
		p, err := socket.NewPoller(time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- p.Run() }()
		if err := errors.Join(p.Close(), <-done, p.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// polled is a TCP connection's two ends, ours of a poller.
func polled(t *testing.T, p *socket.Poller) (ours net.Conn, theirs *net.TCPConn) {
	t.Helper()
	before, theirs := pair(t)
	ours, err := p.Adopt(before)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	return ours, theirs
}

// TestConnIsLikeNets does the same with a connection of a poller and with one of package net.
func TestConnIsLikeNets(t *testing.T) {
	t.Parallel()
	type step = func(ours net.Conn, theirs *net.TCPConn) error
	read := func(n int, want string) step {
		return func(o net.Conn, _ *net.TCPConn) error {
			b := make([]byte, n)
			n, err := o.Read(b)
			if err == nil && string(b[:n]) != want {
				err = fmt.Errorf("read %q, want %q", b[:n], want)
			}
			return err
		}
	}
	write := func(s string) step {
		return func(o net.Conn, _ *net.TCPConn) error { _, err := o.Write([]byte(s)); return err }
	}
	flood := func(o net.Conn, _ *net.TCPConn) error { _, err := o.Write(make([]byte, 64<<20)); return err }
	say := func(s string) step {
		return func(_ net.Conn, c *net.TCPConn) error { _, err := c.Write([]byte(s)); return err }
	}
	soon := func() time.Time { return time.Now().Add(10 * time.Millisecond) }
	limit := func(set func(net.Conn, time.Time) error, at func() time.Time) step {
		return func(o net.Conn, _ *net.TCPConn) error { return set(o, at()) }
	}
	never, past := func() time.Time { return time.Time{} }, func() time.Time { return time.Unix(1, 0) }
	closed := func(o net.Conn, _ *net.TCPConn) error { return o.Close() }
	gone := func(_ net.Conn, c *net.TCPConn) error { return c.Close() }
	reset := func(_ net.Conn, c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }
	fails := func(do step, want error) step {
		return func(o net.Conn, c *net.TCPConn) error {
			err := do(o, c)
			if !errors.Is(err, want) {
				return fmt.Errorf("%w, want %w", err, want)
			}
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() != errors.Is(want, os.ErrDeadlineExceeded) {
				return fmt.Errorf("timeout %v: %w", ne.Timeout(), err)
			}
			return nil
		}
	}
	for name, steps := range map[string][]step{
		"data":           {say("hello"), read(16, "hello")},
		"in pieces":      {say("hello"), read(2, "he"), read(16, "llo"), say("you"), read(3, "you")},
		"nothing wanted": {read(0, ""), write("")},
		"end":            {say("x"), gone, read(1, "x"), fails(read(1, ""), io.EOF), fails(read(1, ""), io.EOF)},
		"half an end": {
			func(_ net.Conn, c *net.TCPConn) error { return c.CloseWrite() }, fails(read(1, ""), io.EOF),
			write("still"),
		},
		"deadline": {
			limit(net.Conn.SetReadDeadline, soon), fails(read(1, ""), os.ErrDeadlineExceeded),
			fails(read(1, ""), os.ErrDeadlineExceeded),
		},
		"after it": {
			limit(net.Conn.SetReadDeadline, soon), fails(read(1, ""), os.ErrDeadlineExceeded),
			limit(net.Conn.SetReadDeadline, never), say("x"), read(1, "x"),
		},
		"past": {
			say("x"), limit(net.Conn.SetReadDeadline, past), fails(read(1, ""), os.ErrDeadlineExceeded),
			limit(net.Conn.SetDeadline, never), read(1, "x"),
		},
		"reading alone": {limit(net.Conn.SetReadDeadline, past), write("x")},
		"both": {
			limit(net.Conn.SetDeadline, past), fails(read(1, ""), os.ErrDeadlineExceeded),
			fails(write("x"), os.ErrDeadlineExceeded),
		},
		"write deadline": {
			limit(net.Conn.SetWriteDeadline, soon), fails(flood, os.ErrDeadlineExceeded), say("x"), read(1, "x"),
		},
		"past for writing": {
			limit(net.Conn.SetWriteDeadline, past), fails(write("x"), os.ErrDeadlineExceeded), say("x"), read(1, "x"),
		},
		"closed": {
			say("x"), closed, fails(read(1, ""), net.ErrClosed), fails(write("x"), net.ErrClosed),
			fails(closed, net.ErrClosed),
		},
		"deadline of closed": {
			closed, fails(limit(net.Conn.SetDeadline, soon), net.ErrClosed),
			fails(limit(net.Conn.SetReadDeadline, soon), net.ErrClosed),
		},
		"reset":       {reset, fails(read(1, ""), syscall.ECONNRESET), fails(read(1, ""), io.EOF)},
		"broken pipe": {reset, fails(read(1, ""), syscall.ECONNRESET), fails(write("x"), syscall.EPIPE)},
		"addresses": {func(o net.Conn, c *net.TCPConn) error {
			if o.LocalAddr().String() != c.RemoteAddr().String() || o.RemoteAddr().String() != c.LocalAddr().String() {
				return fmt.Errorf("%v and %v", o.LocalAddr(), o.RemoteAddr())
			}
			return nil
		}},
	} {
		for _, kind := range []string{"net", "poller"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				var ours net.Conn
				var theirs *net.TCPConn
				if kind == "net" {
					ours, theirs = pair(t)
				} else {
					ours, theirs = polled(t, startPoller(t, time.Millisecond))
				}
				for i, do := range steps {
					if err := do(ours, theirs); err != nil {
						t.Fatalf("step %d: %v", i, err)
					}
				}
			})
		}
	}
}

// TestConnEndsWhoWaits while it reads or writes.
func TestConnEndsWhoWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(ours net.Conn, theirs *net.TCPConn) error
		in   error
		out  error
		wait func(net.Conn) error
	}{
		"close": {
			end: func(o net.Conn, _ *net.TCPConn) error { return o.Close() }, in: net.ErrClosed, out: net.ErrClosed,
		},
		"deadline": {end: func(o net.Conn, _ *net.TCPConn) error {
			return errors.Join(o.SetDeadline(time.Now().Add(time.Hour)),
				o.SetDeadline(time.Now().Add(time.Millisecond)))
		}, in: os.ErrDeadlineExceeded, out: os.ErrDeadlineExceeded},
		"reset": {end: func(_ net.Conn, c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := polled(t, startPoller(t, time.Millisecond))
			in, out, begun := make(chan error, 1), make(chan error, 1), make(chan struct{})
			go func() {
				b := make([]byte, 1)
				_, err := ours.Read(b)
				close(begun)
				if err == nil {
					_, err = ours.Read(b)
				}
				in <- err
			}()
			go func() { _, err := ours.Write(make([]byte, 64<<20)); out <- err }()
			if _, err := theirs.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			<-begun
			if err := tt.end(ours, theirs); err != nil {
				t.Fatal(err)
			}
			for side, got := range map[string]struct{ err, want error }{
				"read": {<-in, tt.in}, "write": {<-out, tt.out},
			} {
				if got.err == nil || got.want != nil && !errors.Is(got.err, got.want) {
					t.Errorf("%s: %v, want %v", side, got.err, got.want)
				}
			}
		})
	}
}

// TestConnCarriesAll sends much in both directions at once, to a reader that is slow to begin.
func TestConnCarriesAll(t *testing.T) {
	t.Parallel()
	ours, theirs := polled(t, startPoller(t, time.Millisecond))
	data := make([]byte, 9<<20)
	for i := range data {
		data[i] = byte(i >> 8 * 31)
	}
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{ours, theirs}, {theirs, ours}} {
		wg.Go(func() {
			for b := data; len(b) > 0; {
				n := min(len(b), 1<<20)
				if m, err := way[0].Write(b[:n]); err != nil || m != n {
					t.Errorf("wrote %d, %v", m, err)
					return
				}
				b = b[n:]
			}
		})
		wg.Go(func() {
			got := make([]byte, len(data))
			if _, err := io.ReadFull(way[1], got); err != nil || !bytes.Equal(got, data) {
				t.Errorf("what came is not what was sent, %v", err)
			}
		})
	}
	wg.Wait()
}

// TestPollerServesMany who are ready at once, more than one look tells of, and who are read by and by.
func TestPollerServesMany(t *testing.T) {
	t.Parallel()
	p := startPoller(t, time.Millisecond)
	var wg sync.WaitGroup
	for range 300 {
		ours, theirs := polled(t, p)
		wg.Go(func() {
			b := make([]byte, 3)
			for i := range 20 {
				if _, err := io.ReadFull(ours, b); err != nil || b[0] != byte(i) {
					t.Errorf("message %d: %v, %v", i, b, err)
					return
				}
			}
		})
		wg.Go(func() {
			for i := range byte(20) {
				if _, err := theirs.Write([]byte{i, i}); err != nil {
					t.Error(err)
				}
				if _, err := theirs.Write([]byte{i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestConnAnybodyMayCall does everything at once; the race detector looks.
func TestConnAnybodyMayCall(t *testing.T) {
	t.Parallel()
	p := startPoller(t, 100*time.Microsecond)
	for range 50 {
		ours, theirs := polled(t, p)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = io.Copy(io.Discard, ours) })
			wg.Go(func() { _, _ = ours.Write(make([]byte, 8<<20)) })
			wg.Go(func() {
				for range 10 {
					_ = ours.SetDeadline(time.Now().Add(time.Minute))
					_ = ours.SetReadDeadline(time.Time{})
				}
			})
		}
		wg.Go(func() { _, _ = theirs.Write(make([]byte, 1<<20)); _ = ours.Close() })
		wg.Wait()
	}
}

// TestOtherConnectionsStayAsTheyAre because there is no socket to look at.
func TestOtherConnectionsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	if got, err := startPoller(t, time.Millisecond).Adopt(a); got != a || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestAdoptingWhatIsClosed fails and leaves nothing behind.
func TestAdoptingWhatIsClosed(t *testing.T) {
	t.Parallel()
	ours, _ := pair(t)
	_ = ours.Close()
	if c, err := startPoller(t, time.Millisecond).Adopt(ours); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, %v", c, err)
	}
}
