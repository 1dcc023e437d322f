package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"millrace/test/hostile"
	"millrace/test/rig"
)

// TestHostileFiles gives a server all at once what nobody should: each asset ends with a reason, the server's memory stays within bounds,
// and nothing is left over, neither files nor processes.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	good, err := os.ReadFile(rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 2, NoAudio: true}))
	if err != nil {
		t.Fatal(err)
	}
	files, paths := hostile.Files(good), map[string]string{}
	dir := t.TempDir()
	for i, f := range files {
		name := strconv.Itoa(i)
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := rig.Files(t, paths)
	ids := map[int]string{}
	for i, f := range files {
		if f.Slow {
			continue
		}
		ids[i] = s.CreateAsset(t, base+"/"+strconv.Itoa(i)).Text("id")
	}
	for i, id := range ids {
		f := files[i]
		a := s.AwaitAsset(t, id, "an end", 2*patience, func(o rig.Object) bool { return o.Text("status") != "preparing" })
		if why := a.Texts("errors.messages"); a.Text("status") == "ready" && !f.Plays || a.Text("status") == "errored" && (len(why) != 1 || why[0] == "") {
			t.Errorf("%s: the asset is %s: %v", f.Name, a.Text("status"), a["errors"])
		}
	}
	if mb := s.Peak(t) >> 20; mb > 700 {
		t.Errorf("the server has had %d MB", mb)
	} else {
		t.Logf("the server has had %d MB", mb)
	}
	downloads := func() []string { // of an asset they are deleted once it is told to be errored
		left, _ := filepath.Glob(filepath.Join(s.Dir, "*", "asset-*"))
		return left
	}
	deadline := time.Now().Add(patience)
	for len(s.Children(t))+len(downloads()) > 0 && time.Now().Before(deadline) {
		rig.Pause(100 * time.Millisecond)
	}
	if left := s.Children(t); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if left := downloads(); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
