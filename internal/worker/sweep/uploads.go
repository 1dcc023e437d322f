package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/control/upload"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
)

const (
	// page is how many uploads are held in memory at a time.
	page = 100
	// Patience is for how long nothing must have come of an unfinished object that no upload expects. It is longer than
	// any job stores a file, and leaves time to put the right database back after the wrong backup.
	Patience = 25 * time.Hour
)

// overdue asks for the jobs of uploads again that are late.
func (s *Sweeper) overdue(ctx context.Context) error {
	before := s.Now().Add(-minIdle)
	var last upload.Overdue
	for {
		some, err := s.Uploads.Overdue(ctx, before, last, page)
		if err != nil || len(some) == 0 {
			return err
		}
		jobs := make([]job.Insert, 0, len(some))
		for _, o := range some {
			jobs = append(jobs, o.Job())
		}
		if err = s.Queue.Enqueue(ctx, jobs...); err != nil || len(some) < page {
			return err
		}
		last = some[len(some)-1]
	}
}

// abandoned removes what is stored of unfinished objects that no upload expects, and that nobody has written to for
// long: what came of an upload whose row is gone, or was cleared before its last writer noticed, and what a process
// that was killed has sent of a file to a bucket.
func (s *Sweeper) abandoned(ctx context.Context) error {
	if alone, err := s.Alone(ctx); err != nil || !alone {
		return err
	}
	before, gone := s.Now().Add(-Patience), 0
	keys := map[id.Media][]string{} // of one page
	remove := func() error {
		n, err := s.remove(ctx, keys)
		gone += n
		clear(keys)
		return err
	}
	var errs []error
	for u, err := range s.Store.Unfinished(ctx, objectkey.Root) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		m, ok := objectkey.Owner(u.Key)
		if !ok || !u.ModTime.Before(before) {
			continue
		}
		if keys[m] = append(keys[m], u.Key); len(keys) == page {
			errs = append(errs, remove())
		}
	}
	errs = append(errs, remove())
	if gone > 0 {
		s.Logger.InfoContext(ctx, "removed what was left of abandoned uploads", "uploads", gone)
	}
	return errors.Join(errs...)
}

// remove drops those objects of media sets that no upload expects, and gives how many.
func (s *Sweeper) remove(ctx context.Context, keys map[id.Media][]string) (n int, err error) {
	all := make([]id.Media, 0, len(keys))
	for m := range keys {
		all = append(all, m)
	}
	expecting, err := s.Uploads.Expecting(ctx, all)
	if err != nil {
		return 0, err
	}
	var errs []error
	for m, objects := range keys {
		if slices.Contains(expecting, m) {
			continue
		}
		for _, key := range objects {
			if err := s.Store.Drop(ctx, key); err != nil {
				errs = append(errs, fmt.Errorf("remove abandoned upload: %w", err))
				continue
			}
			n++
		}
	}
	return n, errors.Join(errs...)
}
