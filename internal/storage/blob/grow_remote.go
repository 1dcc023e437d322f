package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob/s3"
)

// assembled is an object of a bucket that comes bit by bit: a multipart upload of pieces of s3.PieceBytes, and, behind
// the last of them, tails: objects with what was kept of the next piece. The piece itself gathers in a local file
// without a name.
type assembled struct {
	store *remote
	key   string
	multi *s3.Multipart // nil: there is no piece yet
	base  int64         // bytes in pieces
	piece *os.File
	size  int64 // bytes in piece
	kept  int64 // of them, in tails
	tails []string
}

// tailRoot is where tails lie, apart from what is whole: so they are found without a look at all objects.
const tailRoot = "tails/"

func tailPrefix(key string) string { return tailRoot + key + "/" }

// tailKey names a tail by where it begins, with so many digits that keys are in that order.
func tailKey(key string, at int64) string { return fmt.Sprintf("%s%020d", tailPrefix(key), at) }

func (rem *remote) Grow(ctx context.Context, key string) (Growing, error) {
	if err := CheckKey(tailKey(key, 0)); err != nil {
		return nil, err
	}
	multi, err := rem.bucket.Continue(ctx, key)
	if err != nil {
		return nil, err
	}
	a := &assembled{store: rem, key: key, multi: multi}
	if multi != nil {
		a.base = multi.Size()
	}
	if a.piece, err = nameless(rem.scratch); err != nil {
		return nil, err
	}
	if err = a.readTails(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Kept implements Store. Behind the pieces is what the last tail ends with.
func (rem *remote) Kept(ctx context.Context, key string) (Info, error) {
	if err := CheckKey(tailKey(key, 0)); err != nil {
		return Info{}, err
	}
	size, err := rem.bucket.Begun(ctx, key)
	if err != nil {
		return Info{}, err
	}
	last := ""
	for tail, err := range rem.List(ctx, tailPrefix(key)) {
		if err != nil {
			return Info{}, fmt.Errorf("list tails: %w", err)
		}
		last = tail
	}
	if at, perr := strconv.ParseInt(strings.TrimPrefix(last, tailPrefix(key)), 10, 64); perr == nil && at >= size {
		tail, err := rem.Stat(ctx, last)
		if err == nil {
			return Info{Size: at + tail.Size, ModTime: tail.ModTime}, nil
		}
		if !fault.Is(err, fault.NotFound) { // else it has just become part of a piece
			return Info{}, err
		}
	}
	if size == 0 {
		return Info{}, fault.New(fault.NotFound, "nothing is kept of object %s", key)
	}
	return Info{Size: size}, nil
}

// MaxGrown implements Limited.
func (*remote) MaxGrown() int64 { return s3.MaxPieces * s3.PieceBytes }

// nameless makes a file that is gone with its last descriptor.
func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "piece-")
	if err != nil {
		return nil, fmt.Errorf("make file for a piece: %w", err)
	}
	if err = os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("make file for a piece: %w", err)
	}
	return f, nil
}

// readTails goes on behind the tails that follow the pieces without a hole. Others have become part of a piece.
func (a *assembled) readTails(ctx context.Context) error {
	var old []string
	for key, err := range a.store.List(ctx, tailPrefix(a.key)) {
		if err != nil {
			return fmt.Errorf("list tails: %w", err)
		}
		at, err := strconv.ParseInt(strings.TrimPrefix(key, tailPrefix(a.key)), 10, 64)
		if err != nil || at != a.base+a.size {
			old = append(old, key)
			continue
		}
		if err = a.readTail(ctx, key); err != nil {
			return err
		}
		a.tails = append(a.tails, key)
	}
	a.kept = a.size
	return a.store.Delete(ctx, old...)
}

func (a *assembled) readTail(ctx context.Context, key string) error {
	r, err := a.store.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.NewOffsetWriter(a.piece, a.size), io.LimitReader(r, s3.PieceBytes-a.size+1))
	a.size += n
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("read tail: %w", err)
	}
	if a.size > s3.PieceBytes {
		return fmt.Errorf("object %s has a tail that is longer than a piece", a.key)
	}
	return nil
}

func (a *assembled) Size() int64 { return a.base + a.size }

func (a *assembled) Append(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n := min(int64(len(p)), s3.PieceBytes-a.size)
		if _, err := a.piece.WriteAt(p[:n], a.size); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return fault.Wrap(fault.Unavailable, err, "the service has no room for it at the moment")
		} else if err != nil {
			return fmt.Errorf("append to object %s: %w", a.key, err)
		}
		a.size += n
		p = p[n:]
		if a.size == s3.PieceBytes {
			if err := a.send(ctx); err != nil {
				return err
			}
			if err := a.forgetTails(ctx); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// send adds the piece to the multipart upload.
func (a *assembled) send(ctx context.Context) (err error) {
	if a.multi == nil {
		if a.multi, err = a.store.bucket.Begin(ctx, a.key); err != nil {
			return err
		}
	}
	if err = a.multi.Add(ctx, io.NewSectionReader(a.piece, 0, a.size)); err != nil {
		return err
	}
	a.base, a.size, a.kept = a.base+a.size, 0, 0
	return nil
}

func (a *assembled) forgetTails(ctx context.Context) error {
	tails := a.tails
	a.tails = nil
	return a.store.Delete(ctx, tails...)
}

// Sync stores what is not kept yet as a further tail.
func (a *assembled) Sync(ctx context.Context) error {
	if a.kept == a.size {
		return nil
	}
	key := tailKey(a.key, a.base+a.kept)
	if err := a.store.bucket.Upload(ctx, key, io.NewSectionReader(a.piece, a.kept, a.size-a.kept)); err != nil {
		return err
	}
	a.tails, a.kept = append(slices.Clip(a.tails), key), a.size
	return nil
}

// Finish makes the object of the pieces, or of what there is where there is none. Tails stay until then: a last piece
// that is short is not found again.
func (a *assembled) Finish(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	if a.multi == nil {
		if err = a.store.bucket.Upload(ctx, a.key, io.NewSectionReader(a.piece, 0, a.size)); err != nil {
			return err
		}
		return a.forgetTails(ctx)
	}
	if a.size > 0 {
		if err = a.send(ctx); err != nil {
			return err
		}
	}
	if err = a.multi.Complete(ctx); err != nil {
		return err
	}
	return a.forgetTails(ctx)
}

func (a *assembled) Close() error {
	err := a.piece.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}

func (rem *remote) Drop(ctx context.Context, key string) error {
	if err := CheckKey(tailKey(key, 0)); err != nil {
		return err
	}
	var tails []string
	for tail, err := range rem.List(ctx, tailPrefix(key)) {
		if err != nil {
			return fmt.Errorf("list tails: %w", err)
		}
		tails = append(tails, tail)
	}
	return errors.Join(rem.bucket.Abort(ctx, key), rem.Delete(ctx, tails...))
}

// Unfinished implements Store. Multipart uploads and tails of one key are told of together, so all keys are held in
// memory: some hundred bytes for each upload that is under way.
func (rem *remote) Unfinished(ctx context.Context, prefix string) iter.Seq2[Unfinished, error] {
	return func(yield func(Unfinished, error) bool) {
		all, err := rem.unfinished(ctx, prefix)
		if err != nil {
			yield(Unfinished{}, fmt.Errorf("list unfinished objects: %w", err))
			return
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !yield(Unfinished{Key: key, ModTime: all[key]}, nil) {
				return
			}
		}
	}
}

// unfinished gives the keys with the time of the last sign of each.
func (rem *remote) unfinished(ctx context.Context, prefix string) (map[string]time.Time, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	all := map[string]time.Time{}
	sign := func(key string, at time.Time) {
		if last, known := all[key]; !known || at.After(last) {
			all[key] = at
		}
	}
	for m, err := range rem.bucket.Multiparts(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if CheckKey(m.Key) == nil { // else it is not ours
			sign(m.Key, m.At)
		}
	}
	for tail, err := range rem.bucket.Objects(ctx, tailRoot+prefix) {
		if err != nil {
			return nil, err
		}
		if key := path.Dir(strings.TrimPrefix(tail.Key, tailRoot)); CheckKey(key) == nil {
			sign(key, tail.ModTime)
		}
	}
	return all, nil
}
