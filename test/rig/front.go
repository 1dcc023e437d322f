package rig

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/programtest"
)

// Front is a proxy in front of nodes, as a file of docs/front configures it. It ends with the test.
type Front struct {
	URL    string       // https://127.0.0.1:port of nginx, http://127.0.0.1:port of Varnish
	Client *http.Client // takes nginx's certificate, and speaks HTTP/2 with it
}

// documented is a file of docs/front with some text replaced, given as pairs of old and new. All of it has to be there.
func documented(t testing.TB, name string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/front", name))
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(config, replace[i]) {
			t.Fatalf("%s has no %q", name, replace[i])
		}
		config = strings.ReplaceAll(config, replace[i], replace[i+1])
	}
	return config
}

// aroundNginx is what an operator's nginx has around the documented configuration.
const aroundNginx = `daemon off;
%[2]s
pid %[1]s/pid;
error_log stderr error;
events {}
http {
  access_log off;
  add_header X-Cache $upstream_cache_status always;
  add_header X-Key $millrace_uri always;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
%[3]s
}
`

// Nginx starts nginx with docs/front/nginx.conf in front of nodes, given as host:port. Its responses have the cache's
// key, as the field X-Key, and in X-Cache whether they come from there.
func Nginx(t testing.TB, nodes ...string) *Front {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	serverIdentity(t, cert, key)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var servers strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&servers, "server %s max_fails=2 fail_timeout=5s;\n", n)
	}
	config := documented(t, "nginx.conf",
		"server 10.0.0.11:8080 max_fails=2 fail_timeout=5s;", servers.String(),
		"server 10.0.0.12:8080 max_fails=2 fail_timeout=5s;", "",
		"/var/cache/nginx/millrace", filepath.Join(dir, "cache"),
		"listen 443 ssl http2;", "listen "+ln.Addr().String()+" ssl http2;",
		"/etc/ssl/video.example.org.pem", cert,
		"/etc/ssl/video.example.org.key", key)
	user := ""
	if os.Getuid() == 0 { // else its workers are somebody who may not look into the folder
		user = "user root;"
	}
	file := filepath.Join(dir, "nginx.conf")
	if err = os.WriteFile(file, fmt.Appendf(nil, aroundNginx, dir, user, config), 0o600); err != nil {
		t.Fatal(err)
	}
	//nolint:noctx // ended by runFront
	cmd := exec.Command(programtest.Path(t, "nginx"), "-p", dir, "-e", "stderr", "-c", file)
	inherited, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close() // the copy is open
	cmd.ExtraFiles, cmd.Env = []*os.File{inherited}, []string{"NGINX=3;"}
	runFront(t, cmd)
	_ = inherited.Close() // nginx has it
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &Front{URL: "https://" + ln.Addr().String(), Client: &http.Client{Transport: transport}}
}

// Varnish starts Varnish with docs/front/varnish.vcl in front of two nodes, given as host:port.
func Varnish(t testing.TB, one, other string) *Front {
	t.Helper()
	dir := t.TempDir()
	var replace []string
	for i, node := range []string{one, other} {
		host, port, err := net.SplitHostPort(node)
		if err != nil {
			t.Fatal(err)
		}
		replace = append(replace, fmt.Sprintf(".host = \"10.0.0.1%d\";\n    .port = \"8080\";", i+1),
			fmt.Sprintf(".host = %q;\n    .port = %q;", host, port))
	}
	file := filepath.Join(dir, "millrace.vcl")
	if err := os.WriteFile(file, []byte(documented(t, "varnish.vcl", replace...)), 0o600); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	runFront(t, exec.Command(programtest.Path(t, "varnishd"), //nolint:noctx // by runFront
		"-F", "-j", "none", "-n", work, "-a", "127.0.0.1:0", "-f", file, "-s", "malloc,64m", "-p", "feature=+http2",
		"-p", "vsl_space=1M"))
	where := regexp.MustCompile(`(?m)^\S+ (127\.0\.0\.1) (\d+)$`)
	for end := time.Now().Add(startWait); ; Pause(50 * time.Millisecond) {
		said, err := exec.CommandContext(t.Context(), "varnishadm", "-n", work, "debug.listen_address").CombinedOutput()
		if m := where.FindSubmatch(said); err == nil && m != nil {
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			address := net.JoinHostPort(string(m[1]), string(m[2]))
			return &Front{URL: "http://" + address, Client: &http.Client{Transport: transport}}
		}
		if time.Now().After(end) {
			t.Fatalf("Varnish does not say where it listens: %v: %s", err, said)
		}
	}
}

// runFront starts a proxy, which is told to end with the test. What it said is logged when the test has failed.
func runFront(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(cmd.Path), said.String())
		}
	})
}
