package access_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

func TestPermissionsAndExpiry(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	ctx := t.Context()
	for name, in := range map[string]access.TokenInput{
		"a permission that there is not":           {Permissions: []string{"video:delete"}},
		"one of the installation beside others":    {Permissions: []string{access.InstallationRead, access.VideoRead}},
		"others beside one of the installation":    {Permissions: []string{access.VideoRead, access.InstallationWrite}},
		"one that has expired":                     {ExpiresAt: start},
		"an environment that there is not":         {Environment: "none"},
		"a name that is too long by one character": {Name: string(slices.Repeat([]byte{'x'}, 256))},
	} {
		if _, _, err := s.CreateToken(ctx, in, start); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	token, secret, err := s.CreateToken(ctx, access.TokenInput{
		Permissions: []string{"video:write", "video:read", "video:read"}, ExpiresAt: start.Add(3 * time.Second),
	}, start)
	must(t, err)
	who, err := s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start)
	must(t, err)
	if !slices.Equal(who.Token.Permissions, []string{"video:read", "video:write"}) ||
		who.Token.Permits("system:read") || !who.Token.Permits("video:read") {
		t.Errorf("permissions %q", who.Token.Permissions)
	}
	_, err = s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start.Add(3*time.Second-1))
	must(t, err)
	// although it is in the cache
	_, err = s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start.Add(3*time.Second))
	wantKind(t, err, fault.Unauthorized)
}

// TestBackOff guesses from one address: it waits longer and longer, and nobody else does.
func TestBackOff(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	ctx, now := t.Context(), start
	token, secret, err := s.CreateToken(ctx, access.TokenInput{}, now)
	must(t, err)
	right := access.Credentials{Token: token.ID, Secret: secret, From: "192.0.2.1"}
	wrong := right
	wrong.Secret = "a guess"
	for range 5 {
		_, err = s.Authenticate(ctx, wrong, now)
		wantKind(t, err, fault.Unauthorized)
	}
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		want := time.Duration(seconds) * time.Second
		for _, c := range []access.Credentials{wrong, right} { // it must not learn that this one is right
			_, err = s.Authenticate(ctx, c, now)
			wantKind(t, err, fault.TooMany)
			if wait := fault.RetryAfter(err); wait != want {
				t.Fatalf("waits %v, want %v", wait, want)
			}
		}
		now = now.Add(want)
		_, err = s.Authenticate(ctx, wrong, now)
		wantKind(t, err, fault.Unauthorized)
	}
	elsewhere := right
	elsewhere.From = "192.0.2.2"
	_, err = s.Authenticate(ctx, elsewhere, now)
	must(t, err)
	_, err = s.Authenticate(ctx, right, now) // is known to be right now
	must(t, err)
	other, otherSecret, err := s.CreateToken(ctx, access.TokenInput{}, now)
	must(t, err)
	_, err = s.Authenticate(ctx, access.Credentials{Token: other.ID, Secret: otherSecret, From: "192.0.2.1"}, now)
	must(t, err)
	now = now.Add(time.Hour) // all is forgotten
	for range 5 {
		_, err = s.Authenticate(ctx, wrong, now)
		wantKind(t, err, fault.Unauthorized)
	}
}

// TestBackOffOfManyTokens tries many IDs from one address, as one would who looks for weak seeded secrets.
func TestBackOffOfManyTokens(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	var refused int
	for i := range 40 {
		_, err := s.Authenticate(t.Context(), access.Credentials{
			Token: id.Token(fmt.Sprint(i)), Secret: "secret12", From: "2001:db8::/64",
		}, start)
		if fault.Is(err, fault.TooMany) {
			refused++
		}
	}
	if refused != 15 {
		t.Errorf("%d of 40 were refused, want all but 25", refused)
	}
	_, err := s.Authenticate(t.Context(), access.Credentials{
		Token: "1", Secret: "secret12", From: "2001:db8:1::/64",
	}, start)
	wantKind(t, err, fault.Unauthorized)
}

// failing can't note the use of tokens once.
type failing struct {
	access.Store
	failed bool
	calls  int
}

func (f *failing) TokensUsed(ctx context.Context, used map[id.Token]time.Time) error {
	if f.calls++; !f.failed {
		f.failed = true
		return errors.New("away")
	}
	return f.Store.TokensUsed(ctx, used)
}

// TestLastUse writes nothing per request, and loses no use when the database is away.
func TestLastUse(t *testing.T) {
	t.Parallel()
	_, _, d := newService(t)
	ctx, store := t.Context(), &failing{Store: d.Access()}
	s := access.New(access.Options{Store: store})
	token, secret, err := s.CreateToken(ctx, access.TokenInput{}, start)
	must(t, err)
	if token.LastUsedAt.Equal(start) {
		t.Error("a token that nobody has used was used")
	}
	for i := range 100 {
		_, err = s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret},
			start.Add(time.Duration(i)*time.Second))
		must(t, err)
	}
	if store.calls > 0 {
		t.Errorf("%d writes", store.calls)
	}
	if s.WriteUse(ctx) == nil {
		t.Error("no error")
	}
	must(t, s.WriteUse(ctx))
	must(t, s.WriteUse(ctx))
	if store.calls != 2 {
		t.Errorf("%d writes, want none when there is nothing to write", store.calls)
	}
	got, err := s.TokenOf(ctx, token.Environment, token.ID)
	must(t, err)
	if ago := start.Add(99 * time.Second).Sub(got.LastUsedAt); ago < 0 || ago > 5*time.Second {
		t.Errorf("last used %v before it was", ago)
	}
}

func TestTokensOfEnvironments(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	ctx := t.Context()
	shop, err := s.CreateEnvironment(ctx, "Shop", "development", start)
	must(t, err)
	mine, _, err := s.CreateToken(ctx, access.TokenInput{}, start)
	must(t, err)
	theirs, secret, err := s.CreateToken(ctx, access.TokenInput{Environment: shop.ID}, start)
	must(t, err)
	who, err := s.Authenticate(ctx, access.Credentials{Token: theirs.ID, Secret: secret}, start)
	must(t, err)
	if who.Environment != shop || mine.Environment == shop.ID {
		t.Errorf("environment %+v", who.Environment)
	}
	_, err = s.TokenOf(ctx, mine.Environment, theirs.ID)
	wantKind(t, err, fault.NotFound)
	wantKind(t, s.RevokeTokenOf(ctx, mine.Environment, theirs.ID, start), fault.NotFound)
	for env, want := range map[id.Environment]id.Token{mine.Environment: mine.ID, shop.ID: theirs.ID} {
		list, listErr := s.TokensOf(ctx, env, 1, 10)
		if listErr != nil || len(list) != 1 || list[0].ID != want {
			t.Errorf("tokens of %s: %+v, %v", env, list, listErr)
		}
	}
	must(t, s.RevokeTokenOf(ctx, shop.ID, theirs.ID, start))
	_, err = s.Authenticate(ctx, access.Credentials{Token: theirs.ID, Secret: secret}, start)
	wantKind(t, err, fault.Unauthorized)
	_, err = s.TokenOf(ctx, shop.ID, theirs.ID)
	wantKind(t, err, fault.NotFound)
	renamed, err := s.RenameEnvironment(ctx, shop.ID, "Other shop", start)
	must(t, err)
	if renamed.Name != "Other shop" || renamed.Kind != "development" {
		t.Errorf("renamed to %+v", renamed)
	}
	all, err := s.Environments(ctx, 1, 10)
	must(t, err)
	if len(all) != 2 || all[1] != renamed && all[0] != renamed {
		t.Errorf("environments %+v", all)
	}
	for _, name := range []string{"", " ", string(slices.Repeat([]byte{'x'}, 300))} {
		_, err = s.CreateEnvironment(ctx, name, "", start)
		wantKind(t, err, fault.Invalid)
	}
	_, err = s.CreateEnvironment(ctx, "x", "test", start)
	wantKind(t, err, fault.Invalid)
	_, err = s.RenameEnvironment(ctx, "none", "x", start)
	wantKind(t, err, fault.NotFound)
}

func TestFrameAncestors(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	ctx := t.Context()
	for _, tt := range []struct {
		origins []string
		want    string // * for an error
	}{
		{[]string{"none"}, "'none'"},
		{[]string{"https://example.com"}, "https://example.com"},
		{
			[]string{"https://example.com", "https://*.example.com", "http://localhost:3000"},
			"https://example.com https://*.example.com http://localhost:3000",
		},
		{[]string{"all"}, ""},
		{nil, "*"},
		{[]string{"example.com"}, "*"},
		{[]string{"https://"}, "*"},
		{[]string{"https://*"}, "*"},
		{[]string{"https://exa*mple.com"}, "*"},
		{[]string{"https://example.com/path"}, "*"},
		{[]string{"https://example.com; script-src *"}, "*"},
		{[]string{"https://user@example.com"}, "*"},
		{[]string{"https://example.com:x"}, "*"},
		{[]string{"javascript://example.com"}, "*"},
		{[]string{"none", "https://example.com"}, "*"},
		{slices.Repeat([]string{"https://example.com"}, 101), "*"},
	} {
		err := s.SetFrameAncestors(ctx, "", tt.origins, start)
		env, readErr := s.Default(ctx, start)
		must(t, readErr)
		if (tt.want == "*") != fault.Is(err, fault.Invalid) || err == nil && env.FrameAncestors != tt.want {
			t.Errorf("%q: %q, %v", tt.origins, env.FrameAncestors, err)
		}
	}
	wantKind(t, s.SetFrameAncestors(ctx, "none", []string{"all"}, start), fault.NotFound)
}

// BenchmarkAuthenticate is what a request costs whose secret is known to be right.
func BenchmarkAuthenticate(b *testing.B) {
	d, err := db.Open(b.Context(), db.Options{
		URL: filepath.Join(b.TempDir(), "x.db"), MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	s := access.New(access.Options{Store: d.Access()})
	token, secret, err := s.CreateToken(b.Context(), access.TokenInput{}, start)
	if err != nil {
		b.Fatal(err)
	}
	c := access.Credentials{Token: token.ID, Secret: secret, From: "192.0.2.1"}
	for b.Loop() {
		if _, err := s.Authenticate(b.Context(), c, start); err != nil {
			b.Fatal(err)
		}
	}
}
