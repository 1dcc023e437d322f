package metering

import "sync/atomic"

// Lookups counts how often a cache had what was asked for. The zero value is ready.
type Lookups struct{ hits, misses atomic.Int64 }

// Count adds a lookup; hit: it was there, or somebody was already making it.
func (l *Lookups) Count(hit bool) {
	if hit {
		l.hits.Add(1)
	} else {
		l.misses.Add(1)
	}
}

// Hits is how many lookups found something.
func (l *Lookups) Hits() int64 { return l.hits.Load() }

// Misses is how many lookups found nothing.
func (l *Lookups) Misses() int64 { return l.misses.Load() }
