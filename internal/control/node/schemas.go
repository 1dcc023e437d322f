package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"millrace/internal/fault"
)

// Schema is the schema of a database, by the numbers of its migrations.
type Schema struct {
	Newest int64 // migration that the database has
	Since  int64 // the programs that know this one, or a later one, may run on it
}

// Admits says why a program that knows a schema may not run on the database; nil: it may, or migrates it first.
func (s Schema) Admits(own int64) error {
	if own >= s.Newest || own >= s.Since {
		return nil
	}
	return fault.New(fault.Conflict, "the database has version %d of the schema, on which only programs that know "+
		"version %d or a later one can run, and this program knows %d: run the version of Millrace that migrated it, "+
		"or a later one, or restore the backup that was made before", s.Newest, s.Since, own)
}

// How often this program's schema is compared with the database's and with those of other nodes.
const (
	compareEvery = 2 * time.Second
	compareTime  = 10 * time.Second // that it may take
)

// Schemas tells in the log when another version has migrated the database, and which nodes know another schema than
// this one. What runs goes on, unless it may not run on the new schema: then the node leaves.
type Schemas struct {
	store Store
	own   int64
	leave func(why error)
	log   *slog.Logger

	newer  atomic.Int64    // the database's schema, if it is newer than this program's; 0: it is not
	others map[string]bool // runs of nodes that were told of
}

// NewSchemas makes what compares the schema that this program knows; nothing starts. leave is called once, when the
// database no longer admits it; it may not block.
func NewSchemas(store Store, own int64, leave func(why error), log *slog.Logger) *Schemas {
	return &Schemas{store: store, own: own, leave: leave, log: log, others: map[string]bool{}}
}

// Name is for lifecycle.
func (*Schemas) Name() string { return "schemas" }

// Line is what is said of the schema where somebody asks whether the service is well; empty: it is this program's.
func (s *Schemas) Line() string {
	newest := s.newer.Load()
	if newest == 0 {
		return ""
	}
	return fmt.Sprintf("schema: %d, of a later version; this one knows %d, and runs on it\n", newest, s.own)
}

// Run compares until ctx ends, or until this program may not run any more.
func (s *Schemas) Run(ctx context.Context) error {
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	for {
		if err := s.compare(ctx); err != nil {
			s.log.ErrorContext(ctx, "a later version has migrated the database, and this one can't run on it: it stops",
				slog.Any("error", err))
			s.leave(err)
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

// compare says once what is to be known. A database that does not respond is asked again later.
func (s *Schemas) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, compareTime)
	defer cancel()
	schema, err := s.store.Schema(ctx)
	if err != nil {
		return nil
	}
	if err = schema.Admits(s.own); err != nil {
		return err
	}
	if schema.Newest > s.own && s.newer.Swap(schema.Newest) != schema.Newest {
		s.log.InfoContext(ctx, "a later version has migrated the database, and this one runs on it",
			slog.Int64("database_schema", schema.Newest), slog.Int64("schema", s.own))
	}
	all, err := s.store.Nodes(ctx)
	if err != nil {
		return nil
	}
	before := s.others
	s.others = map[string]bool{}
	for _, n := range all {
		if n.State != Alive || n.Run == "" || n.Schema == s.own {
			continue
		}
		s.others[n.Run] = true
		if !before[n.Run] {
			s.log.InfoContext(ctx, "a node runs a version with another schema of the database",
				slog.String("node", string(n.Name)), slog.String("its_version", n.Version),
				slog.Int64("its_schema", n.Schema), slog.Int64("schema", s.own))
		}
	}
	return nil
}
