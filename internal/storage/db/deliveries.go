package db

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

type deliveryRow struct {
	bun.BaseModel `bun:"table:webhook_deliveries,alias:d"`
	Webhook       string `bun:"webhook_id,pk"`
	Sequence      int64  `bun:"sequence,pk"`
	Resource      string `bun:"resource_id"`
	State         string `bun:"state"`
	Attempts      int64  `bun:"attempts"`
	FirstAt       int64  `bun:"first_at"`
	NextAt        int64  `bun:"next_at"`
	Log           string `bun:"log"` // a line of JSON for each attempt
}

func deliveryRowOf(w id.Webhook, e event.Event) deliveryRow {
	return deliveryRow{Webhook: string(w), Sequence: e.Sequence, Resource: e.Resource, State: string(webhook.Waiting)}
}

// What came of an attempt.
const (
	// recordAttempt writes it if the delivery still waits, and the endpoint is the node's.
	recordAttempt = "UPDATE webhook_deliveries SET state = ?, attempts = attempts + 1, first_at = ?, next_at = ?, " +
		"log = log || ? " +
		"WHERE webhook_id = ? AND sequence = ? AND state = 'waiting' AND EXISTS (SELECT 1 FROM webhooks WHERE id = " +
		"webhook_id AND owner = ?)"
	// noteAttempt writes down one that comes too late to decide: the delivery was given up or skipped, or is another
	// node's. What was given up or skipped may have been delivered after all.
	noteAttempt = "UPDATE webhook_deliveries SET log = log || ?, state = CASE " +
		"WHEN state IN ('failed', 'skipped') AND ? = 'delivered' THEN 'delivered' ELSE state END " +
		"WHERE webhook_id = ? AND sequence = ?"
)

// queue makes waiting deliveries, or has those that are there wait again.
func (t tx) queue(ctx context.Context, rows []deliveryRow) error {
	const at = 200
	for some := range slices.Chunk(rows, at) {
		_, err := t.NewInsert().Model(&some).On("CONFLICT (webhook_id, sequence) DO UPDATE").
			Set("state = EXCLUDED.state").Set("attempts = 0").Set("first_at = 0").Set("next_at = 0").Exec(ctx)
		if err != nil {
			return fmt.Errorf("insert deliveries: %w", err)
		}
	}
	return nil
}

// Claim gives the endpoints that node sends to; see webhook.Outbox. It writes only when a lease is to be taken or is
// half over.
func (d *DB) Claim(ctx context.Context, node id.Node, lease time.Duration) ([]webhook.Held, error) {
	now, free := bun.Safe(d.engine.now()), bun.Safe("lease_until < "+d.engine.now())
	if d.engine.alone() { // whoever else has a lease has died
		free = "TRUE"
	}
	due, err := d.read.NewSelect().Table("webhooks").
		Where("owner = ? AND lease_until < ? + ?", string(node), now, (lease/2).Milliseconds()).
		WhereOr("owner <> ? AND ?", string(node), free).Count(ctx)
	if err != nil {
		return nil, fmt.Errorf("read leases of webhooks: %w", err)
	}
	if due > 0 {
		err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
			_, failed := t.NewUpdate().Table("webhooks").Set("owner = ?", string(node)).
				Set("lease_until = ? + ?", now, lease.Milliseconds()).
				Where("owner = ? OR ?", string(node), free).Exec(ctx)
			return failed
		})
		if err != nil {
			return nil, fmt.Errorf("take leases of webhooks: %w", err)
		}
	}
	var rows []webhookRow
	if err := d.read.NewSelect().Model(&rows).Where("owner = ?", string(node)).Where("lease_until > ?", now).
		Order("created_at", "id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	out := make([]webhook.Held, 0, len(rows))
	for _, r := range rows {
		w, err := d.webhookOf(r) // others can be sent to
		out = append(out, webhook.Held{Webhook: w, Position: r.Position, Err: err})
	}
	return out, nil
}

// Release gives all of node's leases back.
func (d *DB) Release(ctx context.Context, node id.Node) error {
	_, err := d.write.NewUpdate().Table("webhooks").Set("owner = ''").Set("lease_until = 0").
		Where("owner = ?", string(node)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("give leases of webhooks back: %w", err)
	}
	return nil
}

// Queue makes deliveries; see webhook.Outbox. Steps between the same positions, which is what most of them are, are
// written together.
func (d *DB) Queue(
	ctx context.Context, node id.Node, steps []webhook.Step,
) (queued map[id.Webhook][]webhook.Pending, err error) {
	type move struct{ from, to int64 }
	moves := map[move][]webhook.Step{}
	for _, s := range steps {
		moves[move{s.From, s.To}] = append(moves[move{s.From, s.To}], s)
	}
	err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		queued = map[id.Webhook][]webhook.Pending{}
		for m, together := range moves {
			keys := make([]string, 0, len(together))
			for _, s := range together {
				keys = append(keys, string(s.Webhook))
			}
			var moved []string
			failed := t.NewRaw("UPDATE webhooks SET position = ? WHERE id IN ? AND owner = ? AND position = ? AND "+
				"enabled RETURNING id",
				m.to, bun.Tuple(keys), string(node), m.from).Scan(ctx, &moved)
			if failed != nil {
				return fmt.Errorf("move positions of webhooks: %w", failed)
			}
			if len(moved) == 0 {
				continue
			}
			before, failed := attempted(ctx, t, moved, m.from, m.to)
			if failed != nil {
				return failed
			}
			var rows []deliveryRow
			for _, s := range together {
				if !slices.Contains(moved, string(s.Webhook)) {
					continue
				}
				pending := make([]webhook.Pending, 0, len(s.Events))
				for _, e := range s.Events {
					rows = append(rows, deliveryRowOf(s.Webhook, e))
					pending = append(pending, webhook.Pending{
						Sequence: e.Sequence, Resource: e.Resource, Replayed: before[deliveryKey{
							string(s.Webhook),
							e.Sequence,
						}],
					})
				}
				queued[s.Webhook] = pending
			}
			if failed = t.queue(ctx, rows); failed != nil {
				return failed
			}
		}
		return nil
	})
	return queued, err
}

// deliveryKey names a delivery.
type deliveryKey struct {
	webhook  string
	sequence int64
}

// attempted are the deliveries of some endpoints, of events behind one position up to another, that attempts were made
// of.
func attempted(ctx context.Context, t tx, webhooks []string, from, to int64) (map[deliveryKey]bool, error) {
	var rows []deliveryRow
	err := t.NewSelect().Model(&rows).Column("webhook_id", "sequence").Where("webhook_id IN ?", bun.Tuple(webhooks)).
		Where("sequence > ?", from).Where("sequence <= ?", to).Where("log <> ''").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	out := make(map[deliveryKey]bool, len(rows))
	for _, r := range rows {
		out[deliveryKey{r.Webhook, r.Sequence}] = true
	}
	return out, nil
}

// Pending gives waiting deliveries; see webhook.Outbox.
func (d *DB) Pending(ctx context.Context, w id.Webhook, limit int) ([]webhook.Pending, error) {
	var rows []struct {
		Sequence int64  `bun:"sequence"`
		Resource string `bun:"resource_id"`
		Attempts int64  `bun:"attempts"`
		FirstAt  int64  `bun:"first_at"`
		NextAt   int64  `bun:"next_at"`
		Logged   bool   `bun:"logged"`
	}
	err := d.read.NewSelect().Table("webhook_deliveries").
		ColumnExpr("sequence, resource_id, attempts, first_at, next_at, log <> '' AS logged").
		Where("webhook_id = ?", string(w)).Where("state = 'waiting'").
		Order("sequence").Limit(int64(limit)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read waiting deliveries: %w", err)
	}
	out := make([]webhook.Pending, 0, len(rows))
	for _, r := range rows {
		out = append(out, webhook.Pending{
			Sequence: r.Sequence, Resource: r.Resource,
			Attempts: int(r.Attempts), Replayed: r.Logged && r.Attempts == 0,
			FirstAt: moment(r.FirstAt), NextAt: moment(r.NextAt),
		})
	}
	return out, nil
}

// Record writes what came of attempts; see webhook.Outbox.
func (d *DB) Record(
	ctx context.Context, node id.Node, results []webhook.Result, health map[id.Webhook]time.Time,
) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		for _, r := range results {
			if err := t.record(ctx, node, r); err != nil {
				return fmt.Errorf("write delivery: %w", err)
			}
		}
		for w, since := range health {
			_, err := t.NewUpdate().Table("webhooks").Set("failing_since = ?", millis(since)).
				Where("id = ?", string(w)).
				Where("owner = ?", string(node)).Exec(ctx)
			if err != nil {
				return fmt.Errorf("write webhook: %w", err)
			}
		}
		return nil
	})
}

func (t tx) record(ctx context.Context, node id.Node, r webhook.Result) error {
	line, err := document(r.Attempt)
	if err != nil {
		return err
	}
	line += "\n"
	res, err := t.exec(ctx, recordAttempt, string(r.State), millis(r.FirstAt), millis(r.NextAt), line,
		string(r.Webhook), r.Sequence, string(node))
	if err != nil {
		return err
	}
	if n, failed := res.RowsAffected(); failed != nil || n > 0 {
		return failed
	}
	_, err = t.exec(ctx, noteAttempt, line, string(r.State), string(r.Webhook), r.Sequence)
	return err
}

// FailTried gives up waiting deliveries; see webhook.Outbox.
func (d *DB) FailTried(ctx context.Context, w id.Webhook, why webhook.Attempt, limit int) (n int, err error) {
	line, err := document(why)
	if err != nil {
		return 0, err
	}
	err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		some := t.NewSelect().Table("webhook_deliveries").Column("sequence").Where("webhook_id = ?", string(w)).
			Where("state = 'waiting'").Where("attempts > 0").Order("sequence").Limit(int64(limit))
		res, failed := t.NewUpdate().Table("webhook_deliveries").Set("state = 'failed'").
			Set("log = log || ?", line+"\n").
			Where("webhook_id = ?", string(w)).Where("sequence IN (?)", some).Exec(ctx)
		if failed != nil {
			return fmt.Errorf("give up deliveries: %w", failed)
		}
		done, failed := res.RowsAffected()
		n = int(done)
		return failed
	})
	return n, err
}

// Attempts are those that were made to deliver an event.
func (d *DB) Attempts(ctx context.Context, w id.Webhook, sequence int64) ([]webhook.Attempt, error) {
	var logs []string
	err := d.read.NewSelect().Table("webhook_deliveries").Column("log").Where("webhook_id = ?", string(w)).
		Where("sequence = ?", sequence).Scan(ctx, &logs)
	if err != nil || len(logs) == 0 {
		return nil, wrapped("read attempts", err)
	}
	return attempts(w, logs[0])
}

// AttemptsOf are those that were made to deliver each of these events, to any endpoint, oldest first; at most `most` of
// an event, the newest.
func (d *DB) AttemptsOf(ctx context.Context, sequences []int64, most int) (map[int64][]webhook.Attempt, error) {
	out := map[int64][]webhook.Attempt{}
	if len(sequences) == 0 {
		return out, nil
	}
	var rows []deliveryRow
	err := d.read.NewSelect().Model(&rows).Column("webhook_id", "sequence", "log").Where("sequence IN ?",
		bun.Tuple(sequences)).Where("log <> ''").
		Order("sequence", "webhook_id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	for _, r := range rows {
		made, err := attempts(id.Webhook(r.Webhook), r.Log)
		if err != nil {
			return nil, err
		}
		out[r.Sequence] = append(out[r.Sequence], made...)
	}
	for n, made := range out {
		slices.SortStableFunc(made, func(a, b webhook.Attempt) int { return a.At.Compare(b.At) })
		out[n] = made[max(len(made)-most, 0):]
	}
	return out, nil
}

// attempts reads the log of a delivery.
func attempts(w id.Webhook, log string) (out []webhook.Attempt, err error) {
	for line := range strings.Lines(log) {
		a := webhook.Attempt{Webhook: w, Number: len(out) + 1}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			return nil, fmt.Errorf("read attempts: %w", err)
		}
		out = append(out, a)
	}
	return out, nil
}
