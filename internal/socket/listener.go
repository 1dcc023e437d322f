package socket

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Listener accepts connections until it is closed: whatever else goes wrong passes, such as descriptors that are used
// up. Its connections are Counted.
type Listener struct {
	net.Listener
	o      ListenOptions
	closed chan struct{}
	close  sync.Once
	logged time.Time // when the log was last told of the budget
}

// ListenOptions are what a Listener needs.
type ListenOptions struct {
	Name   string       // of the protocol, for the log
	Budget *Budget      // nil: connections are not bounded
	Logger *slog.Logger // nil: nowhere
}

// Listen returns a Listener on inner, or inner itself if it is one.
func Listen(inner net.Listener, o ListenOptions) *Listener {
	if l, ok := inner.(*Listener); ok {
		return l
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Listener{Listener: inner, o: o, closed: make(chan struct{})}
}

const (
	firstWait, longestWait = 5 * time.Millisecond, time.Second
	tellEvery              = time.Second
)

// Accept implements net.Listener. Its error is always net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	for wait := firstWait; ; {
		nc, err := l.Listener.Accept()
		if err == nil {
			if nc = l.admit(nc); nc != nil {
				return nc, nil
			}
			wait = firstWait
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if l.o.Budget != nil { // others have taken what was reserved
			if c := l.o.Budget.displace(); c != nil {
				_ = c.Close()
			}
		}
		l.o.Logger.Warn("accept failed", "protocol", l.o.Name, "error", err, "retry_in", wait)
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-l.closed:
			again.Stop()
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
		}
		wait = min(2*wait, longestWait)
	}
}

// admit counts a connection in; nil: it was turned away.
func (l *Listener) admit(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	if l.o.Budget == nil {
		return &Counted{TCPConn: tcp, closer: tcp}
	}
	c, instead := l.o.Budget.enter(tcp)
	if instead != nil {
		_ = instead.Close()
	}
	if c == nil {
		_ = tcp.Close()
	}
	l.logFull(nc)
	if c == nil {
		return nil
	}
	return c
}

// logFull logs at most once a second that the budget, or a kind's share of it, was used up.
func (l *Listener) logFull(last net.Conn) {
	now := time.Now()
	if now.Sub(l.logged) < tellEvery {
		return
	}
	displaced, refused := l.o.Budget.turned()
	if displaced+refused == 0 {
		return
	}
	l.logged = now
	l.o.Logger.Warn("too many connections: the slowest and the longest idle are closed", "protocol", l.o.Name,
		"connections", l.o.Budget.Open(), "displaced", displaced, "refused", refused, "remote", last.RemoteAddr())
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
