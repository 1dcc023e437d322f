package attempt_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"millrace/internal/worker/attempt"
)

// TestTidy: what earlier processes have left goes, but for what is still being made or may be, and what is of others.
func TestTidy(t *testing.T) {
	t.Parallel()
	away := errors.New("the database is away")
	busy := func(_ context.Context, name string) (bool, error) {
		if name == "unknown" {
			return false, away
		}
		return name == "busy", nil
	}
	for name, tt := range map[string]struct {
		busy func(context.Context, string) (bool, error)
		want []string
		err  error
	}{
		"some are being made": {
			busy, []string{"asset-a", "track-busy.m4a", "track-busy.part", "track-folder", "track-unknown"}, away,
		},
		"none is": {nil, []string{"asset-a", "track-folder"}, nil},
	} {
		dir := t.TempDir()
		for _, file := range []string{
			"asset-a", "track-busy.m4a", "track-busy.part", "track-gone", "track-gone.m4a", "track-unknown",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(dir, "track-folder"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := attempt.NewScratch(dir, "track-").Tidy(t.Context(), tt.busy); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range left {
			got = append(got, f.Name())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q are left, want %q", name, got, tt.want)
		}
	}
}

// TestDiscard: a file that is not there is removed, and one that can't be is told of.
func TestDiscard(t *testing.T) {
	t.Parallel()
	f := attempt.NewScratch(t.TempDir(), "static-")
	if err := os.WriteFile(f.File("a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := attempt.Discard(f.File("a"), f.File("b")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.File("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(f.File("c"), "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := attempt.Discard(f.File("c")); err == nil {
		t.Error("a folder with something in it was removed")
	}
}

// TestWrite: what is read is in the file, in place of what was; a reader that fails is told of.
func TestWrite(t *testing.T) {
	t.Parallel()
	path := attempt.NewScratch(t.TempDir(), "asset-").File("a")
	for _, text := range []string{"a longer one", "short"} {
		if err := attempt.Write(path, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	f, size, err := attempt.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if data, err := io.ReadAll(f); string(data) != "short" || size != 5 || err != nil {
		t.Errorf("%q of %d bytes, %v", data, size, err)
	}
	broken := errors.New("the store is away")
	if err := attempt.Write(path, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
	if _, _, err := attempt.Open(path + "b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
