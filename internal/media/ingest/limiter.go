package ingest

import (
	"net/netip"
	"sync"

	"millrace/internal/socket"
)

// Limiter bounds how many connections there are at a time, all of them and those from one origin. The zero value allows
// none.
type Limiter struct {
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

// Acquire counts a connection; false when a limit is reached. What was acquired is released once.
func (l *Limiter) Acquire(remote netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	origin := Origin(remote)
	if l.total >= l.Max || l.from[origin] >= l.PerOrigin {
		return false
	}
	if l.from == nil {
		l.from = map[netip.Prefix]int{}
	}
	l.total++
	l.from[origin]++
	return true
}

// Count returns how many connections there are from the origin of remote, and how many in all.
func (l *Limiter) Count(remote netip.AddrPort) (fromThere, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from[Origin(remote)], l.total
}

// Release ends what Acquire has begun.
func (l *Limiter) Release(remote netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	origin := Origin(remote)
	l.total--
	if l.from[origin]--; l.from[origin] == 0 {
		delete(l.from, origin)
	}
}
