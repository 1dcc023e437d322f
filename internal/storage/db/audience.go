package db

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/audience"
	"millrace/internal/id"
	"millrace/internal/sketch"
)

type audienceRow struct {
	bun.BaseModel `bun:"table:audiences"`
	Node          string `bun:"node,pk"`
	Key           int64  `bun:"playback_key,pk"` // the bits of an unsigned one
	Viewers       []byte `bun:"viewers"`
	ReportedAt    int64  `bun:"told_at"` // on the database's clock
}

type audienceStore struct{ *DB }

// Audiences is what nodes tell one another of who is watching.
func (d *DB) Audiences() audience.Store { return audienceStore{d} }

// reportLifetime is how long what a node has told holds: it tells every few seconds, unless it is dead.
const reportLifetime = 30 * time.Second

// Tell implements audience.Store. A node alone has its rows, so no two wait for each other.
func (as audienceStore) Tell(ctx context.Context, node id.Node, v audience.Views) error {
	rows := make([]audienceRow, 0, len(v))
	for key, s := range v {
		rows = append(rows, audienceRow{Node: string(node), Key: int64(key), Viewers: s.Bytes()})
	}
	slices.SortFunc(rows, func(a, b audienceRow) int { return cmp.Compare(a.Key, b.Key) })
	err := as.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if _, err := t.NewDelete().Model((*audienceRow)(nil)).Where("node = ?", string(node)).Exec(ctx); err != nil {
			return err
		}
		for batch := range slices.Chunk(rows, 100) {
			if _, err := t.NewInsert().Model(&batch).Value("told_at", "?", bun.Safe(as.engine.now())).
				Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("tell who is watching: %w", err)
	}
	return nil
}

// Reported implements audience.Store.
func (as audienceStore) Reported(ctx context.Context, but id.Node, keys []uint64) ([]audience.Views, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	signed := make([]int64, 0, len(keys))
	for _, k := range keys {
		signed = append(signed, int64(k))
	}
	var rows []audienceRow
	err := as.read.NewSelect().Model(&rows).Where("playback_key IN ?", bun.Tuple(signed)).
		Where("node <> ?", string(but)).
		Where("told_at > ? - ?", bun.Safe(as.engine.now()), reportLifetime.Milliseconds()).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read who is watching: %w", err)
	}
	byNode := map[string]audience.Views{}
	for _, r := range rows {
		s, err := sketch.Parse(r.Viewers)
		if err != nil {
			return nil, fmt.Errorf("read who is watching on %s: %w", r.Node, err)
		}
		if byNode[r.Node] == nil {
			byNode[r.Node] = audience.Views{}
		}
		byNode[r.Node][uint64(r.Key)] = s
	}
	out := make([]audience.Views, 0, len(byNode))
	for _, v := range byNode {
		out = append(out, v)
	}
	return out, nil
}
