package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/app/backups"
	"millrace/internal/config"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	kept "millrace/internal/storage/rows"
)

// TestBackupBeforeUpgrade: before the schema is migrated the rows are backed up, and restored from there to another
// database, beside a storage that is in use; without room for the backup nothing is migrated, and a sentence says why.
func TestBackupBeforeUpgrade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := config.Config{
		DataDir: dir, Database: config.Database{
			Engine: config.SQLite, Path: filepath.Join(dir, "millrace.db"), UpgradeBackup: true,
		},
	}
	older(t, cfg)
	place := backups.UpgradePlace(cfg)
	if err := os.WriteFile(place, nil, 0o600); err != nil { // no folder, so nothing can be written there
		t.Fatal(err)
	}
	if d, err := openUpgraded(t, cfg); err == nil || !strings.Contains(err.Error(), "--upgrade-backup=off") ||
		!strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), "37") {
		t.Fatalf("without a place for the backup: %v, %v", d, err)
	}
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to migrate
		hasStream(t, cfg)
		if all, err := filepath.Glob(place + "/snapshots/*/manifest.json"); err != nil || len(all) != 1 {
			t.Fatalf("backups %q, %v", all, err)
		}
	}
	if err := os.Rename(cfg.Database.Path, cfg.Database.Path+".aside"); err != nil {
		t.Fatal(err)
	}
	media := filepath.Join(dir, "storage", "media", "x")
	if err := os.MkdirAll(filepath.Dir(media), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(media, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The rows have been encrypted under a key of zeros.
	key := filepath.Join(dir, "zero-key")
	if err := os.WriteFile(key, []byte(strings.Repeat("0", 64)), 0o600); err != nil { //nolint:mnd // hexadecimal digits
		t.Fatal(err)
	}
	c := &commandLine{t: t, seen: map[string]bool{}, ran: map[string]bool{}, cfg: cfg}
	c.run("restore", place, "--overwrite", "--master-key-file="+key)
	hasStream(t, cfg)
	if _, err := os.Stat(media); err != nil {
		t.Errorf("the media: %v", err)
	}
}

// older makes a database of an earlier version of the schema.
func older(t *testing.T, cfg config.Config) {
	t.Helper()
	f, err := os.Open("../storage/db/testdata/schemas/037.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read from
	from, err := kept.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	l, err := db.OpenLoad(t.Context(), cfg.Database.Address(), from.Schema(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err = l.Rows(t.Context(), from, nil); err != nil {
		t.Fatal(err)
	}
	if err = l.Close(); err != nil {
		t.Fatal(err)
	}
}

func openUpgraded(t *testing.T, cfg config.Config) (*db.DB, error) {
	t.Helper()
	return openDatabaseWith(t.Context(), cfg, slog.New(slog.DiscardHandler), masterkey.Of(masterkey.Key{}))
}

func hasStream(t *testing.T, cfg config.Config) {
	t.Helper()
	d, err := openUpgraded(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.LiveStreams().Find(t.Context(), "s-kept")
	if err != nil || s.StreamKey != "key-kept" {
		t.Errorf("stream %+v, %v", s, err)
	}
	if err = d.Close(); err != nil {
		t.Fatal(err)
	}
}
