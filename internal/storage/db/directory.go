package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Directory says which nodes have the broadcasts of live streams.
func (d *DB) Directory() node.Directory { return directory{d} }

type directory struct{ *DB }

// endedFor is how long behind the end of a broadcast who led it is its owner still: longer than a node serves one that
// has ended, and by more than clocks may differ.
const endedFor = 2 * time.Minute

// Owner implements node.Directory: the stream's row says who it is, and its own row whether it lives and where it is
// reached.
func (d directory) Owner(ctx context.Context, s id.LiveStream) (node.Owner, error) {
	if !possible(string(s)) {
		return node.Owner{}, noOwner()
	}
	var row struct {
		Name         string `bun:"name"`
		AdvertiseURL string `bun:"advertise_url"`
		Environment  string `bun:"environment_id"`
	}
	now := bun.Safe(d.engine.now())
	err := d.read.NewRaw("SELECT n.id AS name, n.advertise_url, s.environment_id FROM live_streams s "+
		"JOIN nodes n ON n.id = s.node AND n.run = s.run "+
		"WHERE s.id = ? AND (s.active_asset <> '' OR s.updated_at > ? - ?) "+
		"AND n.run <> '' AND n.valid_until > ? AND n.advertise_url <> ''",
		string(s), now, endedFor.Milliseconds(), now).Scan(ctx, &row)
	if errors.Is(err, sql.ErrNoRows) {
		return node.Owner{}, noOwner()
	}
	if err != nil {
		return node.Owner{}, fmt.Errorf("read owner of live stream: %w", err)
	}
	return node.Owner{
		Name: id.Node(row.Name), AdvertiseURL: row.AdvertiseURL, Environment: id.Environment(row.Environment),
	}, nil
}

func noOwner() error { return fault.New(fault.NotFound, "no node has the live stream's broadcast") }
