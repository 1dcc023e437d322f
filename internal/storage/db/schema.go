package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"millrace/internal/control/node"
	"millrace/internal/fault"
)

// compatibilityFrom is the migration that has compatibilityTable.
const compatibilityFrom = 45

const (
	// newestSchema is the number of the newest migration that the database has, whoever has made it.
	newestSchema = "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied"
	// admittedSchema is the oldest schema whose programs may run on the database. Without a row none but those that
	// know the newest.
	admittedSchema = "SELECT COALESCE(MAX(since), (" + newestSchema + ")) FROM " + compatibilityTable
)

// schemaOf reads the schema of a database that has compatibilityTable.
func schemaOf(ctx context.Context, q queries) (s node.Schema, err error) {
	err = q.QueryRowContext(ctx, "SELECT ("+newestSchema+"), ("+admittedSchema+")").Scan(&s.Newest, &s.Since)
	if err != nil {
		return s, fmt.Errorf("read version of schema: %w", err)
	}
	return s, nil
}

// Schema implements node.Store.
func (ns nodeStore) Schema(ctx context.Context) (node.Schema, error) {
	return schemaOf(ctx, ns.read.DB)
}

// SchemaAt reads the schema of the database at a URL as Open takes it, without a change to it. One that no service has
// used yet is fault.NotFound.
func SchemaAt(ctx context.Context, rawURL string) (s node.Schema, err error) {
	pool, err := openToDump(rawURL)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if s.Newest, err = newestVersion(ctx, pool); err != nil {
		if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return s, err
		}
		return s, fault.Wrap(fault.NotFound, err, "the database has no tables: no service has used it yet")
	}
	t, err := columnsOf(ctx, pool, isPostgres(rawURL), compatibilityTable)
	if err != nil || len(t.Columns) == 0 { // it is older, and is migrated
		return s, err
	}
	return schemaOf(ctx, pool)
}

// raised is how a migration says that programs which know less than a version can't run on its result.
var raised = regexp.MustCompile(`(?m)^-- \+since (\d+)$`)

// sinceAfter is the oldest schema whose programs may run once the migrations behind a version are made; 0: these change
// nothing about it.
func sinceAfter(files fs.FS, have int64) (since int64, err error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return 0, fmt.Errorf("list migrations: %w", err)
	}
	for _, name := range names {
		number, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("read number of migration: %w", err)
		}
		if number <= have {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return 0, fmt.Errorf("read migration: %w", err)
		}
		if m := raised.FindSubmatch(text); m != nil {
			n, _ := strconv.ParseInt(string(m[1]), 10, 64) // digits; TestMigrationsSaySince
			since = max(since, n)
		}
	}
	return since, nil
}

// spares refuses to migrate a database under nodes that could not go on with the result. On SQLite there are none.
func (o Options) spares(ctx context.Context, db *sql.DB, have int64) error {
	if have < compatibilityFrom || !isPostgres(o.URL) {
		return nil
	}
	since, err := sinceAfter(o.files(), have)
	if err != nil || since == 0 {
		return err
	}
	found, err := db.QueryContext(ctx, "SELECT id, version FROM nodes WHERE run <> '' AND valid_until > "+
		postgresNow+" AND schema_version < $1 ORDER BY id LIMIT 10", since)
	if err != nil {
		return fmt.Errorf("look for nodes of earlier versions: %w", err)
	}
	defer func() { _ = found.Close() }() // Err says what is wrong
	var nodes []string
	for found.Next() {
		var name, version string
		if err = found.Scan(&name, &version); err != nil {
			return fmt.Errorf("look for nodes of earlier versions: %w", err)
		}
		nodes = append(nodes, name+" ("+version+")")
	}
	if err = found.Err(); err != nil {
		return fmt.Errorf("look for nodes of earlier versions: %w", err)
	}
	if len(nodes) > 0 {
		return fault.New(fault.Conflict, "the schema of the database is not migrated, as these nodes run and can't "+
			"run on the new one, which needs programs that know version %d of it: %s; first upgrade them to the "+
			"release before this one, or stop them", since, strings.Join(nodes, ", "))
	}
	return nil
}
