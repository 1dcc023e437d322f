package db_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/fault"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestSessions: who is signed in to the dashboard, and how a password is set.
func TestSessions(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		s, ctx := d.Sessions(), t.Context()
		if _, err := s.Password(ctx); !fault.Is(err, fault.NotFound) {
			t.Fatalf("a password before one is set: %v", err)
		}
		owner := access.Session{Hash: "o1", Environment: "e", Address: "192.0.2.1", CreatedAt: at(1), ExpiresAt: at(50)}
		every(t, access.Session{
			Hash: "o1", Environment: "e", Token: "t", Address: "192.0.2.1", CreatedAt: at(1),
			ExpiresAt: at(50),
		})
		wantKind(t, s.SetPassword(ctx, "link", "secret", owner), fault.NotFound)
		must(t, errors.Join(s.InsertLink(ctx, "link", at(0), at(10)), s.InsertLink(ctx, "other", at(0), at(10))))
		must(t, s.Link(ctx, "link", at(9)))
		wantKind(t, s.Link(ctx, "link", at(10)), fault.NotFound)
		results := make([]error, 8)
		_ = together(8, func(i int) error { // of eight that use a link at once, one succeeds
			o := owner
			o.Hash = "o" + string(rune('1'+i))
			results[i] = s.SetPassword(ctx, "link", "secret", o)
			return nil
		})
		won := 0
		for i, err := range results {
			if err == nil {
				won++
				owner.Hash = "o" + string(rune('1'+i))
			} else if !fault.Is(err, fault.NotFound) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("a link was used %d times", won)
		}
		wantKind(t, s.Link(ctx, "other", at(1)), fault.NotFound)
		if hash, err := s.Password(ctx); err != nil || hash != "secret" {
			t.Errorf("password %q, %v", hash, err)
		}
		if got, err := s.Session(ctx, owner.Hash, at(49)); err != nil || !reflect.DeepEqual(got, owner) {
			t.Errorf("session %+v, %v, want %+v", got, err, owner)
		}
		testSessionsEnd(t, s, owner)
	})
}

func testSessionsEnd(t *testing.T, s access.SessionStore, owner access.Session) {
	t.Helper()
	ctx := t.Context()
	gone := func(hash string, when time.Time) {
		t.Helper()
		_, err := s.Session(ctx, hash, when)
		wantKind(t, err, fault.NotFound)
	}
	gone(owner.Hash, at(50))
	second := access.Session{Hash: "second", Environment: "e", CreatedAt: at(2), ExpiresAt: at(60)}
	wantKind(t, s.InsertSession(ctx, second, "old"), fault.Conflict)
	must(t, s.InsertSession(ctx, second, "secret"))
	token := access.Session{Hash: "token", Environment: "e", Token: "t", CreatedAt: at(51), ExpiresAt: at(70)}
	must(t, s.InsertSession(ctx, token, ""))
	gone(owner.Hash, at(3)) // it was over when another began, and was removed
	must(t, s.DeleteSession(ctx, "nothing"))
	must(t, s.DeleteSessions(ctx, ""))
	gone(second.Hash, at(3))
	if _, err := s.Session(ctx, token.Hash, at(60)); err != nil {
		t.Error(err)
	}
	must(t, s.InsertLink(ctx, "again", at(0), at(100)))
	must(t, s.InsertSession(ctx, second, "secret"))
	third := access.Session{Hash: "third", Environment: "e", CreatedAt: at(3), ExpiresAt: at(60)}
	must(t, s.SetPassword(ctx, "again", "changed", third)) // ends the owner's sessions alone
	gone(second.Hash, at(4))
	if _, err := s.Session(ctx, third.Hash, at(4)); err != nil {
		t.Error(err)
	}
	must(t, s.DeleteSession(ctx, token.Hash))
	gone(token.Hash, at(60))
}

// TestSessionsAreAudited: signing in, and secrets that are shown, are in the audit log.
func TestSessionsAreAudited(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		s := d.Sessions()
		with := func(op string) audit.Entry {
			return audit.Entry{
				At: at(1), Operation: op, Actor: audit.Actor{Type: audit.Dashboard, Name: "owner"},
				Address: "192.0.2.1",
			}
		}
		v := access.Session{Hash: "h", Environment: "e", Token: "t", CreatedAt: at(1), ExpiresAt: at(9)}
		must(t, s.InsertSession(audit.With(t.Context(), with("sign-in")), v, ""))
		must(t, s.NoteShown(audit.With(t.Context(), with("show-stream-key")), "e", "live_stream", "s"))
		all, err := d.AuditLog(t.Context(), audit.Query{Limit: 10})
		must(t, err)
		if len(all) != 2 {
			t.Fatalf("entries %+v", all)
		}
		for _, e := range all {
			want := map[string]audit.Resource{
				"sign-in": {Type: "dashboard_session", ID: "t"}, "show-stream-key": {Type: "live_stream", ID: "s"},
			}[e.Operation]
			if e.Resource != want || e.Environment != "e" || e.Actor.Type != audit.Dashboard {
				t.Errorf("entry %+v", e)
			}
		}
	})
}
