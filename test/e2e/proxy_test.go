package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/rig"
)

// TestDocsHAProxy runs HAProxy as docs/proxies.md configures it: an encoder behind it is known by its own address, and
// a viewer gets the stream over HTTP/2, new parts as soon as they exist.
func TestDocsHAProxy(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	l := s.CreateLive(t, "standard", nil)
	web, front := documentedHAProxy(t, strings.TrimPrefix(s.HTTP, "http://"), strings.TrimPrefix(s.RTMP, "rtmp://"))
	rig.PublishTo(t, "rtmp://"+front+"/app/"+l.Text("stream_key"), small())
	h := health(t, s, l, "through HAProxy", func(h rig.Object) bool { return h.Text("status") == "live" })
	if address := h.Text("encoder.remote_address"); !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("the encoder is at %s, want 127.0.0.1, as whom HAProxy knows it", address)
	}
	s.AwaitPlayable(t, s.PlayURL(l.Text("playback_ids.0.id")), patience)
	watchedThrough(t, l.Text("playback_ids.0.id"), func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", web)
	})
}

// dialer opens a connection, as http.Transport asks for one.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// watchedThrough plays a live stream through a proxy over HTTP/2 and TLS, and waits for a segment that does not exist.
func watchedThrough(t *testing.T, id string, dial dialer) {
	t.Helper()
	const base = "https://video.example.org"
	transport := &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	get := func(path string) (string, *http.Response) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v\n%s", path, res.StatusCode, err, body)
		}
		return string(body), res
	}
	main, res := get("/" + id + ".m3u8")
	if res.ProtoMajor != 2 {
		t.Errorf("viewers get %s", res.Proto)
	}
	media := regexp.MustCompile(`(?m)^[^#\s].*$`).FindString(main)
	at, err := url.Parse("/" + id + ".m3u8")
	if err != nil {
		t.Fatal(err)
	}
	playlist, err := at.Parse(media)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := get(playlist.RequestURI())
	first := regexp.MustCompile(`#EXT-X-MEDIA-SEQUENCE:(\d+)`).FindStringSubmatch(text)
	if first == nil {
		t.Fatalf("no media sequence in\n%s", text)
	}
	n, err := strconv.Atoi(first[1])
	if err != nil {
		t.Fatal(err)
	}
	query := playlist.Query()
	next := n + strings.Count(text, "#EXTINF")
	query.Set("_HLS_msn", strconv.Itoa(next)) // the segment that is not there yet
	playlist.RawQuery = query.Encode()
	text, _ = get(playlist.RequestURI())
	if !strings.Contains(text, "/"+strconv.Itoa(next)+".m4s") {
		t.Errorf("segment %d was waited for, and is not in\n%s", next, text)
	}
	if page, _ := get("/watch/" + id); !strings.Contains(page, "<html") {
		t.Errorf("the watch page is\n%s", page)
	}
}

// TestDocsCaddy runs Caddy as docs/proxies.md configures it.
func TestDocsCaddy(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	l := s.CreateLive(t, "standard", nil)
	s.Publish(t, l.Text("stream_key"), small())
	s.AwaitPlayable(t, s.PlayURL(l.Text("playback_ids.0.id")), patience)
	dir := t.TempDir()
	socket := filepath.Join(dir, "https")
	// A port would have to be chosen for it; Let's Encrypt knows nothing of this machine.
	config := replaced(t, documentedProxy(t, "caddy"), "video.example.org {", "{\n\tadmin off\n"+
		"\tauto_https disable_redirects\n\tskip_install_trust\n}\nhttps://video.example.org {\n\ttls internal\n"+
		"\tbind unix/"+socket)
	config = replaced(t, config, "10.0.0.11:8080", strings.TrimPrefix(s.HTTP, "http://"))
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "caddy"), "run", "--config", file,
		"--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "HOME="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Log(said.String())
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	for end := time.Now().Add(patience); ; rig.Pause(50 * time.Millisecond) {
		err := handshake(t.Context(), dial) // it listens before it has made its certificate
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	watchedThrough(t, l.Text("playback_ids.0.id"), dial)
}

// handshake reports whether somebody speaks TLS there.
func handshake(ctx context.Context, dial dialer) error {
	c, err := dial(ctx, "", "")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing was sent
	return tls.Client(c, &tls.Config{ServerName: "video.example.org", InsecureSkipVerify: true}).HandshakeContext(ctx)
}

// documentedProxy is the configuration of a proxy in docs/proxies.md.
func documentedProxy(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/proxies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```"+language+"\n")
	config, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("docs/proxies.md has no configuration of %s", language)
	}
	return config
}

// replaced is a configuration with another text in it, which has to be there.
func replaced(t *testing.T, config, text, other string) string {
	t.Helper()
	if !strings.Contains(config, text) {
		t.Fatalf("the configuration has no %q:\n%s", text, config)
	}
	return strings.ReplaceAll(config, text, other)
}

// documentedHAProxy runs HAProxy with the configuration of docs/proxies.md in front of the addresses of two listeners,
// to that of encoders from 127.0.0.3, and gives its own.
func documentedHAProxy(t *testing.T, http, rtmp string) (web, encoders string) {
	t.Helper()
	dir := t.TempDir()
	cert, key := ownCertificate(t, dir, 1)
	both, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	private, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	pem := filepath.Join(dir, "both.pem")
	if err = os.WriteFile(pem, append(both, private...), 0o600); err != nil {
		t.Fatal(err)
	}
	config := documentedProxy(t, "haproxy")
	for _, r := range [][2]string{
		{"bind :443 ssl", "bind fd@4 ssl"},
		{"/etc/ssl/video.example.org.pem", pem},
		{"10.0.0.11:8080", http},
		{"    server two 10.0.0.12:8080 check\n", ""},
		{"bind :1935", "bind fd@3"},
		{"10.0.0.5:1935", rtmp + " source 127.0.0.3"},
	} {
		config = replaced(t, config, r[0], r[1])
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err = os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	var inherited []*os.File
	for range 2 {
		ln, failed := net.Listen("tcp", "127.0.0.1:0")
		if failed != nil {
			t.Fatal(failed)
		}
		f, failed := ln.(*net.TCPListener).File()
		if failed != nil {
			t.Fatal(failed)
		}
		_ = ln.Close() // the copy is open
		addresses, inherited = append(addresses, ln.Addr().String()), append(inherited, f)
	}
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "haproxy"), "-db", "-f", file)
	cmd.ExtraFiles = inherited
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said strings.Builder
	cmd.Stderr = &said
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range inherited {
		_ = f.Close() // HAProxy has it
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return addresses[1], addresses[0]
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
