package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDocsDRM runs every command of docs/drm.md, in order, in one shell that stops at the first that fails, and opens
// the page that they make.
func TestDocsDRM(t *testing.T) {
	rig.Parallel(t)
	for _, program := range []string{"curl", "jq", "bash"} {
		programtest.Path(t, program)
	}
	page, err := os.ReadFile("../../docs/drm.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n"
	for _, block := range strings.Split(string(page), "```sh\n")[1:] {
		commands, _, _ := strings.Cut(block, "```")
		script += commands
	}
	if n := strings.Count(script, "millrace "); n < 2 {
		t.Fatalf("only %d commands of the service were found", n)
	}
	s := rig.Start(t, rig.Options{})
	dir, film := t.TempDir(), rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "API="+s.HTTP, "FILM="+rig.Files(t, map[string]string{"a.mp4": film})+"/a.mp4",
		"MILLRACE_DATA_DIR="+s.Dir,
		"PATH="+filepath.Dir(rig.Binary(t))+":"+os.Getenv("PATH"),
		"MILLRACE_TOKEN_ID="+s.Setting("MILLRACE_TOKEN_ID"),
		"MILLRACE_TOKEN_SECRET="+s.Setting("MILLRACE_TOKEN_SECRET"))
	out, failed := shell.CombinedOutput()
	watch := regexp.MustCompile(`\S+/watch/\S+`).FindString(string(out))
	if failed != nil || watch == "" || !strings.Contains(string(out), `KEYFORMAT="org.w3.clearkey"`) {
		t.Fatalf("%v\n%s", failed, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	b := browser.Start(t)
	for what, address := range map[string]string{"its own page": server.URL + "/drm.html", "the watch page": watch} {
		shown := b.Open(t, address)
		began := time.Now()
		shown.Until(t, what, patience, func(x browser.Probe) bool {
			return x.Time > 1 && x.Frames > 20 && x.AudioBytes > 0
		})
		t.Logf("%s plays after %v", what, time.Since(began).Round(time.Millisecond))
	}
}
