// Package roles says what a node does that has some roles only: which paths it serves, and on which queues it works. It
// must never know how any of it is done. It starts no goroutine.
package roles

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"millrace/internal/config"
	"millrace/internal/control/job"
	"millrace/internal/control/node"
	"millrace/internal/web/respond"
)

// The prefixes of paths by role, as whole segments; what is below none of them is for viewers, whose paths begin with
// a playback ID. "/" alone is where people and programs that use the API arrive.
var paths = map[string][]string{ //nolint:gochecknoglobals // a table
	node.RoleAPI: {
		"/video", "/system", "/data", "/robots", "/docs", "/openapi.json", "/openapi.yaml", "/uploads", "/dashboard",
	},
	node.RoleIngest: {"/whip", "/publish"},
	"":              {"/healthz", "/readyz"},
}

// codes say which role a node has not.
var codes = map[string]string{ //nolint:gochecknoglobals // a table
	node.RoleAPI:      "no_role_api",
	node.RoleIngest:   "no_role_ingest",
	node.RolePlayback: "no_role_playback",
}

// Of is the role of the node that serves a path; empty: each node does.
func Of(path string) string {
	if path == "/" {
		return node.RoleAPI
	}
	for role, prefixes := range paths {
		for _, prefix := range prefixes {
			if rest, is := strings.CutPrefix(path, prefix); is && (rest == "" || rest[0] == '/') {
				return role
			}
		}
	}
	return node.RolePlayback
}

// Gate serves what is of the node's roles. It refuses all else with 421 (RFC 9110 section 15.5.20), which no cache may
// keep: another node may serve it at the same address.
func Gate(has config.Roles, next http.Handler) http.Handler {
	if has.All() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		role := Of(r.URL.Path)
		if role == "" || has.Has(role) {
			next.ServeHTTP(w, r)
			return
		}
		respond.Unread(w, r)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Access-Control-Allow-Origin", "*") // players show what is wrong
		text := fmt.Sprintf("this address is served by nodes with the role %s, and this one has %s", role, has)
		respond.Refuse(w, http.StatusMisdirectedRequest, respond.Error{
			Type: "misdirected_request", Code: codes[role], Message: text, Messages: []string{text},
		})
	})
}

// Line is what /readyz says of a node's roles; empty of one that does everything.
func Line(has config.Roles) string {
	if has.All() {
		return ""
	}
	return "roles: " + has.String() + "\n"
}

// queues are those of jobs by the roles of the nodes that work on them. What encodes, downloads, or recognises speech
// is for workers alone. What only waits for database and storage is also done where it begins, so that it gets on while
// there is no worker. docs/monitoring.md has the same table.
var queues = map[job.Queue][]string{ //nolint:gochecknoglobals // a table
	job.Prompt:     {node.RoleAPI, node.RoleIngest, node.RoleWorker},
	job.Clips:      {node.RoleWorker},
	job.Fetching:   {node.RoleWorker},
	job.Background: {node.RoleWorker},
	job.Speech:     {node.RoleWorker},
	job.Cleanup:    {node.RoleAPI, node.RoleWorker},
}

// Slots is how many jobs of each of its queues a node of so many workers works on at a time; 0: of another node's.
func Slots(has config.Roles, workers int) map[job.Queue]int {
	slots := map[job.Queue]int{}
	for _, c := range job.AllClasses() {
		if slots[c.Queue] = c.Places(workers); !Works(has)(c.Queue) {
			slots[c.Queue] = 0
		}
	}
	return slots
}

// Expanded are the roles of a node by their names.
func Expanded(has config.Roles) []string {
	every := []string{node.RoleAPI, node.RoleIngest, node.RolePlayback, node.RoleWorker}
	return slices.DeleteFunc(every, func(role string) bool { return !has.Has(role) })
}

// Works reports whether a node works on a queue.
func Works(has config.Roles) func(job.Queue) bool {
	return func(q job.Queue) bool {
		return slices.ContainsFunc(queues[q], has.Has)
	}
}
