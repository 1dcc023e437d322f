package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInputs runs itself as go test would, and reads which inputs it has then noted for its cache.
func TestInputs(t *testing.T) {
	t.Parallel()
	const folderOfChild = "MILLRACE_TEST_INPUTS"
	if folder := os.Getenv(folderOfChild); folder != "" {
		Inputs(t, folder)
		return
	}
	folder, noted := t.TempDir(), filepath.Join(t.TempDir(), "noted")
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInputs$", "-test.testlogfile="+noted)
	child.Env = append(child.Environ(), folderOfChild+"="+folder)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if got := string(read(t, noted)); !strings.Contains(got, "open "+folder+"\n") {
		t.Errorf("noted:\n%s\nwant that it opened %s", got, folder)
	}
}
