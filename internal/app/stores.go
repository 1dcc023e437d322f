package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/config"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
)

// openDatabase opens the database that the configuration names.
func openDatabase(ctx context.Context, cfg config.Config, log *slog.Logger) (*db.DB, error) {
	return openDatabaseWith(ctx, cfg, log, masterKey(cfg))
}

func openDatabaseWith(
	ctx context.Context, cfg config.Config, log *slog.Logger, key func(known string) (masterkey.Key, error),
) (*db.DB, error) {
	if cfg.Database.Engine != config.Postgres {
		if err := databaseFolder(cfg.Database); err != nil {
			return nil, err
		}
	}
	o := db.Options{URL: cfg.Database.Address(), Direct: cfg.Database.Direct.Reveal(), Logger: log, MasterKey: key}
	if cfg.Database.UpgradeBackup {
		o.BeforeMigration = cli.BeforeMigration(cfg, log)
	}
	return db.Open(ctx, o)
}

// databaseFolder makes the folder of an SQLite database. A mistyped --data-dir is not to become a database of its own.
func databaseFolder(d config.Database) error {
	if _, err := os.Stat(d.Path); d.MustExist && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database at %s: look at --data-dir and --database-url; millrace serve makes "+
			"a new one, and so do, with --create, the commands that create something", d.Path)
	}
	if err := os.MkdirAll(filepath.Dir(d.Path), 0o750); err != nil {
		return fmt.Errorf("make folder of database: %w", err)
	}
	return nil
}

// How often a database that is away is asked, and how often it is said that it is.
const (
	askDatabaseEvery = time.Second
	tellEvery        = 5 * time.Second
)

// awaited opens what may still be away when the service starts, as a database is that boots at the same time, and waits
// for it.
func awaited[T any](ctx context.Context, log *slog.Logger, open func(context.Context) (T, error)) (T, error) {
	var lastLogged time.Time
	for {
		v, err := open(ctx)
		if !fault.Is(err, fault.Unavailable) {
			return v, err
		}
		if now := time.Now(); now.Sub(lastLogged) >= tellEvery {
			lastLogged = now
			log.WarnContext(ctx, "waiting for the database", "error", err)
		}
		t := time.NewTimer(askDatabaseEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return v, errStopped
		}
	}
}

// errStopped is the end of a service that was stopped while it waited to start.
var errStopped = errors.New("stopped before it could start")

// openStorage opens the media storage at a URL; credentials that it does not hold come from the standard environment.
func openStorage(ctx context.Context, cfg config.Config, url config.Secret) (blob.Store, error) {
	o, err := blob.ParseURL(url.Reveal())
	if err != nil {
		return nil, err
	}
	if o.S3.Bucket != "" && o.S3.AccessKeyID == "" {
		o.S3.AccessKeyID, o.S3.SecretAccessKey = cfg.AWS.AccessKeyID, cfg.AWS.SecretAccessKey.Reveal()
		o.S3.SessionToken = cfg.AWS.SessionToken.Reveal()
	}
	if o.S3.Bucket != "" {
		if o.Scratch, err = piecesFolder(cfg); err != nil {
			return nil, err
		}
	}
	return blob.Open(ctx, o)
}

// occupy makes the data folder and keeps a second service out of it; release gives it back.
func occupy(dir string) (release func(), err error) {
	if err = os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator names the folder
	if err != nil {
		return nil, fmt.Errorf("open lock of data folder: %w", err)
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another millrace uses the data folder %s: stop it, or give this one "+
			"its own --data-dir", dir), f.Close())
	}
	return func() { // a child that is just being started has the file too, for a moment: the lock would stay with it
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		_ = f.Close()
	}, nil
}

// nodeID is the configured name of this node, or one that is made at the first start and kept.
func nodeID(cfg config.Config) (id.Node, error) {
	if cfg.Node.ID != "" {
		return id.Node(cfg.Node.ID), nil
	}
	path := filepath.Join(cfg.DataDir, "node-id")
	data, err := os.ReadFile(path) //nolint:gosec // the operator names the folder
	if err == nil && len(strings.TrimSpace(string(data))) > 0 {
		return id.Node(strings.TrimSpace(string(data))), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read node ID: %w", err)
	}
	fresh := id.NewUUID()
	if err := os.WriteFile(path, []byte(fresh+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write node ID: %w", err)
	}
	return id.Node(fresh), nil
}
