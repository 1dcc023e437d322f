package blob

import (
	"context"
	"fmt"
	"io"
	"sync"

	"millrace/internal/fault"
)

const (
	blockBytes = 128 << 10 // what a small read fetches
	blockCount = 8         // how many such blocks are kept
)

// ReadAtCloser reads an object at any place. Reads at the same time are allowed.
type ReadAtCloser interface {
	io.ReaderAt
	io.Closer
}

// ReaderAt opens the object at key, of size bytes (asked for when negative), for reading in any order. A local object
// is an *os.File. Of any other, a read smaller than 128 KiB fetches the blocks of that size around it and keeps the
// last eight; a larger one is one request. Many bytes that follow one another are read by its method Range, without
// being kept. Reads use ctx, so it must live as long as the reader does.
func ReaderAt(ctx context.Context, store Store, key string, size int64) (ReadAtCloser, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if local, ok := store.(Local); ok {
		path, _ := local.Path(key)
		file, err := openRegular(path)
		if err != nil {
			return nil, absent(key, err)
		}
		return file, nil
	}
	if size < 0 {
		info, err := store.Stat(ctx, key)
		if err != nil {
			return nil, err
		}
		size = info.Size
	}
	return &ranged{ctx: ctx, store: store, key: key, size: size}, nil
}

// ranged reads an object by ranges.
type ranged struct {
	ctx   context.Context
	store Store
	key   string
	size  int64

	mu     sync.Mutex
	blocks []block // most recently used first
}

type block struct {
	index int64 // in blockBytes from the start
	data  []byte
}

func (r *ranged) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks = nil
	return nil
}

func (r *ranged) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New(fault.Invalid, "object %s has no byte %d", r.key, off)
	}
	if off >= r.size {
		return 0, io.EOF
	}
	want := p
	if rest := r.size - off; int64(len(p)) > rest {
		want = p[:rest]
	}
	n, err := r.readWithin(want, off)
	if err == nil && len(want) < len(p) {
		err = io.EOF
	}
	return n, err
}

// Range reads n bytes from off on, one after the other, in one request.
func (r *ranged) Range(off, n int64) (io.ReadCloser, error) {
	rd, err := r.store.Get(r.ctx, r.key, off, n)
	if err != nil {
		return nil, err
	}
	return rd, nil
}

func (r *ranged) readWithin(p []byte, off int64) (int, error) {
	if len(p) >= blockBytes {
		return r.fetch(p, off)
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		data, err := r.block(at / blockBytes)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], data[at%blockBytes:])
	}
	return n, nil
}

// block returns the bytes of one block; two readers that miss at once both fetch it, which is harmless.
func (r *ranged) block(index int64) ([]byte, error) {
	if data, ok := r.cached(index); ok {
		return data, nil
	}
	start := index * blockBytes
	data := make([]byte, min(blockBytes, r.size-start))
	if _, err := r.fetch(data, start); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.blocks[:min(len(r.blocks), blockCount-1)]
	r.blocks = append([]block{{index: index, data: data}}, kept...)
	return data, nil
}

func (r *ranged) cached(index int64) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, b := range r.blocks {
		if b.index == index {
			copy(r.blocks[1:i+1], r.blocks[:i])
			r.blocks[0] = b
			return b.data, true
		}
	}
	return nil, false
}

func (r *ranged) fetch(p []byte, off int64) (int, error) {
	rd, err := r.store.Get(r.ctx, r.key, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(rd, p)
	_ = rd.Close() // everything wanted is read
	if err != nil {
		return n, fmt.Errorf("read object %s at %d: %w", r.key, off, err)
	}
	return n, nil
}
