package backups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"millrace/internal/backup"
	"millrace/internal/config"
	"millrace/internal/control/audit"
	"millrace/internal/storage/db"
)

// Migrate copies the database and the storage of the settings to others, and changes nothing in them.
func Migrate(ctx context.Context, o Options) (done backup.Migrated, err error) {
	cfg := o.Config
	to, at, err := destination(o)
	if err != nil {
		return done, err
	}
	if err = errors.Join(databaseThere(cfg), storageThere(cfg)); err != nil {
		return done, err
	}
	if entry := audit.Of(ctx); entry.Wanted() { // written with the rows, in the new database
		entry.Entry.Resource = audit.Resource{Type: "database", ID: to.Engine}
	}
	storage, err := o.OpenStorage(ctx, cfg, cfg.Storage.URL)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, storage.Close()) }()
	target, err := o.OpenStorage(ctx, cfg, at.URL)
	if err != nil {
		return done, fmt.Errorf("open the new storage: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return backup.Migrate(ctx, backup.MigrateOptions{
		Storage: storage, Target: target, Database: rowsOf(cfg.Database.Server()),
		Open: func(ctx context.Context, schema int64) (backup.Loader, error) {
			l, failed := db.OpenLoad(ctx, to.Address(), schema, slog.New(slog.DiscardHandler))
			if failed != nil {
				return nil, failed
			}
			if failed = l.Fits(); failed != nil {
				return nil, errors.Join(failed, l.Close())
			}
			return loader{l}, nil
		},
		Progress: o.Progress, Looked: o.Looked, Now: o.Now,
	})
}

// destination is the new database and the new storage, neither of which is the old one.
func destination(o Options) (to config.Database, at config.Storage, err error) {
	if to, err = config.DatabaseAt(o.To); err != nil {
		return to, at, fmt.Errorf("--to %w", err) // without the URL, which may hold a secret
	}
	if at, err = o.Config.StorageAt(o.ToStorage); err != nil {
		return to, at, fmt.Errorf("--storage %w", err)
	}
	if overlap(at, o.Config.Storage) {
		return to, at, errors.New("the new storage and the old one are one, or one lies in the other: " +
			"name another place")
	}
	same := to.Address() == o.Config.Database.Address() || to.Address() == o.Config.Database.Server()
	if to.Engine == config.SQLite && o.Config.Database.Engine == config.SQLite {
		same = canonical(to.Path) == canonical(o.Config.Database.Path)
	}
	if same {
		return to, at, errors.New("the new database is the old one: name another one")
	}
	return to, at, nil
}

// Head implements backup.Source.
func (ro rowsOf) Head(ctx context.Context) (backup.Rows, error) {
	d, err := db.OpenDump(ctx, string(ro))
	if err != nil {
		return backup.Rows{}, err
	}
	return headOf(d), d.Close()
}

func headOf(d *db.Dump) backup.Rows {
	return backup.Rows{Schema: d.Schema, MasterKey: d.MasterKey, Identity: d.Identity}
}

// Hold implements backup.Source.
func (ro rowsOf) Hold(ctx context.Context) (release func() error, err error) {
	release, err = db.Hold(ctx, string(ro))
	if errors.Is(err, db.ErrOccupied) {
		err = fmt.Errorf("%w: %w", backup.ErrRuns, err)
	}
	return release, err
}
