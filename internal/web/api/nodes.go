package api

import (
	"context"
	"net/http"

	"millrace/internal/control/access"
	nodes "millrace/internal/control/node"
	"millrace/internal/id"
)

const nodeTag = "Nodes"

// Nodes are the processes that share the database; control/node's Service fits.
type Nodes interface {
	Nodes(ctx context.Context) ([]nodes.Node, error)
	Drain(ctx context.Context, name id.Node, on bool) error
}

// Node is one process of the service.
type Node struct {
	Name         string   `json:"name" doc:"The value of --node-id, or a UUID." example:"ingest-1"`
	Status       string   `json:"status" enum:"alive,draining,gone" doc:"draining: accepts no encoders; gone: ended."`
	Version      string   `json:"version,omitempty"`
	Schema       int64    `json:"schema,omitempty" doc:"Schema of the database that its program knows."`
	Outdated     bool     `json:"outdated,omitempty" doc:"A newer version has migrated the database."`
	Roles        []string `json:"roles" example:"[\"all\"]"`
	AdvertiseURL string   `json:"advertise_url,omitempty" doc:"Where other nodes reach it; absent if they can't."`
	Streams      int      `json:"live_streams" minimum:"0" doc:"The number of live streams it broadcasts."`
	Viewers      int      `json:"viewers" minimum:"0" doc:"The number of viewers it serves."`
	CPULoad      float64  `json:"cpu_load" minimum:"0" doc:"Its machine's one-minute load average per processor: 1 is fully loaded."`
	StartedAt    string   `json:"started_at,omitempty" doc:"Unix time, in seconds." example:"1609869152"`
	LastSeenAt   string   `json:"last_seen_at,omitempty" doc:"Unix time, in seconds." example:"1609869152"`
}

type nodeList struct{ nodes Nodes }

func (n nodeList) register(on *server) {
	handle(on, route{
		method: http.MethodGet, path: "/system/v1/nodes", id: "list-nodes", tag: nodeTag,
		permission: access.InstallationRead,
		summary:    "List nodes",
		text:       "Sorted by name. A node that has gone is listed for another day. " + installationText,
	}, n.list)
	for _, r := range []struct {
		verb, summary, text string
		do                  func(context.Context, *NodeRef) (*none, error)
	}{
		{
			"drain", "Drain a node",
			"The node accepts no new encoders and disconnects the ones it has, so that they reconnect to other " +
				"nodes. Viewers are still served. The node stays drained until it is resumed or restarted. ",
			n.drain,
		},
		{"resume", "Resume a drained node", "The node accepts encoders again. ", n.resume},
	} {
		handle(on, route{
			method: http.MethodPut, path: "/system/v1/nodes/{node_name}/" + r.verb, id: r.verb + "-node", tag: nodeTag,
			status: http.StatusNoContent, permission: access.InstallationWrite,
			summary: r.summary, text: r.text + installationText,
		}, r.do)
	}
}

// NodeRef names a node in a path; exported for huma, which reads embedded fields of exported types only.
type NodeRef struct {
	Name string `path:"node_name" maxLength:"255"`
}

func (n nodeList) drain(ctx context.Context, in *NodeRef) (*none, error) {
	return &none{}, n.nodes.Drain(ctx, id.Node(in.Name), true)
}

func (n nodeList) resume(ctx context.Context, in *NodeRef) (*none, error) {
	return &none{}, n.nodes.Drain(ctx, id.Node(in.Name), false)
}

func (n nodeList) list(ctx context.Context, _ *struct{}) (*many[Node], error) {
	found, err := n.nodes.Nodes(ctx)
	return all(convert(found, wireNode)), err
}

func wireNode(n nodes.Node) Node {
	w := Node{
		Name: string(n.Name), Status: string(n.Shown()), Version: n.Version, Schema: n.Schema,
		Outdated: n.Outdated && n.State == nodes.Alive, Roles: append([]string{}, n.Roles...),
		AdvertiseURL: n.AdvertiseURL, Streams: n.Load.Streams, Viewers: n.Load.Viewers, CPULoad: n.Load.CPU,
	}
	if !n.StartedAt.IsZero() {
		w.StartedAt = epoch(n.StartedAt)
	}
	if !n.SeenAt.IsZero() {
		w.LastSeenAt = epoch(n.SeenAt)
	}
	return w
}
