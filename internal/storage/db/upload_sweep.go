package db

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/upload"
	"millrace/internal/id"
)

func (us uploadStore) Overdue(
	ctx context.Context, before time.Time, behind upload.Overdue, limit int,
) ([]upload.Overdue, error) {
	return overdueUploads(ctx, us.read, before, behind, limit)
}

func (us uploadStore) Expecting(ctx context.Context, all []id.Media) ([]id.Media, error) {
	return expectingUploads(ctx, us.read, all)
}

func overdueUploads(
	ctx context.Context, q bun.IDB, before time.Time, behind upload.Overdue, limit int,
) ([]upload.Overdue, error) {
	var rows []uploadRow
	err := q.NewSelect().Model(&rows).Column("id", "media_id", "status", "due_at").
		Where("due_at > 0").Where("due_at < ?", millis(before)).
		Where("(due_at, id) > (?, ?)", millis(behind.Due), string(behind.ID)).
		Order("due_at", "id").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read overdue uploads: %w", err)
	}
	all := make([]upload.Overdue, 0, len(rows))
	for _, r := range rows {
		all = append(all, upload.Overdue{
			ID: id.Upload(r.ID), Media: id.Media(r.Media), Status: upload.Status(r.Status), Due: moment(r.DueAt),
		})
	}
	return all, nil
}

func expectingUploads(ctx context.Context, q bun.IDB, all []id.Media) ([]id.Media, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var found []id.Media
	err := q.NewSelect().Model((*uploadRow)(nil)).Column("media_id").
		Where("due_at > 0").Where("media_id IN ?", bun.Tuple(all)).Scan(ctx, &found)
	if err != nil {
		return nil, fmt.Errorf("read media of uploads: %w", err)
	}
	return found, nil
}

// PruneUploads removes the rows of uploads that nobody has needed since a time, at most limit of them, and gives how
// many there were. One of whose file something is kept stays until that is removed.
func (d *DB) PruneUploads(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		old := t.NewSelect().Model((*uploadRow)(nil)).Column("id").
			Where("unneeded_at > 0").Where("unneeded_at < ?", millis(before)).Where("due_at = 0").
			Order("unneeded_at").Limit(int64(limit))
		res, failed := t.NewDelete().Model((*uploadRow)(nil)).Where("id IN (?)", old).Exec(ctx)
		if failed != nil {
			return fmt.Errorf("remove old uploads: %w", failed)
		}
		gone, failed := res.RowsAffected()
		n = int(gone)
		return failed
	})
	return n, err
}

// leaveUpload notes that the asset of an upload was deleted.
func leaveUpload(ctx context.Context, t tx, u id.Upload, now time.Time) error {
	if u == "" {
		return nil
	}
	_, err := t.NewUpdate().Model((*uploadRow)(nil)).Set("unneeded_at = ?", millis(now)).Set("revision = revision + 1").
		Where("id = ?", string(u)).Where("unneeded_at = 0").Exec(ctx)
	if err != nil {
		return fmt.Errorf("note that asset of upload is deleted: %w", err)
	}
	return nil
}
