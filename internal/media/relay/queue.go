package relay

import (
	"sync"
	"time"

	"millrace/internal/media/frame"
)

// Bounds of a target's queue. Whatever has not been sent within four seconds is of no use to a live destination.
const (
	maxSpan  = 4 * time.Second // of media time
	maxBytes = 4 << 20
)

// item is one thing to be sent: a track's parameters, or a frame on the relay's clock.
type item struct {
	config *frame.Config
	frame  frame.Frame
	start  bool // a receiver can begin with this frame
	of     int  // the publication that it belongs to
}

func (i item) size() int {
	if c := i.config; c != nil {
		return len(c.VPS) + len(c.SPS) + len(c.PPS) + len(c.ASC) + len(c.Header)
	}
	return len(i.frame.Data)
}

// queue holds what one target has not taken yet. push never waits: when the queue is full what is oldest is dropped up
// to the next frame that a receiver can begin with, and when there is none, everything until one comes. Parameters are
// never dropped, but replaced. Many may push, one may pop.
type queue struct {
	wake chan struct{} // one token: something changed

	mu      sync.Mutex
	items   []item
	bytes   int
	head    [2]*frame.Config // in force before items[0]
	number  int              // of the publication, as the group counts
	video   bool             // what is pushed now has a picture
	waiting bool             // for a frame to begin with
	away    bool             // no publication feeds it
	closed  bool             // nothing is kept
	dropped int              // frames
	full    int              // times
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1), away: true, waiting: true} }

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// join tells that a publication begins, leave that it is over. What was not sent of the last one is too old by then.
func (q *queue) join(number int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, i := range q.items {
		if i.config == nil {
			q.dropped++
		}
	}
	q.items, q.bytes, q.head = nil, 0, [2]*frame.Config{}
	q.number, q.away, q.video, q.waiting = number, false, false, true
	q.ring()
}

func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.away = true
	q.ring()
}

func (q *queue) configure(c frame.Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if c.Kind == frame.Video {
		q.video = true
	}
	// of several without a frame between them the last counts
	for n := len(q.items) - 1; n >= 0 && q.items[n].config != nil; n-- {
		if q.items[n].config.Kind == c.Kind {
			q.bytes += item{config: &c}.size() - q.items[n].size()
			q.items[n].config = &c
			return
		}
	}
	q.add(item{config: &c})
}

func (q *queue) write(f frame.Frame) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	i := item{frame: f, of: q.number, start: f.Kind == frame.Video && f.Key || f.Kind == frame.Audio && !q.video}
	if q.waiting && !i.start {
		q.dropped++
		return
	}
	q.waiting = false
	q.add(i)
	for q.over() {
		q.full++
		q.skip(1)
	}
	q.ring()
}

func (q *queue) add(i item) {
	q.items = append(q.items, i)
	q.bytes += i.size()
}

// over reports whether there is too much; one frame never is.
func (q *queue) over() bool {
	first, n := -1, 0
	for k := range q.items {
		if q.items[k].config == nil {
			if n++; first < 0 {
				first = k
			}
		}
		if n == 2 {
			break
		}
	}
	return n == 2 && (q.bytes > maxBytes || q.items[len(q.items)-1].frame.DTS-q.items[first].frame.DTS > maxSpan)
}

// skip drops at least so many frames, and further ones up to one to begin with. Parameters on the way stay in front.
func (q *queue) skip(least int) {
	kept := make([]item, 0, 2)
	n := 0
	for ; n < len(q.items); n++ {
		i := q.items[n]
		if i.config != nil {
			kept = replace(kept, i)
			continue
		}
		if least <= 0 && i.start {
			break
		}
		least--
		q.dropped++
	}
	q.set(append(kept, q.items[n:]...))
	q.waiting = q.waiting || !q.holdsFrames()
}

func replace(kept []item, i item) []item {
	for k := range kept {
		if kept[k].config.Kind == i.config.Kind {
			kept[k] = i
			return kept
		}
	}
	return append(kept, i)
}

func (q *queue) set(items []item) {
	q.items, q.bytes = items, 0
	for _, i := range items {
		q.bytes += i.size()
	}
}

func (q *queue) holdsFrames() bool {
	for _, i := range q.items {
		if i.config == nil {
			return true
		}
	}
	return false
}

// restart prepares for a new link: all parameters are told again and the first frame is one to begin with.
func (q *queue) restart() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.skip(0)
	front := make([]item, 0, 2)
	for _, c := range q.head {
		if c != nil {
			front = append(front, item{config: c})
		}
	}
	n := 0
	for ; n < len(q.items) && q.items[n].config != nil; n++ {
		front = replace(front, q.items[n])
	}
	q.set(append(front, q.items[n:]...))
}

// pop takes the next item; false when there is none.
func (q *queue) pop() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false
	}
	i := q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	q.bytes -= i.size()
	if i.config != nil {
		q.head[i.config.Kind] = i.config
	}
	return i, true
}

// stand is what a queue holds: by that the target decides whether to connect.
type stand struct {
	frames  bool           // there is one to begin with
	configs []frame.Config // in force at the first one
}

func (q *queue) stand() stand {
	q.mu.Lock()
	defer q.mu.Unlock()
	var s stand
	force := q.head
	for _, i := range q.items {
		if i.config == nil {
			break
		}
		force[i.config.Kind] = i.config
	}
	for _, i := range q.items {
		s.frames = s.frames || i.start
	}
	for _, c := range force {
		if c != nil {
			s.configs = append(s.configs, *c)
		}
	}
	return s
}

// tally says which publication feeds the queue, whether it is over, and what was dropped.
func (q *queue) tally() (publication int, away bool, dropped, full int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.number, q.away, q.dropped, q.full
}

// shut forgets everything and takes nothing any more.
func (q *queue) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.bytes, q.closed = nil, 0, true
}
