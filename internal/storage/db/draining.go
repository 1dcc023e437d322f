package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Drains is the store of which nodes are to leave.
func Drains(d *DB) node.Drains { return drainStore{d} }

type drainStore struct{ *DB }

const nodeNoun = "node"

// Drain implements node.Drains.
func (ds drainStore) Drain(ctx context.Context, n id.Node, on bool) error {
	if !possible(string(n)) {
		return noSuch(nodeNoun)
	}
	run := bun.Safe("''")
	if on {
		run = bun.Safe("run")
	}
	return ds.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about("", nodeNoun, string(n))
		res, err := t.NewRaw("UPDATE nodes SET draining_run = ? WHERE id = ? AND run <> '' AND valid_until > ?",
			run, string(n), bun.Safe(ds.engine.now())).Exec(ctx)
		return found(res, err, "drain", nodeNoun)
	})
}

// Draining implements node.Drains.
func (ds drainStore) Draining(ctx context.Context, n id.Node, run string) (on bool, err error) {
	err = ds.read.NewRaw("SELECT draining_run = ? FROM nodes WHERE id = ? AND run = ?", run, string(n), run).
		Scan(ctx, &on)
	if errors.Is(err, sql.ErrNoRows) {
		return false, fault.New(fault.NotFound, "no such node is there")
	}
	if err != nil {
		return false, fmt.Errorf("read whether the node is to leave: %w", err)
	}
	return on, nil
}
