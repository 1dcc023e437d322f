package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// docsUploads is the page, and the program for Node that stands in it.
func docsUploads(t *testing.T) (page, node string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/uploads.md")
	if err != nil {
		t.Fatal(err)
	}
	page = string(text)
	_, node, found := strings.Cut(page, "```js\n// upload.mjs\n")
	node, _, ended := strings.Cut(node, "```")
	if !found || !ended {
		t.Fatal("docs/uploads.md has no upload.mjs")
	}
	return page, node
}

// TestDocsUploadsNode: the program for Node goes on when the connection is lost in the middle.
func TestDocsUploadsNode(t *testing.T) {
	rig.Parallel(t)
	if _, err := exec.LookPath("node"); err != nil {
		rig.Missing(t, err.Error())
	}
	clip := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds})
	data := rig.Padded(t, clip, 20<<20)
	dir := t.TempDir()
	_, node := docsUploads(t)
	for name, text := range map[string][]byte{"upload.mjs": []byte(node), "video.mp4": data} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := &meter{at: int64(len(data) / 2), cut: true, call: func() {}}
	base := "http://" + m.listen(t)
	s := rig.Start(t, rig.Options{Args: []string{"--public-url", base}})
	addr := strings.TrimPrefix(s.HTTP, "http://")
	m.to.Store(&addr)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "upload.mjs", "video.mp4")
	token, secret := s.Token()
	cmd.Dir, cmd.Env = dir,
		append(os.Environ(), "BASE="+base+"/video/v1", "MILLRACE_TOKEN_ID="+token, "MILLRACE_TOKEN_SECRET="+secret)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.AwaitAsset(t, strings.TrimSpace(string(out)), "ready", 2*time.Minute, rig.Ready)
	if got := s.Stored(t, "source.mp4"); !bytes.Equal(got, data) {
		t.Errorf("%d bytes are stored, and not the %d that were sent", len(got), len(data))
	}
	if sent := m.passed.Load(); sent < m.at || sent > int64(len(data))+9<<20 {
		t.Errorf("%d bytes went out for a file of %d", sent, len(data))
	}
}

// TestDocsUploads runs every command of docs/uploads.md, in order, in one shell that stops at the first that fails.
func TestDocsUploads(t *testing.T) {
	rig.Parallel(t)
	page, node := docsUploads(t)
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for i, block := range strings.Split(page, "```sh\n") {
		if i > 0 {
			commands, _, _ := strings.Cut(block, "```")
			script.WriteString(commands)
		}
	}
	if n := strings.Count(script.String(), "curl"); n < 6 {
		t.Fatalf("only %d commands were found", n)
	}
	for _, program := range []string{"curl", "jq", "bash", "node"} {
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
	if err = os.WriteFile(filepath.Join(dir, "upload.mjs"), []byte(node), 0o600); err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(filepath.Join(dir, "video.mp4"), film, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(rig.Binary(t))+":"+os.Getenv("PATH"),
		"BASE="+s.HTTP+"/video/v1", "MILLRACE_TOKEN_ID="+s.Setting("MILLRACE_TOKEN_ID"),
		"MILLRACE_TOKEN_SECRET="+s.Setting("MILLRACE_TOKEN_SECRET"))
	if out, failed := shell.CombinedOutput(); failed != nil {
		t.Fatalf("%v\n%s", failed, out)
	}
	_, o := s.Do(t, "GET", "/video/v1/uploads", nil)
	made := map[string]int{}
	for _, u := range o.List("data") {
		made[u.Text("status")]++
	}
	if made["asset_created"] != 5 || made["cancelled"] != 1 {
		t.Errorf("uploads: %v", made)
	}
}
