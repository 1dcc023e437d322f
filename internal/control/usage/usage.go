// Package usage reports how much of each asset was delivered to viewers, hour by hour: types, the rules of a query, and
// the service. It must never know how delivery is measured, SQL, HTTP or the clock (`now` is an argument).
package usage

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Kept is how long what was delivered is kept, and until the end of that day (UTC).
const Kept = 90 * 24 * time.Hour

// Seconds is how much media was delivered by the size of its picture, in seconds.
type Seconds struct {
	AudioOnly float64
	Tier720   float64 // up to 1280 x 720 pixels, in any shape
	Tier1080  float64 // up to 1920 x 1080
	Tier1440  float64 // up to 2048 x 2048
	Tier2160  float64 // larger
}

// Sum is all of it.
func (s Seconds) Sum() float64 { return s.AudioOnly + s.Tier720 + s.Tier1080 + s.Tier1440 + s.Tier2160 }

// Delivered is what was delivered of one asset.
type Delivered struct {
	Asset       id.Asset
	Environment id.Environment
	LiveStream  id.LiveStream // that it was recorded from; empty: none
	Seconds     Seconds
}

// Report is what was delivered of one asset within a query's time.
type Report struct {
	// of one that was deleted: its ID, live stream, settings without inputs, facts and creation; the last three may be
	// lost
	Asset     asset.Asset
	Deleted   bool
	DeletedAt time.Time // zero when it is not known
	Seconds   Seconds
}

// Query selects reports. Hours count that have some of [From, To).
type Query struct {
	From, To   time.Time // both zero: the hour from 13 to 12 hours ago
	Asset      id.Asset
	LiveStream id.LiveStream
	Page       int // from 1
	Limit      int
}

// Hours is q with its times widened to whole hours.
func (q Query) Hours(now time.Time) Query {
	if q.From.IsZero() && q.To.IsZero() {
		q.To = now.Add(-12 * time.Hour).UTC().Truncate(time.Hour)
		q.From = q.To.Add(-time.Hour)
		return q
	}
	q.From = q.From.UTC().Truncate(time.Hour)
	if whole := q.To.UTC().Truncate(time.Hour); whole.Before(q.To) {
		q.To = whole.Add(time.Hour)
	}
	return q
}

func (q Query) check() error {
	var l fault.List
	if q.Asset != "" && q.LiveStream != "" {
		l.At("asset_id", "and live_stream_id must not be used together")
	}
	if q.To.Before(q.From) {
		l.At("timeframe[1]", "must not be before timeframe[0]")
	}
	return l.Err()
}

// Store is implemented by storage/db; one call is one transaction.
type Store interface {
	// Add adds to an hour, which is the time that it begins.
	Add(ctx context.Context, hour time.Time, all []Delivered) error
	// Reports are a page of those that have anything, of the hours that begin in [q.From, q.To), the most delivered
	// first; total is how many there are on all pages.
	Reports(ctx context.Context, env id.Environment, q Query) (page []Report, total int, err error)
	// Forget removes at most limit hours that begin before a time, and as many deleted assets that were deleted a day
	// before it, and says whether there may be more.
	Forget(ctx context.Context, before time.Time, limit int) (more bool, err error)
}

// API is what the REST side calls.
type API interface {
	// List gives a page of reports and the query as it was understood: in whole hours.
	List(
		ctx context.Context, env id.Environment, q Query, now time.Time,
	) (page []Report, total int, understood Query, err error)
}

// Work is the interface for those who measure.
type Work interface {
	// Add adds what was delivered just now.
	Add(ctx context.Context, all []Delivered, now time.Time) error
	// Forget removes some of what is older than Kept, and reports whether there may be more.
	Forget(ctx context.Context, now time.Time) (more bool, err error)
}

// Service implements API and Work.
type Service struct{ store Store }

// New returns a Service.
func New(s Store) *Service { return &Service{s} }

// List implements API.
func (s *Service) List(ctx context.Context, env id.Environment, q Query, now time.Time) ([]Report, int, Query, error) {
	if err := q.check(); err != nil {
		return nil, 0, q, err
	}
	q = q.Hours(now)
	page, total, err := s.store.Reports(ctx, env, q)
	return page, total, q, err
}

// Add implements Work.
func (s *Service) Add(ctx context.Context, all []Delivered, now time.Time) error {
	return s.store.Add(ctx, now.UTC().Truncate(time.Hour), all)
}

// atOnce bounds what one removal holds the database up.
const atOnce = 500

// Forget implements Work.
func (s *Service) Forget(ctx context.Context, now time.Time) (bool, error) {
	return s.store.Forget(ctx, now.Add(-Kept).UTC().Truncate(24*time.Hour), atOnce)
}
