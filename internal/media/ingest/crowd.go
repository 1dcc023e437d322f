package ingest

import (
	"net/netip"
	"sync"

	"millrace/internal/socket"
)

// Crowd bounds how many publishers are there at a time, all of them and those from one origin. The zero value lets nobody in.
type Crowd struct {
	Max       int // of all
	PerOrigin int // of one IPv4 address or IPv6 /64

	mu    sync.Mutex
	total int
	from  map[netip.Prefix]int
}

// Origin is what the limit per address counts by: who has one IPv6 address has its whole /64.
func Origin(remote netip.AddrPort) netip.Prefix {
	return socket.Origin(remote.Addr())
}

// Enter counts somebody in; false when a limit is reached. Who got in leaves once.
func (c *Crowd) Enter(remote netip.AddrPort) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	origin := Origin(remote)
	if c.total >= c.Max || c.from[origin] >= c.PerOrigin {
		return false
	}
	if c.from == nil {
		c.from = map[netip.Prefix]int{}
	}
	c.total++
	c.from[origin]++
	return true
}

// Leave counts somebody out.
func (c *Crowd) Leave(remote netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	origin := Origin(remote)
	c.total--
	if c.from[origin]--; c.from[origin] == 0 {
		delete(c.from, origin)
	}
}
