// Package signing is the authorisation of viewers: signing keys, the tokens that are signed with them (JSON Web Tokens,
// RFC 7519), and the signed paths that a token is exchanged for. It must never know SQL, HTTP or the clock (`now` is an
// argument).
package signing

import (
	"context"
	"crypto/rsa"
	"time"

	"millrace/internal/id"
)

// Key is a signing key: the public half. The private half is its owner's, and is not stored.
type Key struct {
	ID          id.SigningKey
	Environment id.Environment
	Public      *rsa.PublicKey
	CreatedAt   time.Time
}

// MaxKeys is how many signing keys an environment may have.
const MaxKeys = 100

// Store is implemented by storage/db; one call is one transaction. What is not there is fault.NotFound.
type Store interface {
	// InsertKey is fault.Conflict when the environment has `most` keys.
	InsertKey(ctx context.Context, k Key, most int) error
	Key(ctx context.Context, k id.SigningKey) (Key, error)
	Keys(ctx context.Context, env id.Environment, page, limit int) ([]Key, error) // newest first
	DeleteKey(ctx context.Context, env id.Environment, k id.SigningKey) error
	// PathSecret is that of a period.
	PathSecret(ctx context.Context, n int64) (PathSecret, error)
	// EnsurePathSecret returns the secret of a period, which is fresh's on first use, and deletes those of long ago.
	EnsurePathSecret(ctx context.Context, fresh PathSecret) (PathSecret, error)
}

// API is what the REST side and the command line call.
type API interface {
	// Create makes an RSA key of 2048 bits and returns the private half, the base64 of its PEM (RFC 8017 appendix
	// A.1.2), this once.
	Create(ctx context.Context, env id.Environment, now time.Time) (Key, string, error)
	Get(ctx context.Context, env id.Environment, k id.SigningKey) (Key, error)
	List(ctx context.Context, env id.Environment, page, limit int) ([]Key, error)
	// Delete ends every token that the key has signed: at once on every node; by a command of `millrace` beside a
	// service on SQLite, within two seconds.
	Delete(ctx context.Context, env id.Environment, k id.SigningKey) error
}
