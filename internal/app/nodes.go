package app

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/config"
	nodes "millrace/internal/control/node"
	"millrace/internal/storage/db"
)

const (
	// renewEvery is how often a node of several renews its row, and rowValid how long that is valid: a renewal or two
	// may be late. On SQLite there is one node, and a renewal is a write among all others.
	renewEvery, rowValid           = time.Second, 3 * time.Second
	renewAloneEvery, rowValidAlone = 5 * time.Second, 15 * time.Second
	// countViewersEvery bounds how often all viewers of this node are gone through for its row.
	countViewersEvery = 5 * time.Second
)

// makeRow builds what keeps this node's row.
func (n *node) makeRow(schema int64) {
	o := nodes.Options{
		Store: n.db.Nodes(), Name: n.id, Run: n.run, Version: cli.Version(), Schema: schema,
		Roles:        n.cfg.Node.Roles,
		AdvertiseURL: func() string { return n.reach.URL() }, Load: n.load(),
		Every: renewAloneEvery, Valid: rowValidAlone, Now: clock, Logger: n.log,
		Renewed: func(asked time.Time, valid time.Duration) { n.live.Renewed(asked, valid) },
	}
	if n.cfg.Database.Engine == config.Postgres {
		o.Every, o.Valid = renewEvery, rowValid
	}
	n.row = nodes.New(o)
	n.schemas = nodes.NewSchemas(o.Store, schema, n.leave, n.log)
}

// load gives what tells how busy this node is; one goroutine may call it.
func (n *node) load() func() nodes.Load {
	var counted time.Time
	var viewers int
	return func() nodes.Load {
		if now := clock(); now.Sub(counted) >= countViewersEvery {
			viewers, counted = n.watched.Viewers(now), now
		}
		return nodes.Load{
			Streams: n.live.Broadcasts(), Viewers: viewers, CPU: machineLoad() / float64(runtime.NumCPU()),
		}
	}
}

// openNodes opens the nodes of the configured database, whether the service runs or not.
func openNodes(ctx context.Context, cfg config.Config) (cli.Nodes, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return listedNodes{d.Nodes(), db.Drains(d)}, d.Close, nil
}

// listedNodes are the nodes, and which of them leave.
type listedNodes struct {
	nodes.Store
	nodes.Drains
}

// servedNodes are those of a service.
type servedNodes struct {
	*nodes.Service
	nodes.Drains
}
