package broadcast_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// objects is a storage in memory.
type objects struct {
	blob.Store // what nobody calls

	mu   sync.Mutex
	data map[string][]byte
	puts []string
}

var _ blob.Store = (*objects)(nil)

func (o *objects) Put(_ context.Context, key string, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data[key] = data
	o.puts = append(o.puts, key)
	return nil
}

// total is how many bytes are stored.
func (o *objects) total() (n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, data := range o.data {
		n += int64(len(data))
	}
	return n
}

func (o *objects) Get(_ context.Context, key string, off, n int64) (*blob.Reader, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data, ok := o.data[key]
	if !ok {
		return nil, fault.New(fault.NotFound, "no such object")
	}
	part := data[off:]
	if n >= 0 {
		part = part[:min(n, int64(len(part)))]
	}
	return &blob.Reader{ReadCloser: io.NopCloser(bytes.NewReader(part)), Size: int64(len(data))}, nil
}

func (o *objects) Stat(_ context.Context, key string) (blob.Info, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data, ok := o.data[key]
	if !ok {
		return blob.Info{}, fault.New(fault.NotFound, "no such object")
	}
	return blob.Info{Size: int64(len(data))}, nil
}

func (o *objects) List(_ context.Context, prefix string) iter.Seq2[string, error] {
	o.mu.Lock()
	defer o.mu.Unlock()
	keys := slices.Sorted(maps.Keys(o.data))
	return func(yield func(string, error) bool) {
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) && !yield(k, nil) {
				return
			}
		}
	}
}

func (o *objects) Delete(_ context.Context, keys ...string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range keys {
		delete(o.data, k)
	}
	return nil
}

func (o *objects) PutNew(_ context.Context, key string, data []byte) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.data[key] != nil {
		return false, nil
	}
	o.data[key] = bytes.Clone(data)
	return true, nil
}

func (o *objects) Adopt(ctx context.Context, key, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return o.Put(ctx, key, bytes.NewReader(data))
}

func (o *objects) Link(ctx context.Context, key string, f *os.File) error {
	return o.Put(ctx, key, io.NewSectionReader(f, 0, 1<<40))
}

func (o *objects) Close() error { return nil }

func (o *objects) has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data[key] != nil
}

// nodeObjects is the storage as one node reaches it.
type nodeObjects struct {
	*objects
	power *power
}

func (n nodeObjects) Link(ctx context.Context, key string, f *os.File) error {
	return n.Put(ctx, key, io.NewSectionReader(f, 0, 1<<40))
}

func (n nodeObjects) Put(ctx context.Context, key string, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.power.reach(&n.power.storage); err != nil {
		return err
	}
	return n.power.wrote(n.objects.Put(ctx, key, r))
}

func (n nodeObjects) PutNew(ctx context.Context, key string, data []byte) (created bool, err error) {
	if err = ctx.Err(); err != nil {
		return false, err
	}
	if err = n.power.reach(&n.power.storage); err != nil {
		return false, err
	}
	created, err = n.objects.PutNew(ctx, key, data)
	return created, n.power.wrote(err)
}
