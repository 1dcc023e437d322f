package doctor

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"millrace/internal/config"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

// TestSchema: which schemas of the database a program can run on.
func TestSchema(t *testing.T) {
	t.Parallel()
	own, err := db.SchemaVersion()
	if err != nil {
		t.Fatal(err)
	}
	s := Schema{config.Database{Engine: config.SQLite, Path: filepath.Join(t.TempDir(), "m.db")}}
	version := func(n int64) string { return fmt.Sprintf("version %d", n) }
	expect(t, s, OK, version(own)+" is made at the first start")
	if exists(s.Database.Path) {
		t.Error("the check made the file")
	}
	d, err := db.Open(t.Context(), db.Options{URL: s.Database.Path, MasterKey: masterkey.Of(masterkey.Key{})})
	if err != nil {
		t.Fatal(err)
	}
	if err = d.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, s, OK, version(own)+", that of this program")
	change := func(statement string) {
		t.Helper()
		alter(t, s.Database.Path, statement)
	}
	change(fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, TRUE)", own+1))
	expect(t, s, OK, "to "+version(own+1))
	change(fmt.Sprintf("UPDATE schema_compatibility SET since = %d", own+1))
	expect(t, s, Problem, "know "+version(own+1)+" or a later one can run")
	change(fmt.Sprintf("DELETE FROM goose_db_version WHERE version_id >= %d", own))
	change("DROP TABLE schema_compatibility")
	expect(t, s, OK, fmt.Sprintf("which is migrated to %d", own))
}

// alter runs a statement on an SQLite database.
func alter(t *testing.T, path, statement string) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }() // nothing is under way
	if _, err = pool.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
