package db

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// firstWaiting is the event that is delivered before all others of the resource of a delivery that waits.
const firstWaiting = "CASE WHEN d.state = 'waiting' THEN (SELECT f.sequence FROM webhook_deliveries AS f " +
	"WHERE f.webhook_id = d.webhook_id AND f.state = 'waiting' AND f.resource_id = d.resource_id " +
	"ORDER BY f.sequence LIMIT 1) ELSE d.sequence END AS first"

// listedDelivery is a delivery with its event.
type listedDelivery struct {
	deliveryRow `bun:",extend"`

	EventID   string `bun:"event_id"`
	EventType string `bun:"event_type"`
	First     int64  `bun:"first"`
}

// Deliveries reads what was sent to an endpoint; see webhook.Store.
func (d *DB) Deliveries(ctx context.Context, w id.Webhook, q webhook.DeliveryQuery) ([]webhook.Delivery, error) {
	return deliveriesOf(ctx, d.read, w, q)
}

func deliveriesOf(
	ctx context.Context, from bun.IDB, w id.Webhook, q webhook.DeliveryQuery,
) ([]webhook.Delivery, error) {
	var rows []listedDelivery
	sel := from.NewSelect().TableExpr("webhook_deliveries AS d").
		ColumnExpr("d.webhook_id, d.sequence, d.resource_id, d.state, d.attempts, d.first_at, d.next_at, d.log, "+
			"e.id AS event_id, e.type AS event_type, "+firstWaiting).
		Join("JOIN events AS e ON e.sequence = d.sequence AND e.sequence > 0").Where("d.webhook_id = ?", string(w))
	if q.State != "" {
		sel = sel.Where("d.state = ?", string(q.State))
	}
	if q.Before > 0 {
		sel = sel.Where("d.sequence < ?", q.Before)
	}
	if err := sel.OrderExpr("d.sequence DESC").Limit(int64(q.Limit)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	earlier, err := earlierEvents(ctx, from, rows)
	if err != nil {
		return nil, err
	}
	out := make([]webhook.Delivery, 0, len(rows))
	for _, r := range rows {
		made, err := attempts(id.Webhook(r.Webhook), r.Log)
		if err != nil {
			return nil, err
		}
		out = append(out, webhook.Delivery{
			Sequence: r.Sequence, EventID: r.EventID, EventType: r.EventType, Resource: r.Resource,
			State: webhook.State(r.State), Attempts: made, NextAt: moment(r.NextAt), Earlier: earlier[r.First],
		})
		if r.First == r.Sequence {
			out[len(out)-1].Earlier = webhook.EarlierEvent{}
		}
	}
	return out, nil
}

// earlierEvents are the events that deliveries wait for, by their sequences.
func earlierEvents(
	ctx context.Context, from bun.IDB, rows []listedDelivery,
) (map[int64]webhook.EarlierEvent, error) {
	var sequences []int64
	for _, r := range rows {
		if r.First != r.Sequence {
			sequences = append(sequences, r.First)
		}
	}
	out := make(map[int64]webhook.EarlierEvent, len(sequences))
	if len(sequences) == 0 {
		return out, nil
	}
	var found []struct {
		Sequence int64  `bun:"sequence"`
		ID       string `bun:"id"`
	}
	err := from.NewSelect().Table("events").Column("sequence", "id").Where("sequence > 0").
		Where("sequence IN ?", bun.Tuple(sequences)).Scan(ctx, &found)
	if err != nil {
		return nil, fmt.Errorf("read events that others wait for: %w", err)
	}
	for _, e := range found {
		out[e.Sequence] = webhook.EarlierEvent{Sequence: e.Sequence, ID: e.ID}
	}
	return out, nil
}
