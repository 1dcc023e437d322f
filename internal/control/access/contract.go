// Package access is who may call the API: environments and access tokens; and what a playback ID leads to.
// It must never know SQL, HTTP or the clock.
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
	// VideoQuality is that of assets and live streams made without saying one: basic, plus or premium; empty: basic on demand, plus live.
	VideoQuality string
	// LiveRungs says when its live streams are encoded in lower sizes: on_demand, always or off; empty: as the service is set.
	LiveRungs string
}

// Token is an access token without its secret.
type Token struct {
	ID          id.Token
	Environment id.Environment
	Name        string
	Permissions []string // video:read, video:write, system:read, …
	Hash        []byte   // of the secret; the secret is shown once and never stored
	CreatedAt   time.Time
	RevokedAt   time.Time // zero: valid
}

// Identity is who a request comes from.
type Identity struct {
	Token       Token
	Environment Environment
}

// Store is implemented by storage/db; one call is one transaction. What is not there is fault.NotFound.
type Store interface {
	Environment(ctx context.Context, e id.Environment) (Environment, error)
	// SetVideoQuality and SetLiveRungs change an environment's.
	SetVideoQuality(ctx context.Context, e id.Environment, quality string) error
	SetLiveRungs(ctx context.Context, e id.Environment, policy string) error
	// EnsureDefault returns the default environment, made from fresh on first use.
	EnsureDefault(ctx context.Context, fresh Environment) (Environment, error)
	InsertToken(ctx context.Context, t Token) error // an existing ID is fault.Conflict
	Token(ctx context.Context, t id.Token) (Token, error)
	Tokens(ctx context.Context) ([]Token, error) // oldest first
	// RevokeToken keeps the time of the first revocation.
	RevokeToken(ctx context.Context, t id.Token, at time.Time) error
	PlaybackID(ctx context.Context, p id.Playback) (playbackid.Object, error)
}

// API is what the REST side, playback and the command line call.
type API interface {
	// Authenticate checks HTTP Basic credentials in constant time; fault.Unauthorized for an unknown, revoked or wrong one.
	// An identity is cached for seconds, and a secret that was right is not hashed again while the token has the same hash: those who are
	// known do not wait behind wrong secrets. When too many others want a secret checked it is fault.TooMany.
	Authenticate(ctx context.Context, t id.Token, secret string, now time.Time) (Identity, error)
	// Lookup resolves a playback ID of env; others' are fault.NotFound.
	Lookup(ctx context.Context, env id.Environment, p id.Playback) (playbackid.Object, error)
	// Resolve resolves a playback ID of any environment.
	Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error)
	// CreateToken makes a token in the default environment and returns its secret, which is not stored.
	CreateToken(ctx context.Context, name string, now time.Time) (Token, string, error)
	// SeedToken stores a token with a given ID and secret unless it is there with that secret already (then nothing changes). One that
	// was revoked stays so.
	SeedToken(ctx context.Context, t id.Token, secret string, now time.Time) (revoked bool, err error)
	Tokens(ctx context.Context) ([]Token, error)
	RevokeToken(ctx context.Context, t id.Token, now time.Time) error
	// SetQuality changes the default video_quality of the default environment; "" gives it back to the service. It holds within seconds,
	// for what is made from then on.
	SetQuality(ctx context.Context, quality string, now time.Time) error
	// SetLiveRungs changes when live streams of the default environment are encoded in lower sizes; "" gives it back to the service. It
	// holds for broadcasts that begin from then on.
	SetLiveRungs(ctx context.Context, policy string, now time.Time) error
	Environment(ctx context.Context, e id.Environment) (Environment, error)
}
