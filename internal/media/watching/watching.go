// Package watching tracks who is watching what, as far as a server can tell: viewers are those who were sent media a
// short while ago. A viewer is an address and a player; only their hash is kept. It must never know resources, HTTP or
// databases. It starts no goroutine.
package watching

import (
	"net/netip"
	"sync"
	"time"

	"millrace/internal/sketch"
)

// Viewer is the hash of who watches.
type Viewer uint64

// ViewerOf returns the viewer at an address with a player. Of IPv6 the /64 counts that a single customer has.
func ViewerOf(address netip.Addr, player string) Viewer {
	address = address.Unmap().WithZone("")
	bytes := address.As16()
	if address.Is6() {
		clear(bytes[8:])
	}
	h := uint64(offset)
	for _, b := range bytes {
		h = (h ^ uint64(b)) * prime
	}
	return Viewer(spread(add(h, player)))
}

// Key is what a playback ID is known by here.
func Key(playbackID string) uint64 { return spread(add(offset, playbackID)) }

// The constants of FNV-1a, which is the same on every node, and takes eight bytes at a time here.
const offset, prime = 14695981039346656037, 1099511628211

func add(h uint64, s string) uint64 {
	for ; len(s) >= 8; s = s[8:] {
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 |
			uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = (h ^ word) * prime
		h ^= h >> 32
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return h
}

// spread makes every bit of a hash depend on all of its bits (the last step of MurmurHash3).
func spread(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

const (
	// still is how long somebody watches at least who was sent media: players ask for the next before they have shown
	// the last.
	still = 15 * time.Second
	// swept is how often those who have gone are removed.
	swept = 10 * time.Second
	// shards are apart so that few requests wait for one another; most is how many views each has: 262,144 in all, of
	// about 50 bytes.
	shards, most = 64, 4096
)

// Register is who watches. The zero value is ready.
type Register struct {
	shards [shards]shard
}

type shard struct {
	mu    sync.Mutex
	until map[view]int64 // Unix nanoseconds
	swept time.Time
}

type view struct {
	key    uint64
	viewer Viewer
}

// Saw notes that a viewer was sent media of a length through a playback ID. A nil Register ignores it. When too many
// watch, others are not counted.
func (r *Register) Saw(playbackID string, v Viewer, length time.Duration, now time.Time) {
	if r == nil {
		return
	}
	k := view{Key(playbackID), v}
	s := &r.shards[(k.key^uint64(v))%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= swept {
		s.sweep(now)
	}
	if _, known := s.until[k]; known || len(s.until) < most {
		s.until[k] = now.Add(max(still, 2*length+still/2)).UnixNano()
	}
}

// sweep removes who has gone. Called with the lock.
func (s *shard) sweep(now time.Time) {
	if s.until == nil {
		s.until = map[view]int64{}
	}
	for k, until := range s.until {
		if now.UnixNano() >= until {
			delete(s.until, k)
		}
	}
	s.swept = now
}

// Count returns how many viewers there are now; one who watches two playback IDs counts twice.
func (r *Register) Count(now time.Time) (n int) {
	if r == nil {
		return 0
	}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for _, until := range s.until {
			if now.UnixNano() < until {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// Viewers is how many watch now; one who watches several things counts once.
func (r *Register) Viewers(now time.Time) int {
	all := r.Now(now)
	each := make([]sketch.Sketch, 0, len(all))
	for _, s := range all {
		each = append(each, s)
	}
	return sketch.Union(each...).Count()
}

// Now are the viewers of each playback ID that somebody watches, by its Key.
func (r *Register) Now(now time.Time) map[uint64]sketch.Sketch {
	all := map[uint64][]uint64{}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for k, until := range s.until {
			if now.UnixNano() < until {
				all[k.key] = append(all[k.key], uint64(k.viewer))
			}
		}
		s.mu.Unlock()
	}
	out := make(map[uint64]sketch.Sketch, len(all))
	for key, viewers := range all {
		out[key] = sketch.Of(viewers)
	}
	return out
}
