package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const webhookNoun = "webhook"

type webhookRow struct {
	bun.BaseModel `bun:"table:webhooks,alias:w"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Address       string `bun:"address"`
	Enabled       bool   `bun:"enabled"`
	Types         string `bun:"event_types"`
	Secret        string `bun:"secret"`
	OldSecret     string `bun:"old_secret"`
	OldUntil      int64  `bun:"old_until"`
	FailingSince  int64  `bun:"failing_since"`
	CreatedAt     int64  `bun:"created_at"`
	UpdatedAt     int64  `bun:"updated_at"`
	Position      int64  `bun:"position"`
	Owner         string `bun:"owner"`
	LeaseUntil    int64  `bun:"lease_until"`
	Revision      int64  `bun:"revision"`
}

func (d *DB) webhookRowOf(w webhook.Webhook) (webhookRow, error) {
	types, err := document(append([]string{}, w.Types...))
	place := webhookPlace(string(w.ID))
	return webhookRow{
		ID:           string(w.ID),
		Environment:  string(w.Environment),
		Address:      w.Address,
		Enabled:      w.Enabled,
		Types:        types,
		Secret:       sealText(d.vault, w.Secret, place),
		OldSecret:    sealText(d.vault, w.OldSecret, place),
		OldUntil:     millis(w.OldUntil),
		FailingSince: millis(w.FailingSince),
		CreatedAt:    millis(w.CreatedAt),
		UpdatedAt:    millis(w.UpdatedAt),
		Revision:     w.Revision,
	}, err
}

func (d *DB) webhookOf(r webhookRow) (webhook.Webhook, error) {
	w := webhook.Webhook{
		ID: id.Webhook(r.ID), Environment: id.Environment(r.Environment), Address: r.Address, Enabled: r.Enabled,
		OldUntil: moment(r.OldUntil), FailingSince: moment(r.FailingSince), CreatedAt: moment(r.CreatedAt),
		UpdatedAt: moment(r.UpdatedAt), Revision: r.Revision,
	}
	place := webhookPlace(r.ID)
	var err, older error
	w.Secret, err = openText(d.vault, r.Secret, place)
	w.OldSecret, older = openText(d.vault, r.OldSecret, place)
	if err = errors.Join(err, older, read(r.Types, &w.Types)); err != nil {
		return w, fmt.Errorf("read webhook %s: %w", r.ID, err)
	}
	return w, nil
}

// webhookRow is the row of a webhook whose position may be set to the last event: what has happened before has its
// place among all events.
func (d *DB) webhookRow(ctx context.Context, w webhook.Webhook) (webhookRow, error) {
	if err := d.engine.numberEvents(ctx); err != nil {
		return webhookRow{}, err
	}
	return d.webhookRowOf(w)
}

// wake has anyone who sends deliveries look once the transaction is committed.
func (t tx) wake(ctx context.Context) error {
	_, err := t.events.begin(ctx, t, 0)
	return err
}

// InsertWebhook stores a new one; see webhook.Store.
func (d *DB) InsertWebhook(ctx context.Context, w webhook.Webhook, most int) error {
	row, err := d.webhookRow(ctx, w)
	if err != nil {
		return err
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(w.Environment, webhookNoun, row.ID)
		n, err := t.NewSelect().Model((*webhookRow)(nil)).Where("environment_id = ?", row.Environment).Count(ctx)
		if err != nil {
			return fmt.Errorf("count webhooks: %w", err)
		}
		if int(n) >= most {
			return fault.New(fault.Conflict, "an environment may have at most %d webhooks; delete one first", most)
		}
		if err = t.NewSelect().Table("event_cursor").Column("last").Scan(ctx, &row.Position); err != nil {
			return fmt.Errorf("read cursor of events: %w", err)
		}
		if _, err = t.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
			return webhook.Taken()
		} else if err != nil {
			return fmt.Errorf("insert webhook: %w", err)
		}
		return t.wake(ctx)
	})
}

// Webhook reads one of an environment.
func (d *DB) Webhook(ctx context.Context, env id.Environment, key id.Webhook) (webhook.Webhook, error) {
	if !possible(string(key)) {
		return webhook.Webhook{}, noSuch(webhookNoun)
	}
	var row webhookRow
	err := d.read.NewSelect().Model(&row).Where("id = ?", string(key)).Where("environment_id = ?", string(env)).
		Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return webhook.Webhook{}, noSuch(webhookNoun)
	}
	if err != nil {
		return webhook.Webhook{}, fmt.Errorf("read webhook: %w", err)
	}
	return d.webhookOf(row)
}

// Webhooks reads those of an environment, newest first.
func (d *DB) Webhooks(ctx context.Context, env id.Environment, page, limit int) ([]webhook.Webhook, error) {
	var rows []webhookRow
	err := d.read.NewSelect().Model(&rows).Where("environment_id = ?", string(env)).Order("created_at DESC", "id DESC").
		Limit(int64(limit)).Offset(int64(page-1) * int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	return values(ctx, d, rows, d.webhookOf), nil
}

// SaveWebhook writes what the owner may change; see webhook.Store. Position and lease are not the owner's.
func (d *DB) SaveWebhook(ctx context.Context, w webhook.Webhook, events ...event.Event) error {
	row, err := d.webhookRow(ctx, w)
	if err != nil {
		return err
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(w.Environment, webhookNoun, row.ID)
		res, err := t.NewUpdate().Table("webhooks").
			Set("address = ?", row.Address).Set("event_types = ?", row.Types).Set("secret = ?", row.Secret).
			Set("old_secret = ?", row.OldSecret).Set("old_until = ?", row.OldUntil).
			Set("failing_since = ?", row.FailingSince).
			Set("updated_at = ?", row.UpdatedAt).Set("revision = revision + 1").
			Set("position = CASE WHEN enabled THEN position ELSE (SELECT last FROM event_cursor) END").
			Set("enabled = ?", row.Enabled).
			Where("id = ?", row.ID).Where("environment_id = ?", row.Environment).Where("revision = ?", row.Revision).
			Exec(ctx)
		if isUnique(err) {
			return webhook.Taken()
		}
		if err = t.touched(ctx, res, err, (*webhookRow)(nil), row.ID, webhookNoun); err != nil {
			return err
		}
		if len(events) == 0 {
			return t.wake(ctx)
		}
		return t.append(ctx, events)
	})
}

// DeleteWebhook removes one; its deliveries go with their events.
func (d *DB) DeleteWebhook(ctx context.Context, env id.Environment, key id.Webhook) error {
	if !possible(string(key)) {
		return noSuch(webhookNoun)
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(env, webhookNoun, string(key))
		res, err := t.NewDelete().Table("webhooks").Where("id = ?", string(key)).
			Where("environment_id = ?", string(env)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete webhook: %w", err)
		}
		if n, failed := res.RowsAffected(); failed != nil || n == 0 {
			return errors.Join(noSuch(webhookNoun), failed)
		}
		if err = endNumbers(ctx, t, string(key)); err != nil {
			return err
		}
		return t.wake(ctx)
	})
}
