// Package receive accepts the files of direct uploads: it admits one writer at a time, stores bytes before it
// acknowledges them, and creates an asset when the last byte has arrived. It must never know HTTP, SQL, or how storage
// keeps a file that arrives bit by bit. It starts no goroutine.
package receive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/upload"
	"millrace/internal/disk"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
)

// Assets makes the change that makes an asset; asset.Service fits.
type Assets interface {
	Uploaded(u asset.NewUpload, now time.Time) (asset.Change, error)
}

// Claims keeps nodes out of each other's way; claim.Claimer fits.
type Claims interface {
	Claim(ctx context.Context, keys []string, wanted func()) (n int, done func(keys ...string))
	// Wait lets anyone who has a claim know that somebody waits, and waits until it is given back.
	Wait(ctx context.Context, key string) bool
}

// Options is what Files needs.
type Options struct {
	Uploads upload.Work
	Assets  Assets
	// Complete stores both changes or neither.
	Complete func(ctx context.Context, u upload.Change, a asset.Change) error
	Store    blob.Store
	Claims   Claims // nil: there are no other nodes
	MaxSize  int64  // of a file, bytes
	// Space is how much room there is where the bytes go; nil: nobody knows, as of a bucket.
	Space func() (disk.Space, error)
	Now   func() time.Time
}

// Files are the files that are being uploaded.
type Files struct {
	opt   Options
	local blob.Local // nil: bytes go to a bucket

	// declaring is held from a look at the room there is until it is written down who has it.
	declaring sync.Mutex

	sums remembered

	mu   sync.Mutex
	held map[id.Upload]*place
}

// New returns Files.
func New(o Options) *Files {
	if limited, ok := o.Store.(blob.Limited); ok {
		o.MaxSize = min(o.MaxSize, limited.MaxGrown())
	}
	local, _ := o.Store.(blob.Local)
	return &Files{opt: o, local: local, held: map[id.Upload]*place{}}
}

// Find reads the upload whose URL has this secret, as it is now.
func (f *Files) Find(ctx context.Context, secret string) (upload.Upload, error) {
	return f.opt.Uploads.FindSecret(ctx, secret, f.opt.Now())
}

// Quit cancels an upload for anyone who has its URL.
func (f *Files) Quit(ctx context.Context, u id.Upload) error {
	return f.opt.Uploads.Quit(ctx, u, f.opt.Now())
}

// MaxSize is how many bytes a file may have.
func (f *Files) MaxSize() int64 { return f.opt.MaxSize }

// Over is the error about an upload that does not wait for its file any more.
func Over(u upload.Upload) error {
	return fault.New(fault.Conflict, "the upload is %s: it takes nothing any more", u.Status)
}

// Open makes the caller the one writer of an upload. interrupt is called, from another goroutine, when the caller
// should hurry to Close, since somebody else waits. While another one is writing it is fault.TooMany; an upload that is
// over without its file is fault.Conflict. One whose file is there has a Writer with an Asset: its caller may have
// waited for who sent the last byte.
func (f *Files) Open(ctx context.Context, u id.Upload, interrupt func()) (*Writer, error) {
	p, err := f.enter(ctx, u, interrupt, patience)
	if err != nil {
		return nil, err
	}
	w, err := f.open(ctx, u, p)
	if err != nil {
		p.leave()
		return nil, err
	}
	return w, nil
}

func (f *Files) open(ctx context.Context, u id.Upload, p *place) (*Writer, error) {
	row, err := f.opt.Uploads.Find(ctx, u)
	if err != nil {
		return nil, err
	}
	row = row.At(f.opt.Now())
	if row.Status == upload.AssetCreated {
		return &Writer{files: f, place: p, upload: row, size: row.Size, made: row.Asset}, nil
	}
	if row.Status != upload.Waiting {
		return nil, Over(row)
	}
	w := &Writer{files: f, place: p, upload: row, key: objectkey.SourceFile(row.Media)}
	info, err := f.opt.Store.Stat(ctx, w.key)
	if err == nil { // its process has died between the last byte and the asset
		w.size = info.Size
		return w, w.complete(ctx)
	}
	if !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	if f.local != nil {
		kept, nothing := f.opt.Store.Kept(ctx, w.key)
		w.away = nothing == nil && f.opt.Now().Sub(kept.ModTime) > away
	}
	if w.object, err = f.opt.Store.Grow(ctx, w.key); err != nil {
		if fault.Is(err, fault.Conflict) {
			return nil, busy()
		}
		return nil, err
	}
	w.size = w.object.Size()
	w.sums = f.sums.take(u, w.size)
	if row.Whole && w.size == row.Size {
		if err = w.Finish(ctx); err != nil {
			return nil, errors.Join(err, w.object.Close())
		}
	}
	return w, nil
}

// Received is how many bytes of the file of a waiting upload are kept.
func (f *Files) Received(ctx context.Context, u upload.Upload) (int64, error) {
	key := objectkey.SourceFile(u.Media)
	kept, err := f.opt.Store.Kept(ctx, key)
	if fault.Is(err, fault.NotFound) { // nothing has come, or all of it, and its process has died before the asset
		kept, err = f.opt.Store.Stat(ctx, key)
	}
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at what has come: %w", err)
	}
	return kept.Size, nil
}

// Clear removes what there is of the file of an upload that is over, once nobody writes to it: where it has an asset,
// what is beside the file.
func (f *Files) Clear(ctx context.Context, u upload.Upload) error {
	if u.Status == upload.Waiting {
		return nil
	}
	p, err := f.enter(ctx, u.ID, func() {}, clearPatience)
	if err != nil {
		return err
	}
	defer p.leave()
	key := objectkey.SourceFile(u.Media)
	err = f.opt.Store.Drop(ctx, key)
	if u.Asset == "" {
		err = errors.Join(err, f.opt.Store.Delete(ctx, key, objectkey.Checksums(u.Media)))
	}
	if err != nil {
		return fmt.Errorf("clear up after an upload: %w", err)
	}
	return nil
}
