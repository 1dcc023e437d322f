package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"millrace/test/rig"
)

// TestBackup backs a service up while a broadcast runs, and again when that is over. Either snapshot is restored on the
// other pair of database and storage; there every asset plays, with the same bytes under the same URLs, the one that
// was live up to where the snapshot has it.
func TestBackup(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		other, place := rig.Scaled, t.TempDir()
		if p == rig.Scaled {
			other, place = rig.Embedded,
				os.Getenv("MILLRACE_TEST_S3")+"&prefix=backup-"+strings.ToLower(rand.Text()[:12])
		}
		s := rig.Start(t, rig.Options{Pair: p})
		files := rig.Files(t, map[string]string{"a.mp4": rig.File(t, "a.mp4", rig.Clip{
			Size: "320x180", Kbit: 300,
			GOP: 1.5, Seconds: filmSeconds,
		})})
		file := s.AwaitAsset(t, s.CreateAsset(t, files+"/a.mp4").Text("id"), "ready", patience, rig.Ready)
		l := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
		encoder := s.Publish(t, l.Text("stream_key"), small())
		recording := playing(t, s, l)
		live := snapshot(t, s.Command(t, "backup", place))
		s.Command(t, "backup", "verify", place)
		encoder.Stop()
		recording = s.AwaitAsset(t, recording.Text("id"), "finished", patience, rig.Finished)
		whole := snapshot(t, s.Command(t, "backup", place))
		s.Command(t, "backup", "verify", place)

		want := map[string]map[string][sha256.Size]byte{}
		for _, a := range []rig.Object{file, recording} {
			want[a.Text("id")] = fetchAll(t, s, a)
		}
		for _, name := range []string{live, whole} {
			env := append(other.Empty(t), masterKey(t, s))
			run(t, env, "restore", place, "--snapshot", name)
			restored := rig.Start(t, rig.Options{Env: env})
			for id, all := range want {
				a := restored.AwaitAsset(t, id, "finished", patience, rig.Finished)
				got := fetchAll(t, restored, a)
				if len(got) == 0 || name == whole && len(got) != len(all) {
					t.Errorf("snapshot %s, asset %s: %d objects of %d", name, id, len(got), len(all))
				}
				for path, sum := range got {
					if sum != all[path] {
						t.Errorf("snapshot %s, asset %s: %s has other bytes", name, id, path)
					}
				}
			}
			if key := restored.Live(t, l.Text("id")).Text("stream_key"); key != l.Text("stream_key") {
				t.Errorf("snapshot %s: the stream has another key", name)
			}
			restored.Stop(t)
		}
	})
}

// snapshot is the name in what the command has printed.
func snapshot(t *testing.T, said string) string {
	t.Helper()
	name := regexp.MustCompile(`Snapshot (\S+) has`).FindStringSubmatch(said)
	if name == nil {
		t.Fatalf("backup said %q", said)
	}
	return name[1]
}

// masterKey gives a service the master key of another.
func masterKey(t *testing.T, s *rig.Server) string {
	t.Helper()
	if key := s.Setting("MILLRACE_MASTER_KEY"); key != "" {
		return "MILLRACE_MASTER_KEY=" + key
	}
	key, err := os.ReadFile(filepath.Join(s.Dir, "master-key"))
	if err != nil {
		t.Fatal(err)
	}
	return "MILLRACE_MASTER_KEY=" + string(bytes.TrimSpace(key))
}

// run runs the program.
func run(t *testing.T, env []string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), rig.Binary(t), append(args, "--data-dir", t.TempDir())...)
	cmd.Env = append(cmd.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// fetchAll fetches all that an asset is played from, and gives the sums of everything but playlists, by path.
func fetchAll(t *testing.T, s *rig.Server, asset rig.Object) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{}
	seen := map[string]bool{}
	uri := regexp.MustCompile(`URI="([^"]+)"`)
	var fetch func(at string)
	fetch = func(at string) {
		if seen[at] {
			return
		}
		seen[at] = true
		code, _, body := s.Get(t, at)
		if code != http.StatusOK {
			t.Fatalf("%s: status %d", at, code)
		}
		base, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(body, []byte("#EXTM3U")) {
			sums[base.Path] = sha256.Sum256(body)
			return
		}
		gap := false
		for line := range strings.Lines(string(body)) {
			line = strings.TrimSpace(line)
			names := []string{line}
			if strings.HasPrefix(line, "#") || line == "" {
				names = nil
				for _, m := range uri.FindAllStringSubmatch(line, -1) {
					names = append(names, m[1])
				}
			}
			if gap = gap || line == "#EXT-X-GAP"; gap && !strings.HasPrefix(line, "#") {
				gap, names = false, nil // there is no media, as the encoder ended in the middle
			}
			for _, name := range names {
				next, err := base.Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				fetch(next.String())
			}
		}
	}
	fetch(s.PlayURL(asset.Text("playback_ids.0.id")))
	return sums
}
