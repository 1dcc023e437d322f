package db

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"
)

// Claims are leases on what is being made, by the key that it will be stored at, on the database's own clock.
type Claims struct{ db *DB }

// Claims are the database's.
func (d *DB) Claims() Claims { return Claims{d} }

// forgotten is how long after its end a lease that nobody gave back is removed.
const forgotten = time.Minute

// Take gives a holder a lease on each of the keys that nobody has one on, and says which these are.
func (c Claims) Take(
	ctx context.Context, holder string, keys []string, lease time.Duration,
) (taken []string, err error) {
	now := bun.Safe(c.db.engine.now())
	q := make([]byte, 0, 256)
	args := make([]any, 0, 4*len(keys)+3)
	for i, key := range keys {
		if i > 0 {
			q = append(q, ", "...)
		}
		q = append(q, "(?, ?, ? + ?, FALSE)"...)
		args = append(args, key, holder, now, lease.Milliseconds())
	}
	var rows []struct {
		Key string `bun:"object_key"`
	}
	err = c.db.write.NewRaw("INSERT INTO claims (object_key, holder, lease_until, wanted) VALUES "+string(q)+
		" ON CONFLICT (object_key) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until, "+
		"wanted = FALSE"+
		" WHERE claims.lease_until <= ? RETURNING object_key", append(args, now)...).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("take claims: %w", err)
	}
	for _, r := range rows {
		taken = append(taken, r.Key)
	}
	return taken, nil
}

// Want reports whether somebody has a lease on a key, and lets the holder know that somebody else waits for it.
func (c Claims) Want(ctx context.Context, key string) (held bool, err error) {
	res, err := c.db.write.NewRaw("UPDATE claims SET wanted = TRUE WHERE object_key = ? AND lease_until > ?", key,
		bun.Safe(c.db.engine.now())).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("want what is claimed: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("want what is claimed: %w", err)
	}
	return n > 0, nil
}

// Held reports whether somebody has a lease on a key.
func (c Claims) Held(ctx context.Context, key string) (bool, error) {
	n, err := c.db.read.NewSelect().Table("claims").Where("object_key = ?", key).
		Where("lease_until > ?", bun.Safe(c.db.engine.now())).Count(ctx)
	if err != nil {
		return false, fmt.Errorf("look at claim: %w", err)
	}
	return n > 0, nil
}

// Renew prolongs all leases that the holders still have, and gives those of them who have one that somebody else waits
// for.
func (c Claims) Renew(ctx context.Context, holders []string, lease time.Duration) (wanted []string, err error) {
	var rows []struct {
		Holder string `bun:"holder"`
		Wanted bool   `bun:"wanted"`
	}
	err = c.db.write.NewRaw("UPDATE claims SET lease_until = ? + ? WHERE holder IN ? RETURNING holder, wanted",
		bun.Safe(c.db.engine.now()), lease.Milliseconds(), bun.Tuple(holders)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("renew claims: %w", err)
	}
	for _, r := range rows {
		if r.Wanted {
			wanted = append(wanted, r.Holder)
		}
	}
	return wanted, nil
}

// Give takes back a holder's leases on keys, or all that the holder has where none is named, and what others have left
// behind.
func (c Claims) Give(ctx context.Context, holder string, keys ...string) error {
	q := c.db.write.NewDelete().Table("claims").
		Where("lease_until < ? - ?", bun.Safe(c.db.engine.now()), forgotten.Milliseconds())
	q = q.WhereGroup(" OR ", func(q *bun.DeleteQuery) *bun.DeleteQuery {
		if q = q.Where("holder = ?", holder); len(keys) > 0 {
			q = q.Where("object_key IN ?", bun.Tuple(keys))
		}
		return q
	})
	if _, err := q.Exec(ctx); err != nil {
		return fmt.Errorf("give claims back: %w", err)
	}
	return nil
}
