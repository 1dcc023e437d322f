package dashboard_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/node"
	"millrace/internal/fault"
)

const nodesPage = "/dashboard/settings/nodes"

// nodesOf lists nodes.
type nodesOf func() ([]node.Node, error)

func (n nodesOf) Nodes(context.Context) ([]node.Node, error) { return n() }

// TestNodesPage: what the owner sees of the nodes, and nobody else does.
func TestNodesPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	at := time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC)
	s.nodes = func() ([]node.Node, error) {
		return []node.Node{
			{
				Name: "a", Run: "run1", Version: "1.2", Roles: []string{node.RoleAll}, AdvertiseURL: hostile,
				Load: node.Load{Streams: 2, Viewers: 31, CPU: 0.254}, State: node.Alive, StartedAt: at, SeenAt: at,
			},
			{Name: "b", State: node.Gone, SeenAt: at},
			{Name: "c", Run: "run2", State: node.Alive, Draining: true, SeenAt: at},
		}, nil
	}
	w := s.ask(t, s.cookie, nodesPage, nil)
	closedPage(t, w)
	body := w.Body.String()
	for _, want := range []string{
		"2 of 3 alive", `<span class="state warn">Draining</span>`,
		`<span class="state ok">Alive</span>`, `<span class="state off">Gone</span>`,
		"25%", "</span>31<", "1.2",
		"runs an earlier version", "&lt;script&gt;", `aria-current="page">Nodes</a>`,
	} {
		if w.Code != http.StatusOK || !strings.Contains(body, strings.ReplaceAll(want, "</span>31<", "</span>31<")) {
			t.Errorf("%d, without %q:\n%s", w.Code, want, body)
		}
	}
	s.nodes = func() ([]node.Node, error) { return nil, fault.New(fault.Unavailable, "away") }
	if w = s.ask(t, s.cookie, nodesPage, nil); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without the database: %d", w.Code)
	}
	if w = s.ask(t, s.signIn(t, access.Permissions()...), nodesPage, nil); w.Code != http.StatusForbidden {
		t.Errorf("a token may look: %d", w.Code)
	}
}
