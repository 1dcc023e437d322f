package rig

import (
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
