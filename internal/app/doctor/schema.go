package doctor

import (
	"context"

	"millrace/internal/config"
	"millrace/internal/fault"
	"millrace/internal/storage/db"
)

// Schema checks that this program can run on the schema of the database, whichever version has migrated that.
type Schema struct{ Database config.Database }

// Name implements Check.
func (Schema) Name() string { return "database schema" }

// Run implements Check.
func (s Schema) Run(ctx context.Context) Finding {
	own, err := db.SchemaVersion()
	if err != nil {
		return problem("Install Millrace again.", "the program is damaged: %v", err)
	}
	found, err := db.SchemaAt(ctx, s.Database.Server())
	switch {
	case fault.Is(err, fault.NotFound):
		return ok("version %d is made at the first start", own)
	case err != nil && s.Database.Engine == config.Postgres:
		return PostgreSQL{URL: config.Secret(s.Database.Server())}.explain(err)
	case err != nil:
		return problem("See what is said of the database above.", "it can't be read: %v", cause(err))
	case found.Admits(own) != nil:
		return problem("Install the version of Millrace that migrated it, or a later one; or restore the backup that "+
			"was made before.", "a later version has migrated it to version %d, on which only programs that know "+
			"version %d or a later one can run; this one knows %d", found.Newest, found.Since, own)
	case found.Newest > own:
		return ok("a later version has migrated it to version %d; this program knows %d, and runs on it", found.Newest,
			own)
	case found.Newest < own:
		return ok("version %d, which is migrated to %d when the service starts", found.Newest, own)
	}
	return ok("version %d, that of this program", own)
}
