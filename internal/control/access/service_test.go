package access_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// counting counts how often a token is read.
type counting struct {
	access.Store
	reads atomic.Int64
}

func (c *counting) Token(ctx context.Context, t id.Token) (access.Token, error) {
	c.reads.Add(1)
	return c.Store.Token(ctx, t)
}

func newService(t *testing.T) (*access.Service, *counting, *db.DB) {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	store := &counting{Store: d.Access()}
	return access.New(access.Options{Store: store}), store, d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("error %v of kind %d, want kind %d", err, fault.KindOf(err), want)
	}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	s, store, _ := newService(t)
	ctx := t.Context()
	token, secret, err := s.CreateToken(ctx, access.TokenInput{Name: ""}, start)
	must(t, err)
	if len(token.ID) != 36 || len(secret) < 22 || token.Name != "default" || len(token.Permissions) != 6 ||
		bytes.Contains(token.Hash, []byte(secret)) {
		t.Errorf("made %+v", token)
	}
	who, err := s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start)
	must(t, err)
	if who.Token.ID != token.ID || who.Environment.ID != token.Environment || who.Environment.Name != "Default" ||
		who.Environment.Kind != "production" {
		t.Errorf("identity %+v", who)
	}
	for what, c := range map[string]struct {
		id     id.Token
		secret string
	}{
		"wrong secret": {token.ID, secret + "x"},
		"no secret":    {token.ID, ""},
		"unknown":      {"x", secret},
		"nothing":      {"", ""},
		"impossible":   {"\x00", "\x00"},
		"long":         {id.Token(strings.Repeat("x", 300)), secret},
		"long secret":  {token.ID, strings.Repeat("x", 2000)},
	} {
		_, err = s.Authenticate(ctx, access.Credentials{Token: c.id, Secret: c.secret}, start)
		if !fault.Is(err, fault.Unauthorized) || strings.Contains(err.Error(), secret) ||
			fault.Messages(err)[0] != "Unauthorized request" {
			t.Errorf("%s: %v", what, err)
		}
	}
	before := store.reads.Load()
	for range 100 {
		_, err = s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start.Add(time.Second))
		must(t, err)
	}
	if n := store.reads.Load() - before; n != 0 {
		t.Errorf("a remembered response reads the store %d times", n)
	}
	_, err = s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start.Add(6*time.Second))
	must(t, err)
	if n := store.reads.Load() - before; n != 1 {
		t.Errorf("an old response reads the store %d times, want 1", n)
	}
	must(t, s.RevokeToken(ctx, token.ID, start))
	// at once, in this process
	_, err = s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start.Add(7*time.Second))
	wantKind(t, err, fault.Unauthorized)
	wantKind(t, s.RevokeToken(ctx, "x", start), fault.NotFound)
}

// TestRevokedElsewhere says how long a revoked token may work in another process.
func TestRevokedElsewhere(t *testing.T) {
	t.Parallel()
	s, store, _ := newService(t)
	token, secret, err := s.CreateToken(t.Context(), access.TokenInput{Name: "n"}, start)
	must(t, err)
	_, err = s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret}, start)
	must(t, err)
	must(t, store.RevokeToken(t.Context(), "", token.ID, start))
	_, err = s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret}, start.Add(5*time.Second))
	wantKind(t, err, fault.Unauthorized)
}

// TestRightSecretsLeaveNothing: of callers whose secret is right nothing is remembered, wherever they come from.
func TestRightSecretsLeaveNothing(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	token, secret, err := s.CreateToken(t.Context(), access.TokenInput{Name: "n"}, start)
	must(t, err)
	for n := range 3 { // each when the one before is not known any more
		from := fmt.Sprintf("192.0.2.%d", n)
		c := access.Credentials{Token: token.ID, Secret: secret, From: from}
		_, err = s.Authenticate(t.Context(), c, start.Add(time.Duration(n)*time.Hour))
		must(t, err)
	}
	if n := s.Remembered(); n != 0 {
		t.Errorf("something is remembered of %d of them", n)
	}
}

func TestAuthenticateWaits(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Authenticate(ctx, access.Credentials{Token: "x", Secret: "y"}, start); err == nil {
		t.Error("authenticated")
	}
}

func TestSeedToken(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	ctx := t.Context()
	seed := func(t id.Token, secret string, now time.Time) error {
		_, err := s.SeedToken(ctx, t, secret, now)
		return err
	}
	must(t, seed("seeded", "a secret of mine", start))
	must(t, seed("seeded", "a secret of mine", start.Add(time.Hour)))
	who, err := s.Authenticate(ctx, access.Credentials{Token: "seeded", Secret: "a secret of mine"}, start)
	must(t, err)
	if !who.Token.CreatedAt.Equal(start) {
		t.Errorf("made at %v: the second time changes nothing", who.Token.CreatedAt)
	}
	wantKind(t, seed("seeded", "another secret", start), fault.Conflict)
	must(t, s.RevokeToken(ctx, "seeded", start))
	for _, secret := range []string{"a secret of mine", "another secret"} {
		revoked, seedErr := s.SeedToken(ctx, "seeded", secret, start)
		if seedErr != nil || !revoked {
			t.Errorf("a revoked token: %v, %v", revoked, seedErr)
		}
		_, authErr := s.Authenticate(ctx, access.Credentials{Token: "seeded", Secret: secret}, start)
		wantKind(t, authErr, fault.Unauthorized)
	}
	for _, c := range [][2]string{
		{"", "long enough"},
		{"a:b", "long enough"},
		{"a\x00", "long enough"},
		{"a\n", "long enough"},
		{"a\xff", "long enough"},
		{"ok", "short"},
		{"ok", "long\x00enough"},
		{strings.Repeat("x", 256), "long enough"},
	} {
		wantKind(t, seed(id.Token(c[0]), c[1], start), fault.Invalid)
	}
	created, _, err := s.CreateToken(ctx, access.TokenInput{Name: "second"}, start.Add(time.Minute))
	must(t, err)
	all, err := s.Tokens(ctx)
	must(t, err)
	if len(all) != 2 || all[0].ID != "seeded" || all[1].ID != created.ID || all[0].Environment != all[1].Environment ||
		all[0].RevokedAt.IsZero() {
		t.Errorf("tokens %+v", all)
	}
	_, _, err = s.CreateToken(ctx, access.TokenInput{Name: strings.Repeat("x", 256)}, start)
	wantKind(t, err, fault.Invalid)
}

func TestPlaybackIDs(t *testing.T) {
	t.Parallel()
	s, _, d := newService(t)
	stream, err := live.New(live.Options{Store: d.LiveStreams()}).Create(t.Context(), "env", live.CreateInput{
		PlaybackPolicies: []playbackid.Policy{"signed"},
	}, start)
	must(t, err)
	p := stream.PlaybackIDs[0].ID
	want := playbackid.Object{
		ID: stream.PlaybackIDs[0], Environment: "env", Kind: playbackid.OfLiveStream, ObjectID: string(stream.ID),
	}
	got, err := s.Lookup(t.Context(), "env", p)
	must(t, err)
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, err = s.Resolve(t.Context(), p); err != nil || got != want {
		t.Errorf("resolved %+v, %v", got, err)
	}
	_, err = s.Lookup(t.Context(), "other", p)
	wantKind(t, err, fault.NotFound)
	_, err = s.Lookup(t.Context(), "env", "x")
	wantKind(t, err, fault.NotFound)
	_, err = s.Resolve(t.Context(), "x")
	wantKind(t, err, fault.NotFound)
}
