package socket_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/socket"
)

// peers are peers of a listener with a budget, on both sides.
type peers struct {
	t      *testing.T
	ln     *socket.Listener
	theirs map[string]net.Conn
	ours   map[string]*socket.Counted
}

func receive(t *testing.T, b *socket.Budget) *peers {
	t.Helper()
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := socket.Listen(inner, socket.ListenOptions{Budget: b, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = ln.Close() })
	return &peers{t, ln, map[string]net.Conn{}, map[string]*socket.Counted{}}
}

// dial connects from an address of this machine.
func (p *peers) dial(name, from string) {
	p.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(p.t.Context(), "tcp", p.ln.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	p.theirs[name] = c
}

// enter connects and is let in.
func (p *peers) enter(name, from string) {
	p.t.Helper()
	p.dial(name, from)
	c, err := p.ln.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	p.ours[name] = c.(*socket.Counted)
}

// closed waits until a peer sees its connection end; the others are open.
func (p *peers) closed(name string) {
	p.t.Helper()
	c := p.theirs[name]
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		p.t.Errorf("%s: %v, want closed", name, err)
	}
	delete(p.theirs, name)
	for other, c := range p.theirs {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			p.t.Errorf("%s was closed: %v", other, err)
		}
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	b := socket.NewBudget(4, 3)
	g := receive(t, b)
	for _, name := range []string{"a", "b", "c"} {
		g.enter(name, "127.0.0.1")
	}
	g.ours["a"].Busy()
	g.enter("d", "127.0.0.1") // b is the longest idle of those from there
	g.closed("b")
	g.enter("other", "127.0.0.2")
	g.ours["a"].Idle() // idle for less long than c and d
	g.enter("third", "127.0.0.3")
	g.closed("c")
	for _, name := range []string{"a", "d"} {
		g.ours[name].Busy()
		g.ours[name].Busy()
	}
	g.enter("fourth", "127.0.0.4") // all are full: the longest idle is another address's
	g.closed("other")
	g.ours["third"].Busy()
	g.ours["fourth"].Busy()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := g.ln.Accept()
		accepted <- c
	}()
	g.dial("fifth", "127.0.0.5") // nobody is idle
	g.closed("fifth")
	_ = g.ours["a"].Close()
	_ = g.ours["a"].Close()
	delete(g.theirs, "a")
	g.dial("sixth", "127.0.0.6")
	c := <-accepted
	if c == nil || c.RemoteAddr().String() != g.theirs["sixth"].LocalAddr().String() {
		t.Fatalf("accepted %v", c)
	}
	_ = c.Close()
	if n := b.Open(); n != 3 {
		t.Errorf("%d are open, want 3", n)
	}
}

// TestBudgetOfPolled closes a connection that was given to a poller.
func TestBudgetOfPolled(t *testing.T) {
	t.Parallel()
	b := socket.NewBudget(2, 2)
	g := receive(t, b)
	p, err := socket.NewPoller(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Run() }()
	g.enter("idle", "127.0.0.1")
	g.enter("busy", "127.0.0.1")
	idle, err := p.Adopt(g.ours["idle"])
	if err != nil {
		t.Fatal(err)
	}
	busy, err := p.Adopt(g.ours["busy"])
	if err != nil {
		t.Fatal(err)
	}
	busy.(interface{ Busy() }).Busy()
	g.enter("new", "127.0.0.1")
	g.closed("idle")
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a displaced connection reads %v", err)
	}
	if err := busy.Close(); err != nil {
		t.Error(err)
	}
	_ = g.ours["new"].Close()
	if n := b.Open(); n != 0 {
		t.Errorf("%d are open", n)
	}
	if err := errors.Join(p.Close(), <-done); err != nil {
		t.Error(err)
	}
}

// exhausted is a listener that has no descriptor for anybody, for a while.
type exhausted struct {
	net.Listener
	until time.Time
	left  chan net.Conn
	tries int
}

func (e *exhausted) Accept() (net.Conn, error) {
	e.tries++
	if time.Now().Before(e.until) {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	c, ok := <-e.left
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (e *exhausted) Addr() net.Addr { return &net.TCPAddr{} }

func (e *exhausted) Close() error { return nil }

func TestListenerOutlastsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := &exhausted{until: time.Now().Add(time.Hour), left: make(chan net.Conn, 1)}
		ln := socket.Listen(inner, socket.ListenOptions{})
		ours, theirs := net.Pipe()
		inner.left <- theirs
		if c, err := ln.Accept(); err != nil || c != theirs || inner.tries < 3600 || inner.tries > 3700 {
			t.Errorf("%v, %v after %d tries", c, err, inner.tries)
		}
		_ = errors.Join(ours.Close(), theirs.Close())

		inner.until = time.Now().Add(time.Hour)
		time.AfterFunc(30*time.Second, func() { _ = ln.Close() })
		began := time.Now()
		if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64",
	} {
		if got := socket.Origin(netip.MustParseAddr(addr)); got.String() != want {
			t.Errorf("%s counts as %s, want %s", addr, got, want)
		}
	}
	if got := socket.Origin(netip.Addr{}); got != (netip.Prefix{}) || strings.Contains(got.String(), "/0") {
		t.Errorf("no address counts as %v", got)
	}
}
