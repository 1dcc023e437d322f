package programtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// tone is what ffmpeg makes a short sound of.
func tone(hertz string) []string {
	return []string{"-f", "lavfi", "-i", "sine=frequency=" + hertz + ":duration=0.1"}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMediaIsMadeOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	first := SharedMedia(t, "a.wav", tone("440")...)
	if again := SharedMedia(t, "a.wav", tone("440")...); again != first {
		t.Errorf("made twice: %s and %s", first, again)
	}
	if other := SharedMedia(t, "a.wav", tone("441")...); other == first {
		t.Error("another sound is the same file")
	}
	own := Media(t, "a.wav", tone("440")...)
	want := read(t, first)
	if err := os.Truncate(own, 10); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, first), want) {
		t.Error("a change of the test's copy changed what is shared")
	}
}

// An input counts by its content: its name is another in each test.
func TestMediaOfMedia(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	of := func(hertz string) string {
		return SharedMedia(t, "b.flac", "-i", Media(t, "a.wav", tone(hertz)...))
	}
	first, again := of("440"), of("440")
	if first != again {
		t.Error("made twice of the same input")
	}
	if of("441") == first {
		t.Error("of another input the same is made")
	}
	wav := Media(t, "a.wav", tone("440")...)
	list := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(list, []byte("file '"+wav+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	concat := func() string { return SharedMedia(t, "c.flac", "-f", "concat", "-safe", "0", "-i", list) }
	first, again = concat(), concat()
	if first == again {
		t.Error("a list whose files may change is taken for its content")
	}
}

func TestOldMediaIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"old": 15 * 24 * time.Hour, "new": time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	removeOldMedia(dir, now.Add(-mediaKept))
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Name() != "new" {
		t.Errorf("left are %v", left)
	}
}
