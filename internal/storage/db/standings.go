package db

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// readStandings has the endpoints of an environment, then the deliveries of events: one query, and none of the logs,
// which may be large.
const readStandings = "SELECT id AS webhook_id, enabled, event_types, position, 0 AS sequence, '' AS state, " +
	"0 AS attempts, 0 AS next_at FROM webhooks WHERE environment_id = ? UNION ALL " +
	"SELECT webhook_id, FALSE, '', 0, sequence, state, attempts, next_at FROM webhook_deliveries WHERE sequence IN ?"

// Standings are how far events of an environment have come at its endpoints, by their sequences; those of an event are
// in the order of the endpoints' IDs, first those that it was queued for.
func (d *DB) Standings(
	ctx context.Context, env id.Environment, events []event.Event,
) (map[int64][]webhook.Standing, error) {
	if len(events) == 0 {
		return map[int64][]webhook.Standing{}, nil
	}
	sequences := make([]int64, 0, len(events))
	for _, e := range events {
		sequences = append(sequences, e.Sequence)
	}
	var rows []struct {
		Webhook  string `bun:"webhook_id"`
		Enabled  bool   `bun:"enabled"`
		Types    string `bun:"event_types"`
		Position int64  `bun:"position"`
		Sequence int64  `bun:"sequence"`
		State    string `bun:"state"`
		Attempts int64  `bun:"attempts"`
		NextAt   int64  `bun:"next_at"`
	}
	err := d.read.NewRaw(readStandings+" ORDER BY sequence, webhook_id", string(env), bun.Tuple(sequences)).
		Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read states of deliveries: %w", err)
	}
	var all []webhook.Reader
	queued := map[int64][]webhook.Standing{}
	for _, r := range rows {
		if r.Sequence > 0 {
			queued[r.Sequence] = append(queued[r.Sequence], webhook.Standing{
				Webhook: id.Webhook(r.Webhook), State: webhook.State(r.State), Tried: r.Attempts > 0,
				NextAt: moment(r.NextAt),
			})
			continue
		}
		w := webhook.Webhook{ID: id.Webhook(r.Webhook), Environment: env, Enabled: r.Enabled}
		if err = read(r.Types, &w.Types); err != nil {
			_ = d.listed(ctx, fmt.Errorf("read webhook %s: %w", r.Webhook, err))
			continue
		}
		all = append(all, webhook.Reader{Webhook: w, Position: r.Position})
	}
	return webhook.Standings(events, all, queued), nil
}
