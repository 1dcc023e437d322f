package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/programtest"
)

// mostExposed is what systemd-analyze security may find, in tenths: less is safer.
const mostExposed = 19

// TestInstalled installs the package on a machine with a systemd of its own, follows docs/install.md to a stream that
// plays, upgrades to the next version, removes it and purges it.
func TestInstalled(t *testing.T) {
	made := all(t)
	m := boot(t, made.folder)
	deb := func(release string) string {
		return "/mnt/" + release + "/" + filepath.Base(file(t, filepath.Join(made.folder, release), ".deb"))
	}
	install := func(release string) {
		t.Helper()
		// Triggers are other packages', as the index of manual pages. Asked about settings, dpkg does its default.
		m.run(t, "dpkg", "--no-triggers", "--force-confdef", "--install", deb(release))
	}
	if !t.Run("install", func(t *testing.T) {
		install("first")
		m.runs(t, first)
		m.confined(t)
	}) {
		return
	}
	var stream string
	t.Run("first stream", func(t *testing.T) { stream = m.firstStream(t) })
	t.Run("reload", func(t *testing.T) {
		pid := m.property(t, "MainPID")
		m.run(t, "systemctl", "reload", "millrace")
		if now := m.property(t, "MainPID"); now != pid || m.property(t, "ActiveState") != "active" {
			t.Errorf("the process was %s, and is %s", pid, now)
		}
	})
	t.Run("upgrade", func(t *testing.T) {
		m.run(t, "sed", "-i", "s/^#log-format: .*/log-format: json/;s/^#fetch-allow:.*/fetch-allow: 127.0.0.1\\/32/",
			"/etc/millrace.yaml")
		settings, pid := m.run(t, "cat", "/etc/millrace.yaml"), m.property(t, "MainPID")
		install("second")
		m.runs(t, second)
		if now := m.property(t, "MainPID"); now == pid {
			t.Error("the process of before still runs")
		}
		got := m.run(t, "cat", "/etc/millrace.yaml")
		if got != settings || !strings.Contains(got, "\nlog-format: json\n") {
			t.Errorf("the settings were changed:\n%s", got)
		}
		if got := m.run(t, "cat", "/etc/millrace.yaml.dpkg-dist"); !strings.Contains(got, "# A setting that is new.") {
			t.Errorf("the new settings are not beside them:\n%s", got)
		}
		if _, status, _ := m.get(t, "/watch/"+stream); stream != "" && status != http.StatusOK {
			t.Errorf("the page of the stream of before is %d", status)
		}
	})
	t.Run("work", m.work)
	t.Run("what was stopped or disabled stays so", func(t *testing.T) {
		m.run(t, "systemctl", "disable", "--now", "millrace")
		install("second")
		if got := m.property(t, "ActiveState") + " " + m.property(t, "UnitFileState"); got != "inactive disabled" {
			t.Errorf("it is %s", got)
		}
		m.run(t, "systemctl", "enable", "--now", "millrace")
	})
	t.Run("remove", func(t *testing.T) {
		m.run(t, "dpkg", "--no-triggers", "--remove", "millrace")
		if state := m.property(t, "ActiveState"); state != "inactive" {
			t.Errorf("the service is %s", state)
		}
		m.has(t, map[string]bool{
			"/usr/bin/millrace": false, "/usr/lib/systemd/system/millrace.service": false,
			"/etc/millrace.yaml": true, "/var/lib/millrace/millrace.db": true,
		})
	})
	t.Run("purge", func(t *testing.T) {
		m.run(t, "dpkg", "--no-triggers", "--purge", "millrace")
		m.has(t, map[string]bool{
			"/etc/millrace.yaml": false, "/etc/systemd/system/multi-user.target.wants/millrace.service": false,
			"/var/lib/millrace/millrace.db": true, "/var/lib/millrace/master-key": true,
		})
		if out, err := m.try("dpkg-query", "--show", "millrace"); err == nil {
			t.Errorf("dpkg still has %s", out)
		}
	})
}

// runs checks that the service of a version is ready, as who it should be.
func (m *machine) runs(t *testing.T, version string) {
	t.Helper()
	for name, want := range map[string]string{
		"ActiveState": "active", "UnitFileState": "enabled", "User": "millrace",
		"Type": "notify", "NotifyAccess": "main", "WatchdogUSec": "1min",
	} {
		if got := m.property(t, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	pid := m.property(t, "MainPID")
	if user := m.run(t, "stat", "--format=%U:%G", "/proc/"+pid); user != "millrace:millrace" {
		t.Errorf("it runs as %s", user)
	}
	if program := m.run(t, "readlink", "/proc/"+pid+"/exe"); program != "/usr/bin/millrace" {
		t.Errorf("it runs %s", program)
	}
	for path, want := range map[string]string{
		"/etc/millrace.yaml": "640 root:millrace", "/var/lib/millrace/millrace.db": "600 millrace:millrace",
	} {
		if got := m.run(t, "stat", "--format=%a %U:%G", path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	head, status, _ := m.get(t, "/healthz")
	if got := head.Get("Millrace-Version"); status != http.StatusNoContent || got != version {
		t.Errorf("/healthz is %d, of version %s; want %s", status, got, version)
	}
	var document struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
	}
	_, status, body := m.get(t, "/openapi.json")
	if err := json.Unmarshal([]byte(body), &document); err != nil || document.Info.Version != version {
		t.Errorf("/openapi.json is %d, of version %q (%v)", status, document.Info.Version, err)
	}
}

// confined checks the unit by systemd's own tools.
func (m *machine) confined(t *testing.T) {
	t.Helper()
	const unit = "/usr/lib/systemd/system/millrace.service"
	if out, err := m.try("systemd-analyze", "verify", "--man=no", unit); err != nil || out != "" {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if out, err := m.try("systemd-analyze", "security", "--no-pager", "--offline=yes",
		"--threshold="+strconv.Itoa(mostExposed), unit); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// has checks which files there are.
func (m *machine) has(t *testing.T, want map[string]bool) {
	t.Helper()
	for path, is := range want {
		if m.exists(path) != is {
			t.Errorf("there is %s: %v, want %v", path, !is, is)
		}
	}
}

// firstStream does what docs/install.md says of the first stream, and returns its playback ID when it plays.
func (m *machine) firstStream(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(repository + "/docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- first stream, run by TestInstalled -->\n```\n", "```\n"
	_, rest, ok := strings.Cut(string(text), begin)
	commands, _, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/install.md has no %q", begin)
	}
	// The encoder goes on until it is ended, and has what the shell had open.
	script := commands + "echo \"$PLAYBACK_ID $!\" >/tmp/made\ndisown\n"
	const apart = `bash -eu -c "$1" >/tmp/said 2>&1 </dev/null; code=$?; cat /tmp/said; exit $code`
	m.run(t, "bash", "-c", apart, "bash", script)
	id, encoder, _ := strings.Cut(m.run(t, "cat", "/tmp/made"), " ")
	defer func() { _, _ = m.try("kill", encoder) }() // may have ended
	if _, status, body := m.get(t, "/watch/"+id); status != http.StatusOK || !strings.Contains(body, id) {
		t.Errorf("/watch/%s is %d:\n%.1000s", id, status, body)
	}
	m.eventually(t, "plays", func() error {
		_, status, list := m.get(t, "/"+id+".m3u8")
		if status != http.StatusOK || !strings.Contains(list, "#EXT-X-STREAM-INF") {
			return errors.New("the playlist is " + list)
		}
		return nil
	})
	return id
}

// uris are the lines of a playlist that are URIs.
var uris = regexp.MustCompile(`(?m)^[^#\n].*$`)

// work has the service make with ffmpeg, and recognise, what its unit must not be in the way of: a file that has to be
// encoded, images, a lower rendition, a download, and subtitles.
func (m *machine) work(t *testing.T) {
	programtest.Speech(t)
	args := append([]string{"-f", "lavfi", "-i", "testsrc2=size=640x480:rate=30"},
		programtest.SpeechArgs("slt", "Good morning and welcome to the weekly program.")...)
	source := programtest.SharedMedia(t, "welcome.mkv", append(args, "-c:v", "mpeg4", "-c:a", "aac", "-shortest")...)
	data, err := os.ReadFile(filepath.Clean(source))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := inside(m, func() (net.Listener, error) {
		return new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	})
	if err != nil {
		t.Fatal(err)
	}
	files := httptest.Server{Listener: listener, Config: &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "welcome.mkv", time.Time{}, bytes.NewReader(data))
		}), ReadHeaderTimeout: patience,
	}}
	files.Start()
	defer files.Close()

	// The token is that of the first stream.
	const api = `. /token; curl -sS --fail-with-body -u "$MILLRACE_TOKEN_ID:$MILLRACE_TOKEN_SECRET" ` +
		`-H 'Content-Type: application/json' "$@"`
	const assets = "http://localhost:8080/video/v1/assets"
	type state struct {
		ID     string `json:"id"`
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	type asset struct {
		Data struct {
			state
			Playbacks []state `json:"playback_ids"`
			Tracks    []state `json:"tracks"`
			Files     struct {
				Files []state `json:"files"`
			} `json:"static_renditions"`
		} `json:"data"`
	}
	var a asset
	said := m.run(t, "bash", "-euc", api, "bash", assets, "-d", `{"inputs": [{"url": "`+files.URL+`/welcome.mkv",
		"generated_subtitles": [{"language_code": "en", "name": "English"}]}],
		"playback_policies": ["public"], "static_renditions": [{"resolution": "highest"}]}`)
	if err = json.Unmarshal([]byte(said), &a); err != nil {
		t.Fatal(err)
	}
	text := ""
	m.eventually(t, "made an asset with subtitles and a download", func() error {
		said, err := m.try("bash", "-euc", api, "bash", assets+"/"+a.Data.ID)
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		a = asset{}
		if err := json.Unmarshal([]byte(said), &a); err != nil {
			return err
		}
		for _, track := range a.Data.Tracks {
			if track.Type == "text" && track.Status == "ready" {
				text = track.ID
			}
		}
		files := a.Data.Files.Files
		if a.Data.Status != "ready" || text == "" || len(files) != 1 || files[0].Status != "ready" {
			return errors.New("it is " + said)
		}
		return nil
	})
	at := "/" + a.Data.Playbacks[0].ID
	_, _, list := m.get(t, at+".m3u8")
	rungs := uris.FindAllString(list, -1)
	if len(rungs) < 2 {
		t.Fatalf("there is no lower rendition:\n%s", list)
	}
	lowest := path.Join("/", rungs[len(rungs)-1])
	_, _, list = m.get(t, lowest)
	segments := uris.FindAllString(list, -1)
	if len(segments) == 0 {
		t.Fatalf("%s has no segments:\n%s", lowest, list)
	}
	segment := path.Join(path.Dir(lowest), segments[0])
	if _, status, body := m.get(t, segment); status != http.StatusOK || !strings.Contains(body, "moof") {
		t.Errorf("%s is %d: %.200q", segment, status, body)
	}
	for page, want := range map[string]string{
		"/thumbnail.jpg?time=1": "\xff\xd8\xff", "/highest.mp4": "ftyp", "/text/" + text + ".txt": "weekly",
	} {
		if _, status, body := m.get(t, at+page); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s is %d: %.200q", page, status, body)
		}
	}
	if log := m.run(t, "journalctl", "--no-pager", "-u", "millrace"); strings.Contains(log, "less confined") ||
		strings.Contains(log, "not permitted") {
		t.Errorf("the unit forbids what the service needs:\n%s", log)
	}
}
