package db

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/audit"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const signingKeyNoun = "signing key"

type signingKeyRow struct {
	bun.BaseModel `bun:"table:signing_keys,alias:k"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Public        []byte `bun:"public_key"`
	CreatedAt     int64  `bun:"created_at"`
}

func (s signingKeyRow) value() (signing.Key, error) {
	k := signing.Key{
		ID: id.SigningKey(s.ID), Environment: id.Environment(s.Environment), CreatedAt: moment(s.CreatedAt),
	}
	parsed, err := x509.ParsePKIXPublicKey(s.Public)
	if err != nil {
		return k, fmt.Errorf("read signing key %s: %w", s.ID, err)
	}
	public, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return k, fmt.Errorf("read signing key %s: it is %T", s.ID, parsed)
	}
	k.Public = public
	return k, nil
}

type signingStore struct{ *DB }

// Signing is the store of signing keys.
func (d *DB) Signing() signing.Store { return signingStore{d} }

// InsertKey implements signing.Store. Of several that come at the same time, each counts the others.
func (s signingStore) InsertKey(ctx context.Context, k signing.Key, most int) error {
	public, err := x509.MarshalPKIXPublicKey(k.Public)
	if err != nil {
		return fmt.Errorf("encode signing key: %w", err)
	}
	row := signingKeyRow{
		ID:          string(k.ID),
		Environment: string(k.Environment),
		Public:      public,
		CreatedAt:   millis(k.CreatedAt),
	}
	return s.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(k.Environment, signingKeyNoun, row.ID)
		if err = t.checkLimit(ctx, (*signingKeyRow)(nil), row.Environment, signingKeyNoun, most); err != nil {
			return err
		}
		if _, err = t.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
			return exists(err, signingKeyNoun)
		} else if err != nil {
			return fmt.Errorf("insert signing key: %w", err)
		}
		return nil
	})
}

// checkLimit is fault.Conflict when an environment has as many rows of a table as it may. The environment's row is held
// until the end of the transaction, so that no other one counts meanwhile.
func (t tx) checkLimit(ctx context.Context, model any, env, noun string, most int) error {
	if err := t.holdEnvironment(ctx, env); err != nil {
		return err
	}
	n, err := t.NewSelect().Model(model).Where("environment_id = ?", env).Count(ctx)
	if err != nil {
		return fmt.Errorf("count %ss: %w", noun, err)
	}
	if n >= int64(most) {
		return tooMany(noun, most)
	}
	return nil
}

// holdEnvironment locks an environment's row until the end of the transaction.
func (t tx) holdEnvironment(ctx context.Context, env string) error {
	if _, err := t.NewUpdate().Model((*environmentRow)(nil)).Set("name = name").Where("id = ?", env).
		Exec(ctx); err != nil {
		return fmt.Errorf("hold environment: %w", err)
	}
	return nil
}

func tooMany(noun string, most int) error {
	return fault.New(fault.Conflict, "an environment may have at most %d %ss; delete one first", most, noun)
}

// Key implements signing.Store.
func (s signingStore) Key(ctx context.Context, k id.SigningKey) (signing.Key, error) {
	var row signingKeyRow
	if !possible(string(k)) {
		return signing.Key{}, noSuch(signingKeyNoun)
	}
	err := s.read.NewSelect().Model(&row).Where("id = ?", string(k)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return signing.Key{}, noSuch(signingKeyNoun)
	}
	if err != nil {
		return signing.Key{}, fmt.Errorf("read signing key: %w", err)
	}
	return row.value()
}

// Keys implements signing.Store.
func (s signingStore) Keys(ctx context.Context, env id.Environment, page, limit int) ([]signing.Key, error) {
	var rows []signingKeyRow
	err := s.read.NewSelect().Model(&rows).Where("environment_id = ?", string(env)).
		Order("created_at DESC", "id DESC").Offset(int64(page-1) * int64(limit)).Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return values(ctx, s.DB, rows, signingKeyRow.value), nil
}

// DeleteKey implements signing.Store.
func (s signingStore) DeleteKey(ctx context.Context, env id.Environment, k id.SigningKey) error {
	return s.removeRight(ctx, (*signingKeyRow)(nil), env, string(k), signingKeyNoun)
}

// remove deletes a row of an environment.
func (d *DB) remove(ctx context.Context, model any, env id.Environment, key, noun string) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error { return t.remove(ctx, model, env, key, noun) })
}

// removeRight is remove for what caches hold of viewers' rights: every process is told.
func (d *DB) removeRight(ctx context.Context, model any, env id.Environment, key, noun string) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if err := t.remove(ctx, model, env, key, noun); err != nil {
			return err
		}
		return d.engine.tellRights(ctx, t, noun, key)
	})
}

func (t tx) remove(ctx context.Context, model any, env id.Environment, key, noun string) error {
	if !possible(key) {
		return noSuch(noun)
	}
	t.about(env, noun, key)
	res, err := t.NewDelete().Model(model).Where("id = ?", key).Where("environment_id = ?", string(env)).Exec(ctx)
	return found(res, err, "delete", noun)
}

type pathSecretRow struct {
	bun.BaseModel `bun:"table:path_secrets,alias:ps"`
	Number        int64  `bun:"number,pk"`
	Secret        []byte `bun:"secret"`
}

// PathSecret implements signing.Store.
func (s signingStore) PathSecret(ctx context.Context, n int64) (signing.PathSecret, error) {
	return s.pathSecret(ctx, s.read, n)
}

func (s signingStore) pathSecret(ctx context.Context, q bun.IDB, n int64) (signing.PathSecret, error) {
	var row pathSecretRow
	err := q.NewSelect().Model(&row).Where("number = ?", n).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return signing.PathSecret{}, noSuch("path secret")
	}
	if err != nil {
		return signing.PathSecret{}, fmt.Errorf("read path secret: %w", err)
	}
	secret, err := s.vault.Open(row.Secret, pathSecretPlace(row.Number))
	return signing.PathSecret{Number: row.Number, Secret: secret}, err
}

// EnsurePathSecret implements signing.Store. Of several nodes that come at the same time all get what the first one has
// written.
func (s signingStore) EnsurePathSecret(
	ctx context.Context, fresh signing.PathSecret,
) (found signing.PathSecret, err error) {
	row := pathSecretRow{Number: fresh.Number, Secret: s.vault.Seal(fresh.Secret, pathSecretPlace(fresh.Number))}
	err = s.engine.begin(audit.Without(ctx), func(ctx context.Context, t tx) error {
		if _, err = t.NewInsert().Model(&row).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
			return fmt.Errorf("insert path secret: %w", err)
		}
		if _, err = t.NewDelete().Model((*pathSecretRow)(nil)).Where("number < ?", fresh.Number-2).
			Exec(ctx); err != nil {
			return fmt.Errorf("delete old path secrets: %w", err)
		}
		found, err = s.pathSecret(ctx, t, fresh.Number)
		return err
	})
	return found, err
}
