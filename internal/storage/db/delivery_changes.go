package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
)

// reread has the node that sends to an endpoint read again what waits.
func reread(ctx context.Context, t tx, w webhook.Webhook) error {
	t.about(w.Environment, webhookNoun, string(w.ID))
	_, err := t.NewUpdate().Table("webhooks").Set("revision = revision + 1").Where("id = ?", string(w.ID)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("write webhook: %w", err)
	}
	return t.wake(ctx)
}

// ReplayEvent has one event delivered again; see webhook.Store.
func (d *DB) ReplayEvent(ctx context.Context, w webhook.Webhook, key string) (webhook.Delivery, error) {
	return d.changeDelivery(ctx, w, key, func(ctx context.Context, t tx, e event.Event) error {
		return t.queue(ctx, []deliveryRow{deliveryRowOf(w.ID, e)})
	})
}

// SkipDelivery ends a delivery that waits; see webhook.Store.
func (d *DB) SkipDelivery(ctx context.Context, w webhook.Webhook, key string) (webhook.Delivery, error) {
	return d.changeDelivery(ctx, w, key, func(ctx context.Context, t tx, e event.Event) error {
		res, err := t.NewUpdate().Table("webhook_deliveries").Set("state = ?", string(webhook.Skipped)).
			Set("next_at = 0").Where("webhook_id = ?", string(w.ID)).Where("sequence = ?", e.Sequence).
			Where("state = 'waiting'").Exec(ctx)
		if err != nil {
			return fmt.Errorf("skip delivery: %w", err)
		}
		if n, failed := res.RowsAffected(); failed != nil || n > 0 {
			return failed
		}
		return webhook.NotWaiting()
	})
}

// changeDelivery changes the delivery of an event, and reads it in the same transaction: behind the commit it may have
// been made already.
func (d *DB) changeDelivery(
	ctx context.Context, w webhook.Webhook, key string, change func(context.Context, tx, event.Event) error,
) (webhook.Delivery, error) {
	e, err := d.GetEvent(ctx, w.Environment, key)
	if err != nil {
		return webhook.Delivery{}, err
	}
	var changed []webhook.Delivery
	err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if err = change(ctx, t, e); err != nil {
			return err
		}
		changed, err = deliveriesOf(ctx, t, w.ID, webhook.DeliveryQuery{Before: e.Sequence + 1, Limit: 1})
		return errors.Join(err, reread(ctx, t, w))
	})
	if err != nil || len(changed) == 0 {
		return webhook.Delivery{}, err
	}
	return changed[0], nil
}

// ReplaySince sets the position back to in front of the first event since a time; see webhook.Store.
func (d *DB) ReplaySince(ctx context.Context, w webhook.Webhook, since time.Time) error {
	first, err := d.firstSince(ctx, w, since)
	if err != nil || first == 0 {
		return err
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		_, err := t.NewUpdate().Table("webhooks").Set("position = ?", first-1).Where("id = ?", string(w.ID)).
			Where("position >= ?", first).Exec(ctx)
		if err != nil {
			return fmt.Errorf("set position of webhook back: %w", err)
		}
		return reread(ctx, t, w)
	})
}

// firstSince is the sequence of the first event since a time; 0: there is none.
func (d *DB) firstSince(ctx context.Context, w webhook.Webhook, since time.Time) (int64, error) {
	first, err := d.ListEvents(ctx, event.Query{Environment: w.Environment, Since: since, Limit: 1})
	if err != nil || len(first) == 0 {
		return 0, err
	}
	return first[0].Sequence, nil
}

// RetryWaiting takes the pauses of deliveries away; see webhook.Store.
func (d *DB) RetryWaiting(ctx context.Context, w webhook.Webhook, b webhook.Batch) (webhook.Batched, error) {
	return d.changeDeliveries(ctx, w, "state = 'waiting' AND next_at > 0", b, "next_at = 0")
}

// ReplayFailed has deliveries that failed wait again; see webhook.Store.
func (d *DB) ReplayFailed(
	ctx context.Context, w webhook.Webhook, since time.Time, b webhook.Batch,
) (webhook.Batched, error) {
	first, err := d.firstSince(ctx, w, since)
	if err != nil || first == 0 {
		return webhook.Batched{}, err
	}
	b.After = max(b.After, first-1)
	return d.changeDeliveries(ctx, w, "state = 'failed'", b,
		"state = 'waiting', attempts = 0, first_at = 0, next_at = 0")
}

// changeDeliveries sets columns of a batch of deliveries. They are looked for in front of the transaction, which holds
// the one writer of SQLite.
func (d *DB) changeDeliveries(
	ctx context.Context, w webhook.Webhook, which string, b webhook.Batch, set string,
) (done webhook.Batched, err error) {
	var some []int64
	err = d.read.NewSelect().Table("webhook_deliveries").Column("sequence").Where("webhook_id = ?", string(w.ID)).
		Where(which).Where("sequence > ?", b.After).Order("sequence").Limit(int64(b.Limit)).Scan(ctx, &some)
	if err != nil {
		return done, fmt.Errorf("read deliveries: %w", err)
	}
	err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		done = webhook.Batched{}
		if len(some) == 0 {
			return reread(ctx, t, w)
		}
		res, failed := t.NewUpdate().Table("webhook_deliveries").Set(set).Where("webhook_id = ?", string(w.ID)).
			Where("sequence IN ?", bun.Tuple(some)).Where(which).Exec(ctx)
		if failed != nil {
			return fmt.Errorf("write deliveries: %w", failed)
		}
		n, failed := res.RowsAffected()
		done = webhook.Batched{Count: int(n), Last: some[len(some)-1], More: len(some) == b.Limit}
		return errors.Join(failed, reread(ctx, t, w))
	})
	return done, err
}
