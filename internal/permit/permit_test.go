package permit_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/audience"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/permit"
	"millrace/internal/storage/db/dbtest"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// node is one of two nodes on a database.
type node struct {
	*permit.Guard
	keys         *signing.Service
	restrictions *restriction.Service
}

func nodes(t testing.TB) (a, b node) {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	for _, n := range []*node{&a, &b} {
		n.keys = signing.New(signing.Options{Store: d.Signing()})
		n.restrictions = restriction.New(restriction.Options{Store: d.Restrictions()})
		n.Guard = permit.New(permit.Options{Signing: n.keys, Restrictions: n.restrictions})
	}
	return a, b
}

// signer makes a key and gives what signs with it.
func (n node) signer(t testing.TB, env id.Environment) (id.SigningKey, func(changes map[string]any) string) {
	t.Helper()
	k := n.keypair(t, env)
	return k.id, func(changes map[string]any) string {
		said := map[string]any{"sub": "pb1", "aud": "v", "exp": noon.Add(time.Hour).Unix()}
		maps.Copy(said, changes)
		token, err := signing.Sign(k.id, k.private, said)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
}

type claims = map[string]any

func object(p playbackid.Policy) playbackid.Object {
	return playbackid.Object{
		ID: playbackid.ID{ID: "pb1", Policy: p}, Environment: "env", Kind: playbackid.OfAsset, ObjectID: "asset1",
	}
}

func (n node) admit(ctx context.Context, r playback.Request, after time.Duration) (playback.Permit, error) {
	return n.Admit(ctx, object(playbackid.Signed), r, noon.Add(after))
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	n, _ := nodes(t)
	_, sign := n.signer(t, "env")
	_, foreign := n.signer(t, "other")
	good := sign(nil)
	for name, tt := range map[string]struct {
		policy playbackid.Policy
		use    playback.Use
		tokens []string
		path   string
		kind   fault.Kind
		want   string // of the message; empty: it is permitted
	}{
		"public": {policy: playbackid.Public},
		"public with a token": {
			policy: playbackid.Public, tokens: []string{good}, kind: fault.Invalid, want: "is public",
		},
		"public with a path": {
			policy: playbackid.Public, path: "signed-x", kind: fault.NotFound, want: "nothing to play",
		},
		"drm": {policy: playbackid.DRM, tokens: []string{good}},
		"drm without a token": {
			policy: playbackid.DRM, kind: fault.Denied, want: "has the policy drm; add ?token=",
		},
		"video": {policy: playbackid.Signed, tokens: []string{good}},
		"thumbnail": {
			policy: playbackid.Signed, use: playback.ToThumbnail, tokens: []string{sign(claims{"aud": "t"})},
		},
		"animated": {
			policy: playbackid.Signed, use: playback.ToAnimated, tokens: []string{sign(claims{"aud": "g"})},
		},
		"storyboard": {
			policy: playbackid.Signed, use: playback.ToStoryboard, tokens: []string{sign(claims{"aud": "s"})},
		},
		"no token": {
			policy: playbackid.Signed, kind: fault.Denied, want: "has the policy signed; add ?token=",
		},
		"two tokens": {
			policy: playbackid.Signed, tokens: []string{good, good}, kind: fault.Denied, want: "there must be one",
		},
		"empty token": {
			policy: playbackid.Signed, tokens: []string{""}, kind: fault.Denied, want: "not a JSON Web Token",
		},
		"thumbnail's for video": {
			policy: playbackid.Signed, tokens: []string{sign(claims{"aud": "t"})}, kind: fault.Denied,
			want: "(aud) must be v",
		},
		"video's for a thumbnail": {
			policy: playbackid.Signed, use: playback.ToThumbnail, tokens: []string{good}, kind: fault.Denied,
			want: "(aud) must be t",
		},
		"a licence's": {
			policy: playbackid.Signed, tokens: []string{sign(claims{"aud": "d"})}, kind: fault.Denied,
			want: "(aud) must be v",
		},
		"counts'": {
			policy: playbackid.Signed, tokens: []string{sign(claims{"aud": "playback_id"})}, kind: fault.Denied,
			want: "(aud) must be v",
		},
		"another's": {
			policy: playbackid.Signed, tokens: []string{sign(claims{"sub": "pb2"})}, kind: fault.Denied,
			want: "(sub) must be the playback ID",
		},
		"another environment's": {
			policy: playbackid.Signed, tokens: []string{foreign(nil)}, kind: fault.Denied,
			want: "the signing key is not known",
		},
		"unknown restriction": {
			policy: playbackid.Signed, tokens: []string{sign(claims{"playback_restriction_id": "r"})},
			kind: fault.Denied, want: "restriction is not known",
		},
		"made-up path": {
			policy: playbackid.Signed, tokens: []string{good}, path: "signed-v.1.2.3.4.5.6", kind: fault.Denied,
			want: "signed path",
		},
	} {
		r := playback.Request{PlaybackID: "pb1", Use: tt.use, Tokens: tt.tokens, Path: tt.path}
		got, err := n.Admit(t.Context(), object(tt.policy), r, noon)
		if tt.want == "" {
			if err != nil || got.Signed != (tt.policy != playbackid.Public) || !got.Until.IsZero() || got.Shared {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		if !fault.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) || got != (playback.Permit{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestPathOfToken: what a token is exchanged for holds on every node, as long as the token, its key and its restriction
// do.
func TestPathOfToken(t *testing.T) {
	t.Parallel()
	a, b := nodes(t)
	key, sign := a.signer(t, "env")
	first, err := a.admit(t.Context(), playback.Request{
		Tokens: []string{sign(claims{"max_resolution": "720p", "width": 3, "exclude_pdt": true})},
	}, 0)
	if err != nil || first.Path == "" || first.Query != "exclude_pdt=true&max_resolution=720p&width=3" {
		t.Fatalf("%+v, %v", first, err)
	}
	by := playback.Request{Path: first.Path}
	got, err := b.admit(t.Context(), by, time.Minute)
	if err != nil || !got.Shared || !got.Until.Equal(noon.Add(time.Hour)) ||
		got.Query != "exclude_pdt=true&max_resolution=720p" {
		t.Errorf("%+v, %v", got, err)
	}
	for use, ok := range map[playback.Use]bool{
		playback.ToStoryboard: true, playback.ToThumbnail: false, playback.ToAnimated: false,
	} {
		if _, err = b.admit(t.Context(), playback.Request{Path: first.Path, Use: use}, 0); err == nil != ok {
			t.Errorf("use %d: %v", use, err)
		}
	}
	board, err := a.admit(t.Context(), playback.Request{
		Tokens: []string{sign(claims{"aud": "s"})}, Use: playback.ToStoryboard,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = b.admit(t.Context(), playback.Request{Path: board.Path}, 0); !fault.Is(err, fault.Denied) {
		t.Errorf("media by the path of a storyboard: %v", err)
	}
	if _, err = b.admit(t.Context(), by, time.Hour); !fault.Is(err, fault.Denied) {
		t.Errorf("when the token has expired: %v", err)
	}
	other := object(playbackid.Signed)
	other.ID.ID = "pb2"
	if _, err = b.Admit(t.Context(), other, by, noon); !fault.Is(err, fault.Denied) {
		t.Errorf("of another playback ID: %v", err)
	}
	if err = a.keys.Delete(t.Context(), "env", key); err != nil {
		t.Fatal(err)
	}
	for n, after := range map[*node]time.Duration{&a: time.Minute, &b: time.Minute + 1001*time.Millisecond} {
		if _, err = n.admit(t.Context(), by, after); !fault.Is(err, fault.Denied) {
			t.Errorf("after the key was deleted: %v", err)
		}
	}
}

// TestRestricted: a restriction holds for the token and for its path, both ways, and as it is at the moment.
func TestRestricted(t *testing.T) {
	t.Parallel()
	a, b := nodes(t)
	_, sign := a.signer(t, "env")
	r, err := a.restrictions.Create(
		t.Context(), "env", restriction.Referrer{AllowedDomains: []string{"*.example.com"}},
		restriction.UserAgent{AllowNone: true}, noon,
	)
	if err != nil {
		t.Fatal(err)
	}
	from := func(page, agent string) playback.Request {
		return playback.Request{Referrers: []string{page}, UserAgents: []string{agent}}
	}
	good := from("https://www.example.com/", "Mozilla/5.0")
	good.Tokens = []string{sign(claims{"playback_restriction_id": r.ID})}
	permitted, err := a.admit(t.Context(), good, 0)
	if err != nil || permitted.Shared {
		t.Fatalf("%+v, %v", permitted, err)
	}
	check := func(what string, n node, after time.Duration, page, agent string, ok bool) {
		t.Helper()
		for _, ask := range []playback.Request{{Tokens: good.Tokens}, {Path: permitted.Path}} {
			as := from(page, agent)
			ask.Referrers, ask.UserAgents = as.Referrers, as.UserAgents
			got, failed := n.admit(t.Context(), ask, after)
			if failed == nil != ok || got.Shared {
				t.Errorf("%s: path %q: %+v, %v", what, ask.Path, got, failed)
			}
		}
	}
	check("as it should be", b, 0, "https://www.example.com/", "Mozilla/5.0", true)
	check("another page", b, 0, "https://evil.test/", "Mozilla/5.0", false)
	check("no page", b, 0, "", "Mozilla/5.0", false)
	check("a program", b, 0, "https://www.example.com/", "curl/8", false)
	if _, err = a.restrictions.SetReferrer(t.Context(), "env", r.ID,
		restriction.Referrer{AllowedDomains: []string{"evil.test"}}, noon); err != nil {
		t.Fatal(err)
	}
	check("changed", a, 0, "https://evil.test/", "Mozilla/5.0", true)
	check("changed elsewhere", b, 1001*time.Millisecond, "https://www.example.com/", "Mozilla/5.0", false)
	if err = a.restrictions.Delete(t.Context(), "env", r.ID); err != nil {
		t.Fatal(err)
	}
	check("deleted", a, time.Second, "https://evil.test/", "Mozilla/5.0", false)
	check("deleted elsewhere", b, 3*time.Second, "https://evil.test/", "Mozilla/5.0", false)
}

// TestSessionMax: who began with a good token goes on behind its expiry, and not longer than is allowed; nobody begins
// then.
func TestSessionMax(t *testing.T) {
	t.Parallel()
	n, _ := nodes(t)
	key, sign := n.signer(t, "env")
	n.Guard = permit.New(permit.Options{Signing: n.keys, Restrictions: n.restrictions, SessionMax: 6 * time.Hour})
	begin := playback.Request{Tokens: []string{sign(nil)}}
	path := func(ask playback.Request, after time.Duration) playback.Request {
		t.Helper()
		got, err := n.admit(t.Context(), ask, after)
		if err != nil {
			t.Fatal(err)
		}
		return playback.Request{Path: got.Path}
	}
	first, last := path(begin, 0), path(begin, 59*time.Minute)
	long := path(playback.Request{Tokens: []string{sign(claims{"exp": noon.Add(24 * time.Hour).Unix()})}}, 0)
	for _, tt := range []struct {
		what  string
		ask   playback.Request
		after time.Duration
		ok    bool
	}{
		{"behind the expiry", first, 5*time.Hour + 50*time.Minute, true},
		{"behind the session", first, 6 * time.Hour, false},
		{"who began late", last, 6*time.Hour + 50*time.Minute, true},
		{"who began late, behind the session", last, 7 * time.Hour, false},
		{"beginning behind the expiry", begin, time.Hour, false},
		{"a token that is good for longer", long, 23 * time.Hour, true},
	} {
		if _, err := n.admit(t.Context(), tt.ask, tt.after); err == nil != tt.ok {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
	if err := n.keys.Delete(t.Context(), "env", key); err != nil {
		t.Fatal(err)
	}
	if _, err := n.admit(t.Context(), first, time.Minute); !fault.Is(err, fault.Denied) {
		t.Errorf("after the key was deleted: %v", err)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	n, _ := nodes(t)
	_, sign := n.signer(t, "env")
	rule, err := n.restrictions.Create(t.Context(), "env",
		restriction.Referrer{AllowedDomains: []string{"example.com"}}, restriction.UserAgent{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	restricted := sign(claims{"sub": "asset1", "aud": "asset_id", "playback_restriction_id": rule.ID})
	c := permit.Counts{Guard: n.Guard}
	from := func(token, page string, agents ...string) audience.Request {
		return audience.Request{Token: token, Referrers: []string{page}, UserAgents: agents}
	}
	for name, r := range map[string]audience.Request{
		"not restricted": {Token: sign(claims{"sub": "asset1", "aud": "asset_id"})},
		"of the page":    from(restricted, "https://example.com/", "Mozilla/5.0"),
	} {
		got, err := c.Verify(t.Context(), r, noon)
		if want := (audience.Grant{Environment: "env", Kind: audience.OfAsset, ID: "asset1"}); err != nil ||
			got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, r := range map[string]audience.Request{
		"no token": {}, "two audiences": {Token: sign(claims{"aud": []string{"asset_id", "playback_id"}})},
		"expired":                       {Token: sign(claims{"exp": 1})},
		"of another page":               from(restricted, "https://evil.test/", "Mozilla/5.0"),
		"of no page":                    {Token: restricted, UserAgents: []string{"Mozilla/5.0"}},
		"of no player":                  from(restricted, "https://example.com/"),
		"restriction that is not there": {Token: sign(claims{"aud": "asset_id", "playback_restriction_id": "none"})},
	} {
		if got, err := c.Verify(t.Context(), r, noon); !fault.Is(err, fault.Denied) || got != (audience.Grant{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
