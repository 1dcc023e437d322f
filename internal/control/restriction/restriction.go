// Package restriction is the playback restriction, which a token names: on which pages and in which players media may
// be played. It must never know SQL, HTTP or the clock (`now` is an argument).
package restriction

import (
	"context"
	"time"

	"millrace/internal/id"
)

// Restriction is a playback restriction.
type Restriction struct {
	ID          id.PlaybackRestriction
	Environment id.Environment
	Referrer    Referrer
	UserAgent   UserAgent
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Referrer says on whose pages something may be watched.
type Referrer struct {
	// AllowedDomains are host names; * stands for all, and *.example.com for one level below example.com. Without any,
	// none is allowed.
	AllowedDomains  []string `json:"allowed_domains"`
	AllowNoReferrer bool     `json:"allow_no_referrer"` // as native players ask
}

// UserAgent says by which players something may be watched.
type UserAgent struct {
	AllowNone     bool `json:"allow_no_user_agent"`
	AllowHighRisk bool `json:"allow_high_risk_user_agent"` // programs that download
}

// Store is implemented by storage/db; one call is one transaction. What is not there is fault.NotFound.
type Store interface {
	// Insert is fault.Conflict when the environment has `most` restrictions.
	Insert(ctx context.Context, r Restriction, most int) error
	Get(ctx context.Context, r id.PlaybackRestriction) (Restriction, error)
	List(ctx context.Context, env id.Environment, page, limit int) ([]Restriction, error) // newest first
	// SetReferrer and SetUserAgent replace one block and return the whole.
	SetReferrer(
		ctx context.Context, env id.Environment, r id.PlaybackRestriction, v Referrer, now time.Time,
	) (Restriction, error)
	SetUserAgent(
		ctx context.Context, env id.Environment, r id.PlaybackRestriction, v UserAgent, now time.Time,
	) (Restriction, error)
	Delete(ctx context.Context, env id.Environment, r id.PlaybackRestriction) error
}

// API is what the REST side calls. Changes take effect at once on every node.
type API interface {
	Create(
		ctx context.Context, env id.Environment, referrer Referrer, agent UserAgent, now time.Time,
	) (Restriction, error)
	Get(ctx context.Context, env id.Environment, r id.PlaybackRestriction) (Restriction, error)
	List(ctx context.Context, env id.Environment, page, limit int) ([]Restriction, error)
	SetReferrer(
		ctx context.Context, env id.Environment, r id.PlaybackRestriction, v Referrer, now time.Time,
	) (Restriction, error)
	SetUserAgent(
		ctx context.Context, env id.Environment, r id.PlaybackRestriction, v UserAgent, now time.Time,
	) (Restriction, error)
	Delete(ctx context.Context, env id.Environment, r id.PlaybackRestriction) error
}
