package window

import "context"

// Revision is a state of everything that playlists of an edge show.
type Revision struct {
	Number uint64 // grows with each change
	Ended  bool   // there will be no other
}

// Listing is a media playlist, with how far it goes.
type Listing struct {
	Text     []byte
	Revision Revision
	Next     int64  // media sequence number of the first segment that is not whole
	Parts    int    // of that one that are listed
	Before   int    // parts that the segment before it has or had
	Hint     string // URI of the part that comes next; empty: the text says none
}

// Generation numbers who writes the broadcast; see Options.
func (e *Edge) Generation() int64 { return e.opt.Generation }

// Revised waits for another revision than the one with a number, until ctx ends: then that one is the response.
func (e *Edge) Revised(ctx context.Context, number uint64) Revision {
	for {
		r, wait := e.revision(number)
		if wait == nil {
			return r
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return r
		}
	}
}

// revision is the current one, and what to wait on when it has that number.
func (e *Edge) revision(number uint64) (Revision, chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := Revision{Number: e.version, Ended: e.ended}
	if r.Number != number {
		return r, nil
	}
	if e.revised == nil {
		e.revised = make(chan struct{})
	}
	return r, e.revised
}

// revise says that playlists show something else. Called with the lock.
func (e *Edge) revise() {
	e.version++
	if e.revised != nil {
		close(e.revised)
		e.revised = nil
	}
}

// reach is how far the playlists of a rendition go now, without a text. Called with the lock.
func (e *Edge) reach(l *liveRendition) Listing {
	n := len(l.segs)
	out := Listing{Revision: Revision{Number: e.version, Ended: e.ended}}
	if n > 0 && !l.segs[n-1].done {
		n--
		out.Parts = e.listed(l, &l.segs[n])
	}
	if n > 0 {
		out.Before = int(l.segs[n-1].parts)
	}
	out.Next = e.first + int64(n)
	return out
}
