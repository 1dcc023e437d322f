package release

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"millrace/internal/config"
	"millrace/internal/programtest"
)

// portsOfSettings are the ports on which the service listens unless told otherwise, as an image names them.
func portsOfSettings() (ports []string) {
	for _, s := range config.Settings() {
		if s.Kind != config.KindAddress || !strings.HasPrefix(s.Default, ":") {
			continue
		}
		protocol := "tcp"
		if s.Name == "srt-addr" || s.Name == "webrtc-udp-addr" {
			protocol = "udp"
		}
		ports = append(ports, s.Default[1:]+"/"+protocol)
	}
	slices.Sort(ports)
	return ports
}

// firstID is the user of the machine that a container's root is.
const firstID = 200000

// container is one of the image, which can't write anything but its volumes and memory.
type container struct {
	name, state, bundle string
	data                string // the volume
	cmd                 *exec.Cmd
	said                bytes.Buffer
	over                chan struct{} // closed when it has ended
	err                 error         // with what
}

// crun is the runtime in a mount namespace of its own.
func crun(ctx context.Context, state string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "testdata/container.sh", append([]string{"--root", state}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	return cmd
}

// newContainer makes a container of the image with a command and more environment, but does not start it.
func newContainer(t *testing.T, b builtImage, args []string, env ...string) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a container an ID that is nobody's")
	}
	programtest.Path(t, "crun")
	folder := t.TempDir()
	// The container's users have to get to their files.
	for _, dir := range []string{filepath.Dir(folder), filepath.Dir(b.layout)} {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	c := &container{
		name: "millrace-test-" + rand.Text()[:8], state: filepath.Join(folder, "state"), over: make(chan struct{}),
		bundle: filepath.Join(folder, "bundle"), data: filepath.Join(folder, "data"),
	}
	for _, dir := range []string{c.bundle, c.data} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	uid, gid, _ := strings.Cut(b.config.Config.User, ":")
	user, err := strconv.Atoi(uid)
	group, err2 := strconv.Atoi(gid)
	// As Docker makes a volume: with the owner of the image's folder.
	owner := b.files["var/lib/millrace"].head
	if err = errors.Join(err, err2, os.Chown(c.data, firstID+owner.Uid, firstID+owner.Gid)); err != nil {
		t.Fatal(err)
	}
	type object map[string]any
	memory := func(at, mode string) object {
		return object{
			"destination": at, "type": "tmpfs", "source": "tmpfs",
			"options": []string{"nosuid", "nodev", "mode=" + mode},
		}
	}
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		memory("/dev", "755"), memory("/dev/shm", "1777"), memory("/tmp", "1777"),
	}
	for _, at := range slices.Sorted(maps.Keys(b.config.Config.Volumes)) {
		mounts = append(mounts, object{
			"destination": at, "type": "bind", "source": c.data, "options": []string{"bind", "nosuid", "nodev"},
		})
	}
	var namespaces []object
	for _, of := range []string{"pid", "network", "ipc", "uts", "mount", "user"} {
		namespaces = append(namespaces, object{"type": of})
	}
	ids := []object{{"containerID": 0, "hostID": firstID, "size": 65536}}
	spec := object{
		"ociVersion": "1.0.2", "hostname": "container", "mounts": mounts,
		"root": object{"path": b.unpack(t), "readonly": true},
		"process": object{
			"args": args, "env": append(slices.Clone(b.config.Config.Env), env...), "cwd": "/",
			"user": object{"uid": user, "gid": group}, "noNewPrivileges": true, "capabilities": object{},
		},
		"linux": object{
			"namespaces": namespaces, "uidMappings": ids, "gidMappings": ids,
			"maskedPaths":   []string{"/proc/kcore", "/proc/keys", "/proc/timer_list"},
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
	text, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.bundle, "config.json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts the container, which ends with the test.
func (c *container) start(t *testing.T) {
	t.Helper()
	c.cmd = crun(context.WithoutCancel(t.Context()), c.state, "run", "--bundle", c.bundle, c.name)
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.WaitDelay = &c.said, &c.said, patience
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("start container: %v", err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.over)
	}()
	t.Cleanup(func() {
		// May have ended.
		_ = crun(context.WithoutCancel(t.Context()), c.state, "delete", "--force", c.name).Run()
		<-c.over
		if t.Failed() {
			t.Logf("the container said:\n%s", c.said.String())
		}
	})
}

// exec runs a command in the container.
func (c *container) exec(ctx context.Context, args ...string) *exec.Cmd {
	return crun(ctx, c.state, append([]string{"exec", c.name}, args...)...)
}

// eventually waits until there is no error, while the container runs.
func (c *container) eventually(t *testing.T, m *machine, what string, check func() error) {
	t.Helper()
	m.eventually(t, what, func() error {
		select {
		case <-c.over:
			t.Fatalf("the container has ended: %v", c.err)
		default:
		}
		return check()
	})
}

// machine is the container as what has a network.
func (c *container) machine(t *testing.T) *machine {
	t.Helper()
	m := &machine{}
	c.eventually(t, m, "starts", func() error {
		out, err := crun(t.Context(), c.state, "state", c.name).Output()
		var state struct {
			Pid    int    `json:"pid"`
			Status string `json:"status"`
		}
		if err == nil {
			err = json.Unmarshal(out, &state)
		}
		if err == nil && state.Status != "running" {
			err = errors.New("it is " + state.Status)
		}
		m.pid = state.Pid
		return err
	})
	return m
}

// TestImageRuns runs the image as Docker and Kubernetes do, where they are set to let it do least: not as root, without
// a capability, on a file system that is read-only. A stream from its own ffmpeg plays, and it ends when it is told to.
func TestImageRuns(t *testing.T) {
	b := image(t)
	const id, secret = "container", "0123456789abcdef-container"
	c := newContainer(t, b, append(b.config.Config.Entrypoint, b.config.Config.Cmd...),
		"MILLRACE_TOKEN_ID="+id, "MILLRACE_TOKEN_SECRET="+secret)
	c.start(t)
	m := c.machine(t)
	check := b.config.Config.Healthcheck.Test
	if len(check) < 2 || check[0] != "CMD" {
		t.Fatalf("the health check is %q", check)
	}
	c.eventually(t, m, "is healthy", func() error {
		out, err := c.exec(t.Context(), check[1:]...).CombinedOutput()
		if err == nil && string(out) != "millrace "+first+"\n" {
			err = errors.New("another version")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Uid:\t210001\t210001\t210001\t210001`, `Gid:\t210001\t210001\t210001\t210001`, `CapBnd:\t0000000000000000`,
		`CapEff:\t0000000000000000`, `NoNewPrivs:\t1`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).Match(status) {
			t.Errorf("the process is not %s:\n%s", want, status)
		}
	}
	playback := c.publish(t, m, id, secret)
	c.plays(t, m, playback)
	if out, err := crun(t.Context(), c.state, "kill", c.name, b.config.Config.StopSignal).CombinedOutput(); err != nil {
		t.Fatalf("stop: %v: %s", err, out)
	}
	if <-c.over; c.err != nil {
		t.Errorf("it ended with %v", c.err)
	}
	if _, err := os.Stat(filepath.Join(c.data, "millrace.db")); err != nil {
		t.Errorf("the volume has no database: %v", err)
	}
}

// publish makes a stream and publishes to it from inside, and returns its playback ID.
func (c *container) publish(t *testing.T, m *machine, id, secret string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:8080/video/v1/live-streams",
		strings.NewReader(`{"playback_policies": ["public"], "latency_mode": "low"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth(id, secret)
	transport := &http.Transport{DialContext: m.dial, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	var made struct {
		Data struct {
			StreamKey   string `json:"stream_key"`
			PlaybackIDs []struct {
				ID string `json:"id"`
			} `json:"playback_ids"`
		} `json:"data"`
	}
	if err == nil {
		err = json.Unmarshal(body, &made)
	}
	if err != nil || resp.StatusCode != http.StatusCreated || len(made.Data.PlaybackIDs) != 1 {
		t.Fatalf("create live stream: %s, %v: %s", resp.Status, err, body)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	encoder := c.exec(ctx, "ffmpeg", "-nostdin", "-loglevel", "error", "-re",
		"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30",
		"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000",
		"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "30",
		"-c:a", "aac",
		"-f", "flv", "rtmp://127.0.0.1/app/"+made.Data.StreamKey)
	var said bytes.Buffer
	encoder.Stdout, encoder.Stderr, encoder.WaitDelay = &said, &said, patience
	if err = encoder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = encoder.Wait() // ended by the test
		if t.Failed() {
			t.Logf("the encoder said:\n%s", said.String())
		}
	})
	return made.Data.PlaybackIDs[0].ID
}

// plays checks that a player gets a picture.
func (c *container) plays(t *testing.T, m *machine, playback string) {
	t.Helper()
	variant := regexp.MustCompile(`(?m)^[^#\n].*$`)
	initial := regexp.MustCompile(`#EXT-X-MAP:URI="([^"]+)"`)
	at := func(base, link string) string {
		if strings.HasPrefix(link, "/") {
			return link
		}
		return base[:strings.LastIndex(base, "/")+1] + link
	}
	c.eventually(t, m, "plays", func() error {
		page := "/" + playback + ".m3u8"
		_, status, list := m.get(t, page)
		media := variant.FindString(list)
		if status != http.StatusOK || media == "" {
			return fmt.Errorf("the playlist is %d: %s", status, list)
		}
		page = at(page, media)
		_, status, list = m.get(t, page)
		head, segment := initial.FindStringSubmatch(list), variant.FindString(list)
		if status != http.StatusOK || head == nil || segment == "" {
			return fmt.Errorf("the media playlist is %d: %s", status, list)
		}
		film := filepath.Join(t.TempDir(), "film.mp4")
		_, _, beginning := m.get(t, at(page, head[1]))
		_, status, content := m.get(t, at(page, segment))
		if err := os.WriteFile(film, []byte(beginning+content), 0o600); err != nil {
			t.Fatal(err)
		}
		out := string(programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", "v", "-show_entries",
			"stream=codec_name,width:frame=pict_type", "-of", "csv=p=0", film))
		if !strings.Contains(out, "h264,320") || !strings.Contains(out, "I") {
			return fmt.Errorf("the segment is %d, and has %s", status, out)
		}
		return nil
	})
}

// TestImageDoctor: the doctor finds nothing wrong in a container: ffmpeg is confined, and what is written can be.
func TestImageDoctor(t *testing.T) {
	b := image(t)
	c := newContainer(t, b, []string{"millrace", "doctor"})
	c.start(t)
	if <-c.over; c.err != nil {
		t.Errorf("%v", c.err)
	}
	for _, want := range []string{"ffmpeg", "pocketsphinx"} {
		if !strings.Contains(c.said.String(), want) {
			t.Errorf("nothing is said of %s", want)
		}
	}
	t.Log(c.said.String())
}
