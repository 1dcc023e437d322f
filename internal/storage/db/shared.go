package db

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/uptrace/bun"

	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

type playbackRow struct {
	bun.BaseModel `bun:"table:playback_ids"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	ObjectKind    string `bun:"object_kind"`
	ObjectID      string `bun:"object_id"`
	Policy        string `bun:"policy"`
	DRM           string `bun:"drm_configuration_id"`
	Position      int64  `bun:"position"`
}

func (p playbackRow) value() playbackid.ID {
	return playbackid.ID{ID: id.Playback(p.ID), Policy: playbackid.Policy(p.Policy), DRMConfigurationID: p.DRM}
}

// playbackIDs reads those of many objects in one query.
func playbackIDs(
	ctx context.Context, q bun.IDB, kind playbackid.ObjectKind, objects []string,
) (map[string][]playbackid.ID, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	var rows []playbackRow
	err := q.NewSelect().Model(&rows).Where("object_id IN ?", bun.Tuple(objects)).
		Where("object_kind = ?", string(kind)).
		Order("position", "id").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read playback IDs: %w", err)
	}
	out := make(map[string][]playbackid.ID, len(objects))
	for _, r := range rows {
		out[r.ObjectID] = append(out[r.ObjectID], r.value())
	}
	return out, nil
}

// putPlaybackIDs makes those of one object be want.
func (t tx) putPlaybackIDs(
	ctx context.Context, env id.Environment, kind playbackid.ObjectKind, object string, want []playbackid.ID,
) error {
	have, err := t.playbackIDs(ctx, kind, object)
	if err != nil {
		return err
	}
	return t.syncPlaybackIDs(ctx, env, kind, object, have, want)
}

// playbackIDs reads those of one object.
func (t tx) playbackIDs(ctx context.Context, kind playbackid.ObjectKind, object string) ([]playbackid.ID, error) {
	var rows []playbackRow
	found, err := t.query(ctx, playbackIDsOf, object, string(kind)) //nolint:rowserrcheck // scan looks at it
	if err == nil {
		err = t.scan(ctx, found, &rows)
	}
	if err != nil {
		return nil, fmt.Errorf("read playback IDs: %w", err)
	}
	ids := make([]playbackid.ID, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, r.value())
	}
	return ids, nil
}

func (t tx) syncPlaybackIDs(
	ctx context.Context, env id.Environment, kind playbackid.ObjectKind, object string, have, want []playbackid.ID,
) error {
	var fresh []playbackRow
	for i, w := range want {
		if playbackid.Index(have, w.ID) < 0 {
			fresh = append(fresh, playbackRow{
				ID: string(w.ID), Environment: string(env), ObjectKind: string(kind), ObjectID: object,
				Policy: string(w.Policy), DRM: w.DRMConfigurationID, Position: int64(i),
			})
		}
	}
	var gone []string
	for _, h := range have {
		if playbackid.Index(want, h.ID) < 0 {
			gone = append(gone, string(h.ID))
		}
	}
	if len(gone) > 0 {
		if _, err := t.NewDelete().Model((*playbackRow)(nil)).Where("id IN ?", bun.Tuple(gone)).Exec(ctx); err != nil {
			return fmt.Errorf("delete playback IDs: %w", err)
		}
	}
	for i := range fresh {
		if err := t.insert(ctx, &fresh[i]); err != nil {
			return fmt.Errorf("insert playback ID: %w", err)
		}
	}
	return nil
}

// dropPlaybackIDs removes those of one object, and its content keys.
func (t tx) dropPlaybackIDs(ctx context.Context, object string) error {
	if _, err := t.NewDelete().Model((*playbackRow)(nil)).Where("object_id = ?", object).Exec(ctx); err != nil {
		return fmt.Errorf("delete playback IDs: %w", err)
	}
	if _, err := t.NewDelete().Model((*contentKeysRow)(nil)).Where("resource_id = ?", object).Exec(ctx); err != nil {
		return fmt.Errorf("delete content keys: %w", err)
	}
	return nil
}

// unreadable is what becomes of what is read when a row can't be: nothing, where it returns an error. It is given nil
// for rows that can.
type unreadable func(ctx context.Context, err error) error

// refuse is for what needs each row as a whole.
func refuse(_ context.Context, err error) error { return err }

// listed is for lists: one row that can't be read keeps nobody from the others. It is there with what can be read of
// it, and the log names it.
func (d *DB) listed(ctx context.Context, err error) error {
	if err != nil {
		d.logger.WarnContext(ctx, "a row can't be read, and is listed with what can be read of it", slog.Any("error",
			err))
	}
	return nil
}

// values are the rows of a list.
func values[R, V any](ctx context.Context, d *DB, rows []R, value func(R) (V, error)) []V {
	out := make([]V, 0, len(rows))
	for _, r := range rows {
		v, err := value(r)
		_ = d.listed(ctx, err)
		out = append(out, v)
	}
	return out
}
