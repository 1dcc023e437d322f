package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/config"
	"millrace/internal/control/drm"
	"millrace/internal/masterkey"
)

// TestMasterKey: the first start makes it, the next ones find it, and another one, or none, is refused.
func TestMasterKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := config.Config{DataDir: dir, Database: config.Database{Path: filepath.Join(dir, "x.db")}}
	open := func(cfg config.Config) error {
		d, err := openDatabase(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		return d.Close()
	}
	if err := open(cfg); err != nil {
		t.Fatal(err)
	}
	path := masterKeyPath(cfg)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = open(cfg); err != nil {
		t.Errorf("again: %v", err)
	}
	given := cfg
	given.MasterKey = config.Secret(text)
	if err = open(given); err != nil {
		t.Errorf("from the environment: %v", err)
	}
	given.MasterKey, given.MasterKeyFile = "", filepath.Join(dir, "copy")
	if err = os.WriteFile(given.MasterKeyFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err = os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err = open(given); err != nil {
		t.Errorf("from a file: %v", err)
	}
	key, _ := masterkey.Parse(text)
	if err = open(cfg); err == nil || !strings.Contains(err.Error(), key.Fingerprint()) ||
		!strings.Contains(err.Error(), "--master-key-file") {
		t.Errorf("it is lost: %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("another one was made: %v", left)
	}
	other := cfg
	other.MasterKey = config.Secret(masterkey.Generate().Text())
	if err = open(other); err == nil || !strings.Contains(err.Error(), key.Fingerprint()) ||
		strings.Contains(err.Error(), other.MasterKey.Reveal()) {
		t.Errorf("another one: %v", err)
	}
	given.MasterKeyFile = filepath.Join(dir, "x.db")
	if err = open(given); err == nil || !strings.Contains(err.Error(), "32 bytes") {
		t.Errorf("no key: %v", err)
	}
}

// TestRotateMasterKey: what was encrypted stays readable with the new key alone, at whatever point the rotation before
// was broken off.
func TestRotateMasterKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := config.Config{DataDir: dir, Database: config.Database{Path: filepath.Join(dir, "x.db")}}
	all, shut, err := openDRM(t.Context(), cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	made, err := all.Create(t.Context(), "ours", drm.Settings{Scheme: drm.CBCS, ClearKey: true})
	if err = errors.Join(err, shut()); err != nil {
		t.Fatal(err)
	}
	readable := func(when string, c config.Config) {
		t.Helper()
		again, shutAgain, failed := openDRM(t.Context(), c, "")
		if failed != nil {
			t.Fatalf("%s: %v", when, failed)
		}
		found, failed := again.List(t.Context())
		if failed != nil || len(found) != 1 || found[0].ID != made.ID || !found[0].ClearKey {
			t.Errorf("%s: %+v, %v", when, found, failed)
		}
		if failed = shutAgain(); failed != nil {
			t.Error(failed)
		}
		if database, own, failed := fingerprints(t.Context(), c); failed != nil || database != own {
			t.Errorf("%s: fingerprints %s and %s, %v", when, database, own, failed)
		}
	}
	path := masterKeyPath(cfg)
	read := func() string {
		text, failed := os.ReadFile(path)
		if failed != nil {
			t.Fatal(failed)
		}
		return string(text)
	}
	first := read()
	if _, _, err = rotateMasterKey(t.Context(), cfg, ""); err != nil || read() == first {
		t.Fatalf("rotated: %v", err)
	}
	second := read()
	readable("rotated", cfg)
	old := cfg
	old.MasterKey = config.Secret(first)
	if _, _, err = openDRM(t.Context(), old, ""); err == nil || !strings.Contains(err.Error(), "fingerprint") {
		t.Errorf("with the old key: %v", err)
	}
	if database, own, failed := fingerprints(t.Context(), old); failed != nil || database == own {
		t.Errorf("fingerprints %s and %s, %v", database, own, failed)
	}
	// Broken off behind the database's commit.
	if err = errors.Join(os.WriteFile(path+next, []byte(second), 0o600),
		os.WriteFile(path, []byte(first), 0o600)); err != nil {
		t.Fatal(err)
	}
	readable("broken off at its end", cfg)
	if _, _, err = rotateMasterKey(t.Context(), cfg, ""); err != nil || read() == first || read() == second {
		t.Fatalf("again: %v", err)
	}
	readable("again", cfg)
	// Broken off before it.
	if err = os.WriteFile(path+next, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	readable("broken off before it began", cfg)
	if _, _, err = rotateMasterKey(t.Context(), cfg, ""); err != nil {
		t.Fatal(err)
	}
	environment := cfg
	environment.MasterKey = config.Secret(read())
	if _, _, err = rotateMasterKey(t.Context(), environment, ""); err == nil ||
		!strings.Contains(err.Error(), "--new-key-file") {
		t.Errorf("of the environment: %v", err)
	}
	file := filepath.Join(dir, "elsewhere", "key")
	if _, _, err = rotateMasterKey(t.Context(), environment, file); err != nil {
		t.Fatal(err)
	}
	environment.MasterKey, environment.MasterKeyFile = "", file
	readable("in a new file", environment)
}
