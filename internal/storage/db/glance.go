package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Glance reads a database that a service may be using at the same time. It makes, migrates and writes nothing, and
// needs no master key.
type Glance struct{ read *bun.DB }

// uploadSweepFrom is the migration that has what a Glance reads.
const uploadSweepFrom = 36

// OpenGlance opens the database at a URL as Open takes it. One that is not there, or was never opened by a version that
// has what a Glance reads, is fault.NotFound.
func OpenGlance(ctx context.Context, rawURL string) (*Glance, error) {
	read, err := openToRead(rawURL)
	if err != nil {
		return nil, err
	}
	var version int64
	err = read.NewSelect().Table("goose_db_version").ColumnExpr("COALESCE(MAX(version_id), 0)").Scan(ctx, &version)
	if err != nil || version < uploadSweepFrom {
		_ = read.Close() // nothing was read
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && fault.Is(away(ctx, err), fault.Unavailable):
		return nil, gone(err)
	case err != nil || version < uploadSweepFrom:
		return nil, fault.New(fault.NotFound, "the database has no tables of this version yet")
	}
	return &Glance{read}, nil
}

func openToRead(rawURL string) (*bun.DB, error) {
	if isPostgres(rawURL) {
		cfg, err := parsePostgres(rawURL)
		if err != nil {
			return nil, err
		}
		return bun.NewDB(stdlib.OpenDB(*cfg.ConnConfig), pgdialect.New()), nil
	}
	path, err := sqlitePath(rawURL)
	if err != nil {
		return nil, err
	}
	if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "there is no database yet")
	} else if err != nil {
		return nil, fmt.Errorf("look at database: %w", err)
	}
	read, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+readPragmas)
	if err != nil {
		return nil, fmt.Errorf("open database for reading: %w", err)
	}
	return bun.NewDB(read, sqlitedialect.New()), nil
}

// OverdueUploads are the uploads whose next job is late; see upload.Store.
func (g *Glance) OverdueUploads(
	ctx context.Context, before time.Time, behind upload.Overdue, limit int,
) ([]upload.Overdue, error) {
	return overdueUploads(ctx, g.read, before, behind, limit)
}

// ExpectingUploads are those of the media sets whose uploads are not cleared; see upload.Store.
func (g *Glance) ExpectingUploads(ctx context.Context, all []id.Media) ([]id.Media, error) {
	return expectingUploads(ctx, g.read, all)
}

// Close lets go of the connections.
func (g *Glance) Close() error {
	if err := g.read.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}
