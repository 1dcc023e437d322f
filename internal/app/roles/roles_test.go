package roles_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"millrace/internal/app/roles"
	"millrace/internal/config"
	"millrace/internal/control/job"
	"millrace/internal/control/node"
)

func every() []string {
	return []string{node.RoleAPI, node.RoleIngest, node.RolePlayback, node.RoleWorker}
}

// TestPaths is the table of paths and roles.
func TestPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "api", "/video/v1/assets": "api", "/video": "api", "/system/v1/nodes": "api",
		"/data/v1/delivery-usage": "api",
		"/robots/v0/jobs":         "api", "/openapi.json": "api", "/docs": "api", "/docs/fleet": "api",
		"/dashboard":      "api",
		"/dashboard/live": "api", "/uploads/a": "api",
		"/whip": "ingest", "/whip/key": "ingest", "/publish/": "ingest",
		"/abc.m3u8": "playback", "/abc/media/video.m3u8": "playback", "/counts": "playback",
		"/license/widevine/a": "playback",
		"/appcert/fairplay/a": "playback", "/watch/abc": "playback", "/embed/abc": "playback", "/oembed": "playback",
		"/abc/thumbnail.jpg": "playback", "/robots.txt": "playback", "/videos/x": "playback", "//video/v1": "playback",
		"/healthz": "", "/readyz": "",
	} {
		if got := roles.Of(path); got != want {
			t.Errorf("%s is for nodes with the role %q, want %q", path, got, want)
		}
	}
}

// TestGate: a node serves what is of its roles, and says of all else which role that takes.
func TestGate(t *testing.T) {
	t.Parallel()
	ask := func(has config.Roles, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		roles.Gate(has, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
		})).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("body")))
		return w
	}
	all := map[string]string{"api": "/video/v1/assets", "ingest": "/whip", "playback": "/abc.m3u8", "worker": ""}
	for _, has := range every() {
		for role, path := range all {
			if path == "" {
				continue
			}
			w := ask(config.Roles{has}, path)
			if role == has {
				if w.Code != http.StatusTeapot {
					t.Errorf("%s at a node with that role: %d", path, w.Code)
				}
				continue
			}
			if w.Code != http.StatusMisdirectedRequest || w.Header().Get("Cache-Control") != "no-store" ||
				!strings.Contains(w.Body.String(), `"code":"no_role_`+role+`"`) ||
				w.Header().Get("Connection") != "close" {
				t.Errorf("%s at a node with the role %s: %d %v %s", path, has, w.Code, w.Header(), w.Body)
			}
		}
		if w := ask(config.Roles{has}, "/healthz"); w.Code != http.StatusTeapot {
			t.Errorf("/healthz at a node with the role %s: %d", has, w.Code)
		}
	}
	for _, path := range all {
		if path != "" && ask(config.Roles{config.RoleAll}, path).Code != http.StatusTeapot {
			t.Errorf("%s at a node with all roles", path)
		}
	}
}

// TestQueues: each queue has nodes that work on it, those that take a processor have workers alone, and
// docs/monitoring.md says which.
func TestQueues(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	cheap := []job.Queue{job.Prompt, job.Cleanup}
	for _, c := range job.AllClasses() {
		var at []string
		for _, role := range every() {
			if roles.Works(config.Roles{role})(c.Queue) {
				at = append(at, role)
			}
		}
		if !slices.Contains(at, node.RoleWorker) || len(at) > 1 && !slices.Contains(cheap, c.Queue) {
			t.Errorf("the queue %s is worked on by nodes with the roles %v", c.Queue, at)
		}
		if !roles.Works(config.Roles{config.RoleAll})(c.Queue) {
			t.Errorf("the queue %s is not worked on by a node with all roles", c.Queue)
		}
		found := false
		for line := range strings.Lines(string(text)) {
			found = found || strings.HasPrefix(line, fmt.Sprintf("| `%s` |", c.Queue)) &&
				strings.HasSuffix(line, "| "+strings.Join(at, ", ")+" |\n")
		}
		if !found {
			t.Errorf("docs/monitoring.md does not say that %s is for nodes with the roles %v", c.Queue, at)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	if got := roles.Line(config.Roles{"api", "worker"}); got != "roles: api,worker\n" {
		t.Errorf("got %q", got)
	}
	if got := roles.Line(config.Roles{config.RoleAll}); got != "" {
		t.Errorf("of one that does everything: %q", got)
	}
}
