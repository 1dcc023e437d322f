//go:build !linux

package socket

import (
	"net"
	"sync"
	"time"
)

// Poller leaves the waiting to the runtime.
type Poller struct {
	once sync.Once
	end  chan struct{}
}

// NewPoller makes a Poller. Run must run until Close.
func NewPoller(time.Duration) (*Poller, error) { return &Poller{end: make(chan struct{})}, nil }

// Adopt gives nc back as it is.
func (*Poller) Adopt(nc net.Conn) (net.Conn, error) { return nc, nil }

// Close ends Run.
func (p *Poller) Close() error {
	p.once.Do(func() { close(p.end) })
	return nil
}

// Run waits for Close.
func (p *Poller) Run() error {
	<-p.end
	return nil
}
