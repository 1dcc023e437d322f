package node

import (
	"context"
	"log/slog"
	"time"

	"millrace/internal/id"
)

// Drains are the nodes that are to leave: they accept no new encoders. It is implemented by storage/db.
type Drains interface {
	// Drain asks a running node to leave, or to stay after all. It applies to the process that runs now, and not to the
	// one after a restart. fault.NotFound: no node of that name runs.
	Drain(ctx context.Context, name id.Node, on bool) error
	// Draining reports whether a run is to leave. fault.NotFound: the node has no row, or another run's.
	Draining(ctx context.Context, name id.Node, run string) (bool, error)
}

const (
	// drainEvery is how often a node looks whether it is to leave, and drainTime how long that may take.
	drainEvery, drainTime = time.Second, 15 * time.Second
)

// DrainWatch tells a process when it is to leave, or to stay after all.
type DrainWatch struct {
	drains Drains
	name   id.Node
	run    string
	told   func(on bool)
	log    *slog.Logger
	on     bool
}

// WatchDrain makes what tells a run of each change; told may not block. Nothing starts.
func WatchDrain(d Drains, name id.Node, run string, told func(on bool), log *slog.Logger) *DrainWatch {
	return &DrainWatch{drains: d, name: name, run: run, told: told, log: log}
}

// Name is for lifecycle.
func (*DrainWatch) Name() string { return "draining" }

// Run looks until ctx ends. What can't be read changes nothing.
func (d *DrainWatch) Run(ctx context.Context) error {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		d.look(ctx)
	}
}

func (d *DrainWatch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	on, err := d.drains.Draining(ctx, d.name, d.run)
	if err != nil || on == d.on {
		return
	}
	d.on = on
	if on {
		d.log.InfoContext(ctx, "this node is told to leave: it takes no encoder any more, and lets go of those it has")
	} else {
		d.log.InfoContext(ctx, "this node is told to stay: it takes encoders again")
	}
	d.told(on)
}
