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

func (rm *room) routeNodes() {
	rm.Handle("GET "+nodesPath, "", shell.Owns, rm.showNodes)
}

// nodeList is the page of the nodes.
type nodeList struct{ Rows []nodeRow }

// Section is where in the settings the page is.
func (nodeList) Section() string { return "nodes" }

// Alive is how many are there.
func (nl nodeList) Alive() (n int) {
	for _, r := range nl.Rows {
		if r.Alive() {
			n++
		}
	}
	return n
}

type nodeRow struct{ node.Node }

// Alive reports whether the node is there.
func (n nodeRow) Alive() bool { return n.State == node.Alive }

// Leaves reports whether it is there and takes no encoder any more.
func (n nodeRow) Leaves() bool { return n.Shown() == node.Draining }

// Earlier reports whether it is of a version that tells nothing more of itself.
func (n nodeRow) Earlier() bool { return n.Run == "" }

// Does are its roles.
func (n nodeRow) Does() string { return strings.Join(n.Roles, ", ") }

// CPU is the load of its machine, in percent of all processors.
func (n nodeRow) CPU() string { return strconv.Itoa(int(n.Load.CPU*100+0.5)) + "%" }

func (rm *room) showNodes(r *shell.Request) (shell.View, error) {
	found, err := rm.Nodes.Nodes(r.Context())
	var l nodeList
	l.Rows = shell.Each(found, func(n node.Node) nodeRow { return nodeRow{n} })
	return shell.Show("nodes", l), err
}
