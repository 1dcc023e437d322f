package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Nodes are two: one that is there, and one of an earlier version that has gone.
func (f *fakeTokens) Nodes(context.Context) ([]node.Node, error) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return []node.Node{
		{
			Name: "a", Run: "run1", Version: "1.2", Roles: []string{node.RoleAll}, AdvertiseURL: "http://10.0.0.1:8081",
			Schema: 41, Outdated: true,
			Load: node.Load{Streams: 2, Viewers: 31, CPU: 0.254}, State: node.Alive, Draining: true,
			StartedAt: at, SeenAt: at,
		},
		{Name: "b", State: node.Gone, Outdated: true},
	}, nil
}

// Drain knows the node a.
func (f *fakeTokens) Drain(_ context.Context, n id.Node, on bool) error {
	if n != "a" {
		return fault.New(fault.NotFound, "there is no such node")
	}
	f.drained = append(f.drained, on)
	return nil
}

// TestDrainCommand: a node that is there is drained, and resumed.
func TestDrainCommand(t *testing.T) {
	t.Parallel()
	f := &fakeTokens{}
	for _, tt := range []struct {
		verb, name, said string
		code             int
	}{
		{"drain", "a", "Node a accepts no more encoders.\n", ExitOK},
		{"resume", "a", "Node a accepts encoders again.\n", ExitOK},
		{"drain", "b", "", ExitFailed},
	} {
		if o := try(t, f, "nodes", tt.verb, tt.name); o.code != tt.code || o.out != tt.said {
			t.Errorf("nodes %s %s: code %d, %q, %q", tt.verb, tt.name, o.code, o.out, o.err)
		}
	}
	if !slices.Equal(f.drained, []bool{true, false}) {
		t.Errorf("drained: %v", f.drained)
	}
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
		"a draining 1.2 41 (outdated) all http://10.0.0.1:8081 2 31 0.25 2026-05-01", "b gone - - - - 0 0 0.00 -",
	} {
		if got := strings.Join(lines[i], " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d: %q, want %q", i+1, got, want)
		}
	}
	o = try(t, &fakeTokens{}, "nodes", "--json")
	want := `{"name":"a","status":"draining","version":"1.2","schema":41,"outdated":true,` +
		`"roles":["all"],"advertise_url":"http://10.0.0.1:8081",` +
		`"live_streams":2,"viewers":31,"cpu_load":0.254,"started_at":"2026-05-01T12:00:00Z",` +
		`"last_seen_at":"2026-05-01T12:00:00Z"}` + "\n" +
		`{"name":"b","status":"gone","roles":[],"live_streams":0,"viewers":0,"cpu_load":0}` + "\n"
	if o.code != 0 || o.out != want {
		t.Errorf("code %d: %s", o.code, o.out)
	}
}
