package settings

import (
	"context"
	"strconv"
	"strings"

	"millrace/internal/control/node"
	"millrace/internal/web/dashboard/shell"
)

const nodesPath = shell.SettingsPath + "/nodes"

// Nodes are the processes that share the database; control/node's Service fits.
type Nodes interface {
	Nodes(ctx context.Context) ([]node.Node, error)
}

func (s *room) routeNodes() {
	s.Handle("GET "+nodesPath, "", shell.Owns, s.showNodes)
}

// nodeList is the page of the nodes.
type nodeList struct{ Rows []nodeRow }

// Section is where in the settings the page is.
func (nodeList) Section() string { return "nodes" }

// Alive is how many are there.
func (l nodeList) Alive() (n int) {
	for _, r := range l.Rows {
		if r.Alive() {
			n++
		}
	}
	return n
}

type nodeRow struct{ node.Node }

// Alive reports whether the node is there.
func (r nodeRow) Alive() bool { return r.State == node.Alive }

// Earlier reports whether it is of a version that tells nothing more of itself.
func (r nodeRow) Earlier() bool { return r.Run == "" }

// Does are its roles.
func (r nodeRow) Does() string { return strings.Join(r.Roles, ", ") }

// CPU is the load of its machine, in percent of all processors.
func (r nodeRow) CPU() string { return strconv.Itoa(int(r.Load.CPU*100+0.5)) + "%" }

func (s *room) showNodes(r *shell.Request) (shell.View, error) {
	found, err := s.Nodes.Nodes(r.Context())
	var l nodeList
	l.Rows = shell.Each(found, func(n node.Node) nodeRow { return nodeRow{n} })
	return shell.Show("nodes", l), err
}
