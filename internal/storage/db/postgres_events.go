package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	eventChannel = "millrace_events"
	// rightsChannel is for changes of what caches hold of viewers' rights, each with its noun and its ID.
	rightsChannel   = "millrace_rights"
	rightsSeparator = ":"
	// listenAgain is how long a listener waits that has lost its connection, and with it notifications.
	listenAgain = time.Second
	// eventsFor is how long one waits for a notification before it looks whether its connection still is one.
	eventsFor = 10 * time.Second
	// listenPing is how long the database may take to say so.
	listenPing = 5 * time.Second
)

// afterCommit leaves events without a sequence. Transactions end in another order than they begin in: one that took its numbers early and
// commits late would put events in front of others that have been read already.
type afterCommit struct{}

func (afterCommit) begin(ctx context.Context, t tx, _ int) (int64, error) {
	if _, err := t.ExecContext(ctx, "SELECT pg_notify('"+eventChannel+"', '')"); err != nil { // sent by the commit
		return 0, fmt.Errorf("notify of events: %w", err)
	}
	return 0, nil
}

// numberCommitted numbers what is committed and has no sequence: by time and by place in its change, but in the order of each resource's own numbers.
const numberCommitted = `WITH fresh AS (
    SELECT id, at, MAX(position) OVER (PARTITION BY resource_id, at ORDER BY number) AS position, resource_id, number FROM (
        SELECT id, MAX(at) OVER (PARTITION BY resource_id ORDER BY number) AS at, position, resource_id, number FROM events WHERE sequence = 0
    ) AS dated
), ordered AS (
    SELECT id, ROW_NUMBER() OVER (ORDER BY at, position, resource_id, number) AS place FROM fresh
)
UPDATE events SET sequence = $1 + ordered.place FROM ordered WHERE events.id = ordered.id`

// numberEvents has the row of the cursor locked while it numbers: one process at a time does, and each begins with what is committed by then.
func (e *postgresEngine) numberEvents(ctx context.Context) error {
	var some bool
	if err := e.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM events WHERE sequence = 0)").Scan(&some); err != nil || !some {
		return away(ctx, wrapped("look for new events", err))
	}
	err := pgx.BeginFunc(ctx, e.pool, func(t pgx.Tx) error {
		var last int64
		if err := t.QueryRow(ctx, "SELECT last FROM event_cursor WHERE one = 1 FOR UPDATE").Scan(&last); err != nil {
			return err
		}
		done, err := t.Exec(ctx, numberCommitted, last)
		if err != nil {
			return err
		}
		_, err = t.Exec(ctx, "UPDATE event_cursor SET last = $1 WHERE one = 1", last+done.RowsAffected())
		return err
	})
	return away(ctx, wrapped("number events", err))
}

// tellRights implements engine.
func (e *postgresEngine) tellRights(ctx context.Context, t tx, noun, key string) error {
	// The commit sends it.
	if _, err := t.ExecContext(ctx, "SELECT pg_notify(?, ?)", rightsChannel, noun+rightsSeparator+key); err != nil {
		return fmt.Errorf("notify of %s: %w", noun, err)
	}
	return nil
}

func (e *postgresEngine) alone() bool { return false }

func (e *postgresEngine) logBytes() func() int64 { return nil }

func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// run numbers events as they are committed, by any process, and tells who waits for them here; and it tells of changed
// rights.
func (e *postgresEngine) run(ctx context.Context) error {
	pause := time.NewTicker(listenAgain)
	defer pause.Stop()
	for ctx.Err() == nil {
		if err := e.listen(ctx); err != nil && ctx.Err() == nil {
			e.logger.DebugContext(ctx, "stopped listening for events", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
	return nil
}

// listen has a connection of its own until that breaks.
func (e *postgresEngine) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, e.pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, channel := range []string{eventChannel, rightsChannel} {
		if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
			return fmt.Errorf("listen for events: %w", err)
		}
	}
	e.rights.missed() // what was changed while nobody listened
	for {
		if err := e.numberEvents(ctx); err != nil {
			return err
		}
		e.events.tell()
		if err := e.await(ctx, conn); err != nil {
			return err
		}
	}
}

// await returns at the next notification of events, or after a while without one. What is said of rights it tells.
func (e *postgresEngine) await(ctx context.Context, conn *pgx.Conn) error {
	short, stop := context.WithTimeout(ctx, eventsFor)
	defer stop()
	for {
		n, err := conn.WaitForNotification(short)
		switch {
		case err == nil && n.Channel == rightsChannel:
			e.rights.told(n.Payload)
		case err == nil:
			return nil
		case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("wait for events: %w", err)
		default:
			return alive(ctx, conn)
		}
	}
}

// alive fails for a connection that is one no more, although nobody has said so: nothing would be heard of over it.
func alive(ctx context.Context, conn *pgx.Conn) error {
	short, stop := context.WithTimeout(ctx, listenPing)
	defer stop()
	if err := conn.Ping(short); err != nil {
		return fmt.Errorf("look after connection for events: %w", err)
	}
	return nil
}
