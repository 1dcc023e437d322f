// Package access decides who may call the API, by environments and access tokens, and who may use the dashboard, by
// sessions. It also resolves playback IDs. It must never know SQL, HTTP or the clock.
package access

import (
	"context"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// Environment is a tenant.
type Environment struct {
	ID        id.Environment
	Name      string
	Kind      string // production, development
	CreatedAt time.Time
	// VideoQuality is that of assets and live streams made without saying one: basic, plus or premium; empty: basic on
	// demand, plus live.
	VideoQuality string
	// LiveRungs says when lower renditions of its live streams are encoded: on_demand, always or off; empty: as the
	// service is set.
	LiveRungs string
	// Captions says which engine recognises which language, as language=engine,…; empty: as the service is set.
	Captions string
	// FrameAncestors are the sources that may embed its players, separated by spaces as in Content-Security-Policy,
	// or 'none'; empty: all.
	FrameAncestors string
}

// Token is an access token without its secret.
type Token struct {
	ID          id.Token
	Environment id.Environment
	Name        string
	Permissions []string // some of Permissions, or some of InstallationPermissions
	Hash        []byte   // of the secret; the secret is shown once and never stored
	Digest      []byte   // SHA-256 of a secret that was made here; nil: a person may have chosen it
	CreatedAt   time.Time
	ExpiresAt   time.Time // zero: never
	LastUsedAt  time.Time // exact to about a minute; zero: never
	RevokedAt   time.Time // zero: valid
}

// TokenInput is what a token is made with.
type TokenInput struct {
	Environment id.Environment // empty: the default one
	Name        string         // empty: default
	Permissions []string       // empty: Permissions
	ExpiresAt   time.Time      // zero: never
}

// Credentials are what a request comes with.
type Credentials struct {
	Token  id.Token
	Secret string
	From   string // the address that wrong secrets are counted for; empty: unknown
}

// Identity is who a request comes from.
type Identity struct {
	Token       Token
	Environment Environment
}

// Store is implemented by storage/db; one call is one transaction. What is not there is fault.NotFound.
type Store interface {
	Environment(ctx context.Context, e id.Environment) (Environment, error)
	Environments(ctx context.Context, page, limit int) ([]Environment, error) // oldest first
	// InsertEnvironment refuses the one that would be more than most: fault.Conflict.
	InsertEnvironment(ctx context.Context, e Environment, most int) error
	// The following change an environment.
	SetName(ctx context.Context, e id.Environment, name string) error
	SetVideoQuality(ctx context.Context, e id.Environment, quality string) error
	SetLiveRungs(ctx context.Context, e id.Environment, policy string) error
	SetCaptions(ctx context.Context, e id.Environment, rules string) error
	SetFrameAncestors(ctx context.Context, e id.Environment, sources string) error
	// EnsureDefault returns the default environment, made from fresh on first use.
	EnsureDefault(ctx context.Context, fresh Environment) (Environment, error)
	// InsertToken refuses an existing ID, and the token that would be more than most that are valid in its environment:
	// fault.Conflict.
	InsertToken(ctx context.Context, t Token, most int) error
	Token(ctx context.Context, t id.Token) (Token, error)
	Tokens(ctx context.Context) ([]Token, error) // of all environments, oldest first, with those that are revoked
	// TokensOf are those of an environment that are not revoked, newest first.
	TokensOf(ctx context.Context, e id.Environment, page, limit int) ([]Token, error)
	// RevokeToken keeps the time of the first revocation. A token of another environment is not there; an empty one
	// stands for all.
	RevokeToken(ctx context.Context, e id.Environment, t id.Token, at time.Time) error
	// TokensUsed notes when tokens were used; an earlier time than the one that is there changes nothing.
	TokensUsed(ctx context.Context, used map[id.Token]time.Time) error
	// SetTokenDigests stores digests of tokens that were made without.
	SetTokenDigests(ctx context.Context, digests map[id.Token][]byte) error
	PlaybackID(ctx context.Context, p id.Playback) (playbackid.Object, error)
}

// API is what the REST side, playback and the command line call. An empty environment stands for the default one.
type API interface {
	// Authenticate checks HTTP Basic credentials in constant time; fault.Unauthorized for unknown, revoked, expired or
	// wrong ones. An identity is cached for seconds. Secrets that were made here are compared at once, and those that a
	// person may have chosen are hashed, in a line; one that was right is not hashed again while the token has the same
	// hash, nor is that of the settings. When too many others want such a secret checked, or too many from that address
	// were wrong, it is fault.TooMany with the time after which to ask again.
	Authenticate(ctx context.Context, c Credentials, now time.Time) (Identity, error)
	// Lookup resolves a playback ID of env; others' are fault.NotFound.
	Lookup(ctx context.Context, env id.Environment, p id.Playback) (playbackid.Object, error)
	// Resolve resolves a playback ID of any environment.
	Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error)
	// CreateToken makes a token and returns its secret, which is not stored.
	CreateToken(ctx context.Context, in TokenInput, now time.Time) (Token, string, error)
	// SeedToken stores a token with a given ID and secret unless it is there with that secret already (then nothing
	// changes). One that was revoked stays so.
	SeedToken(ctx context.Context, t id.Token, secret string, now time.Time) (revoked bool, err error)
	// Tokens lists those of all environments, oldest first, with those that are revoked.
	Tokens(ctx context.Context) ([]Token, error)
	// TokensOf lists those of an environment that are not revoked, newest first.
	TokensOf(ctx context.Context, e id.Environment, page, limit int) ([]Token, error)
	// TokenOf reads one; those of other environments, and those that are revoked, are fault.NotFound.
	TokenOf(ctx context.Context, e id.Environment, t id.Token) (Token, error)
	// RevokeToken ends a token of any environment, RevokeTokenOf one of e.
	RevokeToken(ctx context.Context, t id.Token, now time.Time) error
	RevokeTokenOf(ctx context.Context, e id.Environment, t id.Token, now time.Time) error
	CreateEnvironment(ctx context.Context, name, kind string, now time.Time) (Environment, error)
	RenameEnvironment(ctx context.Context, e id.Environment, name string, now time.Time) (Environment, error)
	Environments(ctx context.Context, page, limit int) ([]Environment, error)
	Environment(ctx context.Context, e id.Environment) (Environment, error)
	// SetQuality changes the default video_quality of an environment; "" gives it back to the service. It holds within
	// seconds, for what is made from then on.
	SetQuality(ctx context.Context, e id.Environment, quality string, now time.Time) error
	// SetLiveRungs changes when lower renditions of the live streams of an environment are encoded; "" gives it back to
	// the service. It holds for broadcasts that begin from then on.
	SetLiveRungs(ctx context.Context, e id.Environment, policy string, now time.Time) error
	// SetCaptions changes which engine recognises which language in an environment; "" gives it back to the service.
	SetCaptions(ctx context.Context, e id.Environment, rules string, now time.Time) error
	// SetFrameAncestors changes which origins may embed the players of an environment: all, none, or origins such as
	// https://example.com or https://*.example.com.
	SetFrameAncestors(ctx context.Context, e id.Environment, origins []string, now time.Time) error
}
