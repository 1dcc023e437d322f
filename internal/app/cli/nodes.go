package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/id"
)

// Nodes lists the nodes on a database.
type Nodes interface {
	Nodes(ctx context.Context) ([]node.Node, error)
	Drain(ctx context.Context, name id.Node, on bool) error
}

func nodeCommands() []command {
	return []command{
		of("nodes", "list the nodes and their load",
			"Lists the nodes that share the database, by name: status, version, roles, the URL where other nodes "+
				"reach them, live streams, viewers, load per processor, and when they were last seen. A node that "+
				"has gone is listed for another day. Reads the database directly; the service need not run.",
			&nodeList{}),
		of("nodes drain NAME", "have a node hand over its live streams",
			"The node accepts no new encoders and disconnects the ones it has within seconds. They reconnect to other "+
				"nodes, where their broadcasts continue. Viewers are still served. The node stays drained until it is "+
				"resumed or restarted. The command does not wait: millrace nodes shows how many live streams are left.",
			simply(drain(true, "Node %s accepts no more encoders."))),
		of("nodes resume NAME", "have a drained node accept encoders again",
			"The node accepts encoders again.", simply(drain(false, "Node %s accepts encoders again."))),
	}
}

// drain has a node leave or stay.
func drain(on bool, done string) func(ctx context.Context, r *request) error {
	return func(ctx context.Context, r *request) error {
		store, closeDB, err := r.Nodes(ctx, r.cfg)
		return closing(closeDB, err, func() error {
			return r.done(store.Drain(ctx, id.Node(r.words[0]), on), done, r.words[0])
		})
	}
}

// nodeList prints the nodes on the configured database.
type nodeList struct{ json bool }

func (nl *nodeList) flags(f *flags) { f.asJSON(&nl.json) }

func (nl *nodeList) run(ctx context.Context, r *request) error {
	store, closeDB, err := r.Nodes(ctx, r.cfg)
	return closing(closeDB, err, func() error {
		all, err := store.Nodes(ctx)
		if err != nil {
			return err
		}
		if nl.json {
			for _, n := range all {
				if err := json.NewEncoder(r.out).Encode(nodeJSON(n)); err != nil {
					return fmt.Errorf("print nodes: %w", err)
				}
			}
			return nil
		}
		tab := newTable(r.out)
		tab.row("NAME", "STATE", "VERSION", "SCHEMA", "ROLES", "ADVERTISE URL", "STREAMS", "VIEWERS", "LOAD",
			"LAST SEEN")
		for _, n := range all {
			tab.row(n.Name, n.Shown(), textOrNone(n.Version), schemaOf(n), textOrNone(strings.Join(n.Roles, ",")),
				textOrNone(n.AdvertiseURL), n.Load.Streams, n.Load.Viewers, fmt.Sprintf("%.2f", n.Load.CPU),
				timeOrNone(n.SeenAt))
		}
		return tab.end()
	})
}

// schemaOf is the schema that a node's program knows, with what is to be said of it.
func schemaOf(n node.Node) string {
	var number string
	if n.Schema > 0 {
		number = strconv.FormatInt(n.Schema, 10)
	}
	if n.Outdated && n.State == node.Alive {
		return textOrNone(number) + " (outdated)"
	}
	return textOrNone(number)
}

// nodeLine is a node as JSON, with the names that it has in the API.
type nodeLine struct {
	Name         string    `json:"name"`
	Status       string    `json:"status"`
	Version      string    `json:"version,omitempty"`
	Schema       int64     `json:"schema,omitempty"`
	Outdated     bool      `json:"outdated,omitempty"`
	Roles        []string  `json:"roles"`
	AdvertiseURL string    `json:"advertise_url,omitempty"`
	Streams      int       `json:"live_streams"`
	Viewers      int       `json:"viewers"`
	CPULoad      float64   `json:"cpu_load"`
	StartedAt    time.Time `json:"started_at,omitzero"`
	SeenAt       time.Time `json:"last_seen_at,omitzero"`
}

func nodeJSON(n node.Node) nodeLine {
	return nodeLine{
		Name: string(n.Name), Status: string(n.Shown()), Version: n.Version, Schema: n.Schema,
		Outdated: n.Outdated && n.State == node.Alive, Roles: append([]string{}, n.Roles...),
		AdvertiseURL: n.AdvertiseURL, Streams: n.Load.Streams, Viewers: n.Load.Viewers, CPULoad: n.Load.CPU,
		StartedAt: n.StartedAt.UTC().Truncate(time.Second), SeenAt: n.SeenAt.UTC().Truncate(time.Second),
	}
}
