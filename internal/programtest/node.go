package programtest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

var installing sync.Mutex //nolint:gochecknoglobals // of one process, of the folders that NodePackages is given

// NodePackages puts the packages in place that a folder's package-lock.json names, again when that has changed. Without
// node, or without npm's registry when it is needed, the test is skipped, or fails where MILLRACE_TEST_REQUIRE is set.
func NodePackages(t testing.TB, folder string) {
	t.Helper()
	Path(t, "node")
	Inputs(t, folder)
	installing.Lock()
	defer installing.Unlock()
	wanted, err := os.ReadFile(filepath.Join(folder, "package-lock.json")) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	defer lockFolder(t, folder)()
	note := filepath.Join(folder, "node_modules", ".installed.json")
	have, err := os.ReadFile(note) //nolint:gosec // the test's own
	if err == nil && bytes.Equal(have, wanted) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Path(t, "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error") //nolint:gosec // the test's own
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = os.WriteFile(note, wanted, 0o600) //nolint:gosec // the test's own
	}
	switch {
	case err == nil:
	case os.Getenv("MILLRACE_TEST_REQUIRE") != "":
		t.Fatalf("npm ci in %s: %v: %s", folder, err, out)
	default:
		t.Skipf("npm ci in %s: %v: %s", folder, err, out)
	}
}

// lockFolder keeps other processes from installing into a folder until unlock is called.
func lockFolder(t testing.TB, folder string) (unlock func()) {
	t.Helper()
	f, err := os.Open(folder) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		t.Fatal(err)
	}
	return func() { _ = f.Close() } // which unlocks
}
