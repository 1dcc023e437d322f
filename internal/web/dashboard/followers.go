package dashboard

import (
	"context"
	"sync"
	"time"

	"millrace/internal/control/access"
)

// followers are the pages that are kept up to date, by session.
type followers struct {
	mu  sync.Mutex
	all int
	of  map[string]*session
}

// session is one that has pages open.
type session struct {
	pages int // followers' mu guards it

	turn   turn
	person access.Person
	at     time.Time // when it was looked who that is
}

// enter lets a page of a session in; nil: there are too many.
func (f *followers) enter(p access.Person) *session {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.of[p.Session.Hash]
	if o == nil {
		o = &session{turn: newTurn()}
	}
	if f.all >= maxFollowers || o.pages >= maxOfPerson {
		return nil
	}
	if f.of == nil {
		f.of = map[string]*session{}
	}
	f.of[p.Session.Hash] = o
	f.all++
	o.pages++
	return o
}

func (f *followers) leave(p access.Person) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all--
	o := f.of[p.Session.Hash]
	if o.pages--; o.pages == 0 {
		delete(f.of, p.Session.Hash)
	}
}

// pace is how often each page is looked at, at most.
func (f *followers) pace() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(minPace, time.Duration(f.all)*pacePerPage)
}

// who is the person of a session. All of its pages ask at the same time, and one of them looks for all.
func (o *session) who(ctx context.Context, look func() (access.Person, error)) (access.Person, error) {
	if err := o.turn.take(ctx); err != nil {
		return access.Person{}, err
	}
	defer o.turn.give()
	if time.Since(o.at) < heartbeat/2 {
		return o.person, nil
	}
	p, err := look()
	if err == nil {
		o.person, o.at = p, time.Now()
	}
	return p, err
}

// untilNext is the time to the next multiple of a duration on the clock. All pages go by it: of those that look at the
// same time only one has to read.
func untilNext(every time.Duration) time.Duration {
	return every - time.Duration(time.Now().UnixNano())%every
}

// turn is held by one goroutine at a time; who waits for it may give up.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }
