package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/restriction"
	"millrace/internal/id"
)

const restrictionNoun = "playback restriction"

type restrictionRow struct {
	bun.BaseModel `bun:"table:playback_restrictions,alias:pr"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Referrer      string `bun:"referrer"`
	UserAgent     string `bun:"user_agent"`
	CreatedAt     int64  `bun:"created_at"`
	UpdatedAt     int64  `bun:"updated_at"`
}

func (r restrictionRow) value() (restriction.Restriction, error) {
	v := restriction.Restriction{
		ID:          id.PlaybackRestriction(r.ID),
		Environment: id.Environment(r.Environment),
		CreatedAt:   moment(r.CreatedAt),
		UpdatedAt:   moment(r.UpdatedAt),
	}
	if err := errors.Join(read(r.Referrer, &v.Referrer), read(r.UserAgent, &v.UserAgent)); err != nil {
		return v, fmt.Errorf("read playback restriction %s: %w", r.ID, err)
	}
	return v, nil
}

type restrictionStore struct{ *DB }

// Restrictions is the store of playback restrictions.
func (d *DB) Restrictions() restriction.Store { return restrictionStore{d} }

// Insert implements restriction.Store. Of several that come at the same time, each counts the others.
func (rs restrictionStore) Insert(ctx context.Context, r restriction.Restriction, most int) error {
	referrer, err := document(r.Referrer)
	if err != nil {
		return err
	}
	agent, err := document(r.UserAgent)
	if err != nil {
		return err
	}
	row := restrictionRow{
		ID:          string(r.ID),
		Environment: string(r.Environment),
		Referrer:    referrer,
		UserAgent:   agent,
		CreatedAt:   millis(r.CreatedAt),
		UpdatedAt:   millis(r.UpdatedAt),
	}
	return rs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(r.Environment, restrictionNoun, row.ID)
		if err := t.checkLimit(ctx, (*restrictionRow)(nil), row.Environment, restrictionNoun, most); err != nil {
			return err
		}
		if _, err := t.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
			return exists(err, restrictionNoun)
		} else if err != nil {
			return fmt.Errorf("insert playback restriction: %w", err)
		}
		return nil
	})
}

// Get implements restriction.Store.
func (rs restrictionStore) Get(ctx context.Context, r id.PlaybackRestriction) (restriction.Restriction, error) {
	if !possible(string(r)) {
		return restriction.Restriction{}, noSuch(restrictionNoun)
	}
	var row restrictionRow
	err := rs.read.NewSelect().Model(&row).Where("id = ?", string(r)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return restriction.Restriction{}, noSuch(restrictionNoun)
	}
	if err != nil {
		return restriction.Restriction{}, fmt.Errorf("read playback restriction: %w", err)
	}
	return row.value()
}

// List implements restriction.Store.
func (rs restrictionStore) List(
	ctx context.Context, env id.Environment, page, limit int,
) ([]restriction.Restriction, error) {
	var rows []restrictionRow
	err := rs.read.NewSelect().Model(&rows).Where("environment_id = ?", string(env)).
		Order("created_at DESC", "id DESC").Offset(int64(page-1) * int64(limit)).Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read playback restrictions: %w", err)
	}
	return values(ctx, rs.DB, rows, restrictionRow.value), nil
}

// SetReferrer implements restriction.Store.
func (rs restrictionStore) SetReferrer(
	ctx context.Context, env id.Environment, r id.PlaybackRestriction, v restriction.Referrer, now time.Time,
) (restriction.Restriction, error) {
	return rs.set(ctx, env, r, "referrer = ?", v, now)
}

// SetUserAgent implements restriction.Store.
func (rs restrictionStore) SetUserAgent(
	ctx context.Context, env id.Environment, r id.PlaybackRestriction, v restriction.UserAgent, now time.Time,
) (restriction.Restriction, error) {
	return rs.set(ctx, env, r, "user_agent = ?", v, now)
}

// set replaces one column and reads the row again, in one transaction.
func (rs restrictionStore) set(
	ctx context.Context, env id.Environment, r id.PlaybackRestriction, set string, v any, now time.Time,
) (out restriction.Restriction, err error) {
	doc, err := document(v)
	if err != nil {
		return out, err
	}
	if !possible(string(r)) {
		return out, noSuch(restrictionNoun)
	}
	err = rs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(env, restrictionNoun, string(r))
		_, err = t.NewUpdate().Model((*restrictionRow)(nil)).Set(set, doc).Set("updated_at = ?", millis(now)).
			Where("id = ?", string(r)).Where("environment_id = ?", string(env)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("update playback restriction: %w", err)
		}
		var row restrictionRow
		err = t.NewSelect().Model(&row).Where("id = ?", string(r)).Where("environment_id = ?", string(env)).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return noSuch(restrictionNoun)
		}
		if err != nil {
			return fmt.Errorf("read playback restriction: %w", err)
		}
		if out, err = row.value(); err != nil {
			return err
		}
		return rs.engine.tellRights(ctx, t, restrictionNoun, string(r))
	})
	return out, err
}

// Delete implements restriction.Store.
func (rs restrictionStore) Delete(ctx context.Context, env id.Environment, r id.PlaybackRestriction) error {
	return rs.removeRight(ctx, (*restrictionRow)(nil), env, string(r), restrictionNoun)
}
