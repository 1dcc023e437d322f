package access

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// What a token may be permitted in its environment.
const (
	VideoRead   = "video:read"
	VideoWrite  = "video:write"
	DataRead    = "data:read"
	DataWrite   = "data:write"
	SystemRead  = "system:read"
	SystemWrite = "system:write"
)

// What an installation token may do: manage environments. The command line makes such tokens, the API never does.
const (
	InstallationRead  = "installation:read"
	InstallationWrite = "installation:write"
)

const maxTokens = 1000 // that are valid, of an environment

// Permissions are those there are in an environment.
func Permissions() []string {
	return []string{VideoRead, VideoWrite, DataRead, DataWrite, SystemRead, SystemWrite}
}

// InstallationPermissions are those of installation tokens.
func InstallationPermissions() []string { return []string{InstallationRead, InstallationWrite} }

// Permits reports whether the token has a permission.
func (t Token) Permits(permission string) bool { return slices.Contains(t.Permissions, permission) }

// CreateToken makes a token; see API.
func (s *Service) CreateToken(ctx context.Context, in TokenInput, now time.Time) (Token, string, error) {
	if in.Name == "" {
		in.Name = tokenName
	}
	if len(in.Permissions) == 0 {
		in.Permissions = Permissions()
	}
	if err := in.Check(now); err != nil {
		return Token{}, "", err
	}
	secret := id.New()
	t, err := s.insert(ctx, in, Token{ID: id.Token(id.NewUUID()), Digest: digestOf(secret)}, secret, now)
	if err != nil {
		return Token{}, "", err
	}
	return t, secret, nil
}

// Check says all that no token can be made with. A token manages environments or works in one, not both. fault.Invalid.
func (t TokenInput) Check(now time.Time) error {
	var l fault.List
	field.Name(&l, "name", t.Name, field.MaxName)
	allowed := Permissions()
	if len(t.Permissions) > 0 && slices.Contains(InstallationPermissions(), t.Permissions[0]) {
		allowed = InstallationPermissions()
	}
	for i, p := range t.Permissions {
		field.OneOf(&l, field.At("permissions", i), p, allowed...)
	}
	if !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now) {
		l.At("expires_at", "must be in the future")
	}
	return l.Err()
}

// insert stores a token with what it was made with.
func (s *Service) insert(ctx context.Context, in TokenInput, token Token, secret string, now time.Time) (Token, error) {
	now = change.Stamp(now)
	env, err := s.Named(ctx, in.Environment, now)
	if err != nil {
		return Token{}, err
	}
	if token.Hash, err = hashSecret(secret); err != nil {
		return Token{}, err
	}
	token.Environment, token.Name, token.CreatedAt = env.ID, in.Name, now
	token.Permissions = slices.Compact(slices.Sorted(slices.Values(in.Permissions)))
	if !in.ExpiresAt.IsZero() {
		token.ExpiresAt = change.Stamp(in.ExpiresAt)
	}
	return token, s.store.InsertToken(ctx, token, maxTokens)
}

// Tokens lists every token, oldest first.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) { return s.store.Tokens(ctx) }

// TokensOf lists those of an environment that are not revoked, newest first.
func (s *Service) TokensOf(ctx context.Context, e id.Environment, page, limit int) ([]Token, error) {
	page, limit, err := field.Page(page, limit)
	if err != nil {
		return nil, err
	}
	return s.store.TokensOf(ctx, e, page, limit)
}

// TokenOf reads one; see API.
func (s *Service) TokenOf(ctx context.Context, e id.Environment, t id.Token) (Token, error) {
	token, err := s.store.Token(ctx, t)
	if err == nil && (token.Environment != e || !token.RevokedAt.IsZero()) {
		return Token{}, noToken()
	}
	return token, err
}

func noToken() error { return fault.New(fault.NotFound, "the token does not exist") }

// RevokeToken ends a token: here at once, in other processes within seconds.
func (s *Service) RevokeToken(ctx context.Context, t id.Token, now time.Time) error {
	return s.revoke(ctx, "", t, now)
}

// RevokeTokenOf ends a token of an environment likewise.
func (s *Service) RevokeTokenOf(ctx context.Context, e id.Environment, t id.Token, now time.Time) error {
	if _, err := s.TokenOf(ctx, e, t); err != nil {
		return err
	}
	return s.revoke(ctx, e, t, now)
}

func (s *Service) revoke(ctx context.Context, e id.Environment, t id.Token, now time.Time) error {
	err := s.store.RevokeToken(ctx, e, t, change.Stamp(now))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cache, t)
	return err
}

// WriteUse stores when tokens were used since it was last called, and digests that they did not have. Requests only
// note it in memory.
func (s *Service) WriteUse(ctx context.Context) error {
	s.mu.Lock()
	used, found := s.used, s.found
	s.used, s.found = map[id.Token]time.Time{}, map[id.Token][]byte{}
	s.mu.Unlock()
	var errUse, errDigests error
	if len(used) > 0 {
		errUse = s.store.TokensUsed(ctx, used)
	}
	if len(found) > 0 {
		errDigests = s.store.SetTokenDigests(ctx, found)
	}
	s.mu.Lock() // the next call has what could not be written
	defer s.mu.Unlock()
	if errUse != nil {
		maps.Copy(used, s.used)
		s.used = used
	}
	if errDigests != nil {
		maps.Copy(found, s.found)
		s.found = found
	}
	return errors.Join(errUse, errDigests)
}
