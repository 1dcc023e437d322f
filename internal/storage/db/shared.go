package db

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

type eventRow struct {
	bun.BaseModel `bun:"table:events"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Type          string `bun:"type"`
	ObjectKind    string `bun:"object_kind"`
	ObjectID      string `bun:"object_id"`
	At            int64  `bun:"at"`
	Position      int64  `bun:"position"` // within its change
	Data          string `bun:"data"`
}

// tell stores the events and jobs of a change.
func (t tx) tell(ctx context.Context, events []event.Event, jobs []job.Insert) error {
	for i, e := range events {
		err := t.insert(ctx, &eventRow{
			ID: e.ID, Environment: string(e.Environment), Type: e.Type, ObjectKind: e.ObjectKind, ObjectID: e.ObjectID,
			At: millis(e.At), Position: int64(i), Data: string(e.Data),
		})
		if err != nil {
			return fmt.Errorf("insert event: %w", err)
		}
	}
	return t.enqueue(ctx, jobs)
}

// Events gives the latest events of an environment since a time, oldest first, at most limit of them.
func (d *DB) Events(ctx context.Context, env id.Environment, since time.Time, limit int) ([]event.Event, error) {
	var rows []eventRow
	err := d.read.NewSelect().Model(&rows).Where("environment_id = ?", string(env)).Where("at >= ?", millis(since)).
		Order("at", "position", "id").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	events := make([]event.Event, 0, len(rows))
	for _, r := range rows {
		events = append(events, event.Event{
			ID: r.ID, Environment: id.Environment(r.Environment), Type: r.Type, ObjectKind: r.ObjectKind, ObjectID: r.ObjectID,
			At: moment(r.At), Data: []byte(r.Data),
		})
	}
	return events, nil
}

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

func (r playbackRow) value() playbackid.ID {
	return playbackid.ID{ID: id.Playback(r.ID), Policy: playbackid.Policy(r.Policy), DRMConfigurationID: r.DRM}
}

// playbackIDs reads those of many objects in one query.
func playbackIDs(ctx context.Context, q bun.IDB, kind playbackid.ObjectKind, objects []string) (map[string][]playbackid.ID, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	var rows []playbackRow
	err := q.NewSelect().Model(&rows).Where("object_id IN ?", bun.Tuple(objects)).Where("object_kind = ?", string(kind)).
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
func (t tx) putPlaybackIDs(ctx context.Context, env id.Environment, kind playbackid.ObjectKind, object string, want []playbackid.ID) error {
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

func (t tx) syncPlaybackIDs(ctx context.Context, env id.Environment, kind playbackid.ObjectKind, object string, have, want []playbackid.ID) error {
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

// dropPlaybackIDs removes those of one object.
func (t tx) dropPlaybackIDs(ctx context.Context, object string) error {
	if _, err := t.NewDelete().Model((*playbackRow)(nil)).Where("object_id = ?", object).Exec(ctx); err != nil {
		return fmt.Errorf("delete playback IDs: %w", err)
	}
	return nil
}
