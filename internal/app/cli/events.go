package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/event"
)

// Events is what the command that follows events reads.
type Events interface {
	ListEvents(ctx context.Context, q event.Query) ([]event.Event, error)
	LastEvent(ctx context.Context) (int64, error)
	// Show is an event in the form of the API.
	Show(ctx context.Context, e event.Event) (any, error)
}

const (
	tailEvery = 500 * time.Millisecond // how often the database is asked: another process writes it
	tailBatch = 100
)

// tail prints events until ctx ends.
func tail(ctx context.Context, c config.Command, cfg config.Config, out io.Writer, a Actions) (err error) {
	events, closeDB, err := a.Events(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	q := event.Query{Types: c.Types, Object: c.Tail.Object, After: c.Tail.After, Limit: tailBatch}
	if q.After < 0 {
		if q.After, err = events.LastEvent(ctx); err != nil {
			return err
		}
	}
	ask := time.NewTicker(tailEvery)
	defer ask.Stop()
	for {
		n, err := printEvents(ctx, events, &q, c.JSON, out)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if n == q.Limit {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ask.C:
		}
	}
}

// printEvents prints what has come, and gives how many events that were.
func printEvents(ctx context.Context, events Events, q *event.Query, asJSON bool, out io.Writer) (int, error) {
	found, err := events.ListEvents(ctx, *q)
	if err != nil {
		return 0, err
	}
	for _, e := range found {
		line := fmt.Sprintf("%s %d %s %s", e.At.UTC().Format(time.RFC3339), e.Sequence, e.Type, e.ObjectID)
		if asJSON {
			shown, err := events.Show(ctx, e)
			if err != nil {
				return 0, err
			}
			text, err := json.Marshal(shown)
			if err != nil {
				return 0, fmt.Errorf("encode event: %w", err)
			}
			line = string(text)
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return 0, fmt.Errorf("print event: %w", err)
		}
		q.After = e.Sequence
	}
	return len(found), nil
}
