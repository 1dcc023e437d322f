package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

// Who leads a broadcast: the process that the stream's row names, while the row of its node names the same run and is
// valid, by the database's clock. With SQLite there is one node, so every other process is gone.

const (
	// forAlone is for how long a process stays an owner that no other can come beside.
	forAlone = time.Hour
	// seenFor is how long it is kept when an owner was heard of that nothing refers to any more.
	seenFor = 24 * time.Hour
)

// sure is for how long o's row is valid still; 0: it is not.
func (l liveStore) sure(ctx context.Context, o, by live.Owner) (time.Duration, error) {
	if l.engine.alone() {
		if o.Run != "" && o.Run == by.Run {
			return forAlone, nil
		}
		return 0, nil
	}
	var left int64
	err := l.read.NewRaw("SELECT valid_until - ? FROM nodes WHERE id = ? AND run = ? AND run <> ''",
		bun.Safe(l.engine.now()), string(o.Node), o.Run).Scan(ctx, &left)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read owner of live streams: %w", err)
	}
	return max(time.Duration(left)*time.Millisecond, 0), nil
}

// ifDead makes a change depend on the death of the owner whose place it takes.
func (l liveStore) ifDead(q *bun.UpdateQuery, c live.Change) *bun.UpdateQuery {
	switch {
	case c.Dead == live.Owner{}:
		return q
	case l.engine.alone():
		return q.Where("? <> ?", c.Dead.Run, c.Stream.Run)
	}
	dead := "NOT EXISTS (SELECT 1 FROM nodes AS n WHERE n.id = ? AND n.run = ? AND n.run <> '' " +
		"AND n.valid_until > ?)"
	args := []any{string(c.Dead.Node), c.Dead.Run, bun.Safe(l.engine.now())}
	if c.Gone {
		dead, args = "("+dead+" OR NOT EXISTS ("+nodeLocks+"))", append(args, nodeLockClass, string(c.Dead.Node))
	}
	return q.Where(dead, args...)
}

// Unlocked looks at the lock, and does not try to take it: a process that is just about to take it again is not to be
// told that another one was faster.
func (l liveStore) Unlocked(ctx context.Context, n id.Node) (free bool, err error) {
	if l.engine.alone() {
		return false, nil
	}
	err = l.write.NewRaw("SELECT NOT EXISTS ("+nodeLocks+")", nodeLockClass, string(n)).Scan(ctx, &free)
	if err != nil {
		return false, fmt.Errorf("read lock on a node's name: %w", err)
	}
	return free, nil
}

func (l liveStore) Standing(ctx context.Context, o, by live.Owner) (live.Standing, error) {
	sure, err := l.sure(ctx, o, by)
	if err != nil {
		return live.Standing{}, err
	}
	var seen int64
	err = l.read.NewRaw("SELECT seen_at FROM owners WHERE run = ?", o.Run).Scan(ctx, &seen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return live.Standing{}, fmt.Errorf("read when the owner of live streams was there: %w", err)
	}
	return live.Standing{Sure: sure, Seen: moment(seen)}, nil
}

// Hold asks for the node first: what the row says then is true for at least as long.
func (l liveStore) Hold(ctx context.Context, s id.LiveStream, o live.Owner) (live.Stream, time.Duration, error) {
	sure, err := l.sure(ctx, o, o)
	if err != nil {
		return live.Stream{}, 0, err
	}
	st, err := l.Find(ctx, s)
	return st, sure, err
}

func (l liveStore) Held(ctx context.Context, o live.Owner) ([]live.Held, time.Duration, error) {
	valid := bun.Safe(fmt.Sprint(forAlone.Milliseconds()))
	if !l.engine.alone() {
		valid = bun.Safe("COALESCE((SELECT valid_until FROM nodes AS n WHERE n.id = s.node AND n.run = s.run), 0) - " +
			l.engine.now())
	}
	var rows []struct {
		ID         string `bun:"id"`
		Epoch      int64  `bun:"epoch"`
		Generation int64  `bun:"generation"`
		Revision   int64  `bun:"revision"`
		Sure       int64  `bun:"sure"`
	}
	err := l.read.NewRaw("SELECT s.id, s.epoch, s.generation, s.revision, ? AS sure FROM live_streams AS s "+
		"WHERE s.run = ? AND s.node = ? AND s.active_asset <> ''", valid, o.Run, string(o.Node)).Scan(ctx, &rows)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, 0, fmt.Errorf("read live streams of owner: %w", err)
	}
	out, sure := make([]live.Held, 0, len(rows)), time.Duration(0)
	for _, r := range rows {
		out = append(out, live.Held{
			Stream: id.LiveStream(r.ID), Epoch: id.Epoch(r.Epoch), Generation: r.Generation, Revision: r.Revision,
		})
		sure = max(time.Duration(r.Sure)*time.Millisecond, 0)
	}
	return out, sure, nil
}

// Orphans leaves the broadcasts of a node that has been started again to that: it may have what was not stored yet.
func (l liveStore) Orphans(
	ctx context.Context, by live.Owner, starting bool, long time.Duration,
) ([]live.Stream, error) {
	return l.many(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("active_asset <> ''").Where("run <> ?", by.Run).Order("id")
		if l.engine.alone() {
			return q
		}
		now := bun.Safe(l.engine.now())
		return q.WhereGroup(" AND ", func(q *bun.SelectQuery) *bun.SelectQuery {
			if starting {
				q = q.WhereOr("s.node = ?", string(by.Node))
			} else {
				q = q.WhereOr("s.node = ? AND NOT EXISTS (SELECT 1 FROM nodes AS n WHERE n.id = s.node "+
					"AND n.run = s.run AND n.run <> '' AND n.valid_until > ?)", string(by.Node), now)
			}
			return q.WhereOr("s.node <> ? AND NOT EXISTS (SELECT 1 FROM nodes AS n WHERE n.id = s.node "+
				"AND n.valid_until > ? - ?)",
				string(by.Node), now, long.Milliseconds())
		})
	}, refuse)
}

func (l liveStore) Reserve(ctx context.Context, o live.Owner, all []live.Reservation) ([]id.LiveStream, error) {
	if len(all) == 0 {
		return nil, nil
	}
	values, args := make([]string, 0, len(all)), make([]any, 0, 5*len(all)+3)
	for _, r := range all {
		values = append(values, "(?, ?, ?, ?, ?)")
		args = append(args, string(r.Stream), int64(r.Epoch), r.Generation, r.Next, r.Was)
	}
	var ids []id.LiveStream
	err := l.write.NewRaw("UPDATE live_streams SET reserved = v.column4 FROM "+
		"(VALUES "+strings.Join(values, ", ")+") AS v "+
		"WHERE live_streams.id = v.column1 AND live_streams.epoch = v.column2 AND live_streams.generation = v.column3 "+
		"AND (v.column5 = ? OR live_streams.reserved = v.column5) "+
		"AND live_streams.node = ? AND live_streams.run = ? AND live_streams.active_asset <> '' "+
		"RETURNING live_streams.id",
		append(args, live.Whatever, string(o.Node), o.Run)...).Scan(ctx, &ids)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("reserve media sequence numbers: %w", err)
	}
	return ids, nil
}

func (l liveStore) See(ctx context.Context, o live.Owner, at time.Time) error {
	return see(ctx, l.write, o, at)
}

func see(ctx context.Context, to bun.IDB, o live.Owner, at time.Time) error {
	_, err := to.NewRaw("INSERT INTO owners (run, node, seen_at) VALUES (?, ?, ?) "+
		"ON CONFLICT (run) DO UPDATE SET seen_at = EXCLUDED.seen_at", o.Run, string(o.Node), millis(at)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("note that the owner of live streams is there: %w", err)
	}
	return nil
}

// ForgetOwners removes what says when owners were heard of that have not been for long, and lead nothing any more.
func (l liveStore) ForgetOwners(ctx context.Context, now time.Time) error {
	_, err := l.write.NewRaw("DELETE FROM owners WHERE seen_at < ? AND NOT EXISTS (SELECT 1 FROM live_streams AS s "+
		"WHERE s.run = owners.run AND s.active_asset <> '')", millis(now.Add(-seenFor))).Exec(ctx)
	if err != nil {
		return fmt.Errorf("forget owners of live streams: %w", err)
	}
	return nil
}
