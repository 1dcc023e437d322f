package doctor

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"millrace/internal/config"
	"millrace/internal/storage/db"
)

// Sessions checks that connections to PostgreSQL keep their sessions: behind a pooler of transactions nodes have no
// locks and are not notified. What leads to that pooler is only looked at with the server's own URL.
type Sessions struct{ Database config.Database }

// Name implements Check.
func (Sessions) Name() string { return "database sessions" }

// Run implements Check.
func (s Sessions) Run(ctx context.Context) Finding {
	server := PostgreSQL{URL: config.Secret(s.Database.Server())}
	switch err := db.KeepsSessions(ctx, s.Database.Server()); {
	case errors.Is(err, db.ErrPooled) && s.Database.Direct != "":
		return problem("Give the URL of the server itself as database-direct-url.",
			"database-direct-url leads to a pooler of transactions too")
	case errors.Is(err, db.ErrPooled):
		return problem("Give the URL of the server itself as database-direct-url, besides that of the pooler.",
			"database-url leads to a pooler of transactions, such as pgbouncer")
	case err != nil:
		return server.explain(err)
	case s.Database.Direct == "":
		return ok("connections keep their sessions")
	}
	cfg, err := pgx.ParseConfig(s.Database.Address())
	if err != nil {
		return problem("Write it as postgres://user:password@host:5432/name.", "database-url cannot be read")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	pooled := sql.OpenDB(stdlib.GetConnector(*cfg))
	defer func() { _ = pooled.Close() }() // nothing was kept
	var one int
	if err := pooled.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		return PostgreSQL{URL: s.Database.URL}.explain(err)
	}
	return ok("database-direct-url leads to the server, and database-url through a pooler")
}
