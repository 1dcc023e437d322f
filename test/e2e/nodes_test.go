package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestNodes: two nodes on PostgreSQL and S3 are listed by the command, the API and the dashboard, with what is
// broadcast from them. One that is killed is gone seconds later, and alive again as soon as it has started again; one
// that ends in order is gone at once.
func TestNodes(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	o := rig.Options{Pair: rig.Scaled, Args: []string{"--node-id", "first"}}
	a := &stage{Server: rig.Start(t, o)}
	o.Args, o.Beside = []string{"--node-id", "second"}, a.Server
	b := &stage{Server: rig.Start(t, o)}
	seen := listings(t, a)
	l := b.stream(t, "standard", nil)
	e := b.Publish(t, l.Text("stream_key"), small())
	playing(t, b.Server, l)
	seen(t, "with a stream", "first alive 0 second alive 1")
	e.Stop()
	b.Kill(t)
	seen(t, "one was killed", "first alive 0 second gone 1")
	b.Run(t)
	seen(t, "it has started again", "first alive 0 second alive 0")
	b.Stop(t)
	seen(t, "it has ended", "first alive 0 second gone 0")
}

// signedIn is somebody who is signed in to the dashboard, at all nodes with the database of s.
func signedIn(t *testing.T, s *rig.Server) *http.Client {
	t.Helper()
	link := regexp.MustCompile(`/dashboard/link/\w+`).FindString(s.Command(t, "dashboard", "link"))
	jar, err := cookiejar.New(nil)
	if err != nil || link == "" {
		t.Fatalf("link: %q, %v", link, err)
	}
	browser := &http.Client{Jar: jar}
	password := url.Values{"password": {"correct horse battery"}}
	res, err := browser.PostForm(s.HTTP+link, password) //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return browser
}

// listings gives what waits until all three lists show the same: names, states and live streams.
func listings(t *testing.T, s *stage) func(t *testing.T, when, want string) {
	t.Helper()
	token := credentials.FindStringSubmatch(s.Command(t, "token", "create", "--installation"))
	if token == nil {
		t.Fatal("no token was made")
	}
	browser := signedIn(t, s.Server)
	lists := map[string]func() string{
		"command": func() string {
			var said []string
			for line := range strings.Lines(s.Command(t, "nodes", "--json")) {
				said = append(said, listedNode(t, []byte(line)))
			}
			return strings.Join(said, " ")
		},
		"API": func() string {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.HTTP+"/system/v1/nodes", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth(token[1], token[2])
			var all struct {
				Data []json.RawMessage `json:"data"`
			}
			if err := json.Unmarshal(body(t, http.DefaultClient, req), &all); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, n := range all.Data {
				said = append(said, listedNode(t, n))
			}
			return strings.Join(said, " ")
		},
		"dashboard": func() string {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.HTTP+"/dashboard/settings/nodes", nil)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, m := range onThePage.FindAllStringSubmatch(string(body(t, browser, req)), -1) {
				said = append(said, m[1], strings.ToLower(m[2]), m[3])
			}
			return strings.Join(said, " ")
		},
	}
	return func(t *testing.T, when, want string) {
		t.Helper()
		for name, list := range lists {
			got := list()
			for end := time.Now().Add(patience); got != want && time.Now().Before(end); got = list() {
				rig.Pause(100 * time.Millisecond)
			}
			if got != want {
				t.Errorf("%s, %s: %s, want %s", when, name, got, want)
			}
		}
	}
}

var (
	credentials = regexp.MustCompile(`MILLRACE_TOKEN_ID=(\S+)\s+MILLRACE_TOKEN_SECRET=(\S+)`)
	onThePage   = regexp.MustCompile(`(?s)name-c"><b>(\w+)</b>.*?class="state \w+">(\w+)</span>` +
		`.*?Live streams: </span>(\d+)`)
)

// listedNode is what a line says of a node.
func listedNode(t *testing.T, line []byte) string {
	t.Helper()
	var n struct {
		Name    string      `json:"name"`
		Status  string      `json:"status"`
		Streams json.Number `json:"live_streams"`
	}
	if err := json.Unmarshal(line, &n); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return n.Name + " " + n.Status + " " + n.Streams.String()
}

// body is that of a response, whose status has to be 200.
func body(t *testing.T, c *http.Client, req *http.Request) []byte {
	t.Helper()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	all, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v: %.300s", req.URL.Path, res.StatusCode, err, all)
	}
	return all
}
