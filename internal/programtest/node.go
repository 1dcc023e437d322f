package programtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

var installing sync.Mutex //nolint:gochecknoglobals // of one process, of the folders that NodePackages is given

// NodePackages puts the packages in place that a folder's package-lock.json names, once. Without node, or without npm's registry at the
// first run, the test is skipped, or fails where MILLRACE_TEST_REQUIRE is set.
func NodePackages(t testing.TB, folder string) {
	t.Helper()
	Path(t, "node")
	installing.Lock()
	defer installing.Unlock()
	if _, err := os.Stat(filepath.Join(folder, "node_modules/.package-lock.json")); err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Path(t, "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error") //nolint:gosec // the test's own
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("MILLRACE_TEST_REQUIRE") != "":
		t.Fatalf("npm ci in %s: %v: %s", folder, err, out)
	default:
		t.Skipf("npm ci in %s: %v: %s", folder, err, out)
	}
}
