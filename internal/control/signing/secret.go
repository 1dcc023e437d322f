package signing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"sync"
	"time"

	"millrace/internal/fault"
)

const (
	// secretPeriod is how long a path secret is signed with. Paths are good for as long again.
	secretPeriod = 30 * 24 * time.Hour
	secretSize   = 32
	maxSecrets   = 8
	// keptSecret is how long a node goes without a look at whether a secret is there.
	keptSecret = time.Minute
)

// PathSecret is what paths are signed with during one period.
type PathSecret struct {
	Number int64 // of the period, since 1970
	Secret []byte
}

// period is the number of the period that a time is in.
func period(t time.Time) int64 { return t.Unix() / int64(secretPeriod/time.Second) }

// periodEnd is when a period ends.
func periodEnd(n int64) time.Time { return time.Unix((n+1)*int64(secretPeriod/time.Second), 0) }

// secret is a PathSecret with scratch memory.
type secret struct {
	number int64
	key    []byte
	makers sync.Pool // *maker
}

// maker makes one MAC at a time.
type maker struct {
	hash      hash.Hash
	text, sum []byte
	given     [macSize + 2]byte
}

func newHash() hash.Hash { return sha256.New() }

// secret is that of a period. That of the present one is made by the first node that needs it; fault.NotFound for
// others.
func (s *Service) secret(ctx context.Context, n int64, now time.Time) (*secret, error) {
	// it never changes, and nearly all requests are for this one
	if last := s.last.Load(); last != nil && last.number == n {
		return last, nil
	}
	found, err := s.ask(ctx, n, now)
	if err == nil {
		s.last.Store(found)
	}
	return found, err
}

func (s *Service) ask(ctx context.Context, n int64, now time.Time) (*secret, error) {
	return s.secrets.Get(ctx, n, now, func(ctx context.Context) (*secret, error) {
		found, err := s.store.PathSecret(ctx, n)
		if fault.Is(err, fault.NotFound) && n == period(now) {
			fresh := PathSecret{Number: n, Secret: make([]byte, secretSize)}
			_, _ = rand.Read(fresh.Secret) // never fails
			found, err = s.store.EnsurePathSecret(ctx, fresh)
		}
		if err != nil {
			return nil, err
		}
		return &secret{number: n, key: found.Secret}, nil
	})
}
