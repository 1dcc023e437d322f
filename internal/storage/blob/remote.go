package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"millrace/internal/fault"
	"millrace/internal/storage/blob/s3"
)

const deleteParallel = 16

// remote is a Store in an S3 bucket. It deletes object by object: the request for many needs a checksum header that
// compatible servers disagree on.
type remote struct {
	bucket  *s3.Bucket
	scratch string // folder for pieces of objects that come bit by bit
}

var _ Store = (*remote)(nil)

func (rem *remote) Put(ctx context.Context, key string, r io.Reader) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return rem.bucket.Upload(ctx, key, r)
}

func (rem *remote) PutNew(ctx context.Context, key string, data []byte) (bool, error) {
	if err := CheckKey(key); err != nil {
		return false, err
	}
	return rem.bucket.Create(ctx, key, data)
}

func (rem *remote) Adopt(ctx context.Context, key, path string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	file, err := openRegular(path)
	if err != nil {
		return fmt.Errorf("adopt object %s: %w", key, err)
	}
	err = rem.bucket.Upload(ctx, key, file)
	_ = file.Close() // only read from
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("adopt object %s: %w", key, err)
	}
	return nil
}

func (rem *remote) Link(ctx context.Context, key string, f *os.File) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("link object %s: %w", key, err)
	}
	return rem.bucket.Upload(ctx, key, io.NewSectionReader(f, 0, info.Size()))
}

func (rem *remote) Get(ctx context.Context, key string, off, n int64) (*Reader, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if off < 0 {
		return nil, outside(key, off)
	}
	if n == 0 { // S3 has no empty range
		return rem.empty(ctx, key, off)
	}
	body, object, err := rem.bucket.Read(ctx, key, off, n)
	if err != nil {
		if off == 0 && fault.Is(err, fault.Invalid) { // an empty object has no range at all
			return rem.empty(ctx, key, off)
		}
		return nil, err
	}
	return &Reader{ReadCloser: body, Size: object.Size, ModTime: object.ModTime}, nil
}

// empty reads nothing of an object that is there.
func (rem *remote) empty(ctx context.Context, key string, off int64) (*Reader, error) {
	info, err := rem.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if off > 0 && off >= info.Size {
		return nil, outside(key, off)
	}
	return &Reader{ReadCloser: io.NopCloser(eof{}), Size: info.Size, ModTime: info.ModTime}, nil
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

func (rem *remote) Stat(ctx context.Context, key string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	object, err := rem.bucket.Stat(ctx, key)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: object.Size, ModTime: object.ModTime}, nil
}

func (rem *remote) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if err := checkPrefix(prefix); err != nil {
		return func(yield func(string, error) bool) { yield("", err) }
	}
	return rem.bucket.List(ctx, prefix)
}

func (rem *remote) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(deleteParallel)
	for _, key := range keys {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := rem.bucket.Delete(ctx, key); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in errs: one must not stop the others
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func (rem *remote) Close() error { return rem.bucket.Close() }
