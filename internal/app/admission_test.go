package app

import (
	"context"
	"testing"
	"time"

	"millrace/internal/control/restriction"
	"millrace/internal/fault"
	"millrace/internal/storage/db/dbtest"
)

// TestDeletedOnAnotherNode: a key and a restriction that one node deletes are refused by another at once. Its clock
// stands still, so that it is not the age of what it knows.
func TestDeletedOnAnotherNode(t *testing.T) {
	t.Parallel()
	url, ctx, now := dbtest.Postgres(t), t.Context(), time.Now()
	var nodes [2]*node
	for i := range nodes {
		nodes[i] = &node{db: dbtest.Open(t, url)}
		nodes[i].admitViewers()
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan error, 1)
		go func() { done <- nodes[i].db.Run(running) }()
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	a, b := nodes[0], nodes[1]
	none := restriction.Referrer{AllowNoReferrer: true}
	// The first ones may be deleted before the other node listens: then it is told that it missed something.
	for range 3 {
		k, _, err := a.signing.Create(ctx, "env", now)
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.restrictions.Create(ctx, "env", none, restriction.UserAgent{AllowNone: true}, now)
		if err != nil {
			t.Fatal(err)
		}
		key := func() error { _, err := b.signing.Known(ctx, "env", k.ID, now); return err }
		rule := func() error { return b.restrictions.Permits(ctx, "env", r.ID, nil, nil, now) }
		if err := key(); err != nil {
			t.Fatal(err)
		}
		if err := rule(); err != nil {
			t.Fatal(err)
		}
		if err := a.restrictions.Delete(ctx, "env", r.ID); err != nil {
			t.Fatal(err)
		}
		untilDenied(t, "restriction", rule)
		if err := a.signing.Delete(ctx, "env", k.ID); err != nil {
			t.Fatal(err)
		}
		untilDenied(t, "signing key", key)
	}
}

// untilDenied asks until the response is fault.Denied.
func untilDenied(t *testing.T, what string, ask func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !fault.Is(ask(), fault.Denied); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not refused within a minute", what)
		}
	}
}
