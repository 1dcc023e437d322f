package db

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

// Count counts the streams of an environment. When there are more than are counted, those on air are looked for among
// all broadcasts, which have an index of their own.
func (l liveStore) Count(ctx context.Context, env id.Environment) (live.Numbers, error) {
	bounded := l.read.NewSelect().Table("live_streams").Column("state").Where("environment_id = ?", string(env)).
		Where("deleted_at = 0").Limit(live.MaxCounted + 1)
	var rows []struct {
		State string `bun:"state"`
		N     int    `bun:"n"`
	}
	err := l.read.NewSelect().TableExpr("(?) AS bounded", bounded).Column("state").ColumnExpr("COUNT(*) AS n").
		Group("state").Scan(ctx, &rows)
	if err != nil {
		return live.Numbers{}, fmt.Errorf("count live streams: %w", err)
	}
	c := live.Numbers{Of: map[live.Status]int{live.StatusActive: 0, live.StatusIdle: 0, live.StatusDisabled: 0}}
	for _, r := range rows {
		c.All += r.N
		c.Of[live.State(r.State).Status()] += r.N
	}
	if c.All <= live.MaxCounted {
		return c, nil
	}
	n, err := l.countOnAir(ctx, env)
	c.Of = map[live.Status]int{live.StatusActive: n}
	return c, err
}

// countOnAir goes by the index of broadcasts: the environment shall not choose another one.
func (l liveStore) countOnAir(ctx context.Context, env id.Environment) (n int, err error) {
	bounded := l.read.NewSelect().Table("live_streams").ColumnExpr("1 AS one").Where("active_asset <> ''").
		Where("environment_id || '' = ?", string(env)).Where("deleted_at = 0").
		Where("state IN ?", bun.Tuple(live.StatesOf(live.StatusActive))).Limit(live.MaxCounted + 1)
	err = l.read.NewSelect().TableExpr("(?) AS bounded", bounded).ColumnExpr("COUNT(*)").Scan(ctx, &n)
	if err != nil {
		return 0, fmt.Errorf("count live streams on air: %w", err)
	}
	return n, nil
}
