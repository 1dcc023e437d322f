package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/test/rig"
)

const (
	// moreObjects is how many small objects a migration has besides those of an asset: kills come in the middle.
	moreObjects = 1500
	// migrationKills is how often a migration is killed.
	migrationKills = 8
)

// TestMigrate moves a service from SQLite and a folder to PostgreSQL and a bucket, and back. While it runs, its media
// is copied and nothing else. When it is stopped, the command is killed at random moments, each time somewhat later,
// until it comes to its end before that: then the service plays the same from its new place, and the old one is as it
// was.
func TestMigrate(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		random := dice(t)
		s := rig.Start(t, rig.Options{Pair: p})
		files := rig.Files(t, map[string]string{"a.mp4": rig.File(t, "a.mp4", rig.Clip{
			Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds,
		})})
		asset := s.AwaitAsset(t, s.CreateAsset(t, files+"/a.mp4").Text("id"), "ready", patience, rig.Ready)
		want := fetchAll(t, s, asset)
		l := s.CreateLive(t, "low", rig.Object{})

		other := rig.Scaled
		if p == rig.Scaled {
			other = rig.Embedded
		}
		env := other.Empty(t)
		to, _ := strings.CutPrefix(env[0], "MILLRACE_DATABASE_URL=")
		storage, _ := strings.CutPrefix(env[1], "MILLRACE_STORAGE_URL=")
		migrate := func() *exec.Cmd {
			cmd := exec.CommandContext(t.Context(), rig.Binary(t), "migrate", "--to", to, "--storage", storage,
				"--data-dir", s.Dir)
			cmd.Env = append(cmd.Environ(), s.Environment()...)
			return cmd
		}
		if other == rig.Scaled {
			good := storage
			storage = strings.Replace(good, "secret_access_key=", "secret_access_key=no", 1)
			if out, err := migrate().CombinedOutput(); err == nil || !strings.Contains(string(out), "refuse") {
				t.Fatalf("with a bucket that it has no rights to: %v: %s", err, out)
			}
			storage = good
		}
		out, err := migrate().CombinedOutput()
		if err == nil || !strings.Contains(string(out), "stop it") {
			t.Fatalf("while the service runs: %v: %s", err, out)
		}
		s.Stop(t)
		if p == rig.Embedded {
			for i := range moreObjects {
				path := filepath.Join(s.Dir, "storage", "media", "more", fmt.Sprint(i%100), fmt.Sprint(i, ".m4s"))
				if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
					err = os.WriteFile(path, []byte(strings.Repeat(path, 50)), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		before := folderSums(t, s.Dir)
		kills, wait, said := 0, 100*time.Millisecond, true
		for {
			cmd := migrate()
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			var text bytes.Buffer
			cmd.Stdout, cmd.Stderr = &text, &text
			if err = cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(time.Hour, func() { _ = cmd.Process.Kill() })
			if kills < migrationKills {
				kill.Reset(time.Duration(random.Int64N(int64(2 * wait))))
			}
			err = cmd.Wait()
			out = text.Bytes()
			kill.Stop()
			if err == nil {
				break
			}
			if kills > 0 && strings.Contains(string(out), "came to its end") { // it was killed behind its last step
				said = false
				break
			}
			if cmd.ProcessState == nil || !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
				t.Fatalf("after %d kills: %v: %s", kills, err, out)
			}
			kills++
			wait += wait / 3
		}
		t.Logf("after %d kills: %s", kills, out)
		if p == rig.Embedded && kills == 0 {
			t.Error("it was not killed")
		}
		if said && !strings.Contains(string(out), " objects of ") {
			t.Errorf("it does not say what was compared: %s", out)
		}
		if got := folderSums(t, s.Dir); !equalSums(t, got, before) {
			t.Error("the old data folder is changed")
		}
		if again, err := migrate().CombinedOutput(); err == nil || !strings.Contains(string(again), "already") {
			t.Errorf("a second time: %v: %s", err, again)
		}
		moved := rig.Start(t, rig.Options{Env: append(env, masterKey(t, s))})
		got := fetchAll(t, moved, moved.AwaitAsset(t, asset.Text("id"), "ready", patience, rig.Ready))
		if !equalSums(t, got, want) {
			t.Errorf("%d objects are played of %d, or they have other bytes", len(got), len(want))
		}
		if key := moved.Live(t, l.Text("id")).Text("stream_key"); key != l.Text("stream_key") {
			t.Error("the stream has another key")
		}
		moved.Stop(t)
	})
}

// folderSums are the sums of a folder's files, but for those that say who reads a database.
func folderSums(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "-wal") {
			return err
		}
		text, err := os.ReadFile(path)
		sums[path] = sha256.Sum256(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func equalSums(t *testing.T, got, want map[string][sha256.Size]byte) bool {
	t.Helper()
	same := len(got) == len(want)
	for path, sum := range want {
		if other, there := got[path]; !there || other != sum {
			t.Logf("%s differs", path)
			same = false
		}
	}
	return same
}
