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
	// it has, or events are not queued, as there was no room; they are read when half of what is here is sent
	behind bool
	most   int // deliveries here

	// wellAt is when the endpoint was well again after it had failed; what was to wait until early was sent then.
	wellAt, early time.Time
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
	waiting  []item    // what is being sent is the first, whatever has come meanwhile
	at       time.Time // of the first one; not before
	asked    bool      // for that time, by the endpoint
	place    int       // in ready; -1: it is being sent
}

// sending reports whether the first delivery is being sent.
func (l *line) sending() bool { return l.place < 0 && len(l.waiting) > 0 }

// find is where a delivery is, or belongs.
func (l *line) find(sequence int64) (at int, there bool) {
	sorted := l.waiting
	if l.sending() {
		if l.waiting[0].sequence == sequence {
			return 0, true
		}
		sorted = l.waiting[1:]
	}
	at, there = slices.BinarySearchFunc(sorted, sequence, func(have item, want int64) int {
		return int(have.sequence - want)
	})
	return at + len(l.waiting) - len(sorted), there
}

// item is one delivery that waits.
type item struct {
	sequence int64
	attempts int32
	replayed bool  // attempts were made before those
	dropped  bool  // it is being sent, and not sent again: the store has it no more among what waits
	first    int64 // Unix milliseconds of the first attempt; 0: there was none
}

func (i item) firstAt() time.Time {
	if i.first == 0 {
		return time.Time{}
	}
	return time.UnixMilli(i.first).UTC()
}

func newEndpoint() *endpoint { return &endpoint{lines: map[string]*line{}, limit: maxFlight} }

// add puts a delivery into its line as the store has it: what is there may wait for another time now. Nothing is
// changed of what is being sent.
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
	at, there := l.find(i.sequence)
	sending := l.sending()
	switch {
	case there && sending && at == 0:
		return
	case there:
		l.waiting[at] = i
	default:
		l.waiting = slices.Insert(l.waiting, at, i)
		e.waiting++
	}
	switch {
	case sending:
	case l.place < 0:
		l.at, l.asked = e.sooner(p.NextAt), false
		heap.Push(&e.ready, l)
	case at == 0 && (!there || p.NextAt.Before(l.at.Truncate(time.Millisecond))): // the store has milliseconds
		l.at, l.asked = e.sooner(p.NextAt), false
		heap.Fix(&e.ready, l.place)
	}
}

// keep drops what is not among what the store has given: it was skipped, or there was no room, and it is read later.
// What is being sent ends, and is not sent again.
func (e *endpoint) keep(pending []webhook.Pending) {
	next := make(map[int64]time.Time, len(pending))
	for _, p := range pending {
		next[p.Sequence] = p.NextAt
	}
	gone := func(i item) bool { _, waits := next[i.sequence]; return !waits }
	for _, l := range e.lines {
		first, before, begin := l.waiting[0].sequence, len(l.waiting), 0
		if l.sending() {
			l.waiting[0].dropped = gone(l.waiting[0])
			begin = 1
		}
		l.waiting = l.waiting[:begin+len(slices.DeleteFunc(l.waiting[begin:], gone))]
		e.waiting -= before - len(l.waiting)
		switch {
		case len(l.waiting) == 0:
			heap.Remove(&e.ready, l.place)
			delete(e.lines, l.resource)
		case l.waiting[0].sequence != first:
			l.at, l.asked = e.sooner(next[l.waiting[0].sequence]), false
			heap.Fix(&e.ready, l.place)
		}
	}
}

// sooner is when a delivery is sent that was to wait until at when the endpoint was well again.
func (e *endpoint) sooner(at time.Time) time.Time {
	if at.After(e.early) {
		return at
	}
	return time.Time{}
}

// wellAgain has what waits sent at once, but for what the endpoint has asked to get later.
//
// That an event was refused while others are taken is no reason to think that it is taken now. The pauses of one that
// has failed for as long as the endpoint has are hardly longer than that; longer ones stay as they are, and so do all
// where the endpoint has failed for a moment.
func (e *endpoint) wellAgain(now time.Time) {
	failed := now.Sub(e.FailingSince)
	if failed < webhook.FirstDelay {
		return
	}
	e.wellAt, e.early = now, now.Add(2*(failed+webhook.FirstDelay))
	for _, l := range e.ready {
		if !l.asked {
			l.at = e.sooner(l.at)
		}
	}
	heap.Init(&e.ready)
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

// again has the first delivery of a line sent once more, not before a time, which the endpoint may have asked for.
func (e *endpoint) again(resource string, at time.Time, asked bool) {
	l := e.lines[resource]
	if l == nil || !l.sending() {
		return
	}
	if l.waiting[0].dropped {
		e.follow(l)
		return
	}
	l.at, l.asked = at, asked
	// An earlier one may have come meanwhile, to be replayed.
	slices.SortFunc(l.waiting, func(a, b item) int { return int(a.sequence - b.sequence) })
	heap.Push(&e.ready, l)
}

// follow has the next delivery of a line sent in place of the first, which is over.
func (e *endpoint) follow(l *line) {
	l.waiting = l.waiting[1:]
	e.waiting--
	if len(l.waiting) == 0 {
		delete(e.lines, l.resource)
		return
	}
	e.again(l.resource, time.Time{}, false)
}

// complete takes what came of an attempt, once it is written down.
func (e *endpoint) complete(r result) {
	l := e.lines[r.resource]
	if l == nil || !l.sending() || l.waiting[0].sequence != r.Sequence {
		return // the endpoint was taken away meanwhile
	}
	if r.State != webhook.Waiting {
		e.follow(l)
		return
	}
	l.waiting[0].attempts++
	l.waiting[0].first = r.FirstAt.UnixMilli()
	at := r.NextAt
	if !r.asked && r.Attempt.At.Before(e.wellAt) { // it began before
		at = e.sooner(at)
	}
	e.again(l.resource, at, r.asked)
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
