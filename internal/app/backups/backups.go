// Package backups does the commands that make, check and restore backups of the configured service. It must never know
// what a backup looks like. It owns no goroutines.
package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/internal/backup"
	"millrace/internal/config"
	"millrace/internal/control/audit"
	"millrace/internal/masterkey"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/rows"
)

// Options is what the commands need.
type Options struct {
	Config config.Config
	Place  string // of the backup: a folder or a bucket
	// OpenStorage opens a storage as the service would, but at the given URL.
	OpenStorage func(ctx context.Context, cfg config.Config, url config.Secret) (blob.Store, error)
	Keys        Keys
	Version     string // of the program
	Now         func() time.Time

	Keep             int    // snapshots
	IncludeMasterKey bool   // in the snapshot
	Snapshot         string // name; empty: the newest
	Overwrite        bool   // what is not empty
	To, ToStorage    string // URLs of the database and the storage that are migrated to
	Progress         backup.Progress
	Looked           bool // somebody looks at the progress
}

// Keys are the master keys of the settings.
type Keys struct {
	// Given is the one of the settings, where a database knows one with a fingerprint; fs.ErrNotExist: there is none.
	Given func(cfg config.Config, known string) (masterkey.Key, error)
	// Path is the file that it is in, or would be.
	Path func(cfg config.Config) string
	// Write writes a file with a key, where there is none.
	Write func(path string, key masterkey.Key) error
}

// KeyPlace says where the master key of restored rows is to be.
type KeyPlace struct {
	Path, Fingerprint string
	There, Written    bool
}

// Make adds a snapshot, whether the service runs or not.
func Make(ctx context.Context, o Options) (made backup.Made, err error) {
	cfg := o.Config
	if err = databaseThere(cfg); err != nil {
		return made, err
	}
	if err = storageThere(cfg); err != nil {
		return made, err
	}
	target, storage, err := openBoth(ctx, o)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, target.Close(), storage.Close()) }()
	opt := backup.Options{
		Storage: storage, Target: target, Database: rowsOf(cfg.Database.Server()), Version: o.Version, Keep: o.Keep,
		Progress: o.Progress, Looked: o.Looked, Now: o.Now,
	}
	if o.IncludeMasterKey {
		opt.MasterKey = func(fingerprint string) (string, error) {
			key, err := o.Keys.Given(cfg, fingerprint)
			if err == nil && key.Fingerprint() != fingerprint {
				err = fmt.Errorf("the database's secrets are encrypted under the master key with the fingerprint %s, "+
					"and the "+
					"settings have %s: name the right one with --master-key-file", fingerprint, key.Fingerprint())
			}
			return key.Text(), err
		}
	}
	return backup.Make(ctx, opt)
}

// databaseThere says when there is no database to read.
func databaseThere(cfg config.Config) error {
	if cfg.Database.Engine != config.SQLite {
		return nil
	}
	if _, err := os.Stat(cfg.Database.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database at %s: look at --data-dir and --database-url", cfg.Database.Path)
	}
	return nil
}

// storageThere says when the folder of the storage is not there: it would be made, and what is copied of it be nothing.
func storageThere(cfg config.Config) error {
	if cfg.Storage.Kind != config.Folder {
		return nil
	}
	_, err := os.Stat(cfg.Storage.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no storage folder at %s: look at --data-dir and --storage-url (a disk that is not "+
			"mounted?); millrace serve makes it when it starts", cfg.Storage.Path)
	case err != nil:
		return fmt.Errorf("look at the storage: %w", err)
	}
	return nil
}

// openBoth opens the backup at a place and the service's storage. One may not be in the other.
func openBoth(ctx context.Context, o Options) (target, storage blob.Store, err error) {
	at, err := placeOf(o)
	if err != nil {
		return nil, nil, err
	}
	if overlap(at, o.Config.Storage) {
		return nil, nil, errors.New("the backup and the storage of the service are one, or one lies in the other: " +
			"choose another place")
	}
	if storage, err = o.OpenStorage(ctx, o.Config, o.Config.Storage.URL); err != nil {
		return nil, nil, err
	}
	if target, err = o.OpenStorage(ctx, o.Config, at.URL); err != nil {
		return nil, nil, errors.Join(err, storage.Close())
	}
	return target, storage, nil
}

func placeOf(o Options) (config.Storage, error) {
	at, err := o.Config.StorageAt(o.Place)
	if err != nil {
		err = fmt.Errorf("the place of the backup %w", err) // not the place itself, which may hold a secret
	}
	return at, err
}

// overlap reports whether two storages are one, or one lies in the other.
func overlap(a, b config.Storage) bool {
	if a.Kind != b.Kind {
		return false
	}
	if a.Kind == config.Folder {
		one, other := canonical(a.Path), canonical(b.Path)
		return strings.HasPrefix(one, other) || strings.HasPrefix(other, one)
	}
	one, err := blob.ParseURL(a.URL.Reveal())
	other, errOther := blob.ParseURL(b.URL.Reveal())
	return err == nil && errOther == nil && one.S3.Bucket == other.S3.Bucket && one.S3.Endpoint == other.S3.Endpoint &&
		nested(one.S3.Prefix, other.S3.Prefix)
}

// nested reports whether one of two prefixes of a bucket lies in the other.
func nested(one, other string) bool {
	one, other = strings.Trim(one, "/")+"/", strings.Trim(other, "/")+"/"
	return one == "/" || other == "/" || strings.HasPrefix(one, other) || strings.HasPrefix(other, one)
}

// canonical is a path from the root, without links as far as it is there, with a slash at its end.
func canonical(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return strings.TrimSuffix(filepath.Join(found, rest), "/") + "/"
		}
		if at == filepath.Dir(at) {
			return path + "/"
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// rowsOf is the database at a URL, as a backup reads it.
type rowsOf string

// Snapshot implements backup.Database.
func (ro rowsOf) Snapshot(ctx context.Context, w io.Writer) (r backup.Rows, err error) {
	d, err := db.OpenDump(ctx, string(ro))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	out, err := rows.NewWriter(w, d.Schema)
	if err != nil {
		return r, err
	}
	if err = d.Rows(ctx, out); err != nil {
		return r, err
	}
	r = headOf(d)
	r.Counts, err = out.Close()
	return r, err
}

// Verify checks a snapshot.
func Verify(ctx context.Context, o Options) (m *backup.Manifest, found backup.Findings, err error) {
	at, err := existing(o)
	if err != nil {
		return nil, found, err
	}
	target, err := o.OpenStorage(ctx, o.Config, at.URL)
	if err != nil {
		return nil, found, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return backup.Verify(ctx, backup.VerifyOptions{Target: target, Snapshot: o.Snapshot, Progress: o.Progress})
}

// existing is the place of a backup that has to be there.
func existing(o Options) (config.Storage, error) {
	at, err := placeOf(o)
	if err == nil && at.Kind == config.Folder {
		if _, err = os.Stat(at.Path); err != nil {
			err = fmt.Errorf("look at the backup: %w", err)
		}
	}
	return at, err
}

// Restore puts a snapshot into the configured database and storage.
func Restore(ctx context.Context, o Options) (done *backup.Restored, key KeyPlace, err error) {
	cfg := o.Config
	if _, err = existing(o); err != nil {
		return nil, key, err
	}
	if err = os.MkdirAll(cfg.DataDir, 0o750); err != nil {
		return nil, key, fmt.Errorf("make data folder: %w", err)
	}
	target, storage, err := openBoth(ctx, o)
	if err != nil {
		return nil, key, err
	}
	defer func() { err = errors.Join(err, target.Close(), storage.Close()) }()
	done, err = backup.Restore(ctx, backup.RestoreOptions{
		Target: target, Storage: storage, Snapshot: o.Snapshot, Overwrite: o.Overwrite, Progress: o.Progress,
		Open: func(ctx context.Context, schema int64) (backup.Loader, error) {
			l, failed := db.OpenLoad(ctx, cfg.Database.Server(), schema, slog.New(slog.DiscardHandler))
			if failed != nil {
				return nil, failed
			}
			return loader{l}, nil
		},
		Check: func(m *backup.Manifest) error {
			if entry := audit.Of(ctx); entry.Wanted() { // written with the rows
				entry.Entry.Resource = audit.Resource{Type: "snapshot", ID: m.Name}
			}
			key.Fingerprint = m.MasterKey
			fits := db.Loadable(m.Schema)
			if fits == nil {
				key.There, fits = keyFits(o, m.MasterKey)
			}
			return fits
		},
	})
	if err != nil {
		return done, key, err
	}
	key.Path = o.Keys.Path(cfg)
	if done.MasterKey != "" && !key.There && cfg.MasterKey == "" {
		err = keepKey(o, key.Path, done)
		key.There, key.Written = err == nil, err == nil
	}
	return done, key, err
}

// keyFits reports whether the settings have the master key with a fingerprint. Another one is an error: no service
// would start.
func keyFits(o Options, fingerprint string) (bool, error) {
	if fingerprint == "" {
		return true, nil
	}
	key, err := o.Keys.Given(o.Config, fingerprint)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case key.Fingerprint() != fingerprint:
		where := "MILLRACE_MASTER_KEY"
		if o.Config.MasterKey == "" {
			where = o.Keys.Path(o.Config)
		}
		return false, fmt.Errorf("the secrets in the backup are encrypted under the master key with the fingerprint "+
			"%s, and "+
			"%s has %s: put the right one there, or name it with "+
			"--master-key-file", fingerprint, where, key.Fingerprint())
	}
	return true, nil
}

// keepKey writes the master key that a backup has into the file of the settings.
func keepKey(o Options, path string, done *backup.Restored) error {
	key, err := masterkey.Parse([]byte(done.MasterKey))
	if err != nil {
		return fmt.Errorf("read the master key of the backup: %w", err)
	}
	if key.Fingerprint() != done.Manifest.MasterKey {
		return fmt.Errorf("the master key in the backup has the fingerprint %s, and its rows need %s",
			key.Fingerprint(),
			done.Manifest.MasterKey)
	}
	return o.Keys.Write(path, key)
}

// loader is a database as a restore writes it.
type loader struct{ to *db.Load }

// Empty implements backup.Loader.
func (l loader) Empty(ctx context.Context) (bool, string, error) {
	c, err := l.to.Content(ctx)
	return c.Empty, c.Identity, err
}

// Fits implements backup.Loader.
func (l loader) Fits() error { return l.to.Fits() }

// Load implements backup.Loader.
func (l loader) Load(ctx context.Context, from *rows.Reader) error {
	if err := l.to.Rows(ctx, from, nil); err != nil {
		return err
	}
	return l.to.Migrate(ctx)
}

// LoadSame implements backup.Loader.
func (l loader) LoadSame(ctx context.Context, from *rows.Reader, expected *rows.Digest) error {
	return l.to.Rows(ctx, from, func(read func(to db.RowWriter) error) error {
		got := rows.NewDigest()
		if err := read(got); err != nil {
			return err
		}
		return expected.Compare(got)
	})
}

// Close implements backup.Loader.
func (l loader) Close() error { return l.to.Close() }
