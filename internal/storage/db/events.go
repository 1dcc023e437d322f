package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/id"
)

type eventRow struct {
	bun.BaseModel `bun:"table:events"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Type          string `bun:"type"`
	ObjectKind    string `bun:"object_kind"`
	ObjectID      string `bun:"object_id"`
	Resource      string `bun:"resource_id"`
	At            int64  `bun:"at"`
	Position      int64  `bun:"position"` // within its change
	Number        int64  `bun:"number"`
	Sequence      int64  `bun:"sequence"` // 0: not numbered yet
	Request       string `bun:"request_id"`
	Data          string `bun:"data"`
}

func (e eventRow) value() event.Event {
	return event.Event{
		ID:          e.ID,
		Environment: id.Environment(e.Environment),
		Type:        e.Type,
		ObjectKind:  e.ObjectKind,
		ObjectID:    e.ObjectID,
		Resource:    e.Resource,
		At:          moment(e.At),
		Data:        []byte(e.Data),
		Number:      e.Number,
		Sequence:    e.Sequence,
		RequestID:   e.Request,
	}
}

// Statements that number events.
const (
	countEvents = "INSERT INTO event_numbers (resource_id, last, ended) VALUES (?, ?, ?) ON CONFLICT (resource_id) " +
		"DO UPDATE " +
		"SET last = event_numbers.last + excluded.last, ended = excluded.ended RETURNING last"
	advanceCursor = "UPDATE event_cursor SET last = last + ? WHERE one = 1 RETURNING last"
)

// tell stores the events and jobs of a change.
func (t tx) tell(ctx context.Context, events []event.Event, jobs []job.Insert) error {
	if err := t.append(ctx, events); err != nil {
		return err
	}
	return t.enqueue(ctx, jobs)
}

// append stores events with the numbers that follow their resources' last ones. The rows of the counters are locked
// until the commit, so that changes of one resource become visible in the order of their numbers.
func (t tx) append(ctx context.Context, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	t.about(events[0].Environment, events[0].ObjectKind, events[0].ObjectID)
	numbers, err := t.numbers(ctx, events)
	if err != nil {
		return err
	}
	sequence, err := t.events.begin(ctx, t, len(events))
	if err != nil {
		return err
	}
	request := event.RequestOf(ctx)
	for i, e := range events {
		numbers[e.Resource]++
		row := &eventRow{
			ID:          e.ID,
			Environment: string(e.Environment),
			Type:        e.Type,
			ObjectKind:  e.ObjectKind,
			ObjectID:    e.ObjectID,
			Resource:    e.Resource,
			At:          millis(e.At),
			Position:    int64(i),
			Number:      numbers[e.Resource],
			Request:     request,
			Data:        string(e.Data),
		}
		if sequence > 0 {
			row.Sequence = sequence + int64(i)
		}
		if err := t.insert(ctx, row); err != nil {
			return fmt.Errorf("insert event: %w", err)
		}
	}
	return nil
}

// numbers counts the events of each resource up, and gives the numbers before them.
func (t tx) numbers(ctx context.Context, events []event.Event) (map[string]int64, error) {
	counts, ended, resources := map[string]int64{}, map[string]bool{}, []string{}
	for _, e := range events {
		if counts[e.Resource] == 0 {
			resources = append(resources, e.Resource)
		}
		counts[e.Resource]++
		ended[e.Resource] = e.Last()
	}
	slices.Sort(resources) // so that no two transactions wait for each other
	numbers := map[string]int64{}
	for _, r := range resources {
		last, err := t.number(ctx, countEvents, r, counts[r], ended[r])
		if err != nil {
			return nil, fmt.Errorf("number events: %w", err)
		}
		numbers[r] = last - counts[r]
	}
	return numbers, nil
}

// endNumbers notes that nothing happens to a resource any more: the counter of its events goes with the last of them,
// or now if there are none.
func endNumbers(ctx context.Context, t tx, resource string) error {
	_, err := t.NewDelete().Table("event_numbers").Where("resource_id = ?", resource).
		Where("NOT EXISTS (SELECT 1 FROM events WHERE events.resource_id = event_numbers.resource_id)").Exec(ctx)
	if err == nil {
		_, err = t.NewUpdate().Table("event_numbers").Set("ended = TRUE").Where("resource_id = ?", resource).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("end numbers of events: %w", err)
	}
	return nil
}

// number runs a statement that returns one number.
func (t tx) number(ctx context.Context, text string, values ...any) (n int64, err error) {
	rows, err := t.query(ctx, text, values...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return 0, errors.Join(sql.ErrNoRows, rows.Err())
	}
	return n, rows.Scan(&n)
}

// News is closed when events have come that can be read. Who waits for it takes it before it reads.
func (d *DB) News() <-chan struct{} { return d.news.wait() }

// news tells those who wait that something is there.
type news struct {
	mu sync.Mutex
	ch chan struct{}
}

func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}

// skew is by how much the clocks of nodes may differ: the times of events follow their sequence but for so much.
const skew = time.Hour

// ListEvents reads events in the order of their sequence. Those whose transaction was committed before the call are
// among them.
func (d *DB) ListEvents(ctx context.Context, q event.Query) ([]event.Event, error) {
	if err := d.engine.numberEvents(ctx); err != nil {
		return nil, err
	}
	if err := d.narrow(ctx, &q); err != nil {
		return nil, err
	}
	var rows []eventRow
	for _, one := range selections(q) {
		found, err := d.events(ctx, q, one)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	slices.SortFunc(rows, func(a, b eventRow) int {
		if q.NewestFirst {
			a, b = b, a
		}
		return int(a.Sequence - b.Sequence)
	})
	rows = slices.CompactFunc(rows, func(a, b eventRow) bool { return a.Sequence == b.Sequence })
	out := make([]event.Event, 0, min(len(rows), q.Limit))
	for _, r := range rows[:min(len(rows), q.Limit)] {
		out = append(out, r.value())
	}
	return out, nil
}

// selection is a part of a query that one index has in the order of the sequence.
type selection struct{ column, object, typ string }

func selections(q event.Query) (all []selection) {
	types := q.Types
	if len(types) == 0 {
		types = []string{""}
	}
	for _, typ := range types {
		switch {
		case !possible(typ) || !possible(q.Object):
		case q.Object == "":
			all = append(all, selection{typ: typ})
		default:
			all = append(all, selection{"object_id", q.Object, typ}, selection{"resource_id", q.Object, typ})
		}
	}
	return all
}

// events reads one selection. Conditions that shall not choose the index are written as expressions.
func (d *DB) events(ctx context.Context, q event.Query, one selection) ([]eventRow, error) {
	var rows []eventRow
	sel := d.read.NewSelect().Model(&rows).Where("sequence > ?", q.After).Limit(int64(q.Limit))
	if q.Environment != "" {
		sel = sel.Where("environment_id = ?", string(q.Environment))
	}
	if q.Before > 0 {
		sel = sel.Where("sequence < ?", q.Before)
	}
	if len(q.Sequences) > 0 {
		sel = sel.Where("sequence IN ?", bun.Tuple(q.Sequences))
	}
	if one.object != "" {
		sel = sel.Where("? = ?", bun.Ident(one.column), one.object)
	}
	if one.typ != "" && one.object != "" {
		sel = sel.Where("type || '' = ?", one.typ)
	} else if one.typ != "" {
		sel = sel.Where("type = ?", one.typ)
	}
	if !q.Since.IsZero() {
		sel = sel.Where("at + 0 >= ?", millis(q.Since))
	}
	if !q.Until.IsZero() {
		sel = sel.Where("at + 0 < ?", millis(q.Until))
	}
	order := "sequence"
	if q.NewestFirst {
		order = "sequence DESC"
	}
	if err := sel.OrderExpr(order).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return rows, nil
}

// narrow turns bounds of time into bounds of sequence, so that reading begins near the first event and ends near the
// last.
func (d *DB) narrow(ctx context.Context, q *event.Query) error {
	if !q.Since.IsZero() {
		first, err := d.sequenceAt(ctx, "at >= ?", q.Since.Add(-skew), "at")
		if err != nil {
			return err
		}
		q.After = max(q.After, first-1)
	}
	if !q.Until.IsZero() {
		last, err := d.sequenceAt(ctx, "at < ?", q.Until.Add(skew), "at DESC")
		if err != nil {
			return err
		}
		if q.Before == 0 || last+1 < q.Before {
			q.Before = last + 1
		}
	}
	return nil
}

func (d *DB) sequenceAt(ctx context.Context, where string, t time.Time, order string) (sequence int64, err error) {
	err = d.read.NewSelect().Table("events").Column("sequence").Where(where, millis(t)).Where("sequence > 0").
		OrderExpr(order).Limit(1).Scan(ctx, &sequence)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read events: %w", err)
	}
	return sequence, nil
}

// GetEvent reads one event of an environment.
func (d *DB) GetEvent(ctx context.Context, env id.Environment, key string) (event.Event, error) {
	if !possible(key) {
		return event.Event{}, noSuch("event")
	}
	if err := d.engine.numberEvents(ctx); err != nil {
		return event.Event{}, err
	}
	var row eventRow
	err := d.read.NewSelect().Model(&row).Where("id = ?", key).Where("environment_id = ?", string(env)).
		Where("sequence > 0").Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return event.Event{}, noSuch("event")
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("read event: %w", err)
	}
	return row.value(), nil
}

// LastEvent is the sequence of the newest event that there was; 0: there was none.
func (d *DB) LastEvent(ctx context.Context) (last int64, err error) {
	if err = d.engine.numberEvents(ctx); err != nil {
		return 0, err
	}
	if err = d.read.NewSelect().Table("event_cursor").Column("last").Scan(ctx, &last); err != nil {
		return 0, fmt.Errorf("read cursor of events: %w", err)
	}
	return last, nil
}

// FirstEvent is the sequence of the oldest event that is kept; of the next one where none is.
func (d *DB) FirstEvent(ctx context.Context) (first int64, err error) {
	last, err := d.LastEvent(ctx)
	if err != nil {
		return 0, err
	}
	err = d.read.NewSelect().Table("events").Column("sequence").Where("sequence > 0").OrderExpr("sequence").Limit(1).
		Scan(ctx, &first)
	if errors.Is(err, sql.ErrNoRows) {
		return last + 1, nil
	}
	return first, wrapped("read oldest event", err)
}

// Events gives the first events of an environment since a time, oldest first, at most limit of them.
func (d *DB) Events(ctx context.Context, env id.Environment, since time.Time, limit int) ([]event.Event, error) {
	return d.ListEvents(ctx, event.Query{Environment: env, Since: since, Limit: limit})
}

// PruneEvents removes the oldest events whose time is before a time, at most limit of them, and gives how many there
// were.
func (d *DB) PruneEvents(ctx context.Context, before time.Time, limit int) (n int, _ error) {
	var rows []eventRow
	err := d.read.NewSelect().Model(&rows).Column("sequence", "at", "resource_id").Where("sequence > 0").
		Order("sequence").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return 0, fmt.Errorf("read old events: %w", err)
	}
	var resources []string
	for n < len(rows) && rows[n].At < millis(before) {
		resources = append(resources, rows[n].Resource)
		n++
	}
	if n == 0 {
		return 0, nil
	}
	return n, d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if _, err = t.NewDelete().Table("events").Where("sequence > 0").Where("sequence <= ?", rows[n-1].Sequence).
			Exec(ctx); err != nil {
			return fmt.Errorf("delete old events: %w", err)
		}
		if _, err = t.NewDelete().Table("webhook_deliveries").Where("sequence <= ?", rows[n-1].Sequence).
			Exec(ctx); err != nil {
			return fmt.Errorf("delete old deliveries: %w", err)
		}
		_, err = t.NewDelete().Table("event_numbers").Where("ended").Where("resource_id IN ?", bun.Tuple(resources)).
			Where("NOT EXISTS (SELECT 1 FROM events WHERE events.resource_id = event_numbers.resource_id)").Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete numbers of old events: %w", err)
		}
		return nil
	})
}
