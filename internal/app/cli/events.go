package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

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

func eventCommands() []command {
	return []command{
		of("events tail", "print events as they happen",
			"Prints one line per event, of live streams, assets and everything else, until Ctrl-C. With --json each "+
				"line is the event as webhooks get it, without stream keys. Reads the database directly; the "+
				"service need not run.", &eventsTail{}),
	}
}

// eventsTail prints events until its context ends.
type eventsTail struct {
	json   bool
	types  []string
	object string
	after  int64 // -1: from the next one on
}

func (e *eventsTail) flags(f *flags) {
	f.asJSON(&e.json)
	add(f, &e.after, func(text string) (int64, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < -1 {
			return 0, errors.New("is not a sequence")
		}
		return n, nil
	}, "after", "sequence", "-1",
		"Begin behind the event with this sequence; 0 begins with the first that is kept, -1 with the next one.")
	f.types(&e.types)
	add(f, &e.object, anything, "object", "id", "",
		"Only events of this object, such as a live stream, and of what is a part of it.")
}

func (e *eventsTail) run(ctx context.Context, r *request) error {
	events, closeDB, err := r.Events(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		q := event.Query{Types: e.types, Object: e.object, After: e.after, Limit: tailBatch}
		if q.After < 0 {
			if q.After, err = events.LastEvent(ctx); err != nil {
				return err
			}
		}
		ask := time.NewTicker(tailEvery)
		defer ask.Stop()
		for {
			n, err := printEvents(ctx, events, &q, e.json, r.out)
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
	})
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
