package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/asset"
	"millrace/internal/control/retention"
	"millrace/internal/id"
)

const retentionNoun = "retention policy"

type policyRow struct {
	bun.BaseModel `bun:"table:retention_policies,alias:rp"`
	Environment   string `bun:"environment_id,pk"`
	MaxAgeDays    int64  `bun:"max_age_days"`
	MaxBytes      int64  `bun:"max_bytes"`
	StartsAt      int64  `bun:"starts_at"`
	UpdatedAt     int64  `bun:"updated_at"`
}

func (p policyRow) value() retention.Policy {
	return retention.Policy{
		Environment: id.Environment(p.Environment),
		Limits:      retention.Limits{MaxAgeDays: p.MaxAgeDays, MaxBytes: p.MaxBytes},
		StartsAt:    moment(p.StartsAt),
		UpdatedAt:   moment(p.UpdatedAt),
	}
}

type sizeRow struct {
	bun.BaseModel `bun:"table:media_sizes,alias:ms"`
	Media         string `bun:"media_id,pk"`
	Bytes         int64  `bun:"bytes"`
	MeasuredAt    int64  `bun:"measured_at"`
}

type retentionStore struct{ *DB }

// Retention is the store of retention policies and of what media take.
func Retention(d *DB) retention.Store { return retentionStore{d} }

func (rs retentionStore) Now(ctx context.Context) (time.Time, error) {
	var now int64
	if err := rs.read.NewRaw("SELECT "+rs.engine.now()).Scan(ctx, &now); err != nil {
		return time.Time{}, fmt.Errorf("read the time of the database: %w", err)
	}
	return moment(now), nil
}

func (rs retentionStore) Policy(ctx context.Context, env id.Environment) (retention.Policy, error) {
	row := policyRow{Environment: string(env)}
	if !possible(row.Environment) {
		return retention.Policy{}, noSuch(environmentNoun)
	}
	err := rs.read.NewSelect().Model(&row).WherePK().Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return retention.Policy{Environment: env}, nil
	}
	if err != nil {
		return retention.Policy{}, fmt.Errorf("read retention policy: %w", err)
	}
	return row.value(), nil
}

func (rs retentionStore) Policies(ctx context.Context) ([]retention.Policy, error) {
	var rows []policyRow
	if err := rs.read.NewSelect().Model(&rows).Order("environment_id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read retention policies: %w", err)
	}
	out := make([]retention.Policy, len(rows))
	for i, r := range rows {
		out[i] = r.value()
	}
	return out, nil
}

func (rs retentionStore) Set(ctx context.Context, p retention.Policy) error {
	row := policyRow{
		Environment: string(p.Environment), MaxAgeDays: p.MaxAgeDays, MaxBytes: p.MaxBytes,
		StartsAt: millis(p.StartsAt), UpdatedAt: millis(p.UpdatedAt),
	}
	return rs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(p.Environment, retentionNoun, row.Environment)
		_, err := t.NewInsert().Model(&row).On("CONFLICT (environment_id) DO UPDATE").
			Set("max_age_days = EXCLUDED.max_age_days").Set("max_bytes = EXCLUDED.max_bytes").
			Set("starts_at = EXCLUDED.starts_at").Set("updated_at = EXCLUDED.updated_at").Exec(ctx)
		if err != nil {
			return fmt.Errorf("write retention policy: %w", err)
		}
		return nil
	})
}

func (rs retentionStore) Remove(ctx context.Context, env id.Environment) error {
	return rs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(env, retentionNoun, string(env))
		_, err := t.NewDelete().Model((*policyRow)(nil)).Where("environment_id = ?", string(env)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("remove retention policy: %w", err)
		}
		return nil
	})
}

func (rs retentionStore) Candidates(
	ctx context.Context, env id.Environment, behind retention.Place, limit int,
) ([]retention.Candidate, error) {
	at := millis(behind.CreatedAt)
	found, err := assetStore(rs).many(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("environment_id = ?", string(env)).
			Where("(created_at > ? OR created_at = ? AND id > ?)", at, at, string(behind.Asset)).
			Order("created_at", "id").Limit(int64(limit))
	}, refuse)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	media, err := rs.media(ctx, found)
	if err != nil {
		return nil, err
	}
	out := make([]retention.Candidate, len(found))
	for i, a := range found {
		out[i].Asset = a
		for _, m := range append([]id.Media{a.Media}, a.Uses...) {
			if m != "" {
				out[i].Media = append(out[i].Media, media[m])
			}
		}
	}
	return out, nil
}

// media are those that assets own and use.
func (rs retentionStore) media(ctx context.Context, of []asset.Asset) (map[id.Media]retention.Media, error) {
	var keys []string
	for i := range of {
		keys = append(keys, string(of[i].Media))
		for _, m := range of[i].Uses {
			keys = append(keys, string(m))
		}
	}
	owned := rs.read.NewSelect().Table("assets").Column("media_id").Where("media_id IN ?", bun.Tuple(keys))
	used := rs.read.NewSelect().Table("asset_uses").Column("media_id").Where("media_id IN ?", bun.Tuple(keys))
	var users []struct {
		Media string `bun:"media_id"`
		N     int    `bun:"n"`
	}
	err := rs.read.NewSelect().TableExpr("(?) AS u", owned.UnionAll(used)).Column("media_id").
		ColumnExpr("COUNT(*) AS n").Group("media_id").Scan(ctx, &users)
	if err != nil {
		return nil, fmt.Errorf("count users of media: %w", err)
	}
	var sizes []sizeRow
	if err = rs.read.NewSelect().Model(&sizes).Where("media_id IN ?", bun.Tuple(keys)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read sizes of media: %w", err)
	}
	out := make(map[id.Media]retention.Media, len(users))
	for _, u := range users {
		out[id.Media(u.Media)] = retention.Media{ID: id.Media(u.Media), Users: u.N}
	}
	for _, s := range sizes {
		m := out[id.Media(s.Media)]
		m.Bytes, m.Measured = s.Bytes, true
		out[id.Media(s.Media)] = m
	}
	return out, nil
}

func (rs retentionStore) Stored(ctx context.Context, env id.Environment) (s retention.Stored, err error) {
	const mediaOf = "SELECT media_id FROM assets WHERE environment_id = ? UNION " +
		"SELECT u.media_id FROM asset_uses AS u JOIN assets AS a ON a.id = u.asset_id WHERE a.environment_id = ?"
	err = rs.read.NewSelect().Table("media_sizes").ColumnExpr("CAST(COALESCE(SUM(bytes), 0) AS bigint)").
		Where("media_id IN ("+mediaOf+")", string(env), string(env)).Scan(ctx, &s.Bytes)
	if err != nil {
		return s, fmt.Errorf("add up sizes of media: %w", err)
	}
	n, err := rs.read.NewSelect().TableExpr("assets AS a").
		Join("LEFT JOIN media_sizes AS ms ON ms.media_id = a.media_id").
		Where("a.environment_id = ?", string(env)).Where("ms.media_id IS NULL").Where("a.media_id <> ''").
		Where("NOT a.is_live").Where("a.status <> 'preparing'").Count(ctx)
	if err != nil {
		return s, fmt.Errorf("count media that are not measured: %w", err)
	}
	s.Unmeasured = int(n)
	return s, nil
}

// Unmeasured implements retention.Store. Media whose asset is gone are a clip's.
func (rs retentionStore) Unmeasured(
	ctx context.Context, before time.Time, behind id.Media, limit int,
) (out []id.Media, err error) {
	const old = "(ms.media_id IS NULL OR ms.measured_at < ?)"
	owned := rs.read.NewSelect().TableExpr("assets AS a").Distinct().ColumnExpr("a.media_id").
		Join("LEFT JOIN media_sizes AS ms ON ms.media_id = a.media_id").
		Where("a.media_id > ?", string(behind)).Where("NOT a.is_live").Where("a.status <> 'preparing'").
		Where("("+old+" OR ms.measured_at <= a.updated_at)", millis(before)).
		Order("a.media_id").Limit(int64(limit))
	left := rs.read.NewSelect().TableExpr("asset_uses AS u").Distinct().ColumnExpr("u.media_id").
		Join("LEFT JOIN media_sizes AS ms ON ms.media_id = u.media_id").
		Where("NOT EXISTS (SELECT 1 FROM assets AS o WHERE o.media_id = u.media_id)").Where(old, millis(before)).
		Where("u.media_id > ?", string(behind)).Order("u.media_id").Limit(int64(limit))
	// Each half goes along its index from behind on; SQLite takes an order and a limit only in a subquery.
	owned, left = rs.read.NewSelect().TableExpr("(?) AS o", owned).Column("media_id"),
		rs.read.NewSelect().TableExpr("(?) AS l", left).Column("media_id")
	err = rs.read.NewSelect().TableExpr("(?) AS m", owned.Union(left)).Column("media_id").Order("media_id").
		Limit(int64(limit)).Scan(ctx, &out)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read media that are not measured: %w", err)
	}
	return out, nil
}

func (rs retentionStore) SetSizes(ctx context.Context, all []retention.Sized) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([]sizeRow, 0, len(all))
	for _, s := range all {
		rows = append(rows, sizeRow{Media: string(s.Media), Bytes: s.Bytes, MeasuredAt: millis(s.At)})
	}
	return rs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		_, err := t.NewInsert().Model(&rows).On("CONFLICT (media_id) DO UPDATE").
			Set("bytes = EXCLUDED.bytes").Set("measured_at = EXCLUDED.measured_at").Exec(ctx)
		if err != nil {
			return fmt.Errorf("write sizes of media: %w", err)
		}
		return nil
	})
}

func (rs retentionStore) ForgetSize(ctx context.Context, m id.Media) error {
	return rs.engine.begin(ctx, func(ctx context.Context, t tx) error { return forgetSize(ctx, t, m) })
}

func (rs retentionStore) ForgetSizes(ctx context.Context, limit int) error {
	return rs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		gone := t.NewSelect().Table("media_sizes").Column("media_id").
			Where("NOT EXISTS (SELECT 1 FROM assets AS a WHERE a.media_id = media_sizes.media_id)").
			Where("NOT EXISTS (SELECT 1 FROM asset_uses AS u WHERE u.media_id = media_sizes.media_id)").
			Limit(int64(limit))
		if _, err := t.NewDelete().Model((*sizeRow)(nil)).Where("media_id IN (?)", gone).Exec(ctx); err != nil {
			return fmt.Errorf("remove sizes of media: %w", err)
		}
		return nil
	})
}

// forgetSize has media measured again. Of those whose asset is gone, what clips do not need is deleted.
func forgetSize(ctx context.Context, t tx, m id.Media) error {
	if _, err := t.NewDelete().Model((*sizeRow)(nil)).Where("media_id = ?", string(m)).Exec(ctx); err != nil {
		return fmt.Errorf("remove size of media: %w", err)
	}
	return nil
}
