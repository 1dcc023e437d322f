package db_test

import (
	"context"
	"fmt"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestAuditLog writes entries with changes, reads them by every filter and page by page, and removes old ones a few at
// a time.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		t.Helper()
		store, ctx := d.Access(), t.Context()
		env, err := store.EnsureDefault(audit.With(ctx, audit.Entry{At: at(0)}), access.Environment{
			ID: "env", Name: "Default", CreatedAt: at(0),
		})
		must(t, err)
		for i := 1; i <= 5; i++ {
			own := audit.With(ctx, audit.Entry{
				At: at(i), Operation: fmt.Sprint("op", i%2),
				Actor: audit.Actor{Type: audit.AccessToken, ID: "t", Name: fmt.Sprint("n", i)}, Address: "192.0.2.1",
				RequestID: "r",
			})
			token := access.Token{
				ID: id.Token(fmt.Sprint("made", i)), Environment: env.ID, Permissions: []string{}, Hash: []byte{1},
				CreatedAt: at(i),
			}
			must(t, store.InsertToken(own, token, 10))
			if store.InsertToken(own, token, 10) == nil { // refused, and the entry is written already
				t.Error("inserted twice")
			}
			must(t, store.RevokeToken(own, "", token.ID, at(i)))
		}
		for name, tt := range map[string]struct {
			q    audit.Query
			want string
		}{
			"all":            {audit.Query{}, "made5 made4 made3 made2 made1 "},
			"limit":          {audit.Query{Limit: 2}, "made5 made4 "},
			"environment":    {audit.Query{Environment: "env", Limit: 1}, "made5 "},
			"another":        {audit.Query{Environment: "x"}, ""},
			"operation":      {audit.Query{Operation: "op0"}, "made4 made2 "},
			"actor by name":  {audit.Query{Actor: "n3"}, "made3 "},
			"actor by ID":    {audit.Query{Actor: "t", Resource: "made2"}, "made2 "},
			"since":          {audit.Query{Since: at(4)}, "made5 made4 "},
			"until":          {audit.Query{Until: at(3)}, "made2 made1 "},
			"what can't be":  {audit.Query{Actor: "\x00"}, ""},
			"nor this":       {audit.Query{Resource: "\xff"}, ""},
			"nor that":       {audit.Query{Before: "\x00"}, ""},
			"other resource": {audit.Query{Resource: "made9"}, ""},
		} {
			if tt.q.Limit == 0 {
				tt.q.Limit = 100
			}
			if got := resources(t, d.AuditLog, tt.q); got != tt.want {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
		}
		page, err := d.AuditLog(ctx, audit.Query{Limit: 2})
		must(t, err)
		if got := resources(t, d.AuditLog, audit.Query{Before: page[1].ID, Limit: 2}); got != "made3 made2 " {
			t.Errorf("the next page has %q", got)
		}
		for _, want := range []int{2, 1, 0} {
			if n, failed := d.PruneAuditLog(ctx, at(4), 2); failed != nil || n != want {
				t.Errorf("removed %d, %v, want %d", n, failed, want)
			}
		}
		if got := resources(t, d.AuditLog, audit.Query{Limit: 9}); got != "made5 made4 " {
			t.Errorf("left are %q", got)
		}
	})
}

func resources(
	t *testing.T, read func(context.Context, audit.Query) ([]audit.Entry, error), q audit.Query,
) (out string) {
	t.Helper()
	found, err := read(t.Context(), q)
	must(t, err)
	for _, e := range found {
		if e.Resource.Type != "access_token" || e.Environment != "env" {
			t.Errorf("entry %+v", e)
		}
		out += e.Resource.ID + " "
	}
	return out
}
