package delivery

import (
	"container/heap"
	"slices"
	"sync/atomic"
	"time"

	"millrace/internal/control/webhook"
)

// endpoint is the queue of one webhook: a line for each resource, whose first delivery alone is sent.
type endpoint struct {
	webhook.Webhook

	until   atomic.Pointer[time.Time] // nothing is sent from then on: another node may have it
	lines   map[string]*line
	ready   lines // those whose first delivery is not being sent
	waiting int
	flight  int  // attempts under way
	limit   int  // of them
	reload  bool // the store may have more than is here
	behind  bool // it has, or events are not queued, as there was no room; they are read when half of what is here is sent
	most    int  // deliveries here
}

// leased reports whether an attempt that begins now ends before the lease does. It may be called from any goroutine.
func (e *endpoint) leased(now time.Time) bool {
	until := e.until.Load()
	return until != nil && !now.Add(webhook.Timeout).After(*until)
}

// room reports whether what is behind can be read.
func (e *endpoint) room() bool { return e.waiting <= e.most/2 }

// line is the deliveries of one resource in their order.
type line struct {
	resource string
	waiting  []item
	at       time.Time // of the first one; not before
	place    int       // in ready; -1: it is being sent
}

// item is one delivery that waits.
type item struct {
	sequence int64
	attempts int32
	replayed bool  // attempts were made before those
	first    int64 // Unix milliseconds of the first attempt; 0: there was none
}

func (i item) firstAt() time.Time {
	if i.first == 0 {
		return time.Time{}
	}
	return time.UnixMilli(i.first).UTC()
}

func newEndpoint() *endpoint { return &endpoint{lines: map[string]*line{}, limit: maxFlight} }

// add puts a delivery into its line, unless it is there.
func (e *endpoint) add(p webhook.Pending) {
	l := e.lines[p.Resource]
	if l == nil {
		l = &line{resource: p.Resource, place: -1}
		e.lines[p.Resource] = l
	}
	i := item{sequence: p.Sequence, attempts: int32(min(p.Attempts, 1<<20)), replayed: p.Replayed}
	if !p.FirstAt.IsZero() {
		i.first = p.FirstAt.UnixMilli()
	}
	at, there := slices.BinarySearchFunc(l.waiting, i.sequence, func(have item, want int64) int { return int(have.sequence - want) })
	if there {
		return
	}
	sending := l.place < 0 && len(l.waiting) > 0
	if sending && at == 0 {
		at = 1 // what is being sent stays the first
	}
	l.waiting = slices.Insert(l.waiting, at, i)
	e.waiting++
	switch {
	case sending:
	case l.place < 0:
		l.at = p.NextAt
		heap.Push(&e.ready, l)
	case at == 0:
		l.at = p.NextAt
		heap.Fix(&e.ready, l.place)
	}
}

// due takes a line whose first delivery is to be sent now; nil: there is none.
func (e *endpoint) due(now time.Time) *line {
	if len(e.ready) == 0 || e.ready[0].at.After(now) {
		return nil
	}
	l, _ := heap.Pop(&e.ready).(*line)
	return l
}

// next is when the next delivery is to be sent.
func (e *endpoint) next() (at time.Time, some bool) {
	if len(e.ready) == 0 {
		return time.Time{}, false
	}
	return e.ready[0].at, true
}

// again has the first delivery of a line sent once more.
func (e *endpoint) again(resource string, at time.Time) {
	l := e.lines[resource]
	if l == nil || l.place >= 0 || len(l.waiting) == 0 {
		return
	}
	l.at = at
	// An earlier one may have come meanwhile, to be replayed.
	slices.SortFunc(l.waiting, func(a, b item) int { return int(a.sequence - b.sequence) })
	heap.Push(&e.ready, l)
}

// complete takes what came of an attempt, once it is written down.
func (e *endpoint) complete(resource string, r webhook.Result) {
	l := e.lines[resource]
	if l == nil || l.place >= 0 || len(l.waiting) == 0 || l.waiting[0].sequence != r.Sequence {
		return // the endpoint was taken away meanwhile
	}
	if r.State == webhook.Waiting {
		l.waiting[0].attempts++
		l.waiting[0].first = r.FirstAt.UnixMilli()
		e.again(l.resource, r.NextAt)
		return
	}
	l.waiting = l.waiting[1:]
	e.waiting--
	if len(l.waiting) == 0 {
		delete(e.lines, l.resource)
		return
	}
	e.again(l.resource, time.Time{})
}

// lines are ordered by when their first delivery is to be sent.
type lines []*line

func (l lines) Len() int { return len(l) }
func (l lines) Less(i, j int) bool {
	if !l[i].at.Equal(l[j].at) {
		return l[i].at.Before(l[j].at)
	}
	return l[i].waiting[0].sequence < l[j].waiting[0].sequence
}

func (l lines) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

// Push implements heap.Interface.
func (l *lines) Push(v any) {
	n, _ := v.(*line)
	n.place = len(*l)
	*l = append(*l, n)
}

// Pop implements heap.Interface.
func (l *lines) Pop() any {
	last := (*l)[len(*l)-1]
	(*l)[len(*l)-1] = nil
	*l = (*l)[:len(*l)-1]
	last.place = -1
	return last
}
