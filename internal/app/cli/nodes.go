package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/node"
)

// Nodes lists the nodes on a database.
type Nodes interface {
	Nodes(ctx context.Context) ([]node.Node, error)
}

// listNodes prints the nodes on the configured database.
func listNodes(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (err error) {
	store, closeDB, err := a.Nodes(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	all, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		for _, n := range all {
			if err := json.NewEncoder(stdout).Encode(nodeJSON(n)); err != nil {
				return fmt.Errorf("print nodes: %w", err)
			}
		}
		return nil
	}
	tab := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "NAME\tSTATE\tVERSION\tSCHEMA\tROLES\tADVERTISE URL\tSTREAMS\tVIEWERS\tLOAD\tLAST SEEN")
	for _, n := range all {
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%.2f\t%s\n", n.Name, n.State, textOrNone(n.Version),
			schemaOf(n), textOrNone(strings.Join(n.Roles, ",")), textOrNone(n.AdvertiseURL),
			n.Load.Streams, n.Load.Viewers, n.Load.CPU,
			timeOrNone(n.SeenAt))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print nodes: %w", err)
	}
	return nil
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
	Name         string   `json:"name"`
	Status       string   `json:"status"`
	Version      string   `json:"version,omitempty"`
	Schema       int64    `json:"schema,omitempty"`
	Outdated     bool     `json:"outdated,omitempty"`
	Roles        []string `json:"roles"`
	AdvertiseURL string   `json:"advertise_url,omitempty"`
	Streams      int      `json:"live_streams"`
	Viewers      int      `json:"viewers"`
	CPULoad      float64  `json:"cpu_load"`
	StartedAt    string   `json:"started_at,omitempty"`
	SeenAt       string   `json:"last_seen_at,omitempty"`
}

func nodeJSON(n node.Node) nodeLine {
	l := nodeLine{
		Name: string(n.Name), Status: string(n.State), Version: n.Version, Schema: n.Schema,
		Outdated: n.Outdated && n.State == node.Alive, Roles: append([]string{}, n.Roles...),
		AdvertiseURL: n.AdvertiseURL, Streams: n.Load.Streams, Viewers: n.Load.Viewers, CPULoad: n.Load.CPU,
	}
	if !n.StartedAt.IsZero() {
		l.StartedAt = n.StartedAt.UTC().Format(time.RFC3339)
	}
	if !n.SeenAt.IsZero() {
		l.SeenAt = n.SeenAt.UTC().Format(time.RFC3339)
	}
	return l
}
