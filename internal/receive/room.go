package receive

import (
	"context"
	"fmt"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/disk"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
)

// The room for the rest of an upload is held free whole while bytes come, and less and less once nothing has come for
// steady, until it is another one's after away: an upload may wait for days for a client that will not come back.
const steady, away = time.Minute, 15 * time.Minute

// What an environment has declared and not sent holds at most one in envShare of the room that there is against the
// others, and that of all of them at most one in allShare: to declare costs nothing.
const envShare, allShare = 4, 2

func noRoom(more int64) error {
	return fault.Wrap(fault.Unavailable, disk.ErrFull, "the service has no room for %d more bytes at the moment",
		max(more, 0))
}

// checkSpace reports whether the disk has some, beside what is left to live streams.
func (f *Files) checkSpace() error {
	if f.opt.Space == nil {
		return nil
	}
	if s, err := f.opt.Space(); err == nil && !s.Has(0) {
		return noRoom(0)
	}
	return nil
}

// reserve reports whether the disk has room for more bytes of an upload, beside what is left to live streams and what
// is held for the others that are under way.
func (f *Files) reserve(ctx context.Context, u upload.Upload, more int64) error {
	if f.opt.Space == nil {
		return nil
	}
	s, err := f.opt.Space()
	if err != nil {
		return nil //nolint:nilerr // nobody knows: writing will show it
	}
	held, err := f.reserved(ctx, u, s.Room())
	if err != nil {
		return err
	}
	if !s.Has(max(more, 0) + held) {
		return noRoom(more)
	}
	return nil
}

// reserved is how many bytes of some room are kept from an upload for those that are under way. Those of its own
// environment count whole.
func (f *Files) reserved(ctx context.Context, u upload.Upload, room int64) (int64, error) {
	if f.local == nil {
		return 0, nil
	}
	all, err := f.opt.Uploads.Expected(ctx)
	if err != nil {
		return 0, fmt.Errorf("add up what is under way: %w", err)
	}
	now, of := f.opt.Now(), map[id.Environment]int64{}
	for _, other := range all {
		kept, err := f.opt.Store.Kept(ctx, objectkey.SourceFile(other.Media))
		if other.ID == u.ID || err != nil {
			continue
		}
		of[other.Environment] += reserve(other.Size-kept.Size, now.Sub(kept.ModTime))
	}
	own, others := of[u.Environment], int64(0)
	delete(of, u.Environment)
	for _, n := range of {
		others += min(n, room/envShare)
	}
	return own + min(others, room/allShare), nil
}

// reserve is how many of the bytes that are missing of an upload are kept free for it when nothing has come for a
// while.
func reserve(missing int64, quiet time.Duration) int64 {
	rest := float64(away-max(quiet, steady)) / float64(away-steady)
	return int64(float64(max(missing, 0)) * max(rest, 0))
}
