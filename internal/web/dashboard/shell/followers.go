package shell

import (
	"context"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/web/follow"
)

// session is one that has pages open.
type session struct {
	lock   follow.Lock
	person access.Person
	at     time.Time // when it was looked who that is
}

// newFollowers has a place for each page that is kept up to date, by session.
func newFollowers() *follow.Places[string, *session] {
	return &follow.Places[string, *session]{
		All: maxFollowers, Each: maxOfPerson, Make: func() *session { return &session{lock: follow.NewLock()} },
	}
}

// paceOf is how often each of so many pages is looked at, at most.
func paceOf(pages int) time.Duration { return max(minPace, time.Duration(pages)*pacePerPage) }

// who is the person of a session. All of its pages ask at the same time, and one of them looks for all.
func (s *session) who(ctx context.Context, look func() (access.Person, error)) (access.Person, error) {
	if err := s.lock.Lock(ctx); err != nil {
		return access.Person{}, err
	}
	defer s.lock.Unlock()
	if time.Since(s.at) < Heartbeat/2 {
		return s.person, nil
	}
	p, err := look()
	if err == nil {
		s.person, s.at = p, time.Now()
	}
	return p, err
}

// untilNext is the time to the next multiple of a duration on the clock. All pages go by it: of those that look at the
// same time only one has to read.
func untilNext(every time.Duration) time.Duration {
	return every - time.Duration(time.Now().UnixNano())%every
}
