package app

import (
	"context"
	"runtime"

	"millrace/internal/app/cli"
	"millrace/internal/app/metrics"
	"millrace/internal/app/roles"
	"millrace/internal/lifecycle"
)

// observed is what operators see of a node; nil where nobody wants to.
type observed struct {
	metrics *metrics.Metrics
	tracing *metrics.Tracing
}

// measure begins to count when somebody wants to read it; nothing is wrapped otherwise.
func (n *node) measure() {
	if n.cfg.MetricsAddr == "" {
		return
	}
	n.metrics = metrics.New(cli.Version())
	n.blob = n.metrics.Store(n.blob)
}

// serveMetrics adds the listener of the metrics.
func (n *node) serveMetrics(ctx context.Context, g *lifecycle.Group) error {
	if n.metrics == nil {
		return nil
	}
	n.metrics.Watch(n.live)
	n.metrics.NodeUp(n.row.Renewed)
	n.metrics.Node(roles.Expanded(n.cfg.Node.Roles), func() float64 {
		return machineLoad() / float64(runtime.NumCPU())
	})
	n.metrics.Encoding(n.ffmpeg.Budget().Busy)
	if n.workers != nil {
		n.metrics.Workers(n.workers.Alive)
	}
	n.metrics.Unsent(n.budgets.unsent.Held)
	n.metrics.Watching(func() int { return n.watched.Count(clock()) })
	n.metrics.Cache("renditions", &n.rungs.Lookups)
	n.metrics.Cache("encrypted", n.viewers.Lookups())
	if n.others != nil {
		n.metrics.Cache("followed", n.others.Lookups())
	}
	if n.copies != nil {
		n.metrics.Copies(func() metrics.Copied {
			s := n.copies.Stats()
			return metrics.Copied{
				Feeds: s.Feeds, Current: s.Copied, Kept: s.Kept, Bytes: s.Bytes, Sent: s.Sent, Taken: s.Taken,
				Dropped: s.Dropped, Late: s.Late, Refused: s.Refused,
				Lags: s.Lags, LagCount: s.LagCount, LagSum: s.LagSum,
			}
		})
	}
	if log := n.db.LogBytes(); log != nil {
		n.metrics.DatabaseLog(log)
	}
	ln, err := n.listen(ctx, "metrics", n.cfg.MetricsAddr, nil)
	if err != nil {
		return err
	}
	g.Add(&webServer{name: "metrics", ln: ln, mux: n.metrics.Handler(), log: n.log, drain: n.departure.grace})
	return nil
}
