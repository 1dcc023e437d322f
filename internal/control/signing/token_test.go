package signing_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// memory is a store in memory.
type memory struct {
	mu      sync.Mutex
	keys    map[id.SigningKey]signing.Key
	secrets map[int64]signing.PathSecret
	asked   int
	away    bool
}

func newMemory() *memory {
	return &memory{keys: map[id.SigningKey]signing.Key{}, secrets: map[int64]signing.PathSecret{}}
}

func (m *memory) InsertKey(_ context.Context, k signing.Key, _ int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[k.ID] = k
	return nil
}

func (m *memory) Key(_ context.Context, k id.SigningKey) (signing.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if m.away {
		return signing.Key{}, fault.New(fault.Unavailable, "the database is away")
	}
	found, ok := m.keys[k]
	if !ok {
		return found, fault.New(fault.NotFound, "the signing key does not exist")
	}
	return found, nil
}

func (m *memory) Keys(context.Context, id.Environment, int, int) ([]signing.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.keys)), nil
}

func (m *memory) DeleteKey(_ context.Context, _ id.Environment, k id.SigningKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, k)
	return nil
}

func (m *memory) PathSecret(_ context.Context, n int64) (signing.PathSecret, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	found, ok := m.secrets[n]
	if !ok {
		return found, fault.New(fault.NotFound, "the path secret does not exist")
	}
	return found, nil
}

func (m *memory) EnsurePathSecret(_ context.Context, fresh signing.PathSecret) (signing.PathSecret, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.secrets[fresh.Number]; !ok {
		m.secrets[fresh.Number] = fresh
	}
	return m.secrets[fresh.Number], nil
}

// owner is somebody with a signing key.
type owner struct {
	id      id.SigningKey
	private *rsa.PrivateKey
}

func newOwner(tb testing.TB, s *signing.Service, env id.Environment) owner {
	tb.Helper()
	k, private, err := s.Create(tb.Context(), env, noon)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(private)
	if err != nil {
		tb.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		tb.Fatal(err)
	}
	if !key.PublicKey.Equal(k.Public) || key.N.BitLen() != 2048 {
		tb.Fatalf("%d bits, or two halves that do not fit", key.N.BitLen())
	}
	return owner{k.ID, key}
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func (o owner) rs256(text string) string {
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(nil, o.private, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

type object = map[string]any

// claims are those of a good token, with changes; nil takes a claim away.
func (o owner) claims(changes object) object {
	c := object{"sub": "pb1", "aud": "v", "exp": noon.Add(time.Hour).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (o owner) token(changes object) string {
	return o.rs256(encoded(object{"alg": "RS256", "typ": "JWT", "kid": o.id}) + "." + encoded(o.claims(changes)))
}

// sized is a good token of a length in bytes.
func (o owner) sized(t *testing.T, length int) string {
	t.Helper()
	signature := base64.RawURLEncoding.EncodedLen(o.private.Size())
	for more := range 3 { // base64 has no texts of some lengths
		header := encoded(object{"alg": "RS256", "typ": "JWT", "kid": o.id, "more": strings.Repeat("x", more)})
		for n := length / 2; n < length; n++ {
			text := header + "." + encoded(o.claims(object{"custom": strings.Repeat("x", n)}))
			if len(text)+1+signature == length {
				return o.rs256(text)
			}
		}
	}
	t.Fatalf("no token has %d bytes", length)
	return ""
}

func TestVerify(t *testing.T) {
	t.Parallel()
	s := signing.New(signing.Options{Store: newMemory()})
	me, other, gone := newOwner(t, s, "env"), newOwner(t, s, "other"), newOwner(t, s, "env")
	if err := s.Delete(t.Context(), "env", gone.id); err != nil {
		t.Fatal(err)
	}
	header := func(h object) string { return encoded(h) + "." + encoded(me.claims(nil)) }
	good := me.token(nil)
	parts := strings.Split(good, ".")
	der, err := x509.MarshalPKIXPublicKey(&me.private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	hs256 := func(secret []byte) string {
		text := header(object{"alg": "HS256", "typ": "JWT", "kid": me.id})
		m := hmac.New(sha256.New, secret)
		m.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	es256 := func() string {
		text := header(object{"alg": "ES256", "typ": "JWT", "kid": me.id})
		sum := sha256.Sum256([]byte(text))
		sig, err := ecdsa.SignASN1(rand.Reader, curve, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + base64.RawURLEncoding.EncodeToString(sig)
	}
	const unknown = "token: the signing key is not known"
	for name, tt := range map[string]struct{ token, want string }{
		"good": {good, ""},
		"kid among the claims": {
			me.rs256(encoded(object{"alg": "RS256", "typ": "JWT"}) + "." + encoded(me.claims(object{"kid": me.id}))),
			"",
		},
		"kid in both":           {me.token(object{"kid": me.id}), ""},
		"two audiences":         {me.token(object{"aud": []string{"t", "v"}}), ""},
		"almost in time":        {me.token(object{"nbf": noon.Unix() + 60, "iat": noon.Unix() + 60}), ""},
		"as long as may be":     {me.sized(t, signing.MaxToken), ""},
		"a fraction of seconds": {me.token(object{"exp": 1.9e9 + 0.5}), ""},

		"empty":             {"", "is not a JSON Web Token"},
		"one part":          {"abc", "is not a JSON Web Token"},
		"four parts":        {good + ".x", "is not a JSON Web Token"},
		"padding":           {good + "=", "is not a JSON Web Token"},
		"oversize":          {me.sized(t, signing.MaxToken+1), "longer than 8192 bytes"},
		"not JSON":          {"e30x." + parts[1] + "." + parts[2], "is not a JSON Web Token"},
		"claims not JSON":   {parts[0] + ".bm8." + parts[2], "is not a JSON Web Token"},
		"none":              {header(object{"alg": "none", "kid": me.id}) + ".", "algorithm (alg) must be RS256"},
		"None":              {header(object{"alg": "None", "kid": me.id}) + ".", "algorithm (alg) must be RS256"},
		"without algorithm": {me.rs256(header(object{"kid": me.id})), "algorithm (alg) must be RS256"},
		"HS256 with DER":    {hs256(der), "algorithm (alg) must be RS256"},
		"HS256 with PEM": {
			hs256(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "algorithm (alg) must be RS256",
		},
		"ES256": {es256(), "algorithm (alg) must be RS256"},
		"RS512": {
			me.rs256(header(object{"alg": "RS512", "kid": me.id})), "algorithm (alg) must be RS256",
		},
		"RS256 in lower case": {
			me.rs256(header(object{"alg": "rs256", "kid": me.id})), "algorithm (alg) must be RS256",
		},
		"crit": {
			me.rs256(header(object{"alg": "RS256", "kid": me.id, "crit": []string{"exp"}})), "extensions (crit)",
		},
		"its own key": {
			me.rs256(header(object{"alg": "RS256", "jwk": object{"kty": "RSA"}})), "no signing key ID (kid)",
		},
		"without kid":         {me.rs256(header(object{"alg": "RS256"})), "no signing key ID (kid)"},
		"two kids":            {me.token(object{"kid": gone.id}), "names two signing keys"},
		"long kid":            {me.rs256(header(object{"alg": "RS256", "kid": strings.Repeat("k", 300)})), unknown},
		"strange kid":         {me.rs256(header(object{"alg": "RS256", "kid": "../../etc/passwd\x00"})), unknown},
		"unknown key":         {me.rs256(header(object{"alg": "RS256", "kid": "nobody"})), unknown},
		"another environment": {other.token(nil), unknown},
		"its key, forged":     {me.rs256(header(object{"alg": "RS256", "kid": other.id})), unknown},
		"deleted key":         {gone.token(nil), unknown},
		"no signature":        {parts[0] + "." + parts[1] + ".", "signature does not fit"},
		"half a signature":    {good[:len(good)-42], "signature does not fit"},
		"half a byte of it":   {good[:len(good)-41], "is not a JSON Web Token"},
		"claims exchanged": {
			parts[0] + "." + encoded(me.claims(object{"sub": "pb2"})) + "." + parts[2], "signature does not fit",
		},
		"of another key":    {gone.rs256(parts[0] + "." + parts[1]), "signature does not fit"},
		"without expiry":    {me.token(object{"exp": nil}), "must have an expiry"},
		"expiry as text":    {me.token(object{"exp": "1900000000"}), "must have an expiry"},
		"expiry after all":  {me.token(object{"exp": 1e300}), "must have an expiry"},
		"negative expiry":   {me.token(object{"exp": -1}), "must have an expiry"},
		"expired":           {me.token(object{"exp": noon.Unix()}), "has expired"},
		"not yet":           {me.token(object{"nbf": noon.Unix() + 61}), "not valid yet (nbf)"},
		"of tomorrow":       {me.token(object{"iat": noon.Unix() + 61}), "not valid yet (iat)"},
		"nbf as text":       {me.token(object{"nbf": "soon"}), "nbf must be in seconds"},
		"without subject":   {me.token(object{"sub": nil}), "must have a subject"},
		"subjects":          {me.token(object{"sub": []string{"pb1"}}), "must have a subject"},
		"without audience":  {me.token(object{"aud": nil}), "must have an audience"},
		"audience a number": {me.token(object{"aud": 7}), "must have an audience"},
		"restrictions": {
			me.token(object{"playback_restriction_id": []string{"r"}}), "must be the ID of a playback restriction",
		},
		"empty restriction": {
			me.token(object{"playback_restriction_id": ""}), "must be the ID of a playback restriction",
		},
	} {
		got, err := s.Verify(t.Context(), tt.token, "env", noon)
		if tt.want == "" {
			if err != nil || got.Subject != "pb1" || !got.For("v") || got.For("d") || got.Key != me.id ||
				got.Environment != "env" {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		if err == nil || !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v, want %s", name, got, err, tt.want)
		}
		code := signing.CodeMalformed
		switch {
		case tt.want == "is not a JSON Web Token", tt.want == "signature does not fit":
			code = signing.CodeInvalid
		case strings.HasPrefix(tt.want, unknown):
			code = signing.CodeKeyUnknown
		case strings.HasPrefix(tt.want, "not valid yet"):
			code = signing.CodeNotYetValid
		case tt.want == "has expired":
			code = signing.CodeExpired
		}
		if got := fault.CodeOf(err); got != code {
			t.Errorf("%s: code %q, want %q", name, got, code)
		}
		if strings.HasPrefix(tt.want, unknown) && err.Error() != unknown+" (it may be deleted)" {
			t.Errorf("%s is told apart: %v", name, err)
		}
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	s := signing.New(signing.Options{Store: newMemory()})
	me := newOwner(t, s, "env")
	got, err := s.Verify(t.Context(), me.token(object{
		"time": 1.5, "width": "640", "flip_h": true, "asset_start_time": 10, "playback_restriction_id": "r1",
		"jti": "x", "iss": "y",
		"custom": object{"user": 1}, "list": []int{1}, "token": "t",
	}), "", noon)
	if err != nil || got.Modifiers.Encode() != "asset_start_time=10&flip_h=true&time=1.5&width=640" ||
		got.Restriction != "r1" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestDeletedElsewhere: what another process has deleted is good for a second more where this one is not told, and what
// is known is good for a minute while the database is away.
func TestDeletedElsewhere(t *testing.T) {
	t.Parallel()
	store := newMemory()
	s := signing.New(signing.Options{Store: store})
	me := newOwner(t, s, "env")
	verify := func(after time.Duration) error {
		_, err := s.Verify(t.Context(), me.token(nil), "env", noon.Add(after))
		return err
	}
	if err := errors.Join(verify(0), verify(time.Second/2)); err != nil || store.asked != 1 {
		t.Errorf("%v, asked %d times", err, store.asked)
	}
	store.away = true
	if err := verify(59 * time.Second); err != nil {
		t.Errorf("while the database is away: %v", err)
	}
	if err := verify(61 * time.Second); !fault.Is(err, fault.Unavailable) {
		t.Errorf("while the database has been away for a minute: %v", err)
	}
	store.away = false
	if err := store.DeleteKey(t.Context(), "env", me.id); err != nil {
		t.Fatal(err)
	}
	if err := verify(62 * time.Second); !fault.Is(err, fault.Denied) {
		t.Errorf("deleted: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	s := signing.New(signing.Options{Store: newMemory()})
	me := newOwner(f, s, "env")
	good := me.token(nil)
	for _, seed := range []string{
		good, "", "a.b.c", encoded(object{"alg": "none"}) + "." + encoded(me.claims(nil)) + ".",
		strings.Replace(good, ".", "..", 1),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := s.Verify(t.Context(), text, "env", noon); err == nil && text != good {
			t.Errorf("%q is taken for %+v", text, got)
		} else if err != nil && !fault.Is(err, fault.Denied) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
