package db

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"

	"millrace/internal/control/asset"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const assetNoun = "asset"

type assetStore struct{ *DB }

func (as assetStore) Insert(ctx context.Context, c asset.Change) error {
	row, err := assetRowOf(c.Asset)
	if err != nil {
		return err
	}
	return as.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if _, err := t.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
			return exists(err, assetNoun)
		} else if err != nil {
			return fmt.Errorf("insert asset: %w", err)
		}
		return t.putAsset(ctx, c)
	})
}

func (as assetStore) Save(ctx context.Context, c asset.Change) error {
	row, err := assetRowOf(c.Asset)
	if err != nil {
		return err
	}
	row.Revision++
	return as.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(c.Asset.Environment, assetNoun, row.ID) // not every change has an event
		if err := led(ctx, t, c.By, row.ID); err != nil {
			return err
		}
		res, err := t.NewUpdate().Model(&row).WherePK().
			Where("revision = ?", c.Asset.Revision).Where("status = ?", string(c.From)).Exec(ctx)
		if err = t.touched(ctx, res, err, (*assetRow)(nil), row.ID, assetNoun); err != nil {
			return err
		}
		return t.putAsset(ctx, c)
	})
}

// putAsset writes what hangs on the row.
func (t tx) putAsset(ctx context.Context, c asset.Change) error {
	key := string(c.Asset.ID)
	if !c.Kept {
		if err := t.putPlaybackIDs(ctx, c.Asset.Environment, playbackid.OfAsset, key, c.Asset.PlaybackIDs); err != nil {
			return err
		}
		if err := t.putUses(ctx, key, c.Asset.Uses); err != nil {
			return err
		}
	}
	if err := t.putTracks(ctx, c); err != nil {
		return err
	}
	if err := t.putEntries(ctx, c); err != nil {
		return err
	}
	return t.tell(ctx, c.Events, c.Jobs)
}

func (t tx) putUses(ctx context.Context, key string, uses []id.Media) error {
	if _, err := t.NewDelete().Model((*useRow)(nil)).Where("asset_id = ?", key).Exec(ctx); err != nil {
		return fmt.Errorf("delete uses of asset: %w", err)
	}
	if len(uses) == 0 {
		return nil
	}
	rows := make([]useRow, 0, len(uses))
	for i, m := range uses {
		rows = append(rows, useRow{Asset: key, Media: string(m), Position: int64(i)})
	}
	if _, err := t.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return fmt.Errorf("insert uses of asset: %w", err)
	}
	return nil
}

func (t tx) putTracks(ctx context.Context, c asset.Change) error {
	if len(c.Dropped) > 0 {
		_, err := t.NewDelete().Model((*trackRow)(nil)).Where("id IN ?", bun.Tuple(c.Dropped)).
			Where("asset_id = ?", string(c.Asset.ID)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete tracks: %w", err)
		}
	}
	if len(c.Tracks) == 0 {
		return nil
	}
	var last int64
	err := t.NewSelect().Model((*trackRow)(nil)).ColumnExpr("COALESCE(MAX(position), 0)").
		Where("asset_id = ?", string(c.Asset.ID)).Scan(ctx, &last)
	if err != nil {
		return fmt.Errorf("read tracks: %w", err)
	}
	rows := make([]trackRow, 0, len(c.Tracks))
	for i, track := range c.Tracks {
		row, rowErr := trackRowOf(c.Asset.ID, track)
		if rowErr != nil {
			return rowErr
		}
		row.Position = last + 1 + int64(i) // only for tracks that are new
		rows = append(rows, row)
	}
	_, err = t.NewInsert().Model(&rows).On("CONFLICT (id) DO UPDATE").
		Set("status = EXCLUDED.status").Set("url = EXCLUDED.url").Set("rendition = EXCLUDED.rendition").
		Set("object = EXCLUDED.object").Set("document = EXCLUDED.document").Exec(ctx)
	if err != nil {
		return fmt.Errorf("write tracks: %w", err)
	}
	return nil
}

func (t tx) putEntries(ctx context.Context, c asset.Change) error {
	key := string(c.Asset.ID)
	if c.Forget {
		if _, err := t.NewDelete().Model((*entryRow)(nil)).Where("asset_id = ?", key).Exec(ctx); err != nil {
			return fmt.Errorf("delete timeline: %w", err)
		}
	}
	if len(c.Entries) == 0 {
		return nil
	}
	rows := make([]entryRow, 0, len(c.Entries))
	for _, e := range c.Entries {
		rows = append(rows, entryRow{Asset: key, Sequence: e.Sequence, Data: e.Data})
	}
	if _, err := t.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return fmt.Errorf("append to timeline: %w", err)
	}
	return nil
}

func (as assetStore) Delete(ctx context.Context, c asset.Change) error {
	key := string(c.Asset.ID)
	return as.engine.begin(ctx, func(ctx context.Context, t tx) error { // tracks, entries and uses go with the row
		res, err := t.NewDelete().Model((*assetRow)(nil)).Where("id = ?", key).
			Where("revision = ?", c.Asset.Revision).Where("status = ?", string(c.From)).Exec(ctx)
		if err = t.touched(ctx, res, err, (*assetRow)(nil), key, assetNoun); err != nil {
			return err
		}
		if err := t.dropPlaybackIDs(ctx, key); err != nil {
			return err
		}
		if err := t.remember(ctx, c.Asset, c.Deleted); err != nil {
			return err
		}
		if err := leaveUpload(ctx, t, c.Asset.Upload, c.Deleted); err != nil {
			return err
		}
		if err := forgetSize(ctx, t, c.Asset.Media); err != nil {
			return err
		}
		return t.tell(ctx, c.Events, c.Jobs)
	})
}

func (as assetStore) Get(ctx context.Context, env id.Environment, a id.Asset) (asset.Asset, error) {
	return as.one(ctx, a, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("environment_id = ?", string(env))
	})
}

func (as assetStore) Find(ctx context.Context, a id.Asset) (asset.Asset, error) {
	return as.one(ctx, a, func(q *bun.SelectQuery) *bun.SelectQuery { return q })
}

func (as assetStore) one(
	ctx context.Context, a id.Asset, and func(*bun.SelectQuery) *bun.SelectQuery,
) (asset.Asset, error) {
	if !possible(string(a)) {
		return asset.Asset{}, noSuch(assetNoun)
	}
	named := func(q *bun.SelectQuery) *bun.SelectQuery { return and(q.Where("id = ?", string(a))) }
	found, err := as.many(ctx, named, refuse)
	if err != nil {
		return asset.Asset{}, err
	}
	if len(found) == 0 {
		return asset.Asset{}, noSuch(assetNoun)
	}
	return found[0], nil
}

// many reads assets with all that hangs on them, in one query each.
func (as assetStore) many(
	ctx context.Context, where func(*bun.SelectQuery) *bun.SelectQuery, bad unreadable,
) ([]asset.Asset, error) {
	var rows []assetRow
	if err := where(as.read.NewSelect().Model(&rows)).Scan(ctx); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read assets: %w", err)
	}
	if len(rows) == 0 {
		return []asset.Asset{}, nil
	}
	keys := make([]string, 0, len(rows))
	for _, r := range rows {
		keys = append(keys, r.ID)
	}
	ids, err := playbackIDs(ctx, as.read, playbackid.OfAsset, keys)
	if err != nil {
		return nil, err
	}
	tracks, err := as.tracks(ctx, keys, bad)
	if err != nil {
		return nil, err
	}
	var used []useRow
	if err := as.read.NewSelect().Model(&used).Where("asset_id IN ?", bun.Tuple(keys)).Order("position").
		Scan(ctx); err != nil {
		return nil, fmt.Errorf("read uses of assets: %w", err)
	}
	uses := map[string][]id.Media{}
	for _, u := range used {
		uses[u.Asset] = append(uses[u.Asset], id.Media(u.Media))
	}
	out := make([]asset.Asset, 0, len(rows))
	for _, r := range rows {
		a, err := r.value()
		if err = bad(ctx, err); err != nil {
			return nil, err
		}
		a.PlaybackIDs, a.Tracks, a.Uses = ids[r.ID], tracks[r.ID], uses[r.ID]
		out = append(out, a)
	}
	return out, nil
}

func (as assetStore) tracks(ctx context.Context, assets []string, bad unreadable) (map[string][]asset.Track, error) {
	var rows []trackRow
	err := as.read.NewSelect().Model(&rows).Where("asset_id IN ?", bun.Tuple(assets)).Order("position", "id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tracks: %w", err)
	}
	out := make(map[string][]asset.Track, len(assets))
	for _, r := range rows {
		t, err := r.value()
		if err = bad(ctx, err); err != nil {
			return nil, err
		}
		out[r.Asset] = append(out[r.Asset], t)
	}
	return out, nil
}

func (as assetStore) List(ctx context.Context, env id.Environment, q asset.ListQuery) ([]asset.Asset, string, error) {
	if !possible(string(q.Upload)) || !possible(string(q.LiveStream)) {
		return []asset.Asset{}, "", nil
	}
	at, after, err := readCursor(q.Cursor)
	if err != nil {
		return nil, "", err
	}
	listed := func(sel *bun.SelectQuery) *bun.SelectQuery {
		sel = sel.Where("environment_id = ?", string(env))
		if q.LiveStream != "" {
			sel = sel.Where("live_stream_id = ?", string(q.LiveStream))
		}
		if q.Upload != "" {
			sel = sel.Where("upload_id = ?", string(q.Upload))
		}
		if q.Cursor != "" {
			sel = sel.Where("(created_at < ? OR created_at = ? AND id < ?)", at, at, after)
		}
		// one more tells whether there are more
		return sel.Order("created_at DESC", "id DESC").Limit(int64(q.Limit) + 1)
	}
	found, err := as.many(ctx, func(sel *bun.SelectQuery) *bun.SelectQuery {
		if q.Cursor != "" || q.Page <= 1 {
			return listed(sel)
		}
		// rows in front are not read
		page := listed(as.read.NewSelect().Table("assets").Column("id")).Offset(int64(q.Page-1) * int64(q.Limit))
		return sel.Where("id IN (?)", page).Order("created_at DESC", "id DESC")
	}, as.listed)
	if err != nil || len(found) <= q.Limit {
		return found, "", err
	}
	found = found[:q.Limit]
	last := found[q.Limit-1]
	return found, cursor(millis(last.CreatedAt), string(last.ID)), nil
}

// Some goes by the IDs: the environment shall not choose another index.
func (as assetStore) Some(ctx context.Context, env id.Environment, of []id.Asset) ([]asset.Asset, error) {
	of = slices.DeleteFunc(slices.Clone(of), func(a id.Asset) bool { return !possible(string(a)) })
	if len(of) == 0 {
		return nil, nil
	}
	return as.many(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("id IN ?", bun.Tuple(of)).Where("environment_id || '' = ?", string(env))
	}, as.listed)
}

// cursor is the place behind a row in a list, newest first.
func cursor(at int64, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(at, 10) + "." + key))
}

func readCursor(c string) (at int64, key string, err error) {
	if c == "" {
		return 0, "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(c)
	ms, key, ok := strings.Cut(string(raw), ".")
	if err == nil && ok && key != "" && len(c) <= 512 && possible(key) {
		if at, err = strconv.ParseInt(ms, 10, 64); err == nil {
			return at, key, nil
		}
	}
	return 0, "", fault.New(fault.Invalid, "cursor must be a next_cursor of an earlier response")
}

func (as assetStore) Append(ctx context.Context, a id.Asset, by asset.Writer, entries []asset.TimelineEntry) error {
	key := string(a)
	if !possible(key) {
		return noSuch(assetNoun)
	}
	return as.engine.begin(ctx, func(ctx context.Context, t tx) error {
		text, of := appendEntry, []any(nil)
		if (by != asset.Writer{}) {
			text, of = appendLed+shared(t)+onceOnly, leading(by, key)
		}
		for _, e := range entries {
			res, err := t.exec(ctx, text, append([]any{e.Sequence, e.Data, key}, of...)...)
			if err = t.appended(ctx, res, err, by, key, e.Sequence); err != nil {
				return err
			}
		}
		return nil
	})
}

// led makes sure that a writer leads the broadcast that an asset records, until the transaction ends.
func led(ctx context.Context, t tx, by asset.Writer, key string) error {
	if (by == asset.Writer{}) {
		return nil
	}
	var one int
	err := t.NewRaw("SELECT 1 FROM live_streams AS s WHERE "+ledBy+shared(t), leading(by, key)...).
		Scan(ctx, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return moved(assetNoun)
	}
	if err != nil {
		return fmt.Errorf("read who leads the broadcast: %w", err)
	}
	return nil
}

// appended says why an entry was not inserted: it is there already, the asset takes none, or somebody else leads its
// broadcast.
func (t tx) appended(
	ctx context.Context, res sql.Result, err error, by asset.Writer, key string, sequence int64,
) error {
	if err == nil {
		if n, nerr := res.RowsAffected(); nerr == nil && n == 1 {
			return nil
		}
		if err = led(ctx, t, by, key); err != nil {
			return err
		}
		var there bool
		there, err = t.NewSelect().Model((*entryRow)(nil)).Where("asset_id = ?", key).Where("sequence = ?", sequence).
			Exists(ctx)
		if there {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("append to timeline: %w", err)
	}
	there, err := t.NewSelect().Model((*assetRow)(nil)).Where("id = ?", key).Exists(ctx)
	if err != nil {
		return fmt.Errorf("read asset: %w", err)
	}
	if !there {
		return noSuch(assetNoun)
	}
	return moved(assetNoun)
}

func (as assetStore) Timeline(ctx context.Context, a id.Asset, from int64) ([]asset.TimelineEntry, error) {
	var rows []entryRow
	err := as.read.NewSelect().Model(&rows).Where("asset_id = ?", string(a)).Where("sequence >= ?", from).
		Order("sequence").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read timeline: %w", err)
	}
	out := make([]asset.TimelineEntry, 0, len(rows))
	for _, r := range rows {
		out = append(out, asset.TimelineEntry{Sequence: r.Sequence, Data: r.Data})
	}
	return out, nil
}

func (as assetStore) Users(ctx context.Context, m id.Media) ([]asset.Asset, error) {
	if m == "" {
		return []asset.Asset{}, nil
	}
	users := as.read.NewSelect().Model((*useRow)(nil)).Column("asset_id").Where("media_id = ?", string(m))
	return as.many(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("media_id = ? OR id IN (?)", string(m), users).Order("created_at", "id")
	}, refuse)
}

func (as assetStore) Unfinished(ctx context.Context) ([]asset.Asset, error) {
	tracks := as.read.NewSelect().Model((*trackRow)(nil)).Column("asset_id").Where("status = 'preparing'")
	return as.many(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("unfinished OR id IN (?)", tracks).Order("created_at", "id")
	}, refuse)
}
