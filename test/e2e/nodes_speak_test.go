package e2e

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"millrace/test/rig"
)

// internalAddress is where a server that was started with --internal-addr listens for other nodes.
func internalAddress(t *testing.T, s *rig.Server) string {
	t.Helper()
	m := regexp.MustCompile(`"listener":"internal","address":"([^"]+)"`).FindStringSubmatch(s.Log())
	if m == nil {
		t.Fatal("the log names no internal address")
	}
	return m[1]
}

// failedStart starts one more node beside a server, which has to end by itself, and gives what it wrote.
func failedStart(t *testing.T, beside *rig.Server, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args = append([]string{
		"serve", "--data-dir", t.TempDir(), "--http-addr", "127.0.0.1:0", "--rtmp-addr", "127.0.0.1:0",
		"--srt-addr", "127.0.0.1:0",
		"--webrtc-udp-addr", "off", "--webrtc-tcp-addr", "off", "--internal-addr", "127.0.0.1:0",
	}, args...)
	c := exec.CommandContext(ctx, rig.Binary(t), args...)
	c.Env = c.Environ()
	for _, name := range []string{"MILLRACE_DATABASE_URL", "MILLRACE_STORAGE_URL", "MILLRACE_MASTER_KEY"} {
		c.Env = append(c.Env, name+"="+beside.Setting(name))
	}
	out, err := c.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("serve %q: %v", args, err)
	}
	return string(out)
}

// relay passes connections to an address on to another one until the test ends.
func relay(t *testing.T, from, to string) {
	t.Helper()
	ln, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// TestNodesSpeak starts nodes that advertise URLs: one that leads to itself is taken, one that leads to another node or
// to one of another database ends the start, and one where nothing responds, or something else, is called until it
// leads there.
func TestNodesSpeak(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	o := rig.Options{Pair: rig.Scaled, Args: []string{"--internal-addr", "127.0.0.1:0"}}
	a, stranger := rig.Start(t, o), rig.Start(t, o)
	const reached, not = "other nodes reach this one", "other nodes can't reach this one yet"
	a.AwaitLog(t, patience, reached, "http://"+internalAddress(t, a))
	for name, tt := range map[string]struct {
		url  string
		says []string
	}{
		"another node": {internalAddress(t, a), []string{
			"is not node lost, for which the request was", "give each node an advertise-url that leads to it alone",
		}},
		"another key": {internalAddress(t, stranger), []string{"does not know the key", "correct the URL"}},
	} {
		log := failedStart(t, a, "--node-id", "lost", "--advertise-url", "http://"+tt.url)
		for _, s := range append(tt.says, "check advertise-url http://"+tt.url) {
			if !strings.Contains(log, s) {
				t.Errorf("%s: does not say %q:\n%s", name, s, log)
			}
		}
	}
	a.AwaitLog(t, patience, "request to the listener for nodes refused", `"code":"other_node"`, `"node":"lost"`)

	o.Beside = a
	front := free(t)
	o.Args = []string{"--internal-addr", "127.0.0.1:0", "--advertise-url", "http://" + front}
	b := rig.Start(t, o)
	b.AwaitLog(t, patience, not, `"code":"unreachable"`, front)
	code, _, body := (&stage{Server: b}).Get(t, b.HTTP+"/readyz")
	if code != http.StatusOK || !strings.Contains(string(body), "can't reach") {
		t.Errorf("readyz: %d %s", code, body)
	}
	relay(t, front, internalAddress(t, b))
	b.AwaitLog(t, patience, reached, front)

	o.Args = []string{"--internal-addr", "127.0.0.1:0", "--advertise-url", a.HTTP}
	c := rig.Start(t, o)
	c.AwaitLog(t, patience, not, `"code":"not_millrace"`, "has to lead to the internal-addr")
	c.AwaitLog(t, patience, `"msg":"ready"`)

	keptApart(t, a)
	for _, s := range []*rig.Server{c, b, a, stranger} {
		s.Stop(t)
	}
}

// keptApart looks that neither of a node's listeners serves what is the other one's.
func keptApart(t *testing.T, s *rig.Server) {
	t.Helper()
	status := func(client *http.Client, url string) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, body
	}
	code, body := status(http.DefaultClient, s.HTTP+"/internode/hello")
	other, otherBody := status(http.DefaultClient, s.HTTP+"/internode/hallo")
	if code != http.StatusNotFound || other != code || !bytes.Equal(body, otherBody) {
		t.Errorf("public listener: %d %s, any other path %d %s", code, body, other, otherBody)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	for _, path := range []string{"/internode/hello", "/video/v1/assets", "/healthz", "/", "/dashboard"} {
		code, body := status(&http.Client{Transport: transport}, "http://"+internalAddress(t, s)+path)
		if code != http.StatusUnauthorized || !bytes.Contains(body, []byte(`"code":"unsigned"`)) {
			t.Errorf("internal listener, %s: %d %s", path, code, body)
		}
	}
}
