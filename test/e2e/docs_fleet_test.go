package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// TestDocsFleet runs docs/fleet.sh: what is made by way of nginx, or published to one node, plays from both nodes,
// and when the script has ended, so has all that it started.
func TestDocsFleet(t *testing.T) {
	rig.Parallel(t)
	f := startDocsFleet(t)
	file := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 4})
	asset := f.api(t, http.MethodPost, "/video/v1/assets", rig.Object{
		"inputs":            []rig.Object{{"url": rig.Files(t, map[string]string{"a.mp4": file}) + "/a.mp4"}},
		"playback_policies": []string{"public"},
	}, http.StatusCreated)
	for end := time.Now().Add(patience); !rig.Ready(asset); rig.Pause(100 * time.Millisecond) {
		if asset.Text("status") == "errored" || time.Now().After(end) {
			t.Fatalf("the asset: %v", asset)
		}
		asset = f.api(t, http.MethodGet, "/video/v1/assets/"+asset.Text("id"), nil, http.StatusOK)
	}
	path := "/" + asset.Text("playback_ids.0.id") + ".m3u8"
	path = "/" + ofPlaylist.FindString(string(f.get(t, f.front+path)))
	list := string(f.get(t, f.front+path))
	media := path[:strings.LastIndex(path, "/")+1] + ofSegment.FindString(list)
	want := f.get(t, f.front+media)
	for _, node := range f.nodes {
		if got := f.get(t, node+path); string(got) != list {
			t.Errorf("one node has the playlist\n%s\nnot\n%s", got, list)
		}
		if got := f.get(t, node+media); !bytes.Equal(got, want) || len(want) == 0 {
			t.Errorf("one node has %d bytes of a segment, nginx gave %d", len(got), len(want))
		}
	}
	f.playsLive(t)
	f.stop(t)
}

// playsLive has an encoder at one node, and viewers at both.
func (d *docsFleet) playsLive(t *testing.T) {
	t.Helper()
	stream := d.api(t, http.MethodPost, "/video/v1/live-streams", rig.Object{"playback_policies": []string{"public"}},
		http.StatusCreated)
	encoder := rig.PublishTo(t, d.rtmp[0]+stream.Text("stream_key"), small())
	defer encoder.Stop()
	for _, base := range append(slices.Clone(d.nodes), d.front) {
		path := "/" + stream.Text("playback_ids.0.id") + ".m3u8"
		for end := time.Now().Add(patience); ; rig.Pause(100 * time.Millisecond) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			code, b := d.do(t, req)
			if code == http.StatusOK {
				break
			}
			if code != http.StatusPreconditionFailed || time.Now().After(end) {
				t.Fatalf("%s: %d: %.300s", base, code, b)
			}
		}
	}
}

// docsFleet is what docs/fleet.sh has started.
type docsFleet struct {
	front  string   // URL of nginx
	nodes  []string // of the nodes
	rtmp   []string
	ports  []int
	secret string
	client *http.Client
	script *exec.Cmd
	said   *bytes.Buffer
	ended  chan error
}

func startDocsFleet(t *testing.T) *docsFleet {
	t.Helper()
	s3 := os.Getenv("MILLRACE_TEST_VERSITYGW")
	if s3 == "" {
		rig.Missing(t, "MILLRACE_TEST_VERSITYGW is not set")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil { // PostgreSQL may be somebody else
			t.Fatal(err)
		}
	}
	first := portsInARow(t, 11)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	f := &docsFleet{
		front:  fmt.Sprintf("https://127.0.0.1:%d", first),
		client: &http.Client{Transport: transport, Timeout: patience},
		said:   new(bytes.Buffer), ended: make(chan error, 1),
	}
	for i := range 11 {
		f.ports = append(f.ports, first+i)
	}
	for i := range 2 {
		f.nodes = append(f.nodes, fmt.Sprintf("http://127.0.0.1:%d", first+1+i))
		f.rtmp = append(f.rtmp, fmt.Sprintf("rtmp://127.0.0.1:%d/app/", first+3+i))
	}
	f.script = exec.Command("../../docs/fleet.sh", dir) //nolint:noctx // ended by stop
	f.script.Env = append(f.script.Environ(), "MILLRACE="+rig.Binary(t), "VERSITYGW="+s3,
		"NGINX="+programtest.Path(t, "nginx"), fmt.Sprintf("PORT=%d", first), "MILLRACE_FETCH_ALLOW=127.0.0.0/8")
	f.script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := f.script.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	f.script.Stderr = f.said
	if err = f.script.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-f.script.Process.Pid, syscall.SIGKILL) // what a test that failed has left
		if t.Failed() {
			f.log(t, dir)
		}
	})
	lines := bufio.NewScanner(out)
	ready := false
	for !ready && lines.Scan() {
		ready = lines.Text() == "ready"
	}
	if !ready {
		t.Fatalf("docs/fleet.sh: %v: %s", f.script.Wait(), f.said)
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		f.ended <- f.script.Wait()
	}()
	secret, err := os.ReadFile(filepath.Join(dir, "token-secret"))
	if err != nil {
		t.Fatal(err)
	}
	f.secret = strings.TrimSpace(string(secret))
	return f
}

// log shows the end of what the fleet has logged.
func (d *docsFleet) log(t *testing.T, dir string) {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, name := range logs {
		text, _ := os.ReadFile(name)
		t.Logf("%s:\n%s", filepath.Base(name), text[max(0, len(text)-4000):])
	}
}

// stop ends the script as Ctrl-C does, and wants nothing to listen any more.
func (d *docsFleet) stop(t *testing.T) {
	t.Helper()
	if err := d.script.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-d.ended:
		if err != nil {
			t.Errorf("docs/fleet.sh: %v: %s", err, d.said)
		}
	case <-time.After(patience):
		t.Fatal("docs/fleet.sh does not end")
	}
	for _, port := range d.ports {
		if !isFree(t.Context(), port) {
			t.Errorf("something listens on port %d still", port)
		}
	}
}

// portsInARow gives the first of n ports that nobody listens on.
func portsInARow(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first := 20000 + rand.N(12000-n)
		if !slices.ContainsFunc(make([]int, n), func(int) bool { first++; return !isFree(t.Context(), first-1) }) {
			return first - n
		}
	}
	t.Fatal("no free ports")
	return 0
}

func isFree(ctx context.Context, port int) bool {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// get asks for what has to be there.
func (d *docsFleet) get(t *testing.T, url string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	code, b := d.do(t, req)
	if code != http.StatusOK {
		t.Fatalf("%s: %d: %.300s", url, code, b)
	}
	return b
}

func (d *docsFleet) do(t *testing.T, req *http.Request) (int, []byte) {
	t.Helper()
	res, err := d.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b
}

// api sends a request to the REST API by way of nginx, and gives its data.
func (d *docsFleet) api(t *testing.T, method, path string, body rig.Object, want int) rig.Object {
	t.Helper()
	var in io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, d.front+path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("fleet", d.secret)
	req.Header.Set("Content-Type", "application/json")
	code, b := d.do(t, req)
	var o struct {
		Data rig.Object `json:"data"`
	}
	if code != want || len(b) > 0 && json.Unmarshal(b, &o) != nil {
		t.Fatalf("%s %s: %d, want %d: %.300s", method, path, code, want, b)
	}
	return o.Data
}
