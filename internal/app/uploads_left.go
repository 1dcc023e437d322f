package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"millrace/internal/app/doctor"
	"millrace/internal/config"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
)

const (
	// lateUpload is how late the job of an upload may be: a sweep comes every ten minutes.
	lateUpload = 15 * time.Minute
	// storing is how long a file may be on its way to a bucket that belongs to no upload.
	storing = time.Hour
	// mostUploads is how many doctor looks at; it has some seconds.
	mostUploads = 1000
)

// uploadsLeft looks at what there is of direct uploads, whether the service runs or not. It changes nothing.
func uploadsLeft(ctx context.Context, cfg config.Config) (left doctor.UploadsLeft, err error) {
	rows, err := db.OpenGlance(ctx, cfg.Database.Server())
	if fault.Is(err, fault.NotFound) {
		return left, nil
	}
	if err != nil {
		return left, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	late, err := rows.OverdueUploads(ctx, clock().Add(-lateUpload), upload.Overdue{}, mostUploads)
	if err != nil {
		return left, err
	}
	left.Late, left.Partly = len(late), len(late) == mostUploads
	if _, gone := os.Stat(cfg.Storage.Path); cfg.Storage.Kind == config.Folder && gone != nil {
		return left, nil
	}
	store, err := openStorage(ctx, cfg, cfg.Storage.URL)
	if err != nil {
		return left, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	some, err := unfinished(ctx, store)
	if err != nil {
		return left, err
	}
	left.Partly = left.Partly || len(some) == mostUploads
	media := make([]id.Media, 0, len(some)) // read after the files: a row is there before its file
	for _, u := range some {
		m, _ := objectkey.Owner(u.Key)
		media = append(media, m)
	}
	expecting, err := rows.ExpectingUploads(ctx, media)
	if err != nil {
		return left, err
	}
	return left, measure(ctx, store, &left, some, late, expecting)
}

// unfinished lists what has come in part.
func unfinished(ctx context.Context, store blob.Store) (some []blob.Unfinished, err error) {
	for u, err := range store.Unfinished(ctx, objectkey.Root) {
		if err != nil {
			return nil, err
		}
		if some = append(some, u); len(some) == mostUploads {
			break
		}
	}
	return some, nil
}

// measure adds up what is under way and what is not.
func measure(
	ctx context.Context, store blob.Store, left *doctor.UploadsLeft,
	some []blob.Unfinished, late []upload.Overdue, expecting []id.Media,
) error {
	for _, u := range some {
		m, _ := objectkey.Owner(u.Key)
		isLate := slices.ContainsFunc(late, func(o upload.Overdue) bool { return o.Media == m })
		known := slices.Contains(expecting, m)
		switch {
		case known && !isLate:
			left.Underway++
			continue
		case !known && clock().Sub(u.ModTime) < storing:
			continue
		}
		kept, err := store.Kept(ctx, u.Key)
		switch {
		case fault.Is(err, fault.NotFound): // finished or dropped meanwhile
		case err != nil:
			return err
		case isLate:
			left.LateBytes += kept.Size
		default:
			left.Unknown++
			left.UnknownBytes += kept.Size
		}
	}
	return nil
}
