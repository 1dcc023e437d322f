package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/pressly/goose/v3"

	"millrace/internal/control/node"
	"millrace/internal/masterkey"
)

//go:embed migrations/*.sql
var migrations embed.FS

const (
	// masterKeyFrom is the migration that has the table of the master key.
	masterKeyFrom = 18
	// heldPause is how long a migration waits before it asks again for a table that is held, and heldTell how often
	// that is told.
	heldPause, heldTell = time.Second, 10 * time.Second
)

// migrate brings our own tables up to date and opens the vault of their secrets; River's are River's own business. No
// other process does so at the same time.
func (o Options) migrate(ctx context.Context, d goose.Dialect, db *sql.DB) (*masterkey.Vault, string, error) {
	var vault *masterkey.Vault
	p, err := provider(d, db, &vault, o.files())
	if err != nil {
		return nil, "", err
	}
	if err = o.upTo(ctx, p, masterKeyFrom); err != nil {
		return nil, "", err
	}
	var fingerprint string
	if vault, fingerprint, err = unlock(ctx, db, o.MasterKey); err != nil {
		return nil, "", err
	}
	if err = o.upTo(ctx, p, math.MaxInt64); err != nil {
		return nil, "", err
	}
	return vault, fingerprint, nil
}

// upTo migrates to a version. A table that a transaction of another process holds is asked for again: while it is
// waited for, whoever comes later waits too.
func (o Options) upTo(ctx context.Context, p *goose.Provider, version int64) error {
	var told time.Time
	for {
		_, err := p.UpTo(ctx, version)
		if !held(err) {
			if err != nil {
				return fmt.Errorf("migrate: %w", err)
			}
			return nil
		}
		if now := time.Now(); now.Sub(told) >= heldTell {
			told = now
			o.Logger.WarnContext(ctx, "the schema is not migrated yet: a transaction holds a table, such as that of a "+
				"backup", "error", err)
		}
		t := time.NewTimer(heldPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("migrate: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

// files are the migrations of this program.
func (o Options) files() fs.FS {
	if o.migrations != nil {
		return o.migrations
	}
	return migrations
}

// prepare looks at the schema of the database before it is migrated. newer says that a later program has migrated it,
// and that this one runs on it as it is; one that can't is refused.
func (o Options) prepare(ctx context.Context, db *sql.DB) (newer bool, err error) {
	have, err := newestVersion(ctx, db)
	if err != nil || have < masterKeyFrom { // there is none yet, or the migration says what is wrong
		return false, nil //nolint:nilerr // as above
	}
	own, err := schemaVersion(o.files())
	switch {
	case err != nil:
		return false, err
	case have > own:
		var s node.Schema
		if s, err = schemaOf(ctx, db); err != nil {
			return false, err
		}
		return true, s.Admits(own)
	case have == own:
		return false, nil
	}
	if err = o.spares(ctx, db, have); err == nil && o.BeforeMigration != nil {
		err = o.BeforeMigration(ctx, have, own)
	}
	return false, err
}

// provider has the migrations; those that encrypt look at the vault when they run.
func provider(d goose.Dialect, db *sql.DB, vault **masterkey.Vault, files fs.FS) (*goose.Provider, error) {
	folder, err := fs.Sub(files, "migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	p, err := goose.NewProvider(d, db, folder, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(encryption(vault), uploadEncryption(vault)))
	if err != nil {
		return nil, fmt.Errorf("prepare migration: %w", err)
	}
	return p, nil
}

// SchemaVersion is the number of this program's newest migration, which a database has as soon as it is open. A newer
// program may have added others since.
func SchemaVersion() (newest int64, err error) { return schemaVersion(migrations) }

func schemaVersion(files fs.FS) (newest int64, err error) {
	newest = max(encryptFrom, encryptUploadsFrom)
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	for _, name := range names {
		number, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("read number of migration: %w", err)
		}
		newest = max(newest, number)
	}
	return newest, nil
}

// unlock decrypts the data key, which is made at the first time.
func unlock(
	ctx context.Context, db *sql.DB, key func(known string) (masterkey.Key, error),
) (*masterkey.Vault, string, error) {
	if key == nil {
		return nil, "", errors.New("open database: there is no master key")
	}
	var fingerprint string
	var wrapped []byte
	err := db.QueryRowContext(ctx, "SELECT fingerprint, data_key FROM master_key WHERE one = 1").
		Scan(&fingerprint, &wrapped)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, "", fmt.Errorf("read fingerprint of master key: %w", err)
	}
	master, err := key(fingerprint)
	if err != nil {
		return nil, "", fmt.Errorf("get master key: %w", err)
	}
	if fingerprint == "" {
		vault := masterkey.NewVault()
		_, err = db.ExecContext(ctx, "INSERT INTO master_key (one, fingerprint, data_key) VALUES (1, $1, $2)",
			master.Fingerprint(), master.Wrap(vault))
		if err != nil {
			return nil, "", fmt.Errorf("write data key: %w", err)
		}
		return vault, master.Fingerprint(), nil
	}
	if master.Fingerprint() != fingerprint {
		return nil, "", fmt.Errorf("the secrets of this database are encrypted under the master key with the "+
			"fingerprint %s, and the one given has %s: "+
			"give every node of the database the same master key", fingerprint, master.Fingerprint())
	}
	vault, err := master.Unwrap(wrapped)
	return vault, fingerprint, err
}

// Identity is the same for all processes that have this database open, and another one for each database; a copy has
// that of the original. It is no secret.
func (d *DB) Identity() string { return d.vault.Hash("database", "identity")[:identityDigits] }

const identityDigits = 32

// Key is a key for one use outside the database, the same for all processes that have it open: it follows from the data
// key, so it stays when the master key changes. It is a secret.
func (d *DB) Key(use string) [masterkey.Size]byte { return d.vault.Key(use) }

// MasterKey is the fingerprint of the master key when the database was opened.
func (d *DB) MasterKey() string { return d.master }

// SetMasterKey has the data key encrypted under another master key. Processes that have the database open go on.
func (d *DB) SetMasterKey(ctx context.Context, k masterkey.Key) error {
	err := d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about("", "master key", k.Fingerprint())
		res, err := t.NewUpdate().Table("master_key").Set("fingerprint = ?", k.Fingerprint()).
			Set("data_key = ?", k.Wrap(d.vault)).
			Where("fingerprint = ?", d.master).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write data key: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(moved("master key"), err)
		}
		return nil
	})
	if err == nil {
		d.master = k.Fingerprint()
	}
	return err
}
