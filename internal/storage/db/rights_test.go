package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millrace/internal/control/access"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// viewers are the services of one process that caches who may watch.
type viewers struct {
	keys  *signing.Service
	rules *restriction.Service
	heard chan string
}

func viewersOf(d *db.DB) viewers {
	return viewers{
		signing.New(signing.Options{Store: d.Signing()}), restriction.New(restriction.Options{Store: d.Restrictions()}),
		make(chan string, 100),
	}
}

// hear has another process's changes told, until the test ends.
func (v viewers) hear(t *testing.T, d *db.DB) {
	t.Helper()
	d.HearRights(db.Rights{
		SigningKey:  func(k id.SigningKey) { v.keys.Forget(k); v.heard <- "key " + string(k) },
		Restriction: func(r id.PlaybackRestriction) { v.rules.Forget(r); v.heard <- "restriction " + string(r) },
		Missed:      func() { v.keys.ForgetAll(); v.rules.ForgetAll(); v.heard <- "missed" },
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
	})
	v.next(t, "missed") // it listens now
}

// next waits for what is told next.
func (v viewers) next(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-v.heard:
		if got != want {
			t.Fatalf("heard %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("not heard: %s", want)
	}
}

// TestRightsAreTold: what another process deletes or changes holds here at once. The clock stands still, so that no
// entry of a cache gets old; a process that is not told goes on with what it knows.
func TestRightsAreTold(t *testing.T) {
	t.Parallel()
	url, ctx, now := dbtest.Postgres(t), t.Context(), time.Now()
	here, there := dbtest.Open(t, url), dbtest.Open(t, url)
	env, err := here.Access().EnsureDefault(ctx, access.Environment{ID: "env", Name: "Default", CreatedAt: at(0)})
	must(t, err)
	changes, told, deaf := viewersOf(here), viewersOf(there), viewersOf(there)
	told.hear(t, there)
	k, _, err := changes.keys.Create(ctx, env.ID, now)
	must(t, err)
	everywhere := restriction.Referrer{AllowedDomains: []string{"*"}}
	r, err := changes.rules.Create(ctx, env.ID, everywhere, restriction.UserAgent{AllowNone: true}, now)
	must(t, err)
	allowed := func(v viewers) error {
		return v.rules.Permits(ctx, env.ID, r.ID, []string{"https://example.com/"}, nil, now)
	}
	known := func(v viewers) error { _, failed := v.keys.Known(ctx, env.ID, k.ID, now); return failed }
	expect := func(what string, here, deaf error, denied bool) {
		t.Helper()
		if fault.Is(here, fault.Denied) != denied || !denied && here != nil || deaf != nil {
			t.Errorf("%s: %v; to who is not told: %v", what, here, deaf)
		}
	}
	expect("key", known(told), known(deaf), false)
	expect("restriction", allowed(told), allowed(deaf), false)

	_, err = changes.rules.SetReferrer(ctx, env.ID, r.ID, restriction.Referrer{}, now)
	must(t, err)
	told.next(t, "restriction "+string(r.ID))
	expect("changed restriction", allowed(told), allowed(deaf), true)
	_, err = changes.rules.SetReferrer(ctx, env.ID, r.ID, everywhere, now)
	must(t, err)
	told.next(t, "restriction "+string(r.ID))
	expect("restriction that is changed back", allowed(told), allowed(deaf), false)
	_, err = changes.rules.SetUserAgent(ctx, env.ID, r.ID, restriction.UserAgent{}, now)
	must(t, err)
	told.next(t, "restriction "+string(r.ID))
	expect("restriction with another block changed", allowed(told), allowed(deaf), true)
	must(t, changes.rules.Delete(ctx, env.ID, r.ID))
	told.next(t, "restriction "+string(r.ID))
	expect("deleted restriction", allowed(told), allowed(deaf), true)

	if err = changes.keys.Delete(ctx, "another environment", k.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("another's key is deleted: %v", err) // of which nobody is told, else the next would be heard twice
	}
	must(t, changes.keys.Delete(ctx, env.ID, k.ID))
	told.next(t, "key "+string(k.ID))
	expect("deleted key", known(told), known(deaf), true)
}

// TestRightsAfterReconnect: a process that lost its connection, and with it what was told, knows nothing for sure once
// it has another.
func TestRightsAfterReconnect(t *testing.T) {
	t.Parallel()
	url, ctx, now := dbtest.Postgres(t), t.Context(), time.Now()
	there := dbtest.Open(t, url)
	env, err := there.Access().EnsureDefault(ctx, access.Environment{ID: "env", Name: "Default", CreatedAt: at(0)})
	must(t, err)
	told := viewersOf(there)
	told.hear(t, there)
	k, _, err := told.keys.Create(ctx, env.ID, now)
	must(t, err)
	none := restriction.Referrer{AllowNoReferrer: true}
	rule, err := told.rules.Create(ctx, env.ID, none, restriction.UserAgent{AllowNone: true}, now)
	must(t, err)
	both := func() (key, restriction error) {
		_, key = told.keys.Known(ctx, env.ID, k.ID, now)
		return key, told.rules.Permits(ctx, env.ID, rule.ID, nil, nil, now)
	}
	if key, restriction := both(); key != nil || restriction != nil {
		t.Fatal(key, restriction)
	}
	admin, err := pgx.Connect(ctx, url)
	must(t, err)
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(ctx)) })
	// nobody is told
	for _, statement := range []string{"DELETE FROM signing_keys", "DELETE FROM playback_restrictions"} {
		_, err = admin.Exec(ctx, statement)
		must(t, err)
	}
	if key, restriction := both(); key != nil || restriction != nil {
		t.Fatalf("they are not from a cache: %v, %v", key, restriction)
	}
	ended, err := admin.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'millrace listener'`)
	must(t, err)
	if ended.RowsAffected() == 0 {
		t.Fatal("no connection listens")
	}
	told.next(t, "missed")
	if key, restriction := both(); !fault.Is(key, fault.Denied) || !fault.Is(restriction, fault.Denied) {
		t.Errorf("after the connection was lost: %v, %v", key, restriction)
	}
}
