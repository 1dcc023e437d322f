package blob_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// descriptors counts those of this process that lead to objects below dir, also to what was deleted there.
func descriptors(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir+"/") &&
			!strings.HasPrefix(to, dir+"/.tmp/") {
			n++
		}
	}
	return n
}

func put(t *testing.T, s blob.Store, key, text string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

const absent = "nothing"

// text is what an object has now.
func text(t *testing.T, s blob.Store, key string) string {
	t.Helper()
	r, err := s.Get(t.Context(), key, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return absent
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil || int64(len(data)) != r.Size {
		t.Errorf("%d bytes of %d, %v", len(data), r.Size, err)
	}
	return string(data)
}

// TestDeletedIsGoneAtOnce, however often it was read before, and a reader goes on to its end.
func TestDeletedIsGoneAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openFolder(t, dir, true)
	put(t, s, "m/1", "one")
	for range 3 {
		if got := text(t, s, "m/1"); got != "one" {
			t.Fatal(got)
		}
	}
	put(t, s, "m/1", "another")
	if got := text(t, s, "m/1"); got != "another" {
		t.Errorf("replaced, and still %q", got)
	}
	adopted := filepath.Join(dir, ".tmp", "made")
	if err := os.WriteFile(adopted, []byte("adopted"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Adopt(t.Context(), "m/1", adopted); err != nil {
		t.Fatal(err)
	}
	if got := text(t, s, "m/1"); got != "adopted" {
		t.Errorf("replaced, and still %q", got)
	}
	reading, err := s.Get(t.Context(), "m/1", 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "m/1"); err != nil {
		t.Fatal(err)
	}
	if got := text(t, s, "m/1"); got != absent {
		t.Errorf("deleted, and still %q", got)
	}
	if data, err := io.ReadAll(reading); string(data) != "opt" || err != nil {
		t.Errorf("the reader got %q, %v", data, err)
	}
	if err := reading.Close(); err != nil {
		t.Error(err)
	}
	if n := descriptors(t, dir); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}

// TestNobodyReadsWhatIsDeleted: a caller that asks after Delete has returned gets nothing, also when many were opening
// it in that moment.
func TestNobodyReadsWhatIsDeleted(t *testing.T) {
	t.Parallel()
	s := openFolder(t, t.TempDir(), true)
	for round := range 200 {
		key := fmt.Sprintf("m/%d", round)
		put(t, s, key, "text")
		var gone, quit atomic.Bool
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for !quit.Load() {
					before := gone.Load()
					if got := text(t, s, key); got != "text" && got != absent || before && got == "text" {
						t.Errorf("deleted: %v, got %q", before, got)
						return
					}
				}
			})
		}
		text(t, s, key)
		if err := s.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
		gone.Store(true)
		text(t, s, key)
		quit.Store(true)
		wg.Wait()
	}
}

// TestOthersDelete: what another process does in the folder is seen within a second.
func TestOthersDelete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := openFolder(t, dir, true)
		put(t, s, "m/1", "one")
		put(t, s, "m/2", "two")
		put(t, s, "m/3", "three")
		for _, key := range []string{"m/1", "m/2", "m/3"} {
			text(t, s, key)
		}
		if err := os.Remove(filepath.Join(dir, "m/1")); err != nil {
			t.Fatal(err)
		}
		fresh := filepath.Join(dir, "fresh")
		if err := os.WriteFile(fresh, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, filepath.Join(dir, "m/2")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if a, b, c := text(t, s, "m/1"), text(t, s, "m/2"), text(t, s, "m/3"); a != absent || b != "new" ||
			c != "three" {
			t.Errorf("%q %q %q", a, b, c)
		}
	})
}

// TestOpenFilesAreBounded in number and size, and closed with the store.
func TestOpenFilesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openFolder(t, dir, true)
	for i := range 600 {
		key := fmt.Sprintf("m/%d", i)
		put(t, s, key, key)
		if got := text(t, s, key); got != key {
			t.Fatal(got)
		}
	}
	if n := descriptors(t, dir); n > 512 || n < 100 {
		t.Errorf("%d files are open", n)
	}
	if a, b := text(t, s, "m/0"), text(t, s, "m/599"); a != "m/0" || b != "m/599" {
		t.Error(a, b)
	}
	before := descriptors(t, dir)
	put(t, s, "large", "")
	if err := os.Truncate(filepath.Join(dir, "large"), 17<<20); err != nil {
		t.Fatal(err)
	}
	r, err := s.Get(t.Context(), "large", 16<<20, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil || descriptors(t, dir) > before {
		t.Errorf("a large file is kept open, %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := descriptors(t, dir); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}
