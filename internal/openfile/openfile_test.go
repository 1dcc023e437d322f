package openfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/iotest"

	"millrace/internal/openfile"
)

func open(t *testing.T, text string) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSection(t *testing.T) {
	t.Parallel()
	f := openfile.New(open(t, "0123456789"))
	for _, c := range []struct {
		off, n int64
		want   string
	}{{0, 10, "0123456789"}, {3, 4, "3456"}, {9, 1, "9"}, {10, 0, ""}} {
		s, ok := f.Section(c.off, c.n)
		if !ok {
			t.Fatal("closed")
		}
		if err := iotest.TestReader(s, []byte(c.want)); err != nil {
			t.Error(err)
		}
		if _, err := s.Seek(0, io.SeekStart); err != nil || s.Size() != c.n {
			t.Error(s.Size(), err)
		}
		if of, off, n := s.Rest(); of != f.OS() || off != c.off || n != c.n {
			t.Errorf("stretch %d %d, want %d %d", off, n, c.off, c.n)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	long, _ := f.Section(8, 5) // the file is shorter than somebody thought
	if got, err := io.ReadAll(long); string(got) != "89" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if err := errors.Join(long.Close(), f.Close()); err != nil {
		t.Error(err)
	}
}

// TestLastOneCloses, no matter which; readers never meet another file under the same descriptor.
func TestLastOneCloses(t *testing.T) {
	t.Parallel()
	raw := open(t, "text")
	f := openfile.New(raw)
	s, _ := f.Section(0, 4)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); string(got) != "text" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("still open: %v", err)
	}
	if _, ok := f.Section(0, 1); ok || f.Hold() {
		t.Error("held again after its end")
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}

	raw = open(t, "text")
	f = openfile.New(raw)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			s, ok := f.Section(0, 4)
			if !ok {
				return
			}
			if got, err := io.ReadAll(s); string(got) != "text" || err != nil {
				t.Errorf("%q %v", got, err)
			}
			_ = s.Close()
		})
	}
	_ = f.Close()
	wg.Wait()
	if _, err := raw.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("still open: %v", err)
	}
}
