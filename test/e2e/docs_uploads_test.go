package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestDocsUploads runs every command of docs/uploads.md, in order, in one shell that stops at the first that fails.
func TestDocsUploads(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/uploads.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for i, block := range strings.Split(string(page), "```sh\n") {
		if i > 0 {
			commands, _, _ := strings.Cut(block, "```")
			script.WriteString(commands)
		}
	}
	if n := strings.Count(script.String(), "curl"); n < 6 {
		t.Fatalf("only %d commands were found", n)
	}
	for _, program := range []string{"curl", "jq", "bash"} {
		if _, missing := exec.LookPath(program); missing != nil {
			rig.Missing(t, missing.Error())
		}
	}
	s := rig.Start(t, rig.Options{})
	film, err := os.ReadFile(rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds}))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err = os.WriteFile(filepath.Join(dir, "video.mp4"), film, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(rig.Binary(t))+":"+os.Getenv("PATH"), "BASE="+s.HTTP+"/video/v1", "MILLRACE_TOKEN_ID="+s.Setting("MILLRACE_TOKEN_ID"), "MILLRACE_TOKEN_SECRET="+s.Setting("MILLRACE_TOKEN_SECRET"))
	if out, failed := shell.CombinedOutput(); failed != nil {
		t.Fatalf("%v\n%s", failed, out)
	}
	_, o := s.Do(t, "GET", "/video/v1/uploads", nil)
	made := map[string]int{}
	for _, u := range o.List("data") {
		made[u.Text("status")]++
	}
	if made["asset_created"] != 4 || made["cancelled"] != 1 {
		t.Errorf("uploads: %v", made)
	}
}
