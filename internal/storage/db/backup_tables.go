package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"millrace/internal/storage/rows"
)

// backedUp are the tables that a backup has, each behind those that it refers to. The jobs are one more, jobsTable.
func backedUp() []string {
	return []string{
		"environments", "tokens", "live_streams", "assets", "asset_uses", "tracks", "timeline_entries", "playback_ids",
		"events", "event_numbers", "event_cursor", "webhooks", "webhook_deliveries", "uploads", "delivery_usage",
		"delivery_usage_days", "deleted_assets", "signing_keys", "playback_restrictions", "path_secrets", "master_key",
		"drm_configurations", "content_keys", "audit_log", "transcription_vocabularies", "dashboard_password", "owners",
		"retention_policies",
	}
}

// leftOut are the tables that a backup does not have: leases and counts of seconds, who is signed in, and what is
// measured again.
func leftOut() []string {
	return []string{"nodes", "claims", "audiences", "dashboard_links", "dashboard_sessions", "media_sizes"}
}

// compatibilityTable says which programs may run on the schema. Migrations alone write it: a backup has none of it, and
// rows that are loaded leave it as it is.
const compatibilityTable = "schema_compatibility"

// madeBySchema are the tables that have a row in a database which nobody has used.
func madeBySchema() []string { return []string{"event_cursor", "master_key"} }

// queries is a connection, a pool or a transaction.
type queries interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// columnKinds are the types of our columns as the engines name them.
func columnKinds() map[string]rows.Kind {
	return map[string]rows.Kind{
		"text": rows.Text, "character varying": rows.Text, "varchar": rows.Text, "bigint": rows.Integer,
		"boolean": rows.Boolean, "bytea": rows.Bytes, "double precision": rows.Real,
	}
}

// columnsOf are the columns of a table; none: there is no such table.
func columnsOf(ctx context.Context, q queries, postgres bool, table string) (t rows.Table, err error) {
	query := "SELECT name, type FROM pragma_table_info($1) ORDER BY cid"
	if postgres {
		query = "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() " +
			"AND table_name = $1 ORDER BY ordinal_position"
	}
	found, err := q.QueryContext(ctx, query, table)
	if err != nil {
		return t, fmt.Errorf("read columns of %s: %w", table, err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	t.Name = table
	for found.Next() {
		var name, typ string
		if err = found.Scan(&name, &typ); err != nil {
			return t, fmt.Errorf("read columns of %s: %w", table, err)
		}
		typ, _, _ = strings.Cut(strings.ToLower(typ), "(")
		kind, known := columnKinds()[typ]
		if !known {
			return t, fmt.Errorf("column %s of %s is of the type %s, which no backup has", name, table, typ)
		}
		t.Columns = append(t.Columns, rows.Column{Name: name, Kind: kind})
	}
	if err = found.Err(); err != nil {
		return t, fmt.Errorf("read columns of %s: %w", table, err)
	}
	return t, nil
}

func names(t rows.Table) string {
	all := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		all[i] = c.Name
	}
	return strings.Join(all, ", ")
}

// jobsTable are the jobs that are not done, whatever River's tables are like.
func jobsTable() rows.Table {
	return rows.Table{Name: "jobs", Columns: []rows.Column{
		{Name: "kind", Kind: rows.Text},
		{Name: "queue", Kind: rows.Text},
		{Name: "at", Kind: rows.Integer},
		{Name: "args", Kind: rows.Text},
	}}
}

// newestVersion is the version of the schema; 0: there is none.
func newestVersion(ctx context.Context, q queries) (v int64, err error) {
	if err = q.QueryRowContext(ctx, newestSchema).Scan(&v); err != nil {
		return 0, fmt.Errorf("read version of schema: %w", err)
	}
	return v, nil
}
