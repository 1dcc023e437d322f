package images

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"millrace/internal/fault"
)

// room is what all images that are being made share: so many places, and so much memory. Whoever asks for many waits behind whoever asks for
// few: the next one in is of the address that has fewest inside.
type room struct {
	most int // who may wait

	mu      sync.Mutex
	places  int
	bytes   int64 // that are free
	size    int64 // bytes in all
	inside  map[string]int
	waiting []*guest // by arrival
}

// guest is who wants in.
type guest struct {
	room   *room
	from   string
	bytes  int64
	worked bool       // it has given its place back
	let    chan error // is told once: nil, it is in; otherwise it had to make way
}

func newRoom(places int, bytes int64, most int) *room {
	return &room{most: most, places: places, bytes: bytes, size: bytes, inside: map[string]int{}}
}

// busy is told to whoever there is no room for.
func busy() error {
	return fault.New(fault.Unavailable, "the service is busy making images: ask again in a moment")
}

// enter waits until there is room for so many bytes. Whoever was let in calls leave once. fault.Unavailable: too many wait already, and this
// address has as many of them as any other.
func (r *room) enter(ctx context.Context, from string, bytes int64) (*guest, error) {
	g := &guest{room: r, from: from, bytes: min(max(bytes, 1), r.size), let: make(chan error, 1)}
	r.mu.Lock()
	if len(r.waiting) >= r.most && !r.displace(from) {
		r.mu.Unlock()
		return nil, busy()
	}
	r.waiting = append(r.waiting, g)
	r.admit()
	r.mu.Unlock()
	select {
	case err := <-g.let:
		if err != nil {
			return nil, err
		}
		return g, nil
	case <-ctx.Done():
		if !r.withdraw(g) && <-g.let == nil { // let in at the same moment
			g.leave()
		}
		return nil, fmt.Errorf("wait to make image: %w", context.Cause(ctx))
	}
}

// displace makes room for who has fewer waiting than another has: the last one of whoever has most goes.
func (r *room) displace(from string) bool {
	count := map[string]int{}
	for _, g := range r.waiting {
		count[g.from]++
	}
	last := -1
	for i, g := range r.waiting {
		if last < 0 || count[g.from] >= count[r.waiting[last].from] {
			last = i
		}
	}
	if last < 0 || count[r.waiting[last].from] <= count[from]+1 {
		return false
	}
	r.waiting[last].let <- busy()
	r.waiting = slices.Delete(r.waiting, last, last+1)
	return true
}

// admit lets in whoever is next, while there is room: one that needs much is not passed by others, or it might wait for ever.
func (r *room) admit() {
	for r.places > 0 && len(r.waiting) > 0 {
		next := 0
		for i, g := range r.waiting {
			if r.inside[g.from] < r.inside[r.waiting[next].from] {
				next = i
			}
		}
		g := r.waiting[next]
		if g.bytes > r.bytes {
			return
		}
		r.places, r.bytes = r.places-1, r.bytes-g.bytes
		r.inside[g.from]++
		r.waiting = slices.Delete(r.waiting, next, next+1)
		g.let <- nil
	}
}

// withdraw takes a guest out who waits; false when it was told already.
func (r *room) withdraw(g *guest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, g)
	if i < 0 {
		return false
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.admit()
	return true
}

// made gives back the place, and all memory but what the image has.
func (g *guest) made(bytes int64) {
	r := g.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !g.worked {
		g.worked = true
		r.places++
		if r.inside[g.from]--; r.inside[g.from] == 0 {
			delete(r.inside, g.from)
		}
	}
	if bytes < g.bytes {
		r.bytes, g.bytes = r.bytes+g.bytes-bytes, bytes
	}
	r.admit()
}

// leave gives back everything.
func (g *guest) leave() { g.made(0) }
