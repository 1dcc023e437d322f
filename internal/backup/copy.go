package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// inOrder calls do for each of a sequence, for some at a time, and out with the results, in order. It ends with the
// first error.
func inOrder[T, R any](
	ctx context.Context, in iter.Seq2[T, error], do func(ctx context.Context, v T) (R, error), out func(R) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	queue := make(chan chan R, parallel)
	group.Go(func() error {
		defer close(queue)
		for v, err := range in {
			if err != nil {
				return err
			}
			place := make(chan R, 1)
			select {
			case queue <- place:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			group.Go(func() error {
				r, err := do(ctx, v)
				if err == nil {
					place <- r
				}
				return err
			})
		}
		return nil
	})
	group.Go(func() error {
		for place := range queue {
			select {
			case r := <-place:
				if err := out(r); err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return group.Wait() //nolint:wrapcheck // what the functions return
}

// sums counts and hashes what is read through it.
type sums struct {
	io.Reader

	hash  hash.Hash
	size  int64
	moved func(int64)
}

func summing(r io.Reader, moved func(int64)) *sums { return &sums{r, sha256.New(), 0, moved} }

func (s *sums) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.hash.Write(p[:n])
	s.size += int64(n)
	s.moved(int64(n))
	return n, err //nolint:wrapcheck // a reader's own
}

func (s *sums) sum() string { return checksum([sha256.Size]byte(s.hash.Sum(nil))) }

// expecting is a reader that fails at its end when it did not give what was expected, so that nothing else is stored.
type expecting struct {
	*sums

	size int64
	sum  string
}

// errDamaged is that an object is not as it was.
var errDamaged = errors.New("its bytes are not those that were stored")

func (e *expecting) Read(p []byte) (int, error) {
	n, err := e.sums.Read(p)
	if errors.Is(err, io.EOF) && (e.sums.size != e.size || e.sums.sum() != e.sum) {
		err = errDamaged
	}
	if e.sums.size > e.size {
		err = errDamaged
	}
	return n, err
}

// Tries of what a storage that is away for a moment has refused.
const (
	tries    = 4
	tryAgain = time.Second // twice as long after each
)

// patiently calls do again when a storage is away.
func patiently(ctx context.Context, do func() error) error {
	pause := tryAgain
	for n := 1; ; n++ {
		err := do()
		lasting := errors.Is(err, blob.ErrRefused) || errors.Is(err, blob.ErrNoBucket) ||
			errors.Is(err, blob.ErrNoCredentials) || errors.Is(err, errDamaged)
		if err == nil || lasting || n == tries || !fault.Is(err, fault.Unavailable) {
			return err
		}
		again := time.NewTimer(pause)
		pause *= 2
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return err
		}
	}
}

// transfer copies an object from one store to another. It is checked on the way when a sum is wanted.
func transfer(
	ctx context.Context, from blob.Store, fromKey string, to blob.Store, toKey string, want *entry, moved func(int64),
) (size int64, sum string, err error) {
	err = patiently(ctx, func() error {
		r, failed := from.Get(ctx, fromKey, 0, -1)
		if failed != nil {
			return failed
		}
		defer func() { _ = r.Close() }() // only read from
		through := summing(r, moved)
		var in io.Reader = through
		if want != nil {
			in = &expecting{through, want.Size, want.Sum}
		}
		if r.Size <= atOnce { // what is in memory can be sent again by who sends it
			var data []byte
			if data, failed = io.ReadAll(io.LimitReader(in, atOnce+1)); failed != nil {
				return fmt.Errorf("read object %s: %w", fromKey, failed)
			}
			in = bytes.NewReader(data)
		}
		if failed = to.Put(ctx, toKey, in); failed != nil {
			return failed
		}
		size, sum = through.size, through.sum()
		return nil
	})
	return size, sum, err
}

// atOnce is how large an object is that is read before it is sent.
const atOnce = 4 << 20

// look reads an object and gives what it is.
func look(ctx context.Context, store blob.Store, key string, moved func(int64)) (size int64, sum string, err error) {
	err = patiently(ctx, func() error {
		r, failed := store.Get(ctx, key, 0, -1)
		if failed != nil {
			return failed
		}
		defer func() { _ = r.Close() }() // only read from
		s := summing(r, moved)
		if _, failed = io.Copy(io.Discard, s); failed != nil {
			return fmt.Errorf("read object %s: %w", key, failed)
		}
		size, sum = s.size, s.sum()
		return nil
	})
	return size, sum, err
}
