package socket

import (
	"container/heap"
	"time"
)

// Kind is a kind of request: an index of the shares of a Budget. Of a connection with requests of several kinds the
// first one counts.
type Kind int

// Share is how many connections may be at work for one kind of request. Where shares add up to no more than a Budget
// has, none takes the place of another.
type Share struct {
	Places    int
	PerOrigin int // of Places; 0: all
	// Patience is how far a peer may be behind with what it sends without losing its place to another.
	Patience time.Duration
}

const (
	maxKinds = 3
	none     = Kind(-1)
)

// The queues that a connection is in.
const (
	all = iota
	ofOrigin
	queues
)

// work is what a connection does. Its budget's lock guards it.
type work struct {
	active  bool          // of Busy and Idle
	open    [maxKinds]int // requests
	waiting int           // those of them that wait for the peer
	upTo    time.Time     // what the peer has sent is enough up to then
	kind    Kind          // as which the connection counts; none: it is idle, or nothing is known of its request
	waits   bool          // it is among the awaited of both queues
	at      [queues]int   // where
}

// kinds counts requests, and gives the kind of the first one.
func (w *work) kinds() (first Kind, requests int) {
	first = none
	for k := maxKinds - 1; k >= 0; k-- {
		if requests += w.open[k]; w.open[k] > 0 {
			first = Kind(k)
		}
	}
	return first, requests
}

// awaited are the connections at work that do nothing but wait for their peers, a heap: the first is that of the peer
// that is furthest behind.
type awaited struct {
	queue int
	conns []*Counted
}

// Len implements heap.Interface.
func (a *awaited) Len() int { return len(a.conns) }

// Less implements heap.Interface.
func (a *awaited) Less(i, j int) bool { return a.conns[i].work.upTo.Before(a.conns[j].work.upTo) }

// Swap implements heap.Interface.
func (a *awaited) Swap(i, j int) {
	a.conns[i], a.conns[j] = a.conns[j], a.conns[i]
	a.conns[i].work.at[a.queue], a.conns[j].work.at[a.queue] = i, j
}

// Push implements heap.Interface.
func (a *awaited) Push(x any) {
	c, _ := x.(*Counted)
	c.work.at[a.queue] = len(a.conns)
	a.conns = append(a.conns, c)
}

// Pop implements heap.Interface.
func (a *awaited) Pop() any {
	last := len(a.conns) - 1
	c := a.conns[last]
	a.conns[last] = nil
	a.conns = a.conns[:last]
	return c
}

// Begin says that a request of a kind is at work on the connection, until End. It is false, and End is not to be
// called, where other connections have all places of that kind, or those from the same origin all that one may have,
// and keep pace.
func (c *Counted) Begin(k Kind) bool {
	if c.budget == nil {
		return true
	}
	instead, ok := c.budget.begin(c, k)
	if instead != nil {
		_ = instead.Close()
	}
	return ok
}

func (b *Budget) begin(c *Counted, k Kind) (instead *Counted, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.gone { // it is closed
		return nil, true
	}
	if c.work.kind == none || k < c.work.kind {
		if instead, ok = b.placeOf(c, k); !ok {
			b.refused++
			return nil, false
		}
	}
	c.work.open[k]++
	b.recount(c)
	return instead, true
}

// placeOf makes place for one more connection that is at work for a kind of request. It needs the lock.
func (b *Budget) placeOf(c *Counted, k Kind) (instead *Counted, ok bool) {
	share, own, now := b.shares[k], b.origins[c.origin], time.Now()
	switch {
	case share.PerOrigin > 0 && own.working[k] >= share.PerOrigin:
		instead = own.behind(k, now.Add(-share.Patience))
	case b.queue.working[k] >= share.Places:
		instead = b.queue.behind(k, now.Add(-share.Patience))
	default:
		return nil, true
	}
	if instead == nil {
		return nil, false
	}
	b.displaced++
	b.remove(instead)
	return instead, true
}

// behind is the connection at work for a kind of request whose peer is furthest behind, if what it has sent was enough
// only up to a time before.
func (q *queue) behind(k Kind, before time.Time) *Counted {
	if a := q.awaited[k].conns; len(a) > 0 && a[0].work.upTo.Before(before) {
		return a[0]
	}
	return nil
}

// slowest is the connection whose peer is furthest behind, of those that are beyond what their kinds allow.
func (b *Budget) slowest(q *queue, now time.Time) (found *Counted) {
	for k := range Kind(maxKinds) {
		c := q.behind(k, now.Add(-b.shares[k].Patience))
		if c != nil && (found == nil || c.work.upTo.Before(found.work.upTo)) {
			found = c
		}
	}
	return found
}

// End says that a request is done that Begin was told of.
func (c *Counted) End(k Kind) {
	c.change(func(w *work) { w.open[k] = max(w.open[k]-1, 0) })
}

// Waits says that a request waits for what the peer is to send, until Came or Idle. What it has sent so far is enough
// up to a time, and it is behind by what has passed since.
func (c *Counted) Waits(upTo time.Time) {
	c.change(func(w *work) {
		if w.waiting++; w.waiting == 1 || w.upTo.Before(upTo) {
			w.upTo = upTo
		}
	})
}

// Came says that a request does not wait any more.
func (c *Counted) Came() { c.change(func(w *work) { w.waiting = max(w.waiting-1, 0) }) }

// Busy says that the connection is at work from now on, for no matter what, until Idle.
func (c *Counted) Busy() { c.change(func(w *work) { w.active = true }) }

// Idle says that the connection has no request, and may be closed in favour of another.
func (c *Counted) Idle() { c.change(func(w *work) { w.active, w.waiting = false, 0 }) }

// change changes what a connection does.
func (c *Counted) change(how func(*work)) {
	if c.budget == nil {
		return
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	how(&c.work)
	if !c.gone {
		c.budget.recount(c)
	}
}

// recount counts a connection as what it is now. One whose request is done keeps its kind until Idle, as its last bytes
// may be on their way. It needs the lock.
func (b *Budget) recount(c *Counted) {
	b.leave(c)
	w := &c.work
	first, requests := w.kinds()
	busy := w.active || requests > 0
	switch {
	case requests > 0:
		w.kind = first
	case !busy:
		w.kind = none
	}
	both := [queues]*queue{all: b.queue, ofOrigin: b.origins[c.origin]}
	if c.busy != busy {
		c.busy = busy
		b.queue.move(c.inAll, busy)
		both[ofOrigin].move(c.inOwn, busy)
	}
	if w.kind == none {
		return
	}
	w.waits = w.waiting > 0 && w.waiting >= requests
	for _, q := range both {
		q.working[w.kind]++
		if w.waits {
			heap.Push(&q.awaited[w.kind], c)
		}
	}
}

// leave takes a connection out of the counts of its kind. It needs the lock.
func (b *Budget) leave(c *Counted) {
	w := &c.work
	if w.kind == none || c.gone {
		return
	}
	for i, q := range [queues]*queue{all: b.queue, ofOrigin: b.origins[c.origin]} {
		q.working[w.kind]--
		if w.waits {
			heap.Remove(&q.awaited[w.kind], w.at[i])
		}
	}
	w.waits = false
}
