package journal

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestMemory: the folder of the marks is ours alone, another one for each folder of journals, and stays while somebody
// holds it.
func TestMemory(t *testing.T) {
	t.Parallel()
	tmpfs := t.TempDir()
	a, b := openMemory(tmpfs, "/a"), openMemory(tmpfs, "/b")
	again := openMemory(tmpfs, "/a")
	if a.Dir == "" || b.Dir == "" || a.Dir == b.Dir || again.Dir != a.Dir {
		t.Fatalf("%q, %q, again %q", a.Dir, b.Dir, again.Dir)
	}
	closeMemory(t, again)
	mark := filepath.Join(b.Dir, "mark")
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closeMemory(t, b) // a broadcast is to go on
	closeMemory(t, openMemory(tmpfs, "/c"))
	if got := list(t, filepath.Dir(a.Dir)); len(got) != 2 {
		t.Errorf("%v are there, want those that are held or have marks", got)
	}
	closeMemory(t, a)
	past := time.Now().Add(-marksKept - time.Minute)
	if err := os.Chtimes(mark, past, past); err != nil {
		t.Fatal(err)
	}
	closeMemory(t, openMemory(tmpfs, "/c"))
	if got := list(t, filepath.Dir(a.Dir)); len(got) != 0 {
		t.Errorf("%v were left", got)
	}
}

// TestMemoryOfOthers: a folder that somebody else may write to, or a link, is not used.
func TestMemoryOfOthers(t *testing.T) {
	t.Parallel()
	name := "millrace-" + strconv.Itoa(os.Geteuid())
	for what, put := range map[string]func(path string) error{
		"everybody's": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		},
		"a link": func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		tmpfs := t.TempDir()
		if err := put(filepath.Join(tmpfs, name)); err != nil {
			t.Fatal(err)
		}
		if m := openMemory(tmpfs, "/a"); m.Dir != "" {
			t.Errorf("%s: %q is used", what, m.Dir)
		}
	}
	if m := openMemory(filepath.Join(t.TempDir(), "nowhere"), "/a"); m.Dir != "" || m.Close() != nil {
		t.Errorf("%q is used", m.Dir)
	}
}

// TestMemoryOfMany: however many start and stop at once, what one of them holds is there.
func TestMemoryOfMany(t *testing.T) {
	t.Parallel()
	tmpfs := t.TempDir()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 50 {
				m := openMemory(tmpfs, "/"+strconv.Itoa(n%3))
				if m.Dir == "" { // the others were always faster
					continue
				}
				if _, err := os.Lstat(m.Dir); err != nil {
					t.Errorf("the folder of one that runs: %v", err)
				}
				closeMemory(t, m)
			}
		})
	}
	all.Wait()
	if got := list(t, filepath.Join(tmpfs, "millrace-"+strconv.Itoa(os.Geteuid()))); len(got) > 3 {
		t.Errorf("%v are left", got)
	}
}

func closeMemory(t *testing.T, m *Memory) {
	t.Helper()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
