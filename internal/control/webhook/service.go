package webhook

import (
	"context"
	"net/url"
	"slices"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/control/event"
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/spelling"
)

const (
	maxPerEnvironment = 100
	maxAddress        = 2000 // bytes
	maxTypes          = 100
	maxType           = 255 // characters
	overlap           = 24 * time.Hour
)

// Store is implemented by storage/db; one call is one transaction. What is not there is fault.NotFound.
type Store interface {
	// InsertWebhook stores a new one, which is sent what happens from now on. An address that its environment has
	// already, and one more than most webhooks, are fault.Conflict.
	InsertWebhook(ctx context.Context, w Webhook, most int) error
	Webhook(ctx context.Context, env id.Environment, w id.Webhook) (Webhook, error)
	Webhooks(ctx context.Context, env id.Environment, page, limit int) ([]Webhook, error) // newest first
	// SaveWebhook writes what the owner may change, and events, if nobody else has since w was read (fault.Conflict).
	// When it becomes enabled it is sent what happens from now on.
	SaveWebhook(ctx context.Context, w Webhook, events ...event.Event) error
	DeleteWebhook(ctx context.Context, env id.Environment, w id.Webhook) error
	// GetEvent reads one event of env, with its numbers.
	GetEvent(ctx context.Context, env id.Environment, event string) (event.Event, error)

	Deliveries(ctx context.Context, w id.Webhook, q DeliveryQuery) ([]Delivery, error) // newest event first
	// ReplayEvent has one event delivered, again or for the first time, and ReplaySince all that w wants from a time
	// on.
	ReplayEvent(ctx context.Context, w Webhook, event string) (Delivery, error)
	ReplaySince(ctx context.Context, w Webhook, since time.Time) error
	// ReplayFailed has those delivered again that failed, of events from a time on.
	ReplayFailed(ctx context.Context, w Webhook, since time.Time, b Batch) (Batched, error)
	// RetryWaiting has those attempted at once that wait for the time of their next attempt.
	RetryWaiting(ctx context.Context, w Webhook, b Batch) (Batched, error)
	// SkipDelivery has an event that waits not delivered; one that does not is NotWaiting.
	SkipDelivery(ctx context.Context, w Webhook, event string) (Delivery, error)
}

// DeliveryQuery selects deliveries.
type DeliveryQuery struct {
	State  State // empty: any
	Before int64 // sequence of the event that they come before; 0: of none
	Limit  int
}

// API is what the REST side and the command line call; bound to one environment.
type API interface {
	Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Webhook, error)
	Get(ctx context.Context, env id.Environment, w id.Webhook) (Webhook, error)
	List(ctx context.Context, env id.Environment, page, limit int) ([]Webhook, error)
	Patch(ctx context.Context, env id.Environment, w id.Webhook, in PatchInput, now time.Time) (Webhook, error)
	Delete(ctx context.Context, env id.Environment, w id.Webhook) error
	// RotateSecret makes a new secret; the old one signs too for 24 hours.
	RotateSecret(ctx context.Context, env id.Environment, w id.Webhook, now time.Time) (Webhook, error)
	// Test has an event sent to this endpoint alone.
	Test(ctx context.Context, env id.Environment, w id.Webhook, now time.Time) (event.Event, error)
	Deliveries(ctx context.Context, env id.Environment, w id.Webhook, q DeliveryQuery) ([]Delivery, error)
	ReplayEvent(ctx context.Context, env id.Environment, w id.Webhook, event string) (Delivery, error)
	ReplaySince(ctx context.Context, env id.Environment, w id.Webhook, since time.Time) (Webhook, error)
	// ReplayFailed has what failed delivered again, of events from a time on, and says how many there are.
	ReplayFailed(ctx context.Context, env id.Environment, w id.Webhook, since time.Time) (int, error)
	// Retry has what waits for its next attempt sent now, and says how many events those are.
	Retry(ctx context.Context, env id.Environment, w id.Webhook) (int, error)
	// Skip has one event that waits not delivered: the next one of its resource follows.
	Skip(ctx context.Context, env id.Environment, w id.Webhook, event string) (Delivery, error)
}

// CreateInput is what a new endpoint is made from.
type CreateInput struct {
	Address  string
	Types    []string
	Disabled bool // it is sent nothing until it is enabled
}

// PatchInput changes what is not nil.
type PatchInput struct {
	Address *string
	Enabled *bool
	Types   *[]string
}

// Service makes the changes of endpoints. It owns no goroutine; all its methods may be called at the same time.
type Service struct {
	store Store
	types []string // of all events
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts. types are those of all events that can happen: others can't be waited for.
func New(store Store, types []string) *Service { return &Service{store, types} }

// Create makes an endpoint with a fresh secret.
func (s *Service) Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Webhook, error) {
	if err := in.Check(s.types); err != nil {
		return Webhook{}, err
	}
	now = change.Stamp(now)
	w := Webhook{
		ID: id.Webhook(id.New()), Environment: env, Address: in.Address, Enabled: !in.Disabled, Types: in.Types,
		Secret: NewSecret(), CreatedAt: now, UpdatedAt: now,
	}
	return w, s.store.InsertWebhook(ctx, w, maxPerEnvironment)
}

// Get reads an endpoint of env.
func (s *Service) Get(ctx context.Context, env id.Environment, w id.Webhook) (Webhook, error) {
	return s.store.Webhook(ctx, env, w)
}

// List reads endpoints of env, newest first.
func (s *Service) List(ctx context.Context, env id.Environment, page, limit int) ([]Webhook, error) {
	page, limit, err := field.Page(page, limit)
	if err != nil {
		return nil, err
	}
	return s.store.Webhooks(ctx, env, page, limit)
}

// Patch changes an endpoint. One that is enabled again is sent what waited when it was disabled and had not been tried,
// then what happens from then on; what it has missed can be replayed.
func (s *Service) Patch(
	ctx context.Context, env id.Environment, key id.Webhook, in PatchInput, now time.Time,
) (Webhook, error) {
	if err := in.Check(s.types); err != nil {
		return Webhook{}, err
	}
	return s.change(ctx, env, key, now, func(w *Webhook) {
		if in.Address != nil {
			w.Address = *in.Address
		}
		if in.Types != nil {
			w.Types = *in.Types
		}
		if in.Enabled != nil {
			w.Enabled, w.FailingSince = *in.Enabled, time.Time{}
		}
	})
}

// Delete removes an endpoint; nothing more is sent to it.
func (s *Service) Delete(ctx context.Context, env id.Environment, w id.Webhook) error {
	return s.store.DeleteWebhook(ctx, env, w)
}

// RotateSecret makes a new secret; see API.
func (s *Service) RotateSecret(
	ctx context.Context, env id.Environment, key id.Webhook, now time.Time,
) (Webhook, error) {
	return s.change(ctx, env, key, now, func(w *Webhook) {
		w.OldSecret, w.OldUntil, w.Secret = w.Secret, change.Stamp(now).Add(overlap), NewSecret()
	})
}

// Test has an event sent to this endpoint alone; see API.
func (s *Service) Test(ctx context.Context, env id.Environment, key id.Webhook, now time.Time) (event.Event, error) {
	var e event.Event
	err := change.Retry(func() error {
		w, err := s.store.Webhook(ctx, env, key)
		if err != nil {
			return err
		}
		if !w.Enabled {
			return fault.New(fault.Invalid, "the webhook is disabled; enable it first")
		}
		e = w.tell(EventTest, change.Stamp(now))
		return s.store.SaveWebhook(ctx, w, e)
	})
	if err != nil {
		return event.Event{}, err
	}
	return s.store.GetEvent(ctx, env, e.ID)
}

// EventData is the data of an endpoint's events. The address is not in it: it may hold a secret.
type EventData struct {
	ID        id.Webhook `json:"id"`
	Enabled   bool       `json:"enabled"`
	CreatedAt int64      `json:"created_at"`
}

// tell makes an event about the endpoint.
func (w Webhook) tell(typ string, now time.Time) event.Event {
	return event.New(w.Environment, typ, EventObject, string(w.ID), now, EventData{
		ID:        w.ID,
		Enabled:   w.Enabled,
		CreatedAt: w.CreatedAt.Unix(),
	})
}

// GivenUp is the endpoint once it has failed for too long or wants no more events, and the event that tells of it.
func (w Webhook) GivenUp(now time.Time) (Webhook, event.Event) {
	w.Enabled, w.UpdatedAt = false, change.Stamp(now)
	return w, w.tell(EventDisabled, change.Stamp(now))
}

// Deliveries reads what was sent to an endpoint, newest event first.
func (s *Service) Deliveries(
	ctx context.Context, env id.Environment, w id.Webhook, q DeliveryQuery,
) ([]Delivery, error) {
	var l fault.List
	if q.State != "" {
		field.OneOf(&l, "status", string(q.State), string(Waiting), string(Delivered), string(Failed), string(Skipped))
	}
	var err error
	if _, q.Limit, err = field.Page(1, q.Limit); err != nil {
		return nil, err
	}
	if err = l.Err(); err != nil {
		return nil, err
	}
	row, err := s.store.Webhook(ctx, env, w)
	if err != nil {
		return nil, err
	}
	found, err := s.store.Deliveries(ctx, w, q)
	return row.explained(found), err
}

func (s *Service) change(
	ctx context.Context, env id.Environment, key id.Webhook, now time.Time, step func(*Webhook),
) (w Webhook, err error) {
	err = change.Retry(func() error {
		if w, err = s.store.Webhook(ctx, env, key); err != nil {
			return err
		}
		step(&w)
		w.UpdatedAt = change.Stamp(now)
		return s.store.SaveWebhook(ctx, w)
	})
	return w, err
}

// errTaken is the conflict that trying again does not end.
var errTaken = change.Final(fault.At(fault.Conflict, "address", "is that of another webhook of the environment"))

// Taken is what a store returns when another webhook of the environment has the address.
func Taken() error { return errTaken }

// Check says all that is wrong with in; types are those of all events. fault.Invalid.
func (c CreateInput) Check(types []string) error {
	var l fault.List
	checkAddress(&l, c.Address)
	checkTypes(&l, c.Types, types)
	return l.Err()
}

// Check says all that is wrong with in; types are those of all events. fault.Invalid.
func (p PatchInput) Check(types []string) error {
	var l fault.List
	if p.Address == nil && p.Enabled == nil && p.Types == nil {
		l.Add("at least one of address, enabled and event_types must be given")
	}
	if p.Address != nil {
		checkAddress(&l, *p.Address)
	}
	if p.Types != nil {
		checkTypes(&l, *p.Types, types)
	}
	return l.Err()
}

func checkAddress(l *fault.List, v string) {
	if v == "" {
		l.At("address", "is required")
		return
	}
	if len(v) > maxAddress {
		l.At("address", "may have at most %d bytes", maxAddress)
		return
	}
	if !field.WebURL(l, "address", v) {
		return
	}
	if u, err := url.Parse(v); err != nil || u.User != nil {
		l.At("address", "must not hold a user name or password; deliveries are signed")
	}
}

func checkTypes(l *fault.List, wanted, types []string) {
	if !field.Count(l, "event_types", len(wanted), maxTypes) {
		return
	}
	for i, t := range wanted {
		at := field.At("event_types", i)
		if !field.Text(l, at, t, maxType) || slices.Contains(types, t) {
			continue
		}
		if near := spelling.Nearest(t, types); near != "" {
			l.At(at, "is no type of event that can happen; did you mean %s?", near)
		} else {
			l.At(at, "must be a type of event that can happen, such as video.asset.ready")
		}
	}
}
