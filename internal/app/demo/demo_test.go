package demo

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/programtest"
)

// transcript collects what the person reads, and tells when a text has appeared.
type transcript struct {
	mu    sync.Mutex
	b     bytes.Buffer
	until string
	seen  func()
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b.Write(p)
	if t.until != "" && strings.Contains(t.b.String(), t.until) {
		t.seen()
	}
	return len(p), nil
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// fakeOptions runs the demo with this test binary as millrace and as ffmpeg, until the given text appears.
func fakeOptions(t *testing.T, until string, args ...string) (context.Context, Options, *transcript) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	flags := append([]string{
		"--http-addr=127.0.0.1:0", "--rtmp-addr=127.0.0.1:1", "--srt-addr=127.0.0.1:0", "--log-level=error",
	}, args...)
	cfg, err := config.Parse(flags, nil, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &transcript{until: until, seen: cancel}
	return ctx, Options{
		Config: cfg, Flags: flags, Duration: 10 * time.Second, Binary: self, FFmpeg: self, Out: out,
	}, out
}

func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, o, out := fakeOptions(t, "Serving until Ctrl-C")
	if err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	said := out.String()
	for _, want := range []string{
		"token ID ", "RTMP        rtmp://127.0.0.1:", "/app/secretkey\n", "/watch/play\n", "/play.m3u8\n", "✓ playing",
		"✓ the encoder has ended",
		"✓ the recording is ready: 9.5 s, asset asset", "✓ subtitles “English” and audio track “Commentary”",
		"watch the recording  http://127.0.0.1:",
		"! serve: something odd: at night: it rains\n", "removed at the end", "Stopping.",
		"  dashboard   http://fake/dashboard/link/secret",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if link, api := strings.Index(said, "/dashboard/link/"), strings.Index(said, "  API "); link > api {
		t.Errorf("the API stands before the dashboard, which a person opens first:\n%s", said)
	}
	if n := strings.Count(said, "! serve:"); n != 1 || strings.Contains(said, "/link/other") {
		t.Errorf("%d lines of serve, want the warning alone:\n%s", n, said)
	}
	_, rest, _ := strings.Cut(said, "Its data is in ")
	dir, _, _ := strings.Cut(rest, " ")
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("the temporary folder %s is still there: %v", dir, err)
	}
}

func TestDemoKeepsAGivenFolderAndStopsTheService(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kept")
	ctx, o, out := fakeOptions(t, "✓ playing", "--data-dir="+dir)
	if err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir + ".stopped"); err != nil {
		t.Errorf("the service was not asked to stop: %v\n%s", err, out)
	}
	if strings.Contains(out.String(), "encoder has ended") {
		t.Errorf("went on after the end:\n%s", out)
	}
}

func TestDemoSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"broken": "the disk is full", "errored": "the recording is errored: no media came", "dying": "panic: dying",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, o, out := fakeOptions(t, "Serving until", "--data-dir="+filepath.Join(t.TempDir(), name))
			err := Run(ctx, o)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q\n%s", err, want, out)
			}
		})
	}
}

func TestDemoTakesFreePorts(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, o, out := fakeOptions(t, "✓ playing", "--http-addr="+l.Addr().String())
	if err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	if want := "Address " + l.Addr().String() +
		" is taken: the demo takes a free port for HTTP."; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

func TestProgramMissing(t *testing.T) {
	t.Parallel()
	if _, err := program("no-such-program-anywhere"); err == nil || !strings.Contains(err.Error(), "install it") {
		t.Errorf("got %v", err)
	}
	if _, err := startProcess("x", exec.Command("/no/such/program"), nil); err == nil { //nolint:noctx // it does not start
		t.Error("started what is not there")
	}
}

func TestProcessThatDoesNotListenIsKilled(t *testing.T) {
	t.Parallel()
	sh := programtest.Path(t, "sh")
	ready := make(chan struct{})
	p, err := startProcess("deaf", exec.Command(sh, "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"), func(string) { close(ready) }) //nolint:noctx // stop ends it
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	p.stop(50 * time.Millisecond)
	if err := p.ended(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
}

func TestServeArgs(t *testing.T) {
	t.Parallel()
	_, o, _ := fakeOptions(t, "", "--fetch-allow=10.0.0.0/8")
	got := strings.Join(serveArgs(o, "d", ":1", ":2", ":3"), " ")
	const want = "serve --webrtc-udp-addr=:0 --webrtc-tcp-addr=:0 --http-addr=127.0.0.1:0 --rtmp-addr=127.0.0.1:1 " +
		"--srt-addr=127.0.0.1:0 --log-level=error --fetch-allow=10.0.0.0/8 --data-dir=d --http-addr=:1 " +
		"--rtmp-addr=:2 --srt-addr=:3 --fetch-allow=10.0.0.0/8,127.0.0.0/8 --log-format=json --log-level=info"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if cfg, err := config.Parse(strings.Fields(got)[1:], nil, os.ReadFile); err != nil || cfg.HTTPAddr != ":1" ||
		len(cfg.FetchAllow) != 3 {
		t.Errorf("serve does not understand them: %+v %v", cfg, err)
	}
}

func TestSubtitles(t *testing.T) {
	t.Parallel()
	const want = "1\n00:00:00,000 --> 00:00:03,500\nSubtitle 1, at second 0\n<i>of the " +
		"recording</i>\n\n2\n00:00:04,000 --> 00:00:06,000\nSubtitle 2, at second 4\n<i>of the recording</i>\n\n"
	if got := subtitles(6 * time.Second); got != want {
		t.Errorf("got %q", got)
	}
	if got := srtTime(3*time.Hour + 25*time.Minute + 45*time.Second + 678*time.Millisecond); got != "03:25:45,678" {
		t.Errorf("got %s", got)
	}
}

// TestRealFFmpeg makes a second of everything that ffmpeg is asked for, with and without what not every build has.
func TestRealFFmpeg(t *testing.T) {
	t.Parallel()
	path := programtest.Path(t, "ffmpeg")
	full, err := findTool(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for name, tool := range map[string]tool{"full": full, "bare": {path: path}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			speech := speak(t.Context(), tool, dir, "host.wav", hostText, "kal16")
			if (speech != "") != tool.can("flite") {
				t.Errorf("speech %q, flite %v", speech, tool.can("flite"))
			}
			out := filepath.Join(dir, "out.flv")
			if err := runProcess(t.Context(), "ffmpeg", exec.Command(path, tool.streamArgs(speech, out, time.Second)...)); err != nil { //nolint:noctx // runProcess stops it
				t.Error(err)
			}
			if err := prepareTracks(t.Context(), tool, dir, time.Second); err != nil {
				t.Error(err)
			}
			for _, file := range []string{out, filepath.Join(dir, "commentary.m4a")} {
				if info, err := os.Stat(file); err != nil || info.Size() < 5000 {
					t.Errorf("%s: %v %v", file, info, err)
				}
			}
		})
	}
}
