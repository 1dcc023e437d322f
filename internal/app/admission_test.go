package app

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"millrace/internal/config"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/storage/db/dbtest"
)

// rights are a key and two restrictions that node a has made, and node b knows.
type rights struct {
	a, b             *node
	key              id.SigningKey
	changed, deleted id.PlaybackRestriction
	made             time.Time
}

func newRights(t *testing.T, a, b *node) rights {
	t.Helper()
	now := time.Now()
	k, _, err := a.signing.Create(t.Context(), "env", now)
	if err != nil {
		t.Fatal(err)
	}
	r := rights{a: a, b: b, key: k.ID, made: now}
	for _, to := range []*id.PlaybackRestriction{&r.changed, &r.deleted} {
		open := restriction.Referrer{AllowNoReferrer: true}
		made, err := a.restrictions.Create(t.Context(), "env", open, restriction.UserAgent{AllowNone: true}, now)
		if err != nil {
			t.Fatal(err)
		}
		*to = made.ID
	}
	r.known(t)
	return r
}

// asked is what node b responds with, at a time after all of it was made.
func (r rights) asked(t *testing.T, after time.Duration) map[string]func() error {
	t.Helper()
	ctx, now := t.Context(), r.made.Add(after)
	return map[string]func() error{
		"signing key":         func() error { _, err := r.b.signing.Known(ctx, "env", r.key, now); return err },
		"changed restriction": func() error { return r.b.restrictions.Permits(ctx, "env", r.changed, nil, nil, now) },
		"deleted restriction": func() error { return r.b.restrictions.Permits(ctx, "env", r.deleted, nil, nil, now) },
	}
}

// known wants node b to accept the key and both restrictions.
func (r rights) known(t *testing.T) {
	t.Helper()
	for what, ask := range r.asked(t, 0) {
		if err := ask(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// end has node a delete the key and one restriction, and change the other so that it allows nobody.
func (r rights) end(t *testing.T) {
	t.Helper()
	_, err := r.a.restrictions.SetReferrer(t.Context(), "env", r.changed, restriction.Referrer{}, r.made)
	err = errors.Join(err, r.a.restrictions.Delete(t.Context(), "env", r.deleted))
	if err = errors.Join(err, r.a.signing.Delete(t.Context(), "env", r.key)); err != nil {
		t.Fatal(err)
	}
}

// TestRightsEndOnAnotherNode: what one node deletes or changes is refused by another at once. Its clock stands still,
// so that it is not the age of what it knows.
func TestRightsEndOnAnotherNode(t *testing.T) {
	t.Parallel()
	url, ctx := dbtest.Postgres(t), t.Context()
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
	// The first ones may end before the other node listens: then it is told that it missed something.
	for range 3 {
		r := newRights(t, nodes[0], nodes[1])
		r.end(t)
		for what, ask := range r.asked(t, 0) {
			untilDenied(t, what, ask)
		}
	}
}

// TestRightsEndUntold: a node that is told of nothing asks again by itself, and refuses once its clock is 5 s behind
// the change. That is on PostgreSQL who does not listen, and on SQLite the service beside which a command runs.
func TestRightsEndUntold(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite": func(t *testing.T) string { t.Helper(); return dbtest.SQLite(t) }, "postgres": dbtest.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := url(t)
			a, b := &node{db: dbtest.Open(t, at)}, &node{db: dbtest.Open(t, at)}
			a.admitViewers()
			b.admitViewers()
			r := newRights(t, a, b)
			r.end(t)
			r.known(t) // still: it was not told
			for what, ask := range r.asked(t, 5*time.Second) {
				untilDenied(t, what, ask)
			}
		})
	}
}

// TestSessionMax: the setting is that of the guard. Who began with a good token goes on for so long.
func TestSessionMax(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		longest time.Duration
		after   time.Duration
		ok      bool
	}{
		"off, before the expiry":   {0, 50 * time.Minute, true},
		"off, behind the expiry":   {0, time.Hour, false},
		"6 h, behind the expiry":   {6 * time.Hour, 5 * time.Hour, true},
		"6 h, behind that as well": {6 * time.Hour, 6 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &node{db: dbtest.Open(t, dbtest.SQLite(t)), cfg: config.Config{PlaybackSessionMax: tt.longest}}
			n.admitViewers()
			now := time.Now()
			k, private, err := n.signing.Create(t.Context(), "env", now)
			if err != nil {
				t.Fatal(err)
			}
			o := playbackid.Object{ID: playbackid.ID{ID: "pb1", Policy: playbackid.Signed}, Environment: "env"}
			claims := map[string]any{"sub": o.ID.ID, "aud": "v", "exp": now.Add(time.Hour).Unix()}
			token, err := signing.Sign(k.ID, privateKey(t, private), claims)
			if err != nil {
				t.Fatal(err)
			}
			p, err := n.guard.Admit(t.Context(), o, playback.Request{Tokens: []string{token}}, now)
			if err != nil {
				t.Fatal(err)
			}
			_, err = n.guard.Admit(t.Context(), o, playback.Request{Path: p.Path}, now.Add(tt.after))
			if err == nil != tt.ok {
				t.Errorf("%v", err)
			}
		})
	}
}

func privateKey(t *testing.T, text string) *rsa.PrivateKey {
	t.Helper()
	block, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(block)
	if err != nil {
		t.Fatal(err)
	}
	return key
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
