package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Binary gives the path of the millrace binary, beside which millrace-speech lies: MILLRACE_TEST_BINARY, or one built
// now, once for the test process.
func Binary(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("MILLRACE_TEST_BINARY"); p != "" {
		return p
	}
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// BinaryWith builds a millrace of another version with one migration more, and gives its path. Once there is
// Binary, it may be called beside the test's own goroutine.
func BinaryWith(t testing.TB, version, name, migration string) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "millrace")
	err := func() error {
		module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
		if err != nil {
			return fmt.Errorf("find sources: %w", err)
		}
		added := filepath.Join(dir, name)
		place := filepath.Join(strings.TrimSpace(string(module)), "internal/storage/db/migrations", name)
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{place: added}})
		if err != nil {
			return fmt.Errorf("write overlay: %w", err)
		}
		list := filepath.Join(dir, "overlay.json")
		if err = errors.Join(os.WriteFile(added, []byte(migration), 0o600), os.WriteFile(list, overlay, 0o600),
			os.Symlink(filepath.Join(filepath.Dir(Binary(t)), "millrace-speech"), program+"-speech")); err != nil {
			return err
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-overlay", list,
			"-ldflags", "-s -w -X millrace/internal/app/cli.release="+version, "-o", program, "millrace/cmd/millrace")
		build.Env = append(build.Environ(), "CGO_ENABLED=0") // as the Makefile does
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build millrace: %w: %s", err, out)
		}
		return nil
	}()
	if err != nil {
		t.Error(err)
	}
	return program
}

//nolint:gochecknoglobals // one build for the test process
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "millrace-bin-")
	if err != nil {
		return "", fmt.Errorf("make folder for binary: %w", err)
	}
	for _, name := range []string{"millrace", "millrace-speech"} { // as the Makefile does
		build := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(dir, name),
			"millrace/cmd/"+name)
		build.Env = append(build.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", errors.Join(fmt.Errorf("build %s: %w: %s", name, err, out), os.RemoveAll(dir))
		}
	}
	return filepath.Join(dir, "millrace"), nil
})
