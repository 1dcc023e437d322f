package db_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
)

// TestConnectionsEnd ends every connection under its users: what they get is done, or said to be away.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	d := dbtest.Open(t, url)
	admin, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { _ = admin.Close(t.Context()) })
	insertAssets(t, d, plainAsset("env", "a", at(1)))
	env, err := d.Access().EnsureDefault(t.Context(), access.Environment{
		ID: "e", Name: "Default", Kind: "production", CreatedAt: at(1),
	})
	must(t, err)
	unreached := 0
	for i := range 20 {
		for what, call := range map[string]func() error{
			"ping": func() error { return d.Ping(t.Context()) },
			"read": func() error { _, err := d.Assets().Find(t.Context(), "a-a"); return err },
			"list": func() error {
				_, _, err := d.Assets().List(t.Context(), "env", asset.ListQuery{Page: 1, Limit: 9})
				return err
			},
			"write": func() error {
				return d.Assets().Insert(t.Context(), asset.Change{
					Asset: plainAsset("env", id.New(), at(2)), Jobs: wish(id.New()),
				})
			},
			"plain write": func() error {
				token := access.Token{
					ID: id.Token(id.New()), Environment: env.ID, Permissions: []string{}, Hash: []byte{1},
					CreatedAt: at(3),
				}
				return d.Access().InsertToken(t.Context(), token, 100)
			},
		} {
			_, err := admin.Exec(t.Context(),
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid "+
					"<> pg_backend_pid()")
			must(t, err)
			err = call()
			if err != nil && !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s %d: %v is of kind %v", what, i, err, fault.KindOf(err))
			}
			if err != nil {
				unreached++
			}
			for err != nil { // a new connection, for the next round to end
				err = d.Ping(t.Context())
			}
		}
	}
	t.Logf("%d of 100 calls were not reached", unreached)
}
