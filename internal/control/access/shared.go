package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"millrace/internal/fault"
	"millrace/internal/id"
)

// maxSharing is how many wait for one hash beside the one who makes it.
const maxSharing = 1024

// guess is a secret that is to be compared with the hash of a token.
type guess struct {
	token  id.Token
	hash   string
	secret [sha256.Size]byte // its digest
}

// verdict is whether a guess is right, once done is closed.
type verdict struct {
	done    chan struct{}
	sharing int
	right   bool
	err     error
}

// shared has those who come with the same secret at the same time, such as the clients of a program that has just
// started, wait for one hash, in place of one each.
type shared struct {
	mu      sync.Mutex
	hashing map[guess]*verdict
}

func newShared() *shared { return &shared{hashing: map[guess]*verdict{}} }

// check gives what hash says of a guess, by one call for all who come while it lasts. When too many do it is
// fault.TooMany.
func (s *shared) check(ctx context.Context, g guess, hash func(context.Context) (bool, error)) (bool, error) {
	for again := false; ; {
		v, first, err := s.join(g)
		if err != nil {
			return false, err
		}
		if first {
			defer s.release(g, v) // also where it panics
			v.right, v.err = hash(ctx)
			return v.right, v.err
		}
		select {
		case <-v.done:
		case <-ctx.Done():
			return false, fmt.Errorf("wait to check a secret: %w", context.Cause(ctx))
		}
		switch {
		case errors.Is(v.err, context.Canceled), errors.Is(v.err, context.DeadlineExceeded):
			// The one who was to hash it has left.
		case fault.Is(v.err, fault.TooMany) && !again:
			again = true // that may be said of another address
		default:
			return v.right, v.err
		}
	}
}

// release lets those go on who wait for a verdict.
func (s *shared) release(g guess, v *verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hashing, g)
	close(v.done)
}

func (s *shared) join(g guess) (v *verdict, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v = s.hashing[g]
	switch {
	case v == nil:
		v = &verdict{done: make(chan struct{}), err: context.Canceled}
		s.hashing[g] = v
		return v, true, nil
	case v.sharing >= maxSharing:
		return nil, false, fault.New(fault.TooMany,
			"too many requests wait for the same secret to be checked; try again in a second")
	}
	v.sharing++
	return v, false, nil
}
