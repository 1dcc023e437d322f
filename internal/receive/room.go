package receive

import (
	"context"
	"fmt"
	"time"

	"millrace/internal/disk"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
)

// away is after how long without a byte the room for the rest of an upload is not held free any more: an upload may wait for days for a client
// that will not come back.
const away = 15 * time.Minute

func noRoom(more int64) error {
	return fault.Wrap(fault.Unavailable, disk.ErrFull, "the service has no room for %d more bytes at the moment", max(more, 0))
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

// reserve reports whether the disk has room for more bytes of an upload, beside what is left to live streams and what is missing of the others
// that are under way.
func (f *Files) reserve(ctx context.Context, u id.Upload, more int64) error {
	if f.opt.Space == nil {
		return nil
	}
	s, err := f.opt.Space()
	if err != nil {
		return nil //nolint:nilerr // nobody knows: writing will show it
	}
	others, err := f.missing(ctx, u)
	if err != nil {
		return err
	}
	if !s.Has(max(more, 0) + others) {
		return noRoom(more)
	}
	return nil
}

// missing is how many bytes are to come of all uploads but one. Those that are away do not count.
func (f *Files) missing(ctx context.Context, but id.Upload) (n int64, err error) {
	if f.local == nil {
		return 0, nil
	}
	all, err := f.opt.Uploads.Expected(ctx)
	if err != nil {
		return 0, fmt.Errorf("add up what is under way: %w", err)
	}
	now := f.opt.Now()
	for _, u := range all {
		kept, err := f.opt.Store.Kept(ctx, objectkey.SourceFile(u.Media))
		if u.ID == but || err != nil || now.Sub(kept.ModTime) > away {
			continue
		}
		n += max(u.Size-kept.Size, 0)
	}
	return n, nil
}
