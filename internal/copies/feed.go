package copies

import (
	"slices"
	"sync"
	"time"

	"millrace/internal/id"
	"millrace/internal/media/journal"
)

// Of is what is copied.
type Of struct {
	Media      id.Media
	Generation int64 // of who writes it
	// What an earlier writer has published and may not have stored, as it was copied.
	Own, Derived []byte
}

// Feed is what one broadcast has another node copy. It is open until Close.
type Feed struct {
	s     *Service
	media id.Media
	of    Of
	both  [journals]tapped
	// Nobody copies while link is nil. The service's lock guards these.
	link   *link
	closed bool
	full   map[id.Node]time.Time // nodes that have no place for it, and until when they are not asked again

	mu     sync.Mutex
	acked  chan struct{} // closed when the other node has more; nil: nobody waits
	behind bool          // a part was published that it did not have in time
	linked bool
}

// journals are those of a broadcast: its own, and that of the renditions made of it.
const journals = 2

// tapped is one journal. It implements journal.Tap.
type tapped struct {
	f       *Feed
	records journal.Replica

	mu   sync.Mutex
	size int64             // as the service counts it
	sent uint64            // records up to this one were sent
	have uint64            // up to this one the other node has them
	told map[uint64]moment // when some of the others were added
}

type moment struct{ at time.Time }

const (
	// mostTold bounds how many records are timed at once.
	mostTold = 256
	// lastTime is how long the end of a broadcast waits for the node that copies it.
	lastTime = pacedOutline + 250*time.Millisecond
)

// Open begins to have a broadcast copied.
func (s *Service) Open(of Of) *Feed {
	f := &Feed{s: s, media: of.Media, of: of}
	for i, records := range [journals][]byte{of.Own, of.Derived} {
		l := &f.both[i]
		l.f, l.told = f, map[uint64]moment{}
		l.records.Fill(records)
		l.bound()
	}
	f.of.Own, f.of.Derived = nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[f] = struct{}{}
	s.left = slices.DeleteFunc(s.left, func(x left) bool { return x.media == f.media }) // it is written here again
	s.lookAgain()
	return f
}

// Taps are given the records of the broadcast's journals.
func (f *Feed) Taps() (own, derived journal.Tap) { return &f.both[0], &f.both[1] }

// Close ends the copying. over: all is stored, and the copy is of no use any more; else somebody may go on with it, and
// the other node has lastTime to take the rest.
func (f *Feed) Close(over bool) {
	s := f.s
	for i := range f.both {
		if !over {
			f.both[i].await(lastTime)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	switch l := f.link; {
	case l != nil && over:
		l.over(f.media)
	case l != nil:
		s.left = append(s.left, left{f.media, l, s.opt.Now()})
	}
	f.assign(nil)
	delete(s.feeds, f)
	for i := range f.both {
		s.bytes -= f.both[i].size
	}
	s.lookAgain()
}

// assign has a link copy the broadcast, from the beginning. Called with the service's lock.
func (f *Feed) assign(l *link) {
	f.link = l
	f.restart()
	if l != nil {
		l.wakeUp()
	}
}

// restart has all be sent again. It is not in time before that was.
func (f *Feed) restart() {
	f.mu.Lock()
	f.linked = false
	f.wake()
	f.mu.Unlock()
	for i := range f.both {
		l := &f.both[i]
		l.records.Fetched(l.records.Last())
		l.mu.Lock()
		l.sent, l.have = 0, 0
		clear(l.told)
		l.mu.Unlock()
	}
}

// wake wakes those who wait for the other node. Called with the feed's lock.
func (f *Feed) wake() {
	if f.acked != nil {
		close(f.acked)
		f.acked = nil
	}
}

// Add implements journal.Tap.
func (t *tapped) Add(record []byte) {
	s := t.f.s
	if !s.opt.Media {
		record = journal.Outline(record)
	}
	if err := t.records.Add(record); err != nil {
		s.stats.dropped.Add(int64(len(record)))
		return
	}
	t.mu.Lock()
	if len(t.told) < mostTold {
		t.told[t.records.Last()] = moment{s.opt.Now()}
	}
	t.mu.Unlock()
	t.bound()
	s.mu.Lock()
	to := t.f.link
	s.mu.Unlock()
	if to == nil { // nobody has to be told to forget something
		t.records.Fetched(t.records.Last())
		return
	}
	to.wakeUp()
}

// bound leaves out the oldest media of a broadcast that has too much of it, or where all have.
func (t *tapped) bound() {
	s := t.f.s
	for {
		size := t.records.Size()
		s.mu.Lock()
		if t.f.closed { // it is not counted any more
			s.mu.Unlock()
			return
		}
		s.bytes += size - t.size
		t.size = size
		over := size > mostOfOne || s.bytes > mostOfAll
		s.mu.Unlock()
		if !over {
			return
		}
		n := t.records.Thin()
		if n == 0 {
			return
		}
		s.stats.dropped.Add(n)
	}
}

// Await implements journal.Tap.
func (t *tapped) Await(most time.Duration) {
	f := t.f
	if !f.s.opt.Media || t.await(most) {
		return
	}
	f.mu.Lock()
	f.behind = true // until it has caught up none waits
	f.mu.Unlock()
	f.s.stats.late.Add(1)
}

// await waits until another node has all that was added, if one keeps up; false: it does not have it in time.
func (t *tapped) await(most time.Duration) bool {
	if most <= 0 {
		return true
	}
	f, want := t.f, t.records.Last()
	var timer *time.Timer
	for {
		f.mu.Lock()
		if !f.linked || f.behind || t.has(want) {
			f.mu.Unlock()
			return true
		}
		if f.acked == nil {
			f.acked = make(chan struct{})
		}
		acked := f.acked
		f.mu.Unlock()
		if timer == nil {
			timer = time.NewTimer(most)
			defer timer.Stop()
		}
		select {
		case <-acked:
		case <-timer.C:
			return false
		}
	}
}

func (t *tapped) has(number uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.have >= number
}

// ack notes that the other node has the records up to a number.
func (t *tapped) ack(number uint64) {
	f, now := t.f, t.f.s.opt.Now()
	t.records.Fetched(number)
	t.mu.Lock()
	t.have = max(t.have, number)
	for n, m := range t.told {
		if n <= number {
			f.s.stats.lag(now.Sub(m.at))
			delete(t.told, n)
		}
	}
	t.mu.Unlock()
	for i := range f.both {
		if other := &f.both[i]; !other.has(other.records.Last()) {
			f.mu.Lock()
			f.wake()
			f.mu.Unlock()
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.linked, f.behind = true, false
	f.wake()
}

// next are records that were not sent.
func (t *tapped) next(most int) (records [][]byte, last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	records, last = t.records.Since(t.sent, most)
	t.sent = last
	return records, last
}

// Copied reports whether another node has all that was published.
func (f *Feed) Copied() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.linked && !f.behind
}
