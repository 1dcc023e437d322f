package socket

import (
	"container/list"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Budget bounds how many connections are open at a time, all of them and those from one origin, and how many of them
// are at work for each kind of request. Where it is used up a new connection takes the place of the one whose peer is
// furthest behind with what it sends, else of the one that has been idle for longest; when there is neither it is
// turned away. One that is at work and does not wait for its peer is never closed.
type Budget struct {
	most, perOrigin int
	shares          []Share // by Kind

	mu        sync.Mutex
	total     int
	queue     *queue // of all
	origins   map[netip.Prefix]*queue
	displaced int // since Turned was last asked
	refused   int
}

// NewBudget returns a Budget of at least one connection. The shares are those of the kinds of requests, at most 3; of a
// kind that has none as many connections as there are places may be at work.
func NewBudget(most, perOrigin int, shares ...Share) *Budget {
	b := &Budget{
		most: max(most, 1), perOrigin: max(perOrigin, 1), queue: newQueue(all), origins: map[netip.Prefix]*queue{},
	}
	b.shares = append(b.shares, shares[:min(len(shares), maxKinds)]...)
	for len(b.shares) < maxKinds {
		b.shares = append(b.shares, Share{Places: b.most})
	}
	return b
}

// Origin is what limits per address count by: who has one IPv6 address has its whole /64.
func Origin(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// queue holds connections: those that are idle, the longest first, then a mark, then those that are busy.
type queue struct {
	order   *list.List
	mark    *list.Element
	working [maxKinds]int // connections at work, by kind
	awaited [maxKinds]awaited
}

func newQueue(of int) *queue {
	q := &queue{order: list.New()}
	q.mark = q.order.PushBack(nil)
	for k := range q.awaited {
		q.awaited[k].queue = of
	}
	return q
}

func (q *queue) add(c *Counted) *list.Element { return q.order.InsertBefore(c, q.mark) }

func (q *queue) move(e *list.Element, busy bool) {
	if busy {
		q.order.MoveToBack(e)
	} else {
		q.order.MoveBefore(e, q.mark)
	}
}

// idle is the one that has been idle for longest; nil: none is.
func (q *queue) idle() *Counted {
	c, _ := q.order.Front().Value.(*Counted)
	if c == nil || c.busy {
		return nil
	}
	return c
}

func (q *queue) len() int { return q.order.Len() - 1 }

// Counted is a TCP connection that counts against a Budget until it is closed. It is idle at first.
type Counted struct {
	*net.TCPConn
	budget *Budget      // nil: it counts nowhere
	remote *net.TCPAddr // whom a proxy has passed on; nil: nobody
	origin netip.Prefix

	closer       io.Closer // of the connection; guarded by the budget's lock, as are the following
	busy, gone   bool
	inAll, inOwn *list.Element
	work         work
}

// PassedOn says whom a proxy has passed on by this connection: it counts for that address from now on, and RemoteAddr
// gives it. It reports whether there is a place for one more from there; if not, the connection is to be closed. Nobody
// else may use the connection meanwhile.
func (c *Counted) PassedOn(client *net.TCPAddr) bool {
	c.remote = client
	if c.budget == nil {
		return true
	}
	instead, ok := c.budget.move(c, Origin(client.AddrPort().Addr()))
	if instead != nil {
		_ = instead.Close()
	}
	return ok
}

// RemoteAddr implements net.Conn.
func (c *Counted) RemoteAddr() net.Addr {
	if c.remote != nil {
		return c.remote
	}
	return c.TCPConn.RemoteAddr()
}

// Count returns nc as one that counts nowhere, unless it is a Counted already.
func Count(nc net.Conn) (*Counted, bool) {
	switch c := nc.(type) {
	case *Counted:
		return c, true
	case *net.TCPConn:
		return &Counted{TCPConn: c, closer: c}, true
	}
	return nil, false
}

// enter counts a connection in. It returns nil when there is no place for it, and the connection whose place it takes,
// which is to be closed.
func (b *Budget) enter(nc *net.TCPConn) (c, instead *Counted) {
	c = &Counted{TCPConn: nc, budget: b, closer: nc, work: work{kind: none}}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.origin = Origin(a.AddrPort().Addr())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	instead, ok := b.place(c.origin)
	if !ok {
		return nil, nil
	}
	b.add(c)
	return c, instead
}

// place makes place for one more connection of an origin, and gives the one whose place that is, which is to be closed.
// It needs the lock.
func (b *Budget) place(origin netip.Prefix) (instead *Counted, ok bool) {
	own := b.origins[origin]
	switch {
	case own != nil && own.len() >= b.perOrigin:
		instead = b.spare(own)
	case b.total >= b.most:
		instead = b.spare(b.queue)
	default:
		return nil, true
	}
	if instead == nil {
		b.refused++
		return nil, false
	}
	b.displaced++
	b.remove(instead)
	return instead, true
}

// spare is the connection of a queue whose place another may have; nil: none is. It needs the lock.
func (b *Budget) spare(q *queue) *Counted {
	if c := b.slowest(q, time.Now()); c != nil {
		return c
	}
	return q.idle()
}

// move counts a connection as one of another origin. It reports whether there was a place, and gives the one whose
// place it takes.
func (b *Budget) move(c *Counted, origin netip.Prefix) (instead *Counted, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.gone {
		return nil, false
	}
	b.remove(c)
	if instead, ok = b.place(origin); ok {
		c.gone, c.origin = false, origin
		b.add(c)
	}
	return instead, ok
}

// displace takes a connection out whose place another may have, to be closed; nil: there is none.
func (b *Budget) displace() *Counted {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.spare(b.queue)
	if c != nil {
		b.displaced++
		b.remove(c)
	}
	return c
}

// turned returns how many connections were displaced and refused since it was last asked.
func (b *Budget) turned() (displaced, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	displaced, refused = b.displaced, b.refused
	b.displaced, b.refused = 0, 0
	return displaced, refused
}

// Open is how many connections there are.
func (b *Budget) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// add and remove need the lock.
func (b *Budget) add(c *Counted) {
	own := b.origins[c.origin]
	if own == nil {
		own = newQueue(ofOrigin)
		b.origins[c.origin] = own
	}
	b.total++
	c.inAll, c.inOwn = b.queue.add(c), own.add(c)
	c.busy, c.work.kind = false, none
	b.recount(c)
}

func (b *Budget) remove(c *Counted) {
	if c.gone {
		return
	}
	b.leave(c)
	c.gone = true
	b.total--
	b.queue.order.Remove(c.inAll)
	own := b.origins[c.origin]
	own.order.Remove(c.inOwn)
	if own.len() == 0 {
		delete(b.origins, c.origin)
	}
}

// Close implements net.Conn.
func (c *Counted) Close() error {
	closer := c.closer
	if c.budget != nil {
		c.budget.mu.Lock()
		c.budget.remove(c)
		closer = c.closer
		c.budget.mu.Unlock()
	}
	return closer.Close()
}

// pass makes another connection the one that counts, which was made of this one's socket; false when this one was
// displaced meanwhile.
func (c *Counted) pass(to io.Closer) bool {
	if c.budget == nil {
		return true
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.closer = to
	return !c.gone
}

// leave counts a connection out that is closed by the one it was passed to.
func (c *Counted) leave() {
	if c.budget == nil {
		return
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.budget.remove(c)
}

// Whole returns the Counted itself, also of what embeds one.
func (c *Counted) Whole() *Counted { return c }
