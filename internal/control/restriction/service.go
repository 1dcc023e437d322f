package restriction

import (
	"context"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/stalecache"
)

const (
	// fresh is how late this process sees what another one has changed, where it is not told by Forget.
	fresh = time.Second
	// stale is how long a restriction is good for that can't be looked up, because the database does not respond, as in
	// package signing.
	stale    = time.Minute
	maxCache = 4096
)

// Options configures a Service.
type Options struct{ Store Store }

// Service keeps playback restrictions. All its methods may be called at the same time.
type Service struct {
	store Store
	known *stalecache.Cache[id.PlaybackRestriction, Restriction]
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(o Options) *Service {
	return &Service{
		store: o.Store, known: stalecache.New[id.PlaybackRestriction, Restriction](maxCache, fresh).GoodFor(stale),
	}
}

// Create makes a restriction; see API.
func (s *Service) Create(
	ctx context.Context, env id.Environment, referrer Referrer, agent UserAgent, now time.Time,
) (Restriction, error) {
	if err := referrer.check(); err != nil {
		return Restriction{}, err
	}
	now = change.Stamp(now)
	r := Restriction{
		ID:          id.PlaybackRestriction(id.New()),
		Environment: env,
		Referrer:    referrer,
		UserAgent:   agent,
		CreatedAt:   now,
		UpdatedAt:   now,
	}
	return r, s.store.Insert(ctx, r, maxRestrictions)
}

// Get reads a restriction; see API.
func (s *Service) Get(ctx context.Context, env id.Environment, r id.PlaybackRestriction) (Restriction, error) {
	found, err := s.store.Get(ctx, r)
	if err == nil && found.Environment != env {
		return Restriction{}, fault.New(fault.NotFound, "the playback restriction does not exist")
	}
	return found, err
}

// List lists restrictions, newest first; see API.
func (s *Service) List(ctx context.Context, env id.Environment, page, limit int) ([]Restriction, error) {
	page, limit, err := field.Page(page, limit)
	if err != nil {
		return nil, err
	}
	return s.store.List(ctx, env, page, limit)
}

// SetReferrer replaces the rule about pages; see API.
func (s *Service) SetReferrer(
	ctx context.Context, env id.Environment, r id.PlaybackRestriction, v Referrer, now time.Time,
) (Restriction, error) {
	if err := v.check(); err != nil {
		return Restriction{}, err
	}
	defer s.known.Drop(r)
	return s.store.SetReferrer(ctx, env, r, v, change.Stamp(now))
}

// SetUserAgent replaces the rule about players; see API.
func (s *Service) SetUserAgent(
	ctx context.Context, env id.Environment, r id.PlaybackRestriction, v UserAgent, now time.Time,
) (Restriction, error) {
	defer s.known.Drop(r)
	return s.store.SetUserAgent(ctx, env, r, v, change.Stamp(now))
}

// Delete deletes a restriction: tokens that name it are refused from then on; see API.
func (s *Service) Delete(ctx context.Context, env id.Environment, r id.PlaybackRestriction) error {
	defer s.known.Drop(r)
	return s.store.Delete(ctx, env, r)
}

// Forget says that a restriction was changed or deleted by any process: the next one who needs it asks the database.
func (s *Service) Forget(r id.PlaybackRestriction) { s.known.Drop(r) }

// ForgetAll is Forget for every restriction.
func (s *Service) ForgetAll() { s.known.DropAll() }

// Permits reports whether a request may be responded to under a restriction of an environment; fault.Denied if not, or
// if there is no such restriction.
func (s *Service) Permits(
	ctx context.Context, env id.Environment, r id.PlaybackRestriction, referrers, agents []string, now time.Time,
) error {
	found, err := s.known.Get(ctx, r, now, func(ctx context.Context) (Restriction, error) {
		return s.store.Get(ctx, r)
	})
	if fault.Is(err, fault.NotFound) || err == nil && found.Environment != env {
		return fault.Coded(fault.Denied, CodeUnknown,
			"token: the playback restriction is not known (it may be deleted)")
	}
	if err != nil {
		return err
	}
	return found.Permits(referrers, agents)
}
