package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/node"
	"millrace/internal/id"
)

// Nodes is the store of nodes. On PostgreSQL it writes over a connection of its own, which a busy pool can't keep from
// it.
func (d *DB) Nodes() node.Store { return nodeStore{d} }

type nodeStore struct{ *DB }

// queueSilent is how long a node of an earlier version, which has no run, is listed as alive after its queue was heard
// of.
const queueSilent = 30 * time.Second

type nodeRow struct {
	Name         string  `bun:"id"`
	SeenAt       int64   `bun:"seen_at"`
	Run          string  `bun:"run"`
	Version      string  `bun:"version"`
	Schema       int64   `bun:"schema_version"`
	Outdated     bool    `bun:"outdated"`
	Roles        string  `bun:"roles"`
	AdvertiseURL string  `bun:"advertise_url"`
	Streams      int     `bun:"streams"`
	Viewers      int     `bun:"viewers"`
	CPU          float64 `bun:"cpu_load"`
	StartedAt    int64   `bun:"started_at"`
	RenewedAt    int64   `bun:"renewed_at"`
	ValidUntil   int64   `bun:"valid_until"`
	Alive        bool    `bun:"alive"`
	Draining     bool    `bun:"draining"`
}

func (nr nodeRow) value() node.Node {
	n := node.Node{
		Name: id.Node(nr.Name), Run: nr.Run, Version: nr.Version, Schema: nr.Schema, Outdated: nr.Outdated,
		AdvertiseURL: nr.AdvertiseURL, State: node.Gone, Draining: nr.Draining,
		Load:      node.Load{Streams: nr.Streams, Viewers: nr.Viewers, CPU: nr.CPU},
		StartedAt: moment(nr.StartedAt), SeenAt: moment(nr.RenewedAt), ValidUntil: moment(nr.ValidUntil),
	}
	if nr.Roles != "" {
		n.Roles = strings.Split(nr.Roles, ",")
	}
	if nr.Alive {
		n.State = node.Alive
	}
	if nr.Run == "" {
		n.SeenAt = moment(nr.SeenAt)
	}
	return n
}

// nodeColumns are nodeRow's, by the database's clock.
func (ns nodeStore) nodeColumns() string {
	return "id, seen_at, run, version, schema_version, schema_version < (" + newestSchema + ") AS outdated, " +
		"roles, advertise_url, streams, viewers, cpu_load, " +
		"started_at, renewed_at, valid_until, draining_run <> '' AND draining_run = run AS draining, " +
		"CASE WHEN run = '' THEN seen_at >= " + ns.engine.now() + fmt.Sprintf(" - %d", queueSilent.Milliseconds()) +
		" ELSE valid_until > " + ns.engine.now() + " END AS alive"
}

// Register implements node.Store.
func (ns nodeStore) Register(ctx context.Context, n node.Node, valid time.Duration) (time.Time, *node.Node, error) {
	var before nodeRow
	err := ns.own.NewRaw("SELECT "+ns.nodeColumns()+" FROM nodes WHERE id = ?", string(n.Name)).Scan(ctx, &before)
	known := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil, fmt.Errorf("read node: %w", err)
	}
	var started int64
	if err = ns.put(n, "TRUE", valid).Scan(ctx, &started); err != nil {
		return time.Time{}, nil, fmt.Errorf("register node: %w", err)
	}
	if !known {
		return moment(started), nil, nil
	}
	earlier := before.value()
	return moment(started), &earlier, nil
}

// Renew implements node.Store. A row that was removed meanwhile is there again; one without a run is what the queue of
// this node wrote after that.
func (ns nodeStore) Renew(ctx context.Context, n node.Node, valid time.Duration) error {
	var started int64
	err := ns.put(n, "nodes.run IN (EXCLUDED.run, '')", valid).Scan(ctx, &started)
	if errors.Is(err, sql.ErrNoRows) {
		return node.ErrReplaced
	}
	if err != nil {
		return fmt.Errorf("renew node: %w", err)
	}
	return nil
}

// put writes a node's row if there is none, or if it is the one that where says.
func (ns nodeStore) put(n node.Node, where string, valid time.Duration) *bun.RawQuery {
	now := bun.Safe(ns.engine.now())
	var started any = now
	if !n.StartedAt.IsZero() {
		started = millis(n.StartedAt)
	}
	return ns.own.NewRaw(
		"INSERT INTO nodes (id, seen_at, run, version, schema_version, roles, advertise_url, "+
			"streams, viewers, cpu_load, "+
			"started_at, renewed_at, valid_until) VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? + ?) "+
			"ON CONFLICT (id) DO UPDATE SET run = EXCLUDED.run, version = EXCLUDED.version, "+
			"schema_version = EXCLUDED.schema_version, roles = EXCLUDED.roles, "+
			"advertise_url = EXCLUDED.advertise_url, streams = EXCLUDED.streams, viewers = EXCLUDED.viewers, "+
			"cpu_load = EXCLUDED.cpu_load, started_at = EXCLUDED.started_at, renewed_at = EXCLUDED.renewed_at, "+
			"valid_until = EXCLUDED.valid_until "+
			"WHERE "+where+" RETURNING started_at",
		string(n.Name), n.Run, n.Version, n.Schema, strings.Join(n.Roles, ","), n.AdvertiseURL,
		n.Load.Streams, n.Load.Viewers, n.Load.CPU, started, now, now, valid.Milliseconds())
}

// Leave implements node.Store.
func (ns nodeStore) Leave(ctx context.Context, name id.Node, run string, kept time.Duration) error {
	now := bun.Safe(ns.engine.now())
	_, err := ns.own.NewRaw("UPDATE nodes SET renewed_at = ?, valid_until = ?, streams = 0, viewers = 0, cpu_load = 0 "+
		"WHERE id = ? AND run = ?", now, now, string(name), run).Exec(ctx)
	if err != nil {
		return fmt.Errorf("mark node as gone: %w", err)
	}
	_, err = ns.own.NewRaw("DELETE FROM nodes WHERE valid_until < ? - ? AND seen_at < ? - ?",
		now, kept.Milliseconds(), now, kept.Milliseconds()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove nodes that are gone: %w", err)
	}
	return nil
}

// Nodes implements node.Store.
func (ns nodeStore) Nodes(ctx context.Context) ([]node.Node, error) {
	var rows []nodeRow
	if err := ns.read.NewRaw("SELECT "+ns.nodeColumns()+" FROM nodes ORDER BY id").Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	out := make([]node.Node, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.value())
	}
	return out, nil
}
