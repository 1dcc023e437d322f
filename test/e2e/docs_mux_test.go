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

// TestDocsMux runs the program of docs/mux.md that copies an asset, from a service that speaks as Mux does to another.
func TestDocsMux(t *testing.T) {
	rig.Parallel(t)
	if _, err := exec.LookPath("node"); err != nil {
		rig.Missing(t, err.Error())
	}
	text, err := os.ReadFile("../../docs/mux.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(text), "```js\n// copy.mjs")
	program, _, ended := strings.Cut(program, "```")
	if !found || !ended {
		t.Fatal("docs/mux.md has no copy.mjs")
	}
	from := rig.Start(t, rig.Options{})
	to := rig.Start(t, rig.Options{})
	clip := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: 4})
	film := rig.Files(t, map[string]string{"a.mp4": clip}) + "/a.mp4"
	old := from.CreateAsset(t, film)
	from.AwaitAsset(t, old.Text("id"), "ready", time.Minute, rig.Ready)
	dir := t.TempDir()
	if err = os.WriteFile(filepath.Join(dir, "copy.mjs"), []byte("//"+program), 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("../sdk/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "copy.mjs", old.Text("id"))
	token, secret := from.Token()
	other, otherSecret := to.Token()
	cmd.Dir, cmd.Env = dir, append(os.Environ(),
		"MUX_BASE_URL="+from.HTTP, "MUX_TOKEN_ID="+token, "MUX_TOKEN_SECRET="+secret,
		"TO_URL="+to.HTTP, "MILLRACE_TOKEN_ID="+other, "MILLRACE_TOKEN_SECRET="+otherSecret)
	out, err := cmd.CombinedOutput()
	words := strings.Fields(string(out))
	if err != nil || len(words) != 4 || words[0] != old.Text("id") || words[1] != old.Text("playback_ids.0.id") {
		t.Fatalf("%v\n%s", err, out)
	}
	made := to.AwaitAsset(t, words[2], "ready", time.Minute, rig.Ready)
	if made.Text("playback_ids.0.id") != words[3] || made.Text("aspect_ratio") != "16:9" {
		t.Errorf("the copy is %v", made)
	}
}
