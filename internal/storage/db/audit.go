package db

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/audit"
	"millrace/internal/id"
)

type auditRow struct {
	bun.BaseModel `bun:"table:audit_log,alias:al"`
	ID            string `bun:"id,pk"`
	At            int64  `bun:"at"`
	Environment   string `bun:"environment_id"`
	ActorType     string `bun:"actor_type"`
	ActorID       string `bun:"actor_id"`
	ActorName     string `bun:"actor_name"`
	Operation     string `bun:"operation"`
	ResourceType  string `bun:"resource_type"`
	ResourceID    string `bun:"resource_id"`
	Address       string `bun:"address"`
	RequestID     string `bun:"request_id"`
}

func (a auditRow) value() audit.Entry {
	return audit.Entry{
		ID:          a.ID,
		At:          moment(a.At),
		Environment: id.Environment(a.Environment),
		Actor:       audit.Actor{Type: a.ActorType, ID: a.ActorID, Name: a.ActorName},
		Operation:   a.Operation,
		Resource:    audit.Resource{Type: a.ResourceType, ID: a.ResourceID},
		Address:     a.Address,
		RequestID:   a.RequestID,
	}
}

// audited is an engine that writes the audit entry of a context into the first transaction that is made with it.
type audited struct{ engine }

func (a audited) begin(ctx context.Context, fn func(context.Context, tx) error) error {
	pending := audit.Of(ctx)
	if !pending.Wanted() {
		return a.engine.begin(ctx, fn)
	}
	err := a.engine.begin(ctx, func(ctx context.Context, t tx) error {
		entry := pending.Entry
		t.changes = &changes{}
		if err := fn(ctx, t); err != nil {
			return err
		}
		return t.writeAudit(ctx, entry, *t.changes)
	})
	if err == nil {
		pending.Written()
	}
	return err
}

// changes is what a transaction says of itself for the audit log.
type changes struct {
	resource    audit.Resource
	environment id.Environment
}

// about names what a transaction changes, or makes, and its environment; the first one counts.
func (t tx) about(env id.Environment, noun, key string) {
	if t.changes == nil {
		return
	}
	if t.changes.resource.ID == "" {
		t.changes.resource = audit.Resource{Type: strings.ToLower(strings.ReplaceAll(noun, " ", "_")), ID: key}
	}
	if t.changes.environment == "" {
		t.changes.environment = env
	}
}

// writeAudit stores an entry. What the request named is more exact than what the transaction says; what was made has no
// name in a request.
func (t tx) writeAudit(ctx context.Context, e audit.Entry, c changes) error {
	if e.Resource.ID == "" {
		e.Resource = c.resource
	}
	if e.Environment == "" {
		e.Environment = c.environment
	}
	row := auditRow{
		ID:           id.NewOrderedUUID(e.At),
		At:           millis(e.At),
		Environment:  string(e.Environment),
		ActorType:    e.Actor.Type,
		ActorID:      e.Actor.ID,
		ActorName:    e.Actor.Name,
		Operation:    e.Operation,
		ResourceType: e.Resource.Type,
		ResourceID:   e.Resource.ID,
		Address:      e.Address,
		RequestID:    e.RequestID,
	}
	if err := t.insert(ctx, &row); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// AuditLog reads entries, newest first.
func (d *DB) AuditLog(ctx context.Context, q audit.Query) ([]audit.Entry, error) {
	var rows []auditRow
	sel := d.read.NewSelect().Model(&rows).OrderExpr("id DESC").Limit(int64(q.Limit))
	for column, v := range map[string]string{
		"environment_id": string(q.Environment), "operation": q.Operation, "resource_id": q.Resource,
	} {
		if !possible(v) {
			return nil, nil
		}
		if v != "" {
			sel = sel.Where("? = ?", bun.Ident(column), v)
		}
	}
	if !possible(q.Actor) || !possible(q.Before) {
		return nil, nil
	}
	if q.Actor != "" {
		sel = sel.Where("(actor_id = ? OR actor_name = ?)", q.Actor, q.Actor)
	}
	if q.Before != "" {
		sel = sel.Where("id < ?", q.Before)
	}
	if !q.Since.IsZero() {
		sel = sel.Where("id >= ?", id.FirstUUIDAt(q.Since))
	}
	if !q.Until.IsZero() {
		sel = sel.Where("id < ?", id.FirstUUIDAt(q.Until))
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	out := make([]audit.Entry, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.value())
	}
	return out, nil
}

// PruneAuditLog removes at most limit entries from before a time, the oldest first, and gives how many there were.
func (d *DB) PruneAuditLog(ctx context.Context, before time.Time, limit int) (int, error) {
	n := 0
	err := d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		old := t.NewSelect().Model((*auditRow)(nil)).Column("id").Where("at < ?", millis(before)).Order("at").
			Limit(int64(limit))
		res, failed := t.NewDelete().Model((*auditRow)(nil)).Where("id IN (?)", old).Exec(ctx)
		if failed != nil {
			return fmt.Errorf("remove old entries of audit log: %w", failed)
		}
		gone, failed := res.RowsAffected()
		n = int(gone)
		return failed
	})
	return n, err
}
