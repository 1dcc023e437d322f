package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// listenerName is the application_name of the connection that listens.
	listenerName = "millrace listener"
	// listenAgain is how long a listener waits that has lost its connection, and with it notifications.
	listenAgain = time.Second
	// roundEvery is how often one looks for events that it was not notified of: those of a process that has died, or
	// that could not notify.
	roundEvery = time.Second
	// roundsApart is the time from one look to the next, however many notifications there are to send or have come.
	roundsApart = 50 * time.Millisecond
	// lookFor is how long the database may take to say whether there are any, and to send notifications. A connection
	// that is one no more, although nobody has said so, is noticed by that.
	lookFor = 15 * time.Second
	// numberFor is how long it may take to number them, and to wait for another process that does.
	numberFor = time.Minute
)

// run numbers events as they are committed, by any process, and tells who waits for them here; it notifies others of
// what this process commits; and it tells of changed rights.
func (p *postgresEngine) run(ctx context.Context) error {
	pause := time.NewTicker(listenAgain)
	defer pause.Stop()
	for ctx.Err() == nil {
		if err := p.listen(ctx); err != nil && ctx.Err() == nil {
			p.logger.DebugContext(ctx, "stopped listening for events", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
	return nil
}

// listen has a connection of its own until that breaks.
func (p *postgresEngine) listen(ctx context.Context) error {
	cfg := p.server.Config().ConnConfig
	cfg.RuntimeParams["application_name"] = listenerName
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect to database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, channel := range []string{eventChannel, rightsChannel} {
		if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
			return fmt.Errorf("listen for events: %w", err)
		}
	}
	p.rights.missed() // what was changed while nobody listened
	l := listening{postgresEngine: p, conn: conn, wanted: true}
	for {
		if err := l.round(ctx); err != nil {
			return err
		}
		if err := l.await(ctx); err != nil {
			return err
		}
	}
}

// listening is the one connection that listens, looks for events and notifies: it waits for nobody who has the
// connections of the pool.
type listening struct {
	*postgresEngine

	conn   *pgx.Conn
	last   int64 // sequence when it looked last
	wanted bool  // somebody has said that there is something
	mute   bool  // the last notification could not be sent
}

// round numbers what has come, tells who waits for it here, and notifies the others once for all that this process has
// committed since the last round.
func (l *listening) round(ctx context.Context) error {
	events, queues := l.notices.take()
	last, err := l.number(ctx)
	if err != nil {
		return err
	}
	if l.wanted || events || last != l.last {
		l.events.tell()
	}
	l.wanted, l.last = false, last
	if !events && len(queues) == 0 {
		return nil
	}
	return l.notify(ctx, events, queues)
}

// number numbers what is committed, and gives the last sequence.
func (l *listening) number(ctx context.Context) (int64, error) {
	short, stop := context.WithTimeout(ctx, lookFor)
	defer stop()
	last, some, err := lookForEvents(short, l.conn)
	if err != nil || !some {
		return last, err
	}
	long, stop := context.WithTimeout(ctx, numberFor)
	defer stop()
	return number(long, l.conn)
}

// notify sends notifications. What the server refuses to send is not sent again: the others look each second.
func (l *listening) notify(ctx context.Context, events bool, queues []string) error {
	ctx, stop := context.WithTimeout(ctx, lookFor)
	defer stop()
	err := send(ctx, l.conn, events, queues)
	if _, refused := errors.AsType[*pgconn.PgError](err); err != nil && (!refused || l.conn.IsClosed()) {
		return err
	}
	if err != nil && !l.mute {
		l.logger.WarnContext(ctx, "other nodes see events and jobs up to a second late", slog.Any("error", err))
	}
	l.mute = err != nil
	return nil
}

// await returns when it is time for the next round: once somebody has said that there is something, or after a while.
// What is said of rights it tells at once.
func (l *listening) await(ctx context.Context) error {
	now := time.Now()
	soon, late := now.Add(roundsApart), now.Add(roundEvery)
	for {
		until := late
		if l.wanted {
			until = soon
		}
		n, err := l.wait(ctx, until)
		switch {
		case err != nil:
			return err
		case n == nil && !l.wanted && l.notices.pending():
			l.wanted = true
		case n == nil:
			return nil
		case n.Channel == rightsChannel:
			l.rights.told(n.Payload)
		case n.PID != l.conn.PgConn().PID(): // one's own has been told
			l.wanted = true
		}
	}
}

// wait gives the next notification; nil: there was none until then, or this process has committed something, unless it
// is known already that there is something.
func (l *listening) wait(ctx context.Context, until time.Time) (*pgconn.Notification, error) {
	short, stop := context.WithDeadline(ctx, until)
	defer stop()
	if !l.wanted {
		l.notices.await(stop)
	}
	n, err := l.conn.WaitForNotification(short)
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil || short.Err() == nil || l.conn.IsClosed():
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	return nil, nil //nolint:nilnil // it was time
}
