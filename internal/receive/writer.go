package receive

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/blob"
)

// Writer is the one writer of an upload. It is for one goroutine, but for Size, and has to be closed.
type Writer struct {
	files  *Files
	place  *place
	upload upload.Upload
	key    string
	object blob.Growing // nil: the file is whole
	sums   *checksums   // of what was given to object
	size   int64        // bytes that are kept
	made   id.Asset     // the asset; empty: bytes are missing
	away   bool         // nothing has come for so long that its room may be another one's
}

const (
	copyBytes = 256 << 10
	// step is by how much room is reserved for a file of unknown length, and how much is written between two looks at
	// the disk.
	step = 64 << 20
	// afterwards is how long it may take to keep what has come once the request is over.
	afterwards = 30 * time.Second
)

// Upload is the upload as it was when it was opened, with the length that was declared since.
func (w *Writer) Upload() upload.Upload { return w.upload }

// Size is how many bytes of the file are kept.
func (w *Writer) Size() int64 { return w.size }

// Asset is the asset that was made of the whole file; empty while bytes are missing.
func (w *Writer) Asset() id.Asset { return w.made }

// Declare says how long the file is, or may be so far, before it is sent: fault.TooLarge where that is too much,
// fault.Unavailable where there is no room for it, fault.Invalid where it contradicts what was said before.
func (w *Writer) Declare(ctx context.Context, length upload.Length) error {
	was := w.upload.Length
	if length.Metadata == "" {
		length.Metadata = was.Metadata
	}
	switch {
	case length == was, !length.Whole && length.Size <= was.Size:
		return nil
	case length.Whole && length.Size == 0:
		return fault.New(fault.Invalid, "the file is empty")
	case length.Size > w.files.opt.MaxSize:
		return fault.New(fault.TooLarge, "the file may have at most %d bytes", w.files.opt.MaxSize)
	case was.Whole && length.Size != was.Size:
		return fault.New(fault.Invalid, "the file has %d bytes by what was said before, and %d by this request",
			was.Size, length.Size)
	case length.Whole && length.Size < w.size:
		return fault.New(fault.Invalid, "the file has %d bytes by this request, and %d have come already", length.Size,
			w.size)
	}
	w.files.declaring.Lock()
	defer w.files.declaring.Unlock()
	if err := w.files.reserve(ctx, w.upload, length.Size-w.size); err != nil {
		return err
	}
	if err := w.files.opt.Uploads.Declare(ctx, w.upload.ID, length); err != nil {
		return err
	}
	w.upload.Length = length
	return nil
}

// Restart forgets what has come, for a client that sends the whole file again.
func (w *Writer) Restart(ctx context.Context) (err error) {
	if w.size == 0 {
		w.upload.Length = upload.Length{}
		return nil
	}
	if err = w.object.Close(); err != nil {
		return err
	}
	if err = w.files.opt.Store.Drop(ctx, w.key); err != nil {
		return err
	}
	w.size, w.upload.Length = 0, upload.Length{}
	w.sums = checksumsFrom(0)
	w.object, err = w.files.opt.Store.Grow(ctx, w.key)
	return err
}

// Receive appends what r gives and keeps it, also when r ends with an error, which it returns, or ctx does. It takes no
// byte more than was declared of a whole file.
func (w *Writer) Receive(ctx context.Context, r io.Reader) (n int64, err error) {
	if w.away {
		if err = w.files.reserve(ctx, w.upload, w.upload.Size-w.size); err != nil {
			return 0, err
		}
		w.away = false
	}
	until, cancel := context.WithDeadlineCause(ctx, w.upload.Expires(),
		fault.New(fault.Conflict, "the upload is timed_out: it takes nothing any more"))
	defer cancel()
	before := w.size
	err = w.copy(until, r)
	keep, stop := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer stop()
	if kept := w.object.Sync(keep); kept != nil {
		return 0, errors.Join(kept, err)
	}
	w.size = w.object.Size()
	return w.size - before, err
}

func (w *Writer) copy(ctx context.Context, r io.Reader) error {
	buf := make([]byte, copyBytes)
	looked := w.size
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := r.Read(buf)
		w.place.came(w.files.opt.Now())
		if size := w.object.Size() + int64(n); size-looked >= step {
			looked = size
			if rerr := w.files.checkSpace(); rerr != nil {
				return rerr
			}
		}
		if n > 0 {
			if aerr := w.append(ctx, buf[:n]); aerr != nil {
				return aerr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// append takes bytes within what was declared, which grows with a file of unknown length.
func (w *Writer) append(ctx context.Context, p []byte) error {
	size := w.object.Size() + int64(len(p))
	if size > w.upload.Size {
		if w.upload.Whole {
			return fault.New(fault.Invalid, "more bytes came than the %d that the file has", w.upload.Size)
		}
		if err := w.Declare(ctx, upload.Length{Size: min(size+step, max(size, w.files.opt.MaxSize))}); err != nil {
			return err
		}
	}
	if err := w.object.Append(ctx, p); err != nil {
		return err
	}
	w.sums.add(p)
	return nil
}

// Finish makes the asset of a file whose last byte has come.
func (w *Writer) Finish(ctx context.Context) error {
	if w.size == 0 {
		return fault.New(fault.Invalid, "the file is empty")
	}
	ctx = context.WithoutCancel(ctx) // anyone who sent it may be gone: it is whole
	if err := w.storeChecksums(ctx); err != nil {
		return err
	}
	if err := w.object.Finish(ctx); err != nil {
		return err
	}
	w.object = nil
	return w.complete(ctx)
}

// complete makes the asset of the object. An upload that is over by now is cleared up after by its job.
func (w *Writer) complete(ctx context.Context) error {
	opt, u := w.files.opt, w.upload
	now := opt.Now()
	made, err := opt.Assets.Uploaded(asset.NewUpload{
		Upload:      u.ID,
		Environment: u.Environment,
		Options:     u.Options,
		Test:        u.Test,
		Media:       u.Media,
	}, now)
	if err != nil {
		return err
	}
	if !u.Whole || u.Size != w.size {
		length := upload.Length{Size: w.size, Whole: true, Metadata: u.Metadata}
		if err = opt.Uploads.Declare(ctx, u.ID, length); err != nil {
			return err
		}
		w.upload.Length = length
	}
	if err = opt.Store.Drop(ctx, w.key); err != nil { // tails that a process which has died could not remove
		return err
	}
	change, err := opt.Uploads.Completed(u, made.Asset.ID, now)
	if err != nil {
		return err
	}
	if err = opt.Complete(ctx, change, made); err != nil {
		return err
	}
	w.made, w.upload.Status = made.Asset.ID, upload.AssetCreated
	return nil
}

// Missing is how many bytes are missing of a file whose length is known.
func (w *Writer) Missing() int64 {
	if !w.upload.Whole {
		return math.MaxInt64
	}
	return w.upload.Size - w.size
}

// Close lets others write. What was received is kept.
func (w *Writer) Close() error {
	var err error
	if w.object != nil {
		err = w.object.Close()
		if w.sums.size == w.size { // else not all of it is kept
			w.files.sums.put(w.upload.ID, w.sums)
		}
	}
	w.place.leave()
	return err
}
