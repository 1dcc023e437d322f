package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"sync"
	"time"
	"unicode"

	"millrace/internal/control/field"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// cacheFor is how long an identity holds without a look at the store; a token revoked by another process works at
	// most this long.
	cacheFor = 5 * time.Second
	maxCache = 4096

	minSecret, maxSecret = 8, 255 // characters
	tokenName            = "default"
)

// Options configures a Service.
type Options struct{ Store Store }

// Service checks credentials and keeps tokens. It owns no goroutine; all its methods may be called at the same time.
type Service struct {
	store    Store
	hashing  *line
	shared   *shared
	failures *failures

	mu    sync.Mutex
	cache map[id.Token]remembered
	used  map[id.Token]time.Time // since the last WriteUse
	found map[id.Token][]byte    // digests of tokens that have none, likewise
}

// remembered is a secret that was found right. It lasts as long as the token's row has the hash that it was compared
// with.
type remembered struct {
	digest   [sha256.Size]byte // of the secret, in memory only
	identity Identity
	until    time.Time // when the row has to be read again
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(o Options) *Service {
	return &Service{
		store: o.Store, hashing: newLine(maxWaiting, maxOfToken), shared: newShared(), failures: newFailures(),
		cache: map[id.Token]remembered{}, used: map[id.Token]time.Time{}, found: map[id.Token][]byte{},
	}
}

func unauthorized() error { return fault.New(fault.Unauthorized, "Unauthorized request") }

// Authenticate checks HTTP Basic credentials; see API.
func (s *Service) Authenticate(ctx context.Context, c Credentials, now time.Time) (Identity, error) {
	if len(c.Token) > field.MaxID || len(c.Secret) > 4*maxSecret {
		return Identity{}, unauthorized()
	}
	digest := sha256.Sum256([]byte(c.Secret))
	known, right := s.recall(c.Token, digest)
	if right && now.Before(known.until) {
		return known.identity, nil
	}
	if wait := s.failures.wait(c, now); !right && wait > 0 {
		return Identity{}, tooManyWrong(wait)
	}
	token, err := s.store.Token(ctx, c.Token)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Identity{}, err
	}
	if !right || !bytes.Equal(token.Hash, known.identity.Token.Hash) {
		if right, err = s.check(ctx, token, c, now); err != nil {
			return Identity{}, err
		}
	}
	if !right || !token.validAt(now) {
		s.failures.failed(c, now)
		return Identity{}, unauthorized()
	}
	s.failures.passed(c)
	env, err := s.store.Environment(ctx, token.Environment)
	if err != nil {
		return Identity{}, err
	}
	who := Identity{Token: token, Environment: env}
	s.remember(c.Token, remembered{digest: digest, identity: who, until: token.until(now.Add(cacheFor))}, now)
	return who, nil
}

// validAt reports whether a token is neither revoked nor expired.
func (t Token) validAt(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

// until is the earlier of a time and the token's expiry.
func (t Token) until(at time.Time) time.Time {
	if !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(at) {
		return t.ExpiresAt
	}
	return at
}

// check compares a secret with that of a token, which is zero where there is none: at once where no secret is right and
// where the right one was made here. So the time tells of a token only that a person may have chosen its secret.
func (s *Service) check(ctx context.Context, t Token, c Credentials, now time.Time) (bool, error) {
	secret := c.Secret
	switch {
	case len(t.Hash) == 0, !t.validAt(now):
		return false, nil
	case len(t.Digest) > 0:
		return subtle.ConstantTimeCompare(t.Digest, digestOf(secret)) == 1, nil
	}
	right, err := s.hash(ctx, t, c, now)
	if right && madeHere(t.ID, secret) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.found[t.ID] = digestOf(secret)
	}
	return right, err
}

// hash hashes a secret once it is its turn, for all who come with the same one meanwhile. Until then it counts as a
// wrong one of its address, which can't fill the line with many at once.
func (s *Service) hash(ctx context.Context, t Token, c Credentials, now time.Time) (bool, error) {
	g := guess{t.ID, string(t.Hash), sha256.Sum256([]byte(c.Secret))}
	return s.shared.check(ctx, g, func(ctx context.Context) (bool, error) {
		done, wait := s.failures.try(c, now)
		if wait > 0 {
			return false, tooManyWrong(wait)
		}
		defer done()
		leave, err := s.hashing.enter(ctx, t.ID)
		if err != nil {
			return false, err
		}
		defer leave()
		return matches(t.Hash, c.Secret)
	})
}

func tooManyWrong(wait time.Duration) error {
	const text = "too many wrong secrets came from this address; try again in %d seconds"
	return fault.Later(wait, text, int(wait.Seconds())+1)
}

// recall returns what is remembered of a token when it is of this secret.
func (s *Service) recall(t id.Token, digest [sha256.Size]byte) (r remembered, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok = s.cache[t]
	if !ok || subtle.ConstantTimeCompare(r.digest[:], digest[:]) != 1 {
		return remembered{}, false
	}
	return r, true
}

func (s *Service) remember(t id.Token, r remembered, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[t] = now
	s.put(t, r, now)
}

// put needs the lock.
func (s *Service) put(t id.Token, r remembered, now time.Time) {
	if len(s.cache) >= maxCache {
		for k, old := range s.cache {
			if !now.Before(old.until) {
				delete(s.cache, k)
			}
		}
	}
	if _, there := s.cache[t]; there || len(s.cache) < maxCache {
		s.cache[t] = r
	}
}

// Lookup resolves a playback ID of env.
func (s *Service) Lookup(ctx context.Context, env id.Environment, p id.Playback) (playbackid.Object, error) {
	o, err := s.store.PlaybackID(ctx, p)
	if err == nil && o.Environment != env {
		return playbackid.Object{}, playbackid.ErrUnknown()
	}
	return o, err
}

// Resolve resolves a playback ID of any environment.
func (s *Service) Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error) {
	return s.store.PlaybackID(ctx, p)
}

// SeedToken stores a token with a given ID and secret; see API. One that is there with another secret is
// fault.Conflict.
func (s *Service) SeedToken(ctx context.Context, t id.Token, secret string, now time.Time) (revoked bool, err error) {
	if err = checkSeed(string(t), secret); err != nil {
		return false, err
	}
	token, err := s.store.Token(ctx, t)
	if fault.Is(err, fault.NotFound) {
		token, err = s.insert(ctx, TokenInput{Name: tokenName, Permissions: Permissions()}, Token{ID: t}, secret, now)
		if fault.Is(err, fault.Conflict) {
			token, err = s.store.Token(ctx, t) // another node was faster
		}
	}
	if err != nil {
		return false, err
	}
	if !token.RevokedAt.IsZero() {
		return true, nil
	}
	same, err := matches(token.Hash, secret)
	switch {
	case err != nil:
		return false, err
	case !same:
		return false, fault.New(fault.Conflict, "the token to seed exists with another secret; choose another ID")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(t, remembered{digest: sha256.Sum256([]byte(secret)), identity: Identity{Token: token}}, now)
	return false, nil
}

func checkSeed(t, secret string) error {
	var l fault.List
	unfit := func(r rune) bool { return r == ':' || r == unicode.ReplacementChar || !unicode.IsGraphic(r) }
	if t == "" || len(t) > field.MaxID || strings.ContainsFunc(t, unfit) {
		l.Add("the token ID must have 1 to %d printable characters without a colon", field.MaxID)
	}
	if n := len(secret); n < minSecret || n > maxSecret || strings.ContainsFunc(secret, unicode.IsControl) {
		l.Add("the token secret must have %d to %d printable characters", minSecret, maxSecret)
	}
	return l.Err()
}
