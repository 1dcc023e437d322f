// Package node describes the nodes of an installation: the processes of the service that share one database. Each has a
// row that says what it is and how busy it is, and renews it regularly; a node that has stopped renewing its row is
// gone. It must never know SQL, HTTP or the clock: only the database's clock decides which rows are still valid.
package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"millrace/internal/id"
)

// State is whether a node is there.
type State string

// The states.
const (
	Alive State = "alive"
	Gone  State = "gone" // it has ended, or has not renewed its row in time
	// Draining is what is shown of a node that is there and is to leave; its State is Alive.
	Draining State = "draining"
)

// The roles: what a node does. RoleAll is that of one that does everything.
const (
	RoleAll      = "all"
	RoleAPI      = "api"
	RoleIngest   = "ingest"
	RolePlayback = "playback"
	RoleWorker   = "worker"
)

// Node is one process of the service, as its row says. Every time in it is the database's.
type Node struct {
	Name id.Node
	// Run is different each time the process starts; empty: a process of a version before nodes had runs, of which
	// Name, State and SeenAt alone are known.
	Run          string
	Version      string
	Schema       int64 // of the database, that its program knows: number of its newest migration; 0: it does not say
	Outdated     bool  // the database has a newer one: another version has migrated it
	Roles        []string
	AdvertiseURL string // how other nodes reach it; empty: they can't
	Load         Load
	State        State
	Draining     bool // it takes no encoder any more
	StartedAt    time.Time
	SeenAt       time.Time // when the row was last renewed
	ValidUntil   time.Time
}

// Has reports whether the node has a role.
func (n *Node) Has(role string) bool {
	return slices.Contains(n.Roles, RoleAll) || slices.Contains(n.Roles, role)
}

// Shown is the state as it is shown.
func (n *Node) Shown() State {
	if n.State == Alive && n.Draining {
		return Draining
	}
	return n.State
}

// Load is how busy a node is.
type Load struct {
	Streams int     // live streams that are broadcast from it
	Viewers int     // who watch at it
	CPU     float64 // load average of the machine over a minute, per processor; 0 or more
}

// Owner is the node that has a live stream's broadcast.
type Owner struct {
	Name         id.Node
	AdvertiseURL string         // never empty
	Environment  id.Environment // of the stream
}

// Directory is implemented by storage/db.
type Directory interface {
	// Owner is who owns a live stream's broadcast, or did so until it ended a moment ago, lives and can be reached by
	// other nodes. fault.NotFound: nobody.
	Owner(ctx context.Context, s id.LiveStream) (Owner, error)
}

// ErrReplaced says that another run has taken over the node's row.
var ErrReplaced = errors.New("another process has taken over this node's name")

// Store is implemented by storage/db. Renewals have a connection of their own, so that they don't wait for other calls.
type Store interface {
	// Register writes the row of a new run, valid for so long, and takes it over from an earlier run. at is when;
	// earlier is the row as it was, nil: there was none.
	Register(ctx context.Context, n Node, valid time.Duration) (at time.Time, earlier *Node, err error)
	// Renew writes the run's row again, valid for so long from now. It is ErrReplaced when it is another run's row.
	Renew(ctx context.Context, n Node, valid time.Duration) error
	// Leave marks a run's row as gone. Rows that nobody has renewed for longer than kept are removed.
	Leave(ctx context.Context, name id.Node, run string, kept time.Duration) error
	// Nodes lists all rows by name.
	Nodes(ctx context.Context) ([]Node, error)
	// Schema is that of the database, whoever has migrated it.
	Schema(ctx context.Context) (Schema, error)
}
