package journal_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/media/journal"
)

// TestMark: what was published is known to the next process, whatever became of the disk, until the journal is closed.
func TestMark(t *testing.T) {
	t.Parallel()
	dir, name := filepath.Join(t.TempDir(), "file", "m"), filepath.Join(t.TempDir(), "mark")
	if err := os.WriteFile(filepath.Dir(dir), nil, 0o600); err != nil { // no folder can be made in it
		t.Fatal(err)
	}
	life := func() *journal.Journal {
		return journal.New(journal.Options{Dir: dir, Mark: name, Logger: slog.New(slog.DiscardHandler)})
	}
	first := life()
	if next, ok := first.Marked(); ok {
		t.Errorf("%d is marked", next)
	}
	first.Published(7)
	first.Published(8)
	first.Published(7) // of another rendition
	second := life()
	if next, ok := second.Marked(); next != 9 || !ok {
		t.Errorf("%d %v is marked, want 9", next, ok)
	}
	if err := os.WriteFile(name, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if next, ok := life().Marked(); ok {
		t.Errorf("%d is marked by nonsense", next)
	}
	second.Published(9)
	second.Close()
	if err := second.Run(t.Context()); err != nil {
		t.Error(err)
	}
	second.Published(10)
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("the mark is still there: %v", err)
	}
}

// TestMarkThatCanNotBeKept: none is better than an old one.
func TestMarkThatCanNotBeKept(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "not yet", "nowhere", "mark")
	j := journal.New(journal.Options{Dir: t.TempDir(), Mark: name, Logger: slog.New(slog.DiscardHandler)})
	j.Published(7)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	j.Published(8)
	if next, ok := j.Marked(); ok {
		t.Errorf("%d is marked", next)
	}
}
