// Package blobtest tests the contract of blob.Store: every sentence of the interface is a subtest, run on each backend.
// It must never know which backend it runs on.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// Large is more than any backend sends in one request.
const Large = 20 << 20

// Run tests the stores that open makes. Each call of open gives an empty one, which Run closes.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	t.Helper()
	for name, test := range map[string]func(contract){
		"put then get gives the bytes, size and time": contract.putGet,
		"put replaces":                                         contract.putReplaces,
		"put new keeps what is there":                          contract.putNew,
		"of many that put new one does":                        contract.putNewAtOnce,
		"put of a large stream of unknown length":              contract.putLarge,
		"put is atomic for readers":                            contract.putAtomic,
		"a failing reader leaves nothing":                      contract.putFailingReader,
		"a failing reader leaves the old object":               contract.putFailingKeepsOld,
		"an ended context leaves nothing":                      contract.putCancelled,
		"get reads ranges":                                     contract.getRanges,
		"get of an empty object":                               contract.getEmpty,
		"get and stat of an absent object are NotFound":        contract.absent,
		"get of an offset outside is Invalid":                  contract.getOutside,
		"a reader goes on after its object is deleted":         contract.getSurvivesDelete,
		"every method refuses a bad key":                       contract.badKeys,
		"list gives all keys of a prefix in order":             contract.list,
		"list goes over several pages and can stop":            contract.listPages,
		"list ends after an error":                             contract.listCancelled,
		"delete of present and absent keys":                    contract.deleteKeys,
		"delete of many":                                       contract.deleteMany,
		"delete leaves keys that only begin alike":             contract.deleteNeighbours,
		"adopt takes a file over":                              contract.adopt,
		"adopt of a missing file fails, of a bad key keeps it": contract.adoptFails,
		"link stores an open file and leaves it":               contract.link,
		"methods may be called at the same time":               contract.concurrent,
		"a reader at any place reads like a file":              contract.readerAt,
		"a path of a local store holds the object":             contract.local,
		"an object that comes bit by bit":                      contract.grow,
		"an object that is dropped leaves nothing":             contract.drop,
		"what is unfinished is told of":                        contract.unfinished,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test(contract{t: t, s: s})
		})
	}
}

// contract is one sentence under test: its own store.
type contract struct {
	t *testing.T
	s blob.Store
}

// Bytes gives n bytes that differ with seed and can be made again.
func Bytes(seed byte, n int) []byte {
	src := rand.NewChaCha8([32]byte{seed})
	b := make([]byte, n)
	_, _ = src.Read(b) // never fails
	return b
}

func put(t *testing.T, s blob.Store, key string, data []byte) {
	t.Helper()
	if err := s.Put(t.Context(), key, bytes.NewReader(data)); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func get(t *testing.T, s blob.Store, key string, off, n int64) ([]byte, *blob.Reader) {
	t.Helper()
	r, err := s.Get(t.Context(), key, off, n)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return drain(t, r), r
}

// drain reads to the end and closes.
func drain(t *testing.T, r *blob.Reader) []byte {
	t.Helper()
	data, err := readClose(r)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return data
}

func readClose(r *blob.Reader) ([]byte, error) {
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: error %v of kind %d, want kind %d", what, err, fault.KindOf(err), kind)
	}
}

// wantPassing wants an error that no job ends with: nobody outside is to blame for what the storage has or has not.
func wantPassing(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	wantKind(t, what, err, kind)
	if fault.Permanent(fmt.Errorf("do a job: %w", err)) {
		t.Errorf("%s: %v is permanent", what, err)
	}
}

func wantData(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes differ from the %d wanted", what, len(got), len(want))
	}
}

func wantAbsent(t *testing.T, s blob.Store, key string) {
	t.Helper()
	_, err := s.Stat(t.Context(), key)
	wantKind(t, "stat "+key, err, fault.NotFound)
	if keys := all(t, s, ""); slices.Contains(keys, key) {
		t.Errorf("list still has %s", key)
	}
}

func all(t *testing.T, s blob.Store, prefix string) []string {
	t.Helper()
	keys := []string{}
	for key, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list %q: %v", prefix, err)
		}
		keys = append(keys, key)
	}
	return keys
}

func (c contract) putGet() {
	t, s := c.t, c.s
	before := time.Now().Add(-time.Minute)
	want := Bytes(1, 60_000)
	put(t, s, "env/asset/video/1.m4s", want)
	got, r := get(t, s, "env/asset/video/1.m4s", 0, -1)
	wantData(t, "get", got, want)
	info, err := s.Stat(t.Context(), "env/asset/video/1.m4s")
	if err != nil {
		t.Fatal(err)
	}
	if r.Size != 60_000 || info.Size != 60_000 {
		t.Errorf("size %d in the reader and %d in stat, want 60000", r.Size, info.Size)
	}
	for _, at := range []time.Time{r.ModTime, info.ModTime} {
		if at.Before(before) || at.After(time.Now().Add(time.Minute)) {
			t.Errorf("time %v is not about now", at)
		}
	}
}

func (c contract) putReplaces() {
	t, s := c.t, c.s
	put(t, s, "a/b", Bytes(1, 5000))
	put(t, s, "a/b", []byte("new"))
	got, r := get(t, s, "a/b", 0, -1)
	if string(got) != "new" || r.Size != 3 {
		t.Errorf("got %d bytes, size %d", len(got), r.Size)
	}
}

func (c contract) putLarge() {
	t, s := c.t, c.s
	want := Bytes(2, Large)
	if err := s.Put(t.Context(), "large.mp4", struct{ io.Reader }{bytes.NewReader(want)}); err != nil {
		t.Fatal(err)
	}
	got, _ := get(t, s, "large.mp4", 0, -1)
	wantData(t, "get", got, want)
}

// putAtomic reads while two different contents are written in turn: every read must be one of them, whole.
func (c contract) putAtomic() {
	t, s := c.t, c.s
	contents := [][]byte{Bytes(1, 700_000), Bytes(2, 300_000)}
	put(t, s, "seg", contents[0])
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer stop()
		for i := range 20 {
			if err := s.Put(context.WithoutCancel(gctx), "seg", bytes.NewReader(contents[i%2])); err != nil {
				return fmt.Errorf("put: %w", err)
			}
		}
		return nil
	})
	group.Go(func() error {
		for gctx.Err() == nil {
			r, err := s.Get(context.WithoutCancel(gctx), "seg", 0, -1)
			if err != nil {
				return fmt.Errorf("get: %w", err)
			}
			data, err := readClose(r)
			if err != nil {
				return fmt.Errorf("read: %w", err)
			}
			if !bytes.Equal(data, contents[0]) && !bytes.Equal(data, contents[1]) || int64(len(data)) != r.Size {
				return fmt.Errorf("read a mix of %d bytes, size %d", len(data), r.Size)
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

var errSource = errors.New("source broke")

// broken gives n bytes and then fails.
func broken(n int) io.Reader {
	return io.MultiReader(bytes.NewReader(Bytes(9, n)), failing{})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errSource }

func (c contract) putFailingReader() {
	t, s := c.t, c.s
	for _, n := range []int{0, 1000, Large} {
		key := fmt.Sprintf("broken/%d", n)
		if err := s.Put(t.Context(), key, broken(n)); !errors.Is(err, errSource) {
			t.Errorf("put of %d bytes and an error: %v, want %v", n, err, errSource)
		}
		wantAbsent(t, s, key)
	}
	if keys := all(t, s, ""); len(keys) > 0 {
		t.Errorf("left behind %v", keys)
	}
}

func (c contract) putFailingKeepsOld() {
	t, s := c.t, c.s
	put(t, s, "k", []byte("old"))
	for _, n := range []int{1000, Large} {
		if err := s.Put(t.Context(), "k", broken(n)); err == nil {
			t.Error("put with a failing reader returned nil")
		}
	}
	got, _ := get(t, s, "k", 0, -1)
	wantData(t, "old object", got, []byte("old"))
}

// cancelling ends its context after some bytes and goes on reading.
type cancelling struct {
	io.Reader
	cancel context.CancelFunc
	after  int
}

func (c *cancelling) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.after -= n; c.after <= 0 {
		c.cancel()
	}
	return n, err
}

func (c contract) putCancelled() {
	t, s := c.t, c.s
	for _, after := range []int{0, 100_000, Large - 100_000} {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Put(ctx, "c/x", &cancelling{Reader: bytes.NewReader(Bytes(3, Large)), cancel: cancel, after: after})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d bytes: %v, want context canceled", after, err)
		}
		wantAbsent(t, s, "c/x")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ended, "c/y", strings.NewReader("y")); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	wantAbsent(t, s, "c/y")
}

func (c contract) getRanges() {
	t, s := c.t, c.s
	data := Bytes(4, 10_000)
	put(t, s, "r", data)
	for _, tt := range []struct{ off, n, from, to int64 }{
		{0, -1, 0, 10_000},
		{0, 10_000, 0, 10_000},
		{0, 1, 0, 1},
		{1, 1, 1, 2},
		{9_999, 1, 9_999, 10_000},
		{9_999, -1, 9_999, 10_000},
		{5_000, -1, 5_000, 10_000},
		{5_000, 2_000, 5_000, 7_000},
		{9_000, 50_000, 9_000, 10_000},
		{0, 50_000, 0, 10_000},
		{0, 0, 0, 0},
		{500, 0, 500, 500},
	} {
		got, r := get(t, s, "r", tt.off, tt.n)
		wantData(t, fmt.Sprintf("get off %d n %d", tt.off, tt.n), got, data[tt.from:tt.to])
		if r.Size != 10_000 {
			t.Errorf("off %d n %d: size %d, want that of the whole object", tt.off, tt.n, r.Size)
		}
	}
}

func (c contract) getEmpty() {
	t, s := c.t, c.s
	put(t, s, "empty", nil)
	for _, n := range []int64{-1, 0, 10} {
		got, r := get(t, s, "empty", 0, n)
		if len(got) != 0 || r.Size != 0 {
			t.Errorf("n %d: %d bytes, size %d", n, len(got), r.Size)
		}
	}
}

func (c contract) absent() {
	t, s := c.t, c.s
	put(t, s, "dir/file", []byte("x"))
	for _, key := range []string{"none", "dir", "dir/none", "dir/file/below"} {
		for _, n := range []int64{-1, 0, 5} {
			_, err := s.Get(t.Context(), key, 0, n)
			wantPassing(t, fmt.Sprintf("get %s n %d", key, n), err, fault.NotFound)
		}
		_, err := s.Stat(t.Context(), key)
		wantPassing(t, "stat "+key, err, fault.NotFound)
		_, err = blob.ReaderAt(t.Context(), s, key, -1)
		wantPassing(t, "reader at "+key, err, fault.NotFound)
	}
}

func (c contract) getOutside() {
	t, s := c.t, c.s
	put(t, s, "k", Bytes(1, 100))
	for _, off := range []int64{-1, 100, 101, 1 << 40} {
		for _, n := range []int64{-1, 0, 10} {
			_, err := s.Get(t.Context(), "k", off, n)
			wantPassing(t, fmt.Sprintf("off %d n %d", off, n), err, fault.Invalid)
		}
	}
}

func (c contract) getSurvivesDelete() {
	t, s := c.t, c.s
	want := Bytes(5, 30_000)
	put(t, s, "d/k", want)
	r, err := s.Get(t.Context(), "d/k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err = s.Delete(t.Context(), "d/k"); err != nil {
		t.Fatal(err)
	}
	wantData(t, "open reader", drain(t, r), want)
}

func (c contract) badKeys() {
	t, s := c.t, c.s
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	opened := openFile(t, file)
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", ".tmp/x", "a/.hidden", "a\x00b",
		"a\nb", "a b",
		"a\\b", "a:b", "a%2fb", "a?b", "a*", "ä", "a\xff", strings.Repeat("n", 201), strings.Repeat("a/", 256) + "b",
	} {
		_, errNew := s.PutNew(ctx, key, nil)
		_, errGet := s.Get(ctx, key, 0, -1)
		_, errStat := s.Stat(ctx, key)
		_, errAt := blob.ReaderAt(ctx, s, key, 1)
		for what, err := range map[string]error{
			"put": s.Put(ctx, key, strings.NewReader("x")), "put new": errNew, "get": errGet, "stat": errStat,
			"reader at": errAt,
			"delete":    s.Delete(ctx, key), "adopt": s.Adopt(ctx, key, file), "link": s.Link(ctx, key, opened),
		} {
			wantKind(t, fmt.Sprintf("%s %q", what, key), err, fault.Invalid)
		}
	}
	for _, prefix := range []string{"/a", "a//", "..", "../", ".tmp", "a/../b"} {
		n := 0
		for _, err := range s.List(ctx, prefix) {
			wantKind(t, fmt.Sprintf("list %q", prefix), err, fault.Invalid)
			n++
		}
		if n != 1 {
			t.Errorf("list %q gave %d times something, want one error", prefix, n)
		}
	}
	if keys := all(t, s, ""); len(keys) > 0 {
		t.Errorf("bad keys left %v", keys)
	}
}
