package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

func (c contract) list() {
	t, s := c.t, c.s
	keys := []string{
		"a", "a-b", "a.b", "a0", "ab/c", "b/1", "b/10", "b/2", "b/2.x/y", "b/2x", "b/c/d/e", "B", "z~", "b=1", "b+1",
		"b@1", "b,1",
	}
	for _, key := range keys {
		put(t, s, key, []byte(key))
	}
	slices.Sort(keys)
	for _, prefix := range []string{
		"", "a", "a-", "ab", "ab/", "b", "b/", "b/1", "b/2", "b/2.", "b/2.x/", "b/c/d", "B", "none", "none/", "a/",
		"z~", "b/c/d/e",
	} {
		want := []string{}
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		if got := all(t, s, prefix); !slices.Equal(got, want) {
			t.Errorf("list %q:\n got %v\nwant %v", prefix, got, want)
		}
	}
}

const pages = 1100 // more than S3 gives in one response

func putMany(t *testing.T, s blob.Store, n int) []string {
	t.Helper()
	keys := make([]string, n)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range keys {
		keys[i] = fmt.Sprintf("many/%d/%05d", i%3, i)
		group.Go(func() error { return s.Put(t.Context(), keys[i], strings.NewReader("x")) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return keys
}

func (c contract) listPages() {
	t, s := c.t, c.s
	want := slices.Sorted(slices.Values(putMany(t, s, pages)))
	if got := all(t, s, "many/"); !slices.Equal(got, want) {
		t.Errorf("listed %d keys, want %d in order", len(got), len(want))
	}
	n := 0
	for _, err := range s.List(t.Context(), "many/") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("stopped after %d", n)
	}
}

func (c contract) listCancelled() {
	t, s := c.t, c.s
	put(t, s, "k", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs []error
	for _, err := range s.List(ctx, "") {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("list with an ended context gave %v, want its error once", errs)
	}
}

func (c contract) deleteKeys() {
	t, s := c.t, c.s
	ctx := t.Context()
	put(t, s, "d/1", []byte("1"))
	put(t, s, "d/2", []byte("2"))
	if err := s.Delete(ctx, "d/1", "none", "d/none", "d", "d/2/below", "d/1"); err != nil {
		t.Errorf("delete: %v", err)
	}
	wantAbsent(t, s, "d/1")
	if got := all(t, s, ""); !slices.Equal(got, []string{"d/2"}) {
		t.Errorf("left %v, want d/2", got)
	}
	if err := s.Delete(ctx); err != nil {
		t.Errorf("delete of nothing: %v", err)
	}
	put(t, s, "d/1", []byte("again"))
	if err := s.Delete(ctx, "d/1", "d/2"); err != nil {
		t.Error(err)
	}
	put(t, s, "d", []byte("the name of a folder that is gone"))
}

func (c contract) deleteMany() {
	t, s := c.t, c.s
	keys := putMany(t, s, 300)
	if err := s.Delete(t.Context(), keys...); err != nil {
		t.Fatal(err)
	}
	if left := all(t, s, ""); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func (c contract) deleteNeighbours() {
	t, s := c.t, c.s
	put(t, s, "x/1", nil)
	put(t, s, "x/10", nil)
	put(t, s, "x/1.m4s", nil)
	if err := s.Delete(t.Context(), "x/1"); err != nil {
		t.Fatal(err)
	}
	if got := all(t, s, ""); !slices.Equal(got, []string{"x/1.m4s", "x/10"}) {
		t.Errorf("left %v", got)
	}
}

func (c contract) adopt() {
	t, s := c.t, c.s
	put(t, s, "up/2", []byte("old"))
	for key, n := range map[string]int{"up/1": 100, "up/2": 60_000, "up/3/large.mp4": Large, "up/empty": 0} {
		path, want := filepath.Join(t.TempDir(), "upload"), Bytes(6, n)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Adopt(t.Context(), key, path); err != nil {
			t.Fatalf("adopt %s: %v", key, err)
		}
		got, _ := get(t, s, key, 0, -1)
		wantData(t, key, got, want)
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s: the file is still there", key)
		}
	}
}

func (c contract) adoptFails() {
	t, s := c.t, c.s
	dir := t.TempDir()
	if err := s.Adopt(t.Context(), "k", filepath.Join(dir, "none")); err == nil {
		t.Error("adopt of a missing file returned nil")
	}
	if err := s.Adopt(t.Context(), "k", dir); err == nil {
		t.Error("adopt of a folder returned nil")
	}
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "adopt", s.Adopt(t.Context(), "../k", path), fault.Invalid)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Adopt(ended, "k", path); !errors.Is(err, context.Canceled) {
		t.Errorf("adopt with an ended context: %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("a failed adopt took the file: %v", err)
	}
	wantAbsent(t, s, "k")
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func (c contract) link() {
	t, s := c.t, c.s
	put(t, s, "up/2", []byte("old"))
	for key, n := range map[string]int{"up/1": 100, "up/2": 60_000, "up/3/large.m4s": Large, "up/empty": 0} {
		path, want := filepath.Join(t.TempDir(), "segment"), Bytes(6, n)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		f := openFile(t, path)
		for _, as := range []string{key, key, key + ".again"} { // what was done already may be done again
			if err := s.Link(t.Context(), as, f); err != nil {
				t.Fatalf("link %s: %v", as, err)
			}
		}
		got, _ := get(t, s, key, 0, -1)
		wantData(t, key, got, want)
		if err := s.Delete(t.Context(), key+".again"); err != nil {
			t.Error(err)
		}
		got, err := os.ReadFile(path) //nolint:gosec // the test's own
		if err != nil {
			t.Fatal(err)
		}
		wantData(t, key+": the file", got, want)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		got, _ = get(t, s, key, 0, -1)
		wantData(t, key+" without the file", got, want)
		if err := s.Link(t.Context(), key+".late", f); err != nil { // open is enough
			t.Errorf("link of a file without a name: %v", err)
			continue
		}
		got, _ = get(t, s, key+".late", 0, -1)
		wantData(t, key+" linked late", got, want)
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Link(ended, "k", openFile(t, path)); !errors.Is(err, context.Canceled) {
		t.Errorf("link with an ended context: %v", err)
	}
	wantAbsent(t, s, "k")
}

// concurrent puts, reads and deletes side by side.
func (c contract) concurrent() {
	t, s := c.t, c.s
	put(t, s, "deep/er/stays", nil)
	Churn(t, s)
	if left := all(t, s, ""); !slices.Equal(left, []string{"deep/er/stays"}) {
		t.Errorf("left %v", left)
	}
}

// Churn puts, reads and deletes below deep/er/ from eight sides at once.
func Churn(t *testing.T, s blob.Store) {
	t.Helper()
	var group errgroup.Group
	for w := range byte(8) {
		group.Go(func() error {
			for i := range byte(10) {
				key, data := fmt.Sprintf("deep/er/%d", w), Bytes(w*10+i, 2000)
				if err := s.Put(t.Context(), key, bytes.NewReader(data)); err != nil {
					return err
				}
				r, err := s.Get(t.Context(), key, 0, -1)
				if err != nil {
					return err
				}
				got, err := readClose(r)
				if err != nil {
					return err
				}
				if !bytes.Equal(got, data) {
					return fmt.Errorf("read something else at %s", key)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func (c contract) readerAt() {
	t, s := c.t, c.s
	want := Bytes(7, 1_000_003)
	put(t, s, "at", want)
	for _, size := range []int64{-1, int64(len(want))} {
		r, err := blob.ReaderAt(t.Context(), s, "at", size)
		if err != nil {
			t.Fatal(err)
		}
		oracle := bytes.NewReader(want)
		for _, tt := range []struct {
			off int64
			n   int
		}{
			{0, 8},
			{0, 8},
			{131_068, 8},
			{1_000_000, 3},
			{1_000_000, 10},
			{1_000_003, 1},
			{2_000_000, 1},
			{500, 131_072},
			{0, 1_000_003},
			{1, 1_000_003},
			{300_000, 262_144},
			{1_000_002, 1},
			{131_072, 131_071},
			{7, 0},
			{900_000, 100},
			{0, 8},
		} {
			got, exp := make([]byte, tt.n), make([]byte, tt.n)
			n, err := r.ReadAt(got, tt.off)
			m, eerr := oracle.ReadAt(exp, tt.off)
			if n != m || !bytes.Equal(got[:n], exp[:m]) ||
				errors.Is(err, io.EOF) != errors.Is(eerr, io.EOF) && n < tt.n {
				t.Errorf("read %d at %d: %d, %v; want %d, %v", tt.n, tt.off, n, err, m, eerr)
			}
		}
		if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("read at -1 returned nil")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (c contract) local() {
	t, s := c.t, c.s
	l, ok := s.(blob.Local)
	if !ok {
		return // a further ability that this store does not have
	}
	want := Bytes(8, 999)
	_, absent := s.Kept(t.Context(), "p/grown.mp4")
	wantKind(t, "what is kept of an object that does not grow", absent, fault.NotFound)
	g := grow(t, s, "p/grown.mp4", 0)
	if err := g.Append(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	closed(t, g)
	if kept, err := s.Kept(t.Context(), "p/grown.mp4"); err != nil || kept.Size != 999 || kept.ModTime.IsZero() {
		t.Errorf("kept: %+v, %v", kept, err)
	}
	put(t, s, "p/q.m4s", want)
	path, ok := l.Path("p/q.m4s")
	if !ok {
		t.Fatal("no path")
	}
	got, err := os.ReadFile(path) //nolint:gosec // the path is what is tested
	if err != nil {
		t.Fatal(err)
	}
	wantData(t, "file", got, want)
	for _, bad := range []string{"", "../x", "/x", ".tmp/x"} {
		if path, ok := l.Path(bad); ok {
			t.Errorf("path of %q is %s", bad, path)
		}
	}
}
