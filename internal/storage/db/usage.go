package db

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/asset"
	"millrace/internal/control/usage"
	"millrace/internal/id"
)

// usageRow is what was delivered of an asset within an hour, in milliseconds of media.
type usageRow struct {
	bun.BaseModel `bun:"table:delivery_usage,alias:d"`
	Asset         string `bun:"asset_id,pk"`
	Hour          int64  `bun:"hour,pk"` // that it begins
	Environment   string `bun:"environment_id"`
	LiveStream    string `bun:"live_stream_id"`
	AudioOnly     int64  `bun:"audio_only"`
	Tier720       int64  `bun:"tier_720p"`
	Tier1080      int64  `bun:"tier_1080p"`
	Tier1440      int64  `bun:"tier_1440p"`
	Tier2160      int64  `bun:"tier_2160p"`
	Total         int64  `bun:"total"` // of all sizes
}

// sizes are the columns that Total is the sum of.
func sizes() []string {
	return []string{"audio_only", "tier_720p", "tier_1080p", "tier_1440p", "tier_2160p"}
}

// usageDayRow is what was delivered of an asset on a day, in UTC.
type usageDayRow struct {
	bun.BaseModel `bun:"table:delivery_usage_days,alias:d"`
	Asset         string `bun:"asset_id,pk"`
	Day           int64  `bun:"day,pk"` // that it begins
	Environment   string `bun:"environment_id"`
	Total         int64  `bun:"total"`
}

const (
	day = 24 * time.Hour
	// usageTogether is how many rows are written by a statement.
	usageTogether = 500
)

// deletedRow is what is still said of an asset that is gone.
type deletedRow struct {
	bun.BaseModel `bun:"table:deleted_assets,alias:g"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	LiveStream    string `bun:"live_stream_id"`
	Document      string `bun:"document"` // assetDocument, without inputs
	CreatedAt     int64  `bun:"created_at"`
	DeletedAt     int64  `bun:"deleted_at"`
}

type usageStore struct{ *DB }

// Usage is the store of what was delivered.
func (d *DB) Usage() usage.Store { return usageStore{d} }

// Add implements usage.Store. Several nodes add to the same rows; they do so in the same order, since PostgreSQL would
// end one of two that wait for each other.
func (u usageStore) Add(ctx context.Context, hour time.Time, all []usage.Delivered) error {
	if len(all) == 0 {
		return nil
	}
	ms := func(seconds float64) int64 { return int64(math.Round(seconds * 1000)) }
	rows := make([]usageRow, 0, len(all))
	for _, a := range all {
		r := usageRow{
			Asset:       string(a.Asset),
			Hour:        millis(hour),
			Environment: string(a.Environment),
			LiveStream:  string(a.LiveStream),
			AudioOnly:   ms(a.Seconds.AudioOnly),
			Tier720:     ms(a.Seconds.Tier720),
			Tier1080:    ms(a.Seconds.Tier1080),
			Tier1440:    ms(a.Seconds.Tier1440),
			Tier2160:    ms(a.Seconds.Tier2160),
		}
		r.Total = r.AudioOnly + r.Tier720 + r.Tier1080 + r.Tier1440 + r.Tier2160
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b usageRow) int { return cmp.Compare(a.Asset, b.Asset) })
	days := make([]usageDayRow, 0, len(rows))
	for _, r := range rows {
		begin := millis(hour.UTC().Truncate(day))
		days = append(days, usageDayRow{Asset: r.Asset, Day: begin, Environment: r.Environment, Total: r.Total})
	}
	err := u.engine.begin(ctx, func(ctx context.Context, t tx) error {
		for batch := range slices.Chunk(rows, usageTogether) {
			q := t.NewInsert().Model(&batch).On("CONFLICT (asset_id, hour) DO UPDATE")
			for _, column := range append(sizes(), "total") {
				q = q.Set("? = d.? + excluded.?", bun.Ident(column), bun.Ident(column), bun.Ident(column))
			}
			if _, err := q.Exec(ctx); err != nil {
				return err
			}
		}
		for batch := range slices.Chunk(days, usageTogether) {
			q := t.NewInsert().Model(&batch).
				On("CONFLICT (asset_id, day) DO UPDATE").Set("total = d.total + excluded.total")
			if _, err := q.Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add delivery usage: %w", err)
	}
	return nil
}

// Reports implements usage.Store.
func (u usageStore) Reports(ctx context.Context, env id.Environment, q usage.Query) ([]usage.Report, int, error) {
	if !possible(string(q.Asset)) || !possible(string(q.LiveStream)) || !q.From.Before(q.To) {
		return nil, 0, nil
	}
	rows, total, err := u.most(ctx, env, q)
	if err != nil || len(rows) == 0 {
		return nil, total, err
	}
	if err = u.bySize(ctx, env, q, rows); err != nil {
		return nil, 0, err
	}
	reports, err := u.describe(ctx, env, rows)
	return reports, total, err
}

// amounts is a part of a statement: rows of assets and milliseconds, to be added up.
type amounts struct {
	text string
	args []any
}

func (a *amounts) add(text string, args ...any) {
	if a.text != "" {
		a.text += " UNION ALL "
	}
	a.text += text
	a.args = append(a.args, args...)
}

// hours adds what was delivered in an environment in the hours that begin in [from, to); sign is empty, or - where it
// is taken away.
func (a *amounts) hours(env id.Environment, from, to time.Time, sign string) {
	if from.Before(to) {
		a.add("SELECT asset_id, "+sign+"total AS ms FROM delivery_usage "+
			"WHERE environment_id = ? AND hour >= ? AND hour < ?", string(env), millis(from), millis(to))
	}
}

// amountsOf reads as few rows as it can: of a whole environment those of the nearest whole days, and the hours by which
// they differ from the query. That an asset is given, or a live stream, is hidden from indexes by environment: SQLite
// would read all that the environment was sent.
func amountsOf(env id.Environment, q usage.Query) (a amounts) {
	from, to := millis(q.From), millis(q.To)
	const one = "SELECT asset_id, total AS ms FROM delivery_usage " +
		"WHERE environment_id || '' = ? AND hour >= ? AND hour < ?"
	switch {
	case q.Asset != "":
		a.add(one+" AND asset_id = ?", string(env), from, to, string(q.Asset))
		return a
	case q.LiveStream != "":
		a.add(one+" AND live_stream_id = ? AND live_stream_id <> ''", string(env), from, to, string(q.LiveStream))
		return a
	}
	begin, end := q.From.Round(day), q.To.Round(day)
	whole := end.Sub(begin)/day + q.From.Sub(begin).Abs()/time.Hour + q.To.Sub(end).Abs()/time.Hour
	if whole >= q.To.Sub(q.From)/time.Hour {
		a.hours(env, q.From, q.To, "")
		return a
	}
	a.add("SELECT asset_id, total AS ms FROM delivery_usage_days "+
		"WHERE environment_id = ? AND day >= ? AND day < ?", string(env), millis(begin), millis(end))
	a.hours(env, q.From, begin, "")
	a.hours(env, begin, q.From, "-")
	a.hours(env, end, q.To, "")
	a.hours(env, q.To, end, "-")
	return a
}

// most is a page of the assets of which most was delivered, with that, and how many there are on all pages.
func (u usageStore) most(
	ctx context.Context, env id.Environment, q usage.Query,
) (rows []usageRow, total int, err error) {
	a := amountsOf(env, q)
	grouped := " FROM (" + a.text + ") AS amounts GROUP BY asset_id HAVING SUM(ms) > 0"
	var page []struct {
		Asset string `bun:"asset_id"`
		Total int64  `bun:"total"`
		All   int    `bun:"n"`
	}
	text := "SELECT asset_id, CAST(SUM(ms) AS bigint) AS total, COUNT(*) OVER () AS n" + grouped +
		" ORDER BY SUM(ms) DESC, asset_id LIMIT ? OFFSET ?"
	err = u.read.NewRaw(text, append(slices.Clone(a.args), q.Limit, (q.Page-1)*q.Limit)...).Scan(ctx, &page)
	if err != nil {
		return nil, 0, fmt.Errorf("read delivery usage: %w", err)
	}
	for _, r := range page {
		rows, total = append(rows, usageRow{Asset: r.Asset, Total: r.Total}), r.All
	}
	if len(page) == 0 && q.Page > 1 {
		text = "SELECT COUNT(*) FROM (SELECT asset_id" + grouped + ") AS assets"
		if err = u.read.NewRaw(text, a.args...).Scan(ctx, &total); err != nil {
			return nil, 0, fmt.Errorf("count delivery usage: %w", err)
		}
	}
	return rows, total, nil
}

// bySize adds to each of rows what was delivered of each size.
func (u usageStore) bySize(ctx context.Context, env id.Environment, q usage.Query, rows []usageRow) error {
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		keys = append(keys, r.Asset)
	}
	var sums []usageRow
	s := u.read.NewSelect().Model((*usageRow)(nil)).
		ColumnExpr("d.asset_id").ColumnExpr("MAX(d.live_stream_id) AS live_stream_id").
		Where("d.asset_id IN ?", bun.Tuple(keys)).
		Where("d.hour >= ?", millis(q.From)).Where("d.hour < ?", millis(q.To)).
		Where("d.environment_id || '' = ?", string(env)) // as in amountsOf
	for _, column := range sizes() {
		s = s.ColumnExpr("CAST(SUM(d.?) AS bigint) AS ?", bun.Ident(column), bun.Ident(column))
	}
	if err := s.Group("d.asset_id").Scan(ctx, &sums); err != nil {
		return fmt.Errorf("read delivery usage by size: %w", err)
	}
	known := map[string]usageRow{}
	for _, r := range sums {
		known[r.Asset] = r
	}
	for i, r := range rows {
		if sum, ok := known[r.Asset]; ok { // else it was pruned meanwhile
			rows[i] = sum
		}
	}
	return nil
}

// describe adds what is known of the assets.
func (u usageStore) describe(ctx context.Context, env id.Environment, rows []usageRow) ([]usage.Report, error) {
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		keys = append(keys, r.Asset)
	}
	var there []assetRow
	if err := u.read.NewSelect().Model(&there).Where("id IN ?", bun.Tuple(keys)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read assets of delivery usage: %w", err)
	}
	var gone []deletedRow
	if err := u.read.NewSelect().Model(&gone).Where("id IN ?", bun.Tuple(keys)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read deleted assets of delivery usage: %w", err)
	}
	known := map[string]usage.Report{}
	for _, g := range gone {
		a, err := assetRow{
			ID:          g.ID,
			Environment: g.Environment,
			LiveStream:  g.LiveStream,
			Document:    g.Document,
			CreatedAt:   g.CreatedAt,
		}.value()
		if err = u.listed(ctx, err); err != nil {
			return nil, err
		}
		known[g.ID] = usage.Report{Asset: a, Deleted: true, DeletedAt: moment(g.DeletedAt)}
	}
	for _, r := range there {
		a, err := r.value()
		if err = u.listed(ctx, err); err != nil {
			return nil, err
		}
		known[r.ID] = usage.Report{Asset: a}
	}
	out := make([]usage.Report, 0, len(rows))
	seconds := func(ms int64) float64 { return float64(ms) / 1000 }
	for _, r := range rows {
		report, ok := known[r.Asset]
		if !ok { // deleted by a version of the service that kept nothing
			report.Asset = asset.Asset{ID: id.Asset(r.Asset), Environment: env, LiveStream: id.LiveStream(r.LiveStream)}
			report.Deleted = true
		}
		report.Seconds = usage.Seconds{
			AudioOnly: seconds(r.AudioOnly), Tier720: seconds(r.Tier720), Tier1080: seconds(r.Tier1080),
			Tier1440: seconds(r.Tier1440), Tier2160: seconds(r.Tier2160),
		}
		out = append(out, report)
	}
	return out, nil
}

// outlives is how much longer the deleted assets are known than what was delivered of them.
const outlives = 24 * time.Hour

// Forget implements usage.Store.
func (u usageStore) Forget(ctx context.Context, before time.Time, limit int) (bool, error) {
	more := false
	err := u.engine.begin(ctx, func(ctx context.Context, t tx) error {
		hours, failed := t.NewDelete().Model((*usageRow)(nil)).Where("(asset_id, hour) IN (?)",
			t.NewSelect().Model((*usageRow)(nil)).Column("asset_id", "hour").Where("hour < ?", millis(before)).
				Limit(int64(limit))).Exec(ctx)
		if failed != nil {
			return failed
		}
		days, failed := t.NewDelete().Model((*usageDayRow)(nil)).Where("(asset_id, day) IN (?)",
			t.NewSelect().Model((*usageDayRow)(nil)).Column("asset_id", "day").
				Where("day < ?", millis(before.UTC().Truncate(day))).Limit(int64(limit))).Exec(ctx)
		if failed != nil {
			return failed
		}
		gone, failed := t.NewDelete().Model((*deletedRow)(nil)).Where("id IN (?)",
			t.NewSelect().Model((*deletedRow)(nil)).Column("id").Where("deleted_at < ?",
				millis(before.Add(-outlives))).Limit(int64(limit))).Exec(ctx)
		if failed != nil {
			return failed
		}
		more = false
		for _, removed := range []sql.Result{hours, days, gone} {
			n, failed := removed.RowsAffected()
			if failed != nil {
				return failed
			}
			more = more || n >= int64(limit)
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("forget delivery usage: %w", err)
	}
	return more, nil
}

// remember keeps what reports say of an asset that is deleted. Inputs may hold credentials of their owner.
func (t tx) remember(ctx context.Context, a asset.Asset, at time.Time) error {
	options := a.Options
	options.Inputs = nil
	doc, err := document(assetDocument{Options: options, Facts: a.Facts})
	if err != nil {
		return err
	}
	row := deletedRow{
		ID: string(a.ID), Environment: string(a.Environment), LiveStream: string(a.LiveStream), Document: doc,
		CreatedAt: millis(a.CreatedAt), DeletedAt: millis(at),
	}
	if _, err := t.NewInsert().Model(&row).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return fmt.Errorf("remember deleted asset: %w", err)
	}
	return nil
}
