package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"millrace/internal/config"
	"millrace/internal/masterkey"
)

// masterKey gives the master key of the settings to a database that knows one with a fingerprint. Where no settings say
// which one, it is in the data folder, and made there for a database that knows none.
func masterKey(cfg config.Config) func(known string) (masterkey.Key, error) {
	return func(known string) (masterkey.Key, error) {
		switch {
		case cfg.MasterKey != "":
			return masterkey.Parse([]byte(cfg.MasterKey.Reveal()))
		case cfg.MasterKeyFile != "":
			return chosenMasterKey(cfg.MasterKeyFile, known)
		}
		path := masterKeyPath(cfg)
		key, err := chosenMasterKey(path, known)
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return key, err
		case known != "":
			return key,
				fmt.Errorf("the secrets of this database are encrypted under the master key with the fingerprint %s, "+
					"and there is none in %s: "+
					"copy it from where the database was first used, or name it with --master-key-file", known, path)
		}
		key = masterkey.Generate()
		return key, writeMasterKey(path, key)
	}
}

// givenMasterKey is the one of the settings, and makes none.
func givenMasterKey(cfg config.Config, known string) (masterkey.Key, error) {
	if cfg.MasterKey != "" {
		return masterkey.Parse([]byte(cfg.MasterKey.Reveal()))
	}
	return chosenMasterKey(masterKeyPath(cfg), known)
}

func masterKeyPath(cfg config.Config) string {
	return cmp.Or(cfg.MasterKeyFile, filepath.Join(cfg.DataDir, "master-key"))
}

// next is where a new key lies until it has taken the place of the old one.
const next = ".next"

// chosenMasterKey reads a key file. A rotation that was broken off may have left the key that the database knows beside
// it.
func chosenMasterKey(path, known string) (masterkey.Key, error) {
	if key, err := readMasterKey(path + next); err == nil && key.Fingerprint() == known {
		return key, nil
	}
	return readMasterKey(path)
}

// fingerprints are that of the master key which the database knows and that of the key in the settings.
func fingerprints(ctx context.Context, cfg config.Config) (database, own string, err error) {
	errKnown := errors.New("only the fingerprint is wanted")
	_, err = openDatabaseWith(ctx, cfg, slog.New(slog.DiscardHandler), func(known string) (masterkey.Key, error) {
		key, failed := masterkey.Key{}, errors.New("the database has no master key yet; the first start gives it one")
		if known != "" {
			key, failed = masterKey(cfg)(known)
		}
		if failed == nil {
			database, own, failed = known, key.Fingerprint(), errKnown
		}
		return key, failed
	})
	if errors.Is(err, errKnown) {
		err = nil
	}
	return database, own, err
}

// rotateMasterKey has the database know another master key.
func rotateMasterKey(ctx context.Context, cfg config.Config, file string) (path, fingerprint string, err error) {
	if file == "" && cfg.MasterKey != "" {
		return "", "",
			errors.New("the master key is in the environment: say with --new-key-file where the new one is, or is to " +
				"be written")
	}
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	key, path, err := newMasterKey(masterKeyPath(cfg), d.MasterKey(), file)
	if err != nil {
		return "", "", err
	}
	if err = d.SetMasterKey(ctx, key); err != nil || file != "" {
		return path, key.Fingerprint(), err
	}
	if err = os.Rename(path, masterKeyPath(cfg)); err != nil {
		return "", "", fmt.Errorf("put the new master key in the place of the old one: %w", err)
	}
	return masterKeyPath(cfg), key.Fingerprint(), nil
}

func readMasterKey(path string) (masterkey.Key, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return masterkey.Key{}, fmt.Errorf("read master key: %w", err)
	}
	key, err := masterkey.Parse(text)
	if err != nil {
		return masterkey.Key{}, fmt.Errorf("read master key %s: %w", path, err)
	}
	return key, nil
}

// writeMasterKey writes a file that nobody else can read and that is whole, or not there, whatever happens meanwhile.
// One that is there stays.
func writeMasterKey(path string, key masterkey.Key) (err error) {
	if err = os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("make folder of master key: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "master-key-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("write master key: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(key.Text() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write master key: %w", err)
	}
	if err = os.Link(f.Name(), path); err != nil {
		return fmt.Errorf("write master key: %w", err)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("sync folder of master key: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// newMasterKey gives the key that is to follow one at a path and where it is: in a file, or beside the old one.
func newMasterKey(old, known, file string) (key masterkey.Key, path string, err error) {
	if file != "" {
		if key, err = readMasterKey(file); errors.Is(err, fs.ErrNotExist) {
			key = masterkey.Generate()
			err = writeMasterKey(file, key)
		}
		return key, file, err
	}
	path = old + next
	// of a rotation that was broken off
	if left, failed := readMasterKey(path); failed == nil && left.Fingerprint() == known {
		if err = os.Rename(path, old); err != nil {
			return key, path, fmt.Errorf("put the master key in the place of the old one: %w", err)
		}
	}
	if err = os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // nobody's key
		return key, path, fmt.Errorf("remove old file: %w", err)
	}
	key = masterkey.Generate()
	return key, path, writeMasterKey(path, key)
}
