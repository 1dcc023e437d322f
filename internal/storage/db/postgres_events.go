package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// eventChannel says that there are events, or that something about webhooks is changed.
	eventChannel = "millrace_events"
	// rightsChannel is for changes of what caches hold of viewers' rights, each with its noun and its ID.
	rightsChannel   = "millrace_rights"
	rightsSeparator = ":"
)

// afterCommit leaves events without a sequence. Transactions end in another order than they begin in: one that took its
// numbers early and commits late would put events in front of others that have been read already. It only notes that
// there are some: see notices.
type afterCommit struct{ some bool }

func (a *afterCommit) begin(context.Context, tx, int) (int64, error) {
	a.some = true
	return 0, nil
}

// numberCommitted numbers what is committed and has no sequence: by time and by place in its change, but in the order
// of each resource's own numbers.
const numberCommitted = `WITH fresh AS (
    SELECT id, at, MAX(position) OVER (PARTITION BY resource_id, at ORDER BY number) AS position, resource_id, number FROM (
        SELECT id, MAX(at) OVER (PARTITION BY resource_id ORDER BY number) AS at, position, resource_id, number FROM events WHERE sequence = 0
    ) AS dated
), ordered AS (
    SELECT id, ROW_NUMBER() OVER (ORDER BY at, position, resource_id, number) AS place FROM fresh
)
UPDATE events SET sequence = $1 + ordered.place FROM ordered WHERE events.id = ordered.id`

// numberEvents implements engine.
func (p *postgresEngine) numberEvents(ctx context.Context) error {
	_, some, err := lookForEvents(ctx, p.pool)
	if err == nil && some {
		_, err = number(ctx, p.pool)
	}
	return away(ctx, err)
}

// querier is the pool, or a connection of its own.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	Begin(ctx context.Context) (pgx.Tx, error)
}

// lookForEvents reads the last sequence that was given, and whether events are committed that have none.
func lookForEvents(ctx context.Context, q querier) (last int64, some bool, err error) {
	err = q.QueryRow(ctx,
		"SELECT last, EXISTS (SELECT 1 FROM events WHERE sequence = 0) FROM event_cursor WHERE one = 1").
		Scan(&last, &some)
	return last, some, wrapped("look for new events", err)
}

// number has the row of the cursor locked while it numbers: one process at a time does, and each begins with what is
// committed by then. It gives the last sequence.
func number(ctx context.Context, q querier) (last int64, err error) {
	err = pgx.BeginFunc(ctx, q, func(t pgx.Tx) error {
		row := t.QueryRow(ctx, "SELECT last FROM event_cursor WHERE one = 1 FOR UPDATE")
		if failed := row.Scan(&last); failed != nil {
			return failed
		}
		done, failed := t.Exec(ctx, numberCommitted, last)
		if failed != nil {
			return failed
		}
		last += done.RowsAffected()
		_, failed = t.Exec(ctx, "UPDATE event_cursor SET last = $1 WHERE one = 1", last)
		return failed
	})
	return last, wrapped("number events", err)
}

// tellRights implements engine.
func (p *postgresEngine) tellRights(ctx context.Context, t tx, noun, key string) error {
	// The commit sends it.
	if _, err := t.ExecContext(ctx, "SELECT pg_notify(?, ?)", rightsChannel, noun+rightsSeparator+key); err != nil {
		return fmt.Errorf("notify of %s: %w", noun, err)
	}
	return nil
}

func (p *postgresEngine) alone() bool { return false }

func (p *postgresEngine) logBytes() func() int64 { return nil }

func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
