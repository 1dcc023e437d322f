package roles

import (
	"log/slog"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/node"
	"millrace/internal/internode"
	"millrace/internal/media/follow"
	"millrace/internal/presentation"
	"millrace/internal/workers"
)

// Workers are those that a node without the role worker asks; nil: it has the role, or is alone.
type Workers = workers.Asker

// Ask makes what asks workers; nil where the node is one itself. ended may be nil.
func Ask(has config.Roles, rows workers.Rows, p follow.Peer, ended func(outcome string), log *slog.Logger) *Workers {
	if has.Has(node.RoleWorker) {
		return nil
	}
	return workers.New(workers.Options{Rows: rows, Peer: p, Ended: ended, Now: time.Now, Logger: log})
}

// Serve has a worker make what other nodes order.
func Serve(has config.Roles, s *internode.Server, m workers.Maker, log *slog.Logger) {
	if s != nil && has.Has(node.RoleWorker) {
		s.Handle("GET "+workers.Path, &workers.Handler{Maker: m, Logger: log})
	}
}

// Elsewhere is who makes what is not stored; nil: this node does.
func Elsewhere(w *Workers) presentation.Workers {
	if w == nil {
		return nil
	}
	return w
}
