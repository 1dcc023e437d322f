package node

import (
	"context"
	"log/slog"
	"time"
)

// compareEvery is how often this program's schema is compared with the database's and with those of other nodes.
const compareEvery = 10 * time.Second

// Schemas tells in the log when another version has migrated the database, and which nodes know another schema than
// this one. What runs goes on: its encoders are connected to it.
type Schemas struct {
	store Store
	own   int64
	log   *slog.Logger

	newest int64           // the database's, as it was told
	others map[string]bool // runs of nodes that were told of
}

// NewSchemas makes what compares the schema that this program knows; nothing starts.
func NewSchemas(store Store, own int64, log *slog.Logger) *Schemas {
	return &Schemas{store: store, own: own, newest: own, log: log, others: map[string]bool{}}
}

// Name is for lifecycle.
func (*Schemas) Name() string { return "schemas" }

// Run compares until ctx ends.
func (s *Schemas) Run(ctx context.Context) error {
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	for {
		s.compare(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// compare says once what is wrong. A database that does not respond is asked again later.
func (s *Schemas) compare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, compareEvery)
	defer cancel()
	newest, err := s.store.Schema(ctx)
	if err != nil {
		return
	}
	all, err := s.store.Nodes(ctx)
	if err != nil {
		return
	}
	if newest > s.newest {
		s.log.ErrorContext(ctx, "a newer version has migrated the database: run that version on all nodes, here too",
			slog.Int64("database_schema", newest), slog.Int64("schema", s.own))
		s.newest = newest
	}
	before := s.others
	s.others = map[string]bool{}
	for _, n := range all {
		if n.State != Alive || n.Run == "" || n.Schema == s.own {
			continue
		}
		s.others[n.Run] = true
		if !before[n.Run] {
			s.log.ErrorContext(ctx, "a node runs a version with another schema of the database, and this one and it "+
				"refuse each other's requests: run the same version on all nodes",
				slog.String("node", string(n.Name)), slog.String("its_version", n.Version),
				slog.Int64("its_schema", n.Schema), slog.Int64("schema", s.own))
		}
	}
}
