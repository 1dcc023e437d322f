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
	// cacheFor is how long an identity holds without a look at the store; a token revoked by another process works at most this long.
	cacheFor = 5 * time.Second
	maxCache = 4096

	minSecret, maxSecret = 8, 255 // characters
	tokenName            = "default"
)

// Options is what a Service needs.
type Options struct{ Store Store }

// Service checks credentials and keeps tokens. It owns no goroutine; all its methods may be called at the same time.
type Service struct {
	store   Store
	hashing *line

	mu    sync.Mutex
	cache map[id.Token]remembered
}

// remembered is a secret that was found right. It lasts as long as the token's row has the hash that it was compared with.
type remembered struct {
	digest   [sha256.Size]byte // of the secret, in memory only
	identity Identity
	until    time.Time // when the row has to be read again
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(o Options) *Service {
	return &Service{store: o.Store, hashing: newLine(), cache: map[id.Token]remembered{}}
}

func unauthorized() error { return fault.New(fault.Unauthorized, "Unauthorized request") }

// Authenticate checks HTTP Basic credentials; see API.
func (s *Service) Authenticate(ctx context.Context, t id.Token, secret string, now time.Time) (Identity, error) {
	if len(t) > field.MaxID || len(secret) > 4*maxSecret {
		return Identity{}, unauthorized()
	}
	digest := sha256.Sum256([]byte(secret))
	known, right := s.recall(t, digest)
	if right && now.Before(known.until) {
		return known.identity, nil
	}
	token, err := s.store.Token(ctx, t)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return Identity{}, err
	}
	if !right || !bytes.Equal(token.Hash, known.identity.Token.Hash) {
		if right, err = s.check(ctx, t, token.Hash, secret); err != nil { // of no token too: the time must not tell which IDs exist
			return Identity{}, err
		}
	}
	if !right || !token.RevokedAt.IsZero() {
		return Identity{}, unauthorized()
	}
	env, err := s.store.Environment(ctx, token.Environment)
	if err != nil {
		return Identity{}, err
	}
	who := Identity{Token: token, Environment: env}
	s.remember(t, remembered{digest: digest, identity: who, until: now.Add(cacheFor)}, now)
	return who, nil
}

// check hashes a secret once it is its turn.
func (s *Service) check(ctx context.Context, t id.Token, hash []byte, secret string) (bool, error) {
	leave, err := s.hashing.enter(ctx, t)
	if err != nil {
		return false, err
	}
	defer leave()
	return matches(hash, secret)
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

// CreateToken makes a token in the default environment; see API.
func (s *Service) CreateToken(ctx context.Context, name string, now time.Time) (Token, string, error) {
	if name == "" {
		name = tokenName
	}
	var l fault.List
	if !field.Text(&l, "name", name, field.MaxName) {
		return Token{}, "", l.Err()
	}
	secret := id.New()
	t, err := s.insert(ctx, id.Token(id.NewUUID()), name, secret, now)
	if err != nil {
		return Token{}, "", err
	}
	return t, secret, nil
}

// SeedToken stores a token with a given ID and secret; see API. One that is there with another secret is fault.Conflict.
func (s *Service) SeedToken(ctx context.Context, t id.Token, secret string, now time.Time) (revoked bool, err error) {
	if err = checkSeed(string(t), secret); err != nil {
		return false, err
	}
	old, err := s.store.Token(ctx, t)
	if fault.KindOf(err) == fault.NotFound && err != nil {
		if _, err = s.insert(ctx, t, tokenName, secret, now); err == nil || fault.KindOf(err) != fault.Conflict {
			return false, err
		}
		old, err = s.store.Token(ctx, t) // another node was faster
	}
	if err != nil {
		return false, err
	}
	if !old.RevokedAt.IsZero() {
		return true, nil
	}
	same, err := matches(old.Hash, secret)
	if err == nil && !same {
		err = fault.New(fault.Conflict, "the token to seed exists with another secret; choose another ID")
	}
	return false, err
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

// environment is the default one.
func (s *Service) environment(ctx context.Context, now time.Time) (Environment, error) {
	return s.store.EnsureDefault(ctx, Environment{ID: id.Environment(id.New()), Name: "Default", Kind: "production", CreatedAt: now})
}

// SetQuality changes the default environment's default; see API.
func (s *Service) SetQuality(ctx context.Context, quality string, now time.Time) error {
	var l fault.List
	if quality != "" && !field.OneOf(&l, "video_quality", quality, "basic", "plus", "premium") {
		return l.Err()
	}
	return s.change(ctx, now, func(e id.Environment) error { return s.store.SetVideoQuality(ctx, e, quality) })
}

// SetLiveRungs changes the default environment's policy; see API.
func (s *Service) SetLiveRungs(ctx context.Context, policy string, now time.Time) error {
	var l fault.List
	if policy != "" && !field.OneOf(&l, "live_rungs", policy, "on_demand", "always", "off") {
		return l.Err()
	}
	return s.change(ctx, now, func(e id.Environment) error { return s.store.SetLiveRungs(ctx, e, policy) })
}

// Environment reads one.
func (s *Service) Environment(ctx context.Context, e id.Environment) (Environment, error) {
	return s.store.Environment(ctx, e)
}

// change changes the default environment.
func (s *Service) change(ctx context.Context, now time.Time, set func(e id.Environment) error) error {
	env, err := s.environment(ctx, now.UTC().Truncate(time.Millisecond))
	if err != nil {
		return err
	}
	if err = set(env.ID); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, r := range s.cache { // identities carry their environment
		r.until = time.Time{}
		s.cache[t] = r
	}
	return nil
}

func (s *Service) insert(ctx context.Context, t id.Token, name, secret string, now time.Time) (Token, error) {
	now = now.UTC().Truncate(time.Millisecond)
	env, err := s.environment(ctx, now)
	if err != nil {
		return Token{}, err
	}
	hash, err := hashSecret(secret)
	if err != nil {
		return Token{}, err
	}
	token := Token{ID: t, Environment: env.ID, Name: name, Permissions: all(), Hash: hash, CreatedAt: now}
	return token, s.store.InsertToken(ctx, token)
}

// all are the permissions there are; a token has them all as yet.
func all() []string {
	return []string{"video:read", "video:write", "data:read", "data:write", "system:read", "system:write"}
}

// Tokens lists every token, oldest first.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) { return s.store.Tokens(ctx) }

// RevokeToken ends a token: here at once, in other processes within seconds.
func (s *Service) RevokeToken(ctx context.Context, t id.Token, now time.Time) error {
	err := s.store.RevokeToken(ctx, t, now.UTC().Truncate(time.Millisecond))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cache, t)
	return err
}
