// Package turns queues work that viewers' requests cause, such as encodes. Client addresses take turns, so that one
// with many requests does not delay one with few. It must never know what the work is, nor HTTP. It starts no
// goroutine.
package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"millrace/internal/fault"
)

// Line is a number of places, and memory, that all share, and who waits for them. The next one in is of the address
// that has fewest inside; of those, of the one that was let in longest ago.
type Line struct {
	what string
	most int // who may wait

	mu      sync.Mutex
	places  int
	bytes   int64 // that are free
	size    int64 // bytes in all
	count   int64 // of those that were let in
	last    map[string]int64
	inside  map[string]int
	waiting []*Turn // by arrival
}

// Options are the sizes of a line.
type Options struct {
	What    string // is made, for those who are told that there is no place
	Places  int
	Bytes   int64 // that all who are inside have together; 0: memory does not count
	Waiting int   // at most
}

// Turn waits for its place and memory, or has them.
type Turn struct {
	line   *Line
	from   string
	rank   int
	bytes  int64
	worked bool       // it has given its place back
	let    chan error // is told once: nil, it is in; otherwise it had to make way
}

// New returns a line in which nobody is.
func New(o Options) *Line {
	size := max(o.Bytes, 1)
	return &Line{
		what:   o.What,
		most:   o.Waiting,
		places: o.Places,
		bytes:  size,
		size:   size,
		last:   map[string]int64{},
		inside: map[string]int{},
	}
}

// ErrFull is why there was no place to wait.
var ErrFull = errors.New("the line is full")

func (l *Line) full() error {
	return fault.Wrap(fault.Unavailable, ErrFull, "the service is busy making %s: ask again in a moment", l.what)
}

// Enter waits until there is a place, and memory for so many bytes. Of one address, or of several that have the same
// claim, the higher rank goes first. One that was let in calls Leave once. fault.Unavailable with ErrFull: too many
// wait already, and this address has as many of them as any other.
func (l *Line) Enter(ctx context.Context, from string, rank int, bytes int64) (*Turn, error) {
	t := &Turn{line: l, from: from, rank: rank, bytes: min(max(bytes, 0), l.size), let: make(chan error, 1)}
	l.mu.Lock()
	if len(l.waiting) >= l.most && !l.displace(from) {
		l.mu.Unlock()
		return nil, l.full()
	}
	l.waiting = append(l.waiting, t)
	l.admit()
	l.mu.Unlock()
	select {
	case err := <-t.let:
		if err != nil {
			return nil, err
		}
		return t, nil
	case <-ctx.Done():
		if !l.withdraw(t) && <-t.let == nil { // let in at the same moment
			t.Leave()
		}
		return nil, fmt.Errorf("wait to make %s: %w", l.what, context.Cause(ctx))
	}
}

// displace makes a place for an address that has fewer waiting than another: the last one of the address with the most
// goes.
func (l *Line) displace(from string) bool {
	count := map[string]int{}
	for _, t := range l.waiting {
		count[t.from]++
	}
	last := -1
	for i, t := range l.waiting {
		if last < 0 || count[t.from] >= count[l.waiting[last].from] {
			last = i
		}
	}
	if last < 0 || count[l.waiting[last].from] <= count[from]+1 {
		return false
	}
	l.waiting[last].let <- l.full()
	l.waiting = slices.Delete(l.waiting, last, last+1)
	return true
}

// before reports whether a turn goes before another that has waited for longer.
func (l *Line) before(a, b *Turn) bool {
	if x, y := l.inside[a.from], l.inside[b.from]; x != y {
		return x < y
	}
	if x, y := l.last[a.from], l.last[b.from]; x != y {
		return x < y
	}
	return a.rank > b.rank
}

// admit lets in the next ones, while there is memory: one that needs much is not passed by others, or it might wait for
// ever.
func (l *Line) admit() {
	for l.places > 0 && len(l.waiting) > 0 {
		next := 0
		for i, t := range l.waiting {
			if l.before(t, l.waiting[next]) {
				next = i
			}
		}
		t := l.waiting[next]
		if t.bytes > l.bytes {
			return
		}
		l.places, l.bytes = l.places-1, l.bytes-t.bytes
		l.inside[t.from]++
		l.count++
		l.last[t.from] = l.count
		l.waiting = slices.Delete(l.waiting, next, next+1)
		t.let <- nil
	}
}

// forget drops what is known of an address that has nothing here any more.
func (l *Line) forget(from string) {
	if l.inside[from] == 0 && !slices.ContainsFunc(l.waiting, func(t *Turn) bool { return t.from == from }) {
		delete(l.inside, from)
		delete(l.last, from)
	}
}

// withdraw takes back a turn that waits; false when it was told already.
func (l *Line) withdraw(t *Turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, t)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.admit()
	l.forget(t.from)
	return true
}

// Made gives back the place, and all memory but so many bytes.
func (t *Turn) Made(bytes int64) {
	l := t.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.worked {
		t.worked = true
		l.places++
		l.inside[t.from]--
	}
	if bytes < t.bytes {
		l.bytes, t.bytes = l.bytes+t.bytes-bytes, bytes
	}
	l.admit()
	l.forget(t.from)
}

// Leave gives back everything.
func (t *Turn) Leave() { t.Made(0) }

// key is that of who asks in a context.
type key struct{}

// For keeps with a context who asks; address is called when that matters.
func For(ctx context.Context, address func() string) context.Context {
	return context.WithValue(ctx, key{}, address)
}

// Viewer says whose request it is. Empty: unknown.
func Viewer(ctx context.Context) string {
	if address, ok := ctx.Value(key{}).(func() string); ok {
		return address()
	}
	return ""
}
