package webhook

import (
	"context"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// changedAtOnce is how many deliveries are changed in one transaction.
	changedAtOnce = 1000
	// maxChanged is how many are changed by one request, for which its sender waits.
	maxChanged = 100_000
)

// ReplayEvent has one event delivered again.
func (s *Service) ReplayEvent(
	ctx context.Context, env id.Environment, key id.Webhook, event string,
) (Delivery, error) {
	w, err := s.enabled(ctx, env, key)
	if err != nil {
		return Delivery{}, err
	}
	d, err := s.store.ReplayEvent(ctx, w, event)
	d.Reason = w.reason(d)
	return d, err
}

// ReplaySince has all events delivered again that the endpoint wants, from a time on, in their order; new ones come
// behind them.
func (s *Service) ReplaySince(
	ctx context.Context, env id.Environment, key id.Webhook, since time.Time,
) (Webhook, error) {
	w, err := s.enabled(ctx, env, key)
	if err != nil {
		return Webhook{}, err
	}
	return w, s.store.ReplaySince(ctx, w, since)
}

// ReplayFailed has those events delivered again that were given up, from a time on, oldest first; see API. A zero time
// means all that are kept.
func (s *Service) ReplayFailed(
	ctx context.Context, env id.Environment, key id.Webhook, since time.Time,
) (int, error) {
	w, err := s.enabled(ctx, env, key)
	if err != nil {
		return 0, err
	}
	return inBatches(func(b Batch) (Batched, error) { return s.store.ReplayFailed(ctx, w, since, b) })
}

// Retry has what waits for its next attempt sent now, also what the endpoint has asked to get later; see API. Events
// that wait for an earlier one of their resource follow it as ever.
func (s *Service) Retry(ctx context.Context, env id.Environment, key id.Webhook) (int, error) {
	w, err := s.enabled(ctx, env, key)
	if err != nil {
		return 0, err
	}
	return inBatches(func(b Batch) (Batched, error) { return s.store.RetryWaiting(ctx, w, b) })
}

// Skip has one event that waits not delivered, so that the next one of its resource is; see API. An attempt that is
// under way is not broken off: when it succeeds the event counts as delivered.
func (s *Service) Skip(ctx context.Context, env id.Environment, key id.Webhook, event string) (Delivery, error) {
	w, err := s.store.Webhook(ctx, env, key)
	if err != nil {
		return Delivery{}, err
	}
	return s.store.SkipDelivery(ctx, w, event)
}

// inBatches changes deliveries until there are no more, and says how many were changed.
func inBatches(change func(Batch) (Batched, error)) (n int, err error) {
	for b := (Batch{Limit: changedAtOnce}); n < maxChanged; {
		done, err := change(b)
		if n += done.Count; err != nil || !done.More {
			return n, err
		}
		b.After = done.Last
	}
	return n, nil
}

func (s *Service) enabled(ctx context.Context, env id.Environment, key id.Webhook) (Webhook, error) {
	w, err := s.store.Webhook(ctx, env, key)
	if err == nil && !w.Enabled {
		return Webhook{}, fault.New(fault.Invalid, "the webhook is disabled; enable it first")
	}
	return w, err
}
