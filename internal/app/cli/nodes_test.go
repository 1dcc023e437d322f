package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/node"
)

// Nodes are two: one that is there, and one of an earlier version that has gone.
func (f *fakeTokens) Nodes(context.Context) ([]node.Node, error) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return []node.Node{
		{
			Name: "a", Run: "run1", Version: "1.2", Roles: []string{node.RoleAll}, AdvertiseURL: "http://10.0.0.1:8081",
			Schema: 41, Outdated: true,
			Load: node.Load{Streams: 2, Viewers: 31, CPU: 0.254}, State: node.Alive, StartedAt: at, SeenAt: at,
		},
		{Name: "b", State: node.Gone, Outdated: true},
	}, nil
}

func TestNodesCommand(t *testing.T) {
	t.Parallel()
	o := try(t, &fakeTokens{}, "nodes")
	var lines [][]string
	for line := range strings.Lines(o.out) {
		lines = append(lines, strings.Fields(line))
	}
	if o.code != 0 || len(lines) != 3 || o.closedTimes != 1 {
		t.Fatalf("code %d, closed %d times:\n%s%s", o.code, o.closedTimes, o.out, o.err)
	}
	for i, want := range []string{
		"NAME STATE VERSION SCHEMA ROLES ADVERTISE URL STREAMS VIEWERS LOAD LAST SEEN",
		"a alive 1.2 41 (outdated) all http://10.0.0.1:8081 2 31 0.25 2026-05-01", "b gone - - - - 0 0 0.00 -",
	} {
		if got := strings.Join(lines[i], " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d: %q, want %q", i+1, got, want)
		}
	}
	o = try(t, &fakeTokens{}, "nodes", "--json")
	want := `{"name":"a","status":"alive","version":"1.2","schema":41,"outdated":true,` +
		`"roles":["all"],"advertise_url":"http://10.0.0.1:8081",` +
		`"live_streams":2,"viewers":31,"cpu_load":0.254,"started_at":"2026-05-01T12:00:00Z",` +
		`"last_seen_at":"2026-05-01T12:00:00Z"}` + "\n" +
		`{"name":"b","status":"gone","roles":[],"live_streams":0,"viewers":0,"cpu_load":0}` + "\n"
	if o.code != 0 || o.out != want {
		t.Errorf("code %d: %s", o.code, o.out)
	}
}
