package rig

import (
	"context"
	"testing"

	"millrace/test/services"
)

// Replicated is a PostgreSQL server of the test's own, which it may kill, with a standby. It ends with the test.
type Replicated struct{ *services.Replicated }

// StartReplicated starts one, and gives the URL of an empty database of it for Options.
func StartReplicated(t testing.TB) (r Replicated, database string) {
	t.Helper()
	Scaled.need(t)
	started, err := services.PostgresReplicated(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Stop)
	if err = started.Primary.SQL(t.Context(), "CREATE DATABASE millrace"); err != nil {
		t.Fatal(err)
	}
	return Replicated{started}, started.Database("millrace")
}

// StartPgbouncer starts a pooler of transactions in front of an empty database, and gives what servers are started
// with.
func StartPgbouncer(t testing.TB) Options {
	t.Helper()
	Scaled.need(t)
	if _, err := services.PgbouncerPath(); err != nil {
		Missing(t, err.Error())
	}
	direct := database(t)
	s, err := services.Pgbouncer(context.WithoutCancel(t.Context()), direct, "transaction")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return Options{Database: s.URL, Env: []string{"MILLRACE_DATABASE_DIRECT_URL=" + direct}}
}
