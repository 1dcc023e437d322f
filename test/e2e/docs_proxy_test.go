package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// around is what an operator's nginx has around the configuration of the page.
const around = `daemon off;
%[2]s
pid %[1]s/pid;
error_log stderr error;
events {}
http {
  access_log off;
  add_header X-Cache $upstream_cache_status always;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
%[3]s
}
`

// TestDocsProxy runs nginx as docs/operations.md configures it: its connections to the service stay, segments come from its cache, and
// blocking requests go through.
func TestDocsProxy(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	stream := s.CreateLive(t, "low", nil)
	s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	id := stream.Text("playback_ids.0.id")
	s.AwaitPlayable(t, s.PlayURL(id), patience)
	var connections atomic.Int32
	front := documentedNginx(t, counting(t, strings.TrimPrefix(s.HTTP, "http://"), &connections))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v\n%s", path, res.StatusCode, err, text)
		}
		return res, string(text)
	}

	res, master := get("/" + id + ".m3u8")
	if res.ProtoMajor != 2 {
		t.Errorf("viewers get %s", res.Proto)
	}
	playlist := "/" + regexp.MustCompile(`(?m)^[^#\s].*m3u8$`).FindString(master)
	hint := regexp.MustCompile(`PRELOAD-HINT.*URI="v/(\d+)\.`)
	_, text := get(playlist)
	for range 20 { // each blocks until there is another part, and all go over what is open already
		m := hint.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no preload hint in\n%s", text)
		}
		get(playlist + "?_HLS_msn=" + m[1] + "&_HLS_part=0")
		_, text = get(playlist)
	}
	if n := connections.Load(); n > 2 {
		t.Errorf("%d connections were opened for 42 requests, one after the other", n)
	}
	segments := regexp.MustCompile(`(?m)^v/\d+\.m4s$`).FindAllString(text, -1)
	media := strings.TrimSuffix(playlist, "v.m3u8") + segments[len(segments)-1]
	first, want := get(media)
	second, got := get(media)
	if first.Header.Get("X-Cache") != "MISS" || second.Header.Get("X-Cache") != "HIT" || got != want || want == "" {
		t.Errorf("a segment of %d bytes came from %q, then %d bytes from %q",
			len(want), first.Header.Get("X-Cache"), len(got), second.Header.Get("X-Cache"))
	}
}

// counting gives an address that leads to another one, and counts the connections through it.
func counting(t *testing.T, to string, n *atomic.Int32) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { stop(); _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			go copyBoth(ctx, c, to)
		}
	}()
	return ln.Addr().String()
}

// copyBoth copies both ways until either side ends.
func copyBoth(ctx context.Context, c net.Conn, to string) {
	defer func() { _ = c.Close() }()
	var d net.Dialer
	other, err := d.DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = other.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close(); _ = other.Close() })()
	go func() { _, _ = io.Copy(other, c); _ = other.Close() }()
	_, _ = io.Copy(c, other)
}

// documentedNginx runs nginx with the configuration of docs/operations.md in front of an address, and gives its URL.
func documentedNginx(t *testing.T, behind string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```nginx\n")
	config, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/operations.md has no configuration of nginx")
	}
	dir := t.TempDir()
	cert, key := ownCertificate(t, dir, 1)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{
		{"127.0.0.1:8080", behind},
		{"/var/cache/nginx/millrace", filepath.Join(dir, "cache")},
		{"listen 443 ssl http2;", "listen " + ln.Addr().String() + " ssl http2;"},
		{"/etc/ssl/video.example.org.pem", cert},
		{"/etc/ssl/video.example.org.key", key},
	} {
		if !strings.Contains(config, r[0]) {
			t.Fatalf("the configuration has no %q:\n%s", r[0], config)
		}
		config = strings.ReplaceAll(config, r[0], r[1])
	}
	user := ""
	if os.Getuid() == 0 { // else its workers are somebody who may not look into the folder
		user = "user root;"
	}
	file := filepath.Join(dir, "nginx.conf")
	if err = os.WriteFile(file, fmt.Appendf(nil, around, dir, user, config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "nginx"), "-p", dir, "-e", "stderr", "-c", file)
	inherited, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close() // the copy is open
	cmd.ExtraFiles, cmd.Env = []*os.File{inherited}, []string{"NGINX=3;"}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said strings.Builder
	cmd.Stderr = &said
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inherited.Close() // nginx has it
	t.Cleanup(func() {
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return "https://" + ln.Addr().String()
}
