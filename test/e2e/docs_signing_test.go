package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// TestDocsSigning runs every command and program of docs/signed-playback.md, in order, in one shell that stops at the
// first that fails.
func TestDocsSigning(t *testing.T) {
	rig.Parallel(t)
	programtest.NodePackages(t, "../sdk")
	for _, program := range []string{"curl", "jq", "bash", "openssl", "go"} {
		programtest.Path(t, program)
	}
	page, err := os.ReadFile("../../docs/signed-playback.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, script := t.TempDir(), "set -euo pipefail\n"
	for _, block := range strings.Split(string(page), "\n```")[1:] {
		language, text, _ := strings.Cut(block, "\n")
		switch file := map[string]string{"js": "sign.mjs", "go": "sign.go"}[language]; {
		case language == "sh":
			script += text + "\n"
		case file != "":
			if err = os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := strings.Count(script, "curl -sf"); n < 6 {
		t.Fatalf("only %d commands were found", n)
	}
	project, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Symlink(filepath.Join(project, "test/sdk/node_modules"),
		filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	// A reader has a module with the library; here it is the project's.
	script = "go() { (cd " + project + " && command go \"$1\" \"" + dir + "/$2\"); }\n" + script
	s := rig.Start(t, rig.Options{})
	files := rig.Files(t, map[string]string{
		"a.mp4": rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds}),
	})
	asset := s.AwaitAsset(t, s.CreateAsset(t, files+"/a.mp4").Text("id"), "ready", patience, rig.Ready)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = dir
	shell.Env = append(os.Environ(), "API="+s.HTTP, "ASSET_ID="+asset.Text("id"),
		"PATH="+filepath.Dir(rig.Binary(t))+":"+os.Getenv("PATH"),
		"MILLRACE_TOKEN_ID="+s.Setting("MILLRACE_TOKEN_ID"),
		"MILLRACE_TOKEN_SECRET="+s.Setting("MILLRACE_TOKEN_SECRET"))
	out, failed := shell.CombinedOutput()
	if failed != nil || strings.Count(string(out), "#EXTM3U") != 5 {
		t.Fatalf("%v\n%s", failed, out)
	}
}
