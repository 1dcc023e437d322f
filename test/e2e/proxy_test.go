package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// TestDocsHAProxy runs HAProxy as docs/network.md configures it: an encoder behind it is known by its own address.
func TestDocsHAProxy(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	l := s.CreateLive(t, "standard", nil)
	front := documentedHAProxy(t, strings.TrimPrefix(s.RTMP, "rtmp://"))
	rig.PublishTo(t, "rtmp://"+front+"/app/"+l.Text("stream_key"), small())
	h := health(t, s, l, "through HAProxy", func(h rig.Object) bool { return h.Text("status") == "live" })
	if address := h.Text("encoder.remote_address"); !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("the encoder is at %s, want 127.0.0.1, as whom HAProxy knows it", address)
	}
}

// documentedHAProxy runs HAProxy with the configuration of docs/network.md in front of an address, from 127.0.0.3,
// and gives its own.
func documentedHAProxy(t *testing.T, behind string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/network.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```haproxy\n")
	config, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/network.md has no configuration of HAProxy")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{{"bind :1935", "bind fd@3"}, {"10.0.0.5:1935", behind + " source 127.0.0.3"}} {
		if !strings.Contains(config, r[0]) {
			t.Fatalf("the configuration has no %q:\n%s", r[0], config)
		}
		config = strings.ReplaceAll(config, r[0], r[1])
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err = os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	inherited, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close() // the copy is open
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "haproxy"), "-db", "-f", file)
	cmd.ExtraFiles = []*os.File{inherited}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said strings.Builder
	cmd.Stderr = &said
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inherited.Close() // HAProxy has it
	t.Cleanup(func() {
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return ln.Addr().String()
}

// TestProxiedClients: over HTTP and HTTPS the address that a PROXY header gives is the one that is locked out after
// wrong secrets.
func TestProxiedClients(t *testing.T) {
	rig.Parallel(t)
	cert, key := ownCertificate(t, t.TempDir(), 1)
	s := rig.Start(t, rig.Options{Args: []string{"--tls-cert", cert, "--tls-key", key}})
	for base, secure := range map[string]bool{s.HTTP: false, s.HTTPS: true} {
		_, address, _ := strings.Cut(base, "://")
		ask := func(client string) int {
			return proxied(t, address, "PROXY TCP4 "+client+" 192.0.2.1 4711 443\r\n", secure)
		}
		guesser, other := "203.0.113.7", "203.0.113.8"
		if secure {
			guesser, other = "198.51.100.7", "198.51.100.8"
		}
		code := 0
		for range 10 {
			if code = ask(guesser); code != http.StatusUnauthorized {
				break
			}
		}
		if code != http.StatusTooManyRequests {
			t.Errorf("%s: after ten wrong secrets the status is %d", base, code)
		}
		if code = ask(other); code != http.StatusUnauthorized {
			t.Errorf("%s: to another client the status is %d", base, code)
		}
	}
}

// proxied sends a request with a wrong secret behind a PROXY header, and gives the status.
func proxied(t *testing.T, address, header string, secure bool) int {
	t.Helper()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			_, err = c.Write([]byte(header))
		}
		return c, err
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+address+"/video/v1/assets", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("e2e-nobody", "wrong")
	transport := &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}
