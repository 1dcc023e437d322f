package permit_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/restriction"
	"millrace/internal/id"
)

// keypair is a signing key with its private half.
type keypair struct {
	id      id.SigningKey
	private *rsa.PrivateKey
}

func (n node) keypair(t testing.TB, env id.Environment) keypair {
	t.Helper()
	k, private, err := n.keys.Create(t.Context(), env, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(private)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return keypair{k.ID, key}
}

// b64 is a value, or a text as it is, in base64url.
func b64(v any) string {
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// claims are those of a good token, with changes; nil takes one away.
func (k keypair) claims(changes claims) claims {
	c := claims{"sub": signedID, "aud": "v", "exp": time.Now().Add(time.Hour).Unix(), "kid": string(k.id)}
	for name, v := range changes {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	return c
}

// head is the header of a good token, with changes.
func (k keypair) head(changes claims) claims {
	h := claims{"alg": "RS256", "typ": "JWT", "kid": string(k.id)}
	maps.Copy(h, changes)
	return h
}

// rs256 completes what is in front of a signature.
func (k keypair) rs256(text string) string {
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(nil, k.private, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + b64(string(sig))
}

// token is one whose signature is right, with changes of its claims.
func (k keypair) token(changes claims) string {
	return k.rs256(b64(k.head(nil)) + "." + b64(k.claims(changes)))
}

// with is one whose signature is right, with changes of its header.
func (k keypair) with(changes claims) string {
	return k.rs256(b64(k.head(changes)) + "." + b64(k.claims(nil)))
}

// hs256 signs with an HMAC whose secret is what everybody may know of the key.
func (k keypair) hs256(key []byte) string {
	text := b64(k.head(claims{"alg": "HS256"})) + "." + b64(k.claims(nil))
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return text + "." + b64(string(m.Sum(nil)))
}

// unsigned has an algorithm and any signature.
func (k keypair) unsigned(algorithm, signature string) string {
	return b64(k.head(claims{"alg": algorithm})) + "." + b64(k.claims(nil)) + "." + signature
}

// attack is one request that must not be served.
type attack struct {
	name   string
	method string // GET when empty
	target string // below / when it does not begin with one or a scheme
	fields string // each with its CRLF
	status int    // 403 when 0
}

// battle is a service with what an attacker may have got hold of.
type battle struct {
	*service
	own, stolen, foreign keypair // stolen was deleted
	restriction          id.PlaybackRestriction
	path, restricted     string // signed paths of the attacked playback ID
	clip, board, replay  string
	small                string // that of a token with max_resolution=480p
}

func newBattle(t *testing.T) *battle {
	t.Helper()
	a, b := nodes(t)
	f := &battle{
		service: newService(t, a), own: a.keypair(t, "env"), stolen: a.keypair(t, "env"),
		foreign: a.keypair(t, "other"),
	}
	r, err := a.restrictions.Create(
		t.Context(), "env", restriction.Referrer{AllowedDomains: []string{"example.com", "*.example.com"}},
		restriction.UserAgent{AllowNone: true}, time.Now(),
	)
	if err != nil {
		t.Fatal(err)
	}
	f.restriction = r.ID
	f.path = f.exchange(t, f.own.token(nil), "")
	f.restricted = f.exchange(t, f.own.token(claims{"playback_restriction_id": r.ID}),
		"Referer: https://www.example.com/\r\n")
	f.clip = f.exchange(t, f.own.token(claims{"asset_start_time": 4, "asset_end_time": 8}), "")
	f.small = f.exchange(t, f.own.token(claims{"max_resolution": "480p"}), "")
	f.replay = f.exchange(t, f.stolen.token(nil), "")
	board := send(t, f.addrs["express"],
		ask("GET", "/"+signedID+"/storyboard.vtt?token="+f.own.token(claims{"aud": "s"}), ""))
	_, f.board, _ = strings.Cut(board.body, signedID+"/")
	if err = b.keys.Delete(t.Context(), "env", f.stolen.id); err != nil { // on the other node
		t.Fatal(err)
	}
	f.later.Store(int64(1100 * time.Millisecond)) // when this one has to know
	return f
}

// exchange returns the signed path that a token is exchanged for, with the playback ID.
func (b *battle) exchange(t *testing.T, token, fields string) string {
	t.Helper()
	r := send(t, b.addrs["net/http"], ask("GET", "/"+signedID+".m3u8?token="+token, fields))
	_, path, _ := strings.Cut(r.body, signedID+"/")
	path, _, ok := strings.Cut(path, "/")
	if !ok || r.status != http.StatusOK {
		t.Fatalf("a good token: %d %s", r.status, r.body)
	}
	return path
}

// master asks for the multivariant playlist with a token.
func master(name, token string) attack {
	return attack{name: name, target: signedID + ".m3u8?token=" + token}
}

// below asks for a segment below a signed path.
func below(name, path string) attack {
	return attack{name: name, target: signedID + "/" + path + "/m1/v/7.m4s"}
}

// TestAttacks: what those may try who have no token, an old one or another's, by both ways that requests take. All fail
// with a reason that no cache keeps.
func TestAttacks(t *testing.T) {
	t.Parallel()
	f := newBattle(t)
	f.good(t)
	var all []attack
	for _, some := range [][]attack{
		f.withoutToken(), f.forgeries(), f.confusions(t), f.judged(), f.othersTokens(), f.replays(), f.paths(),
		f.encodings(), f.clips(), f.sizes(), f.headers(), f.referrers(),
	} {
		all = append(all, some...)
	}
	if len(all) < 60 {
		t.Errorf("%d attacks", len(all))
	}
	names := map[string]bool{}
	for _, a := range all {
		if names[a.name] {
			t.Errorf("two attacks are called %s", a.name)
		}
		names[a.name] = true
		if a.method == "" {
			a.method = http.MethodGet
		}
		if a.status == 0 {
			a.status = http.StatusForbidden
		}
		if !strings.HasPrefix(a.target, "/") && !strings.Contains(a.target, "://") {
			a.target = "/" + a.target
		}
		for way, addr := range f.addrs {
			r := send(t, addr, ask(a.method, a.target, a.fields))
			if r.status != a.status || strings.Contains(r.body, secret) || strings.Contains(r.cache, "public") {
				t.Errorf("%s by %s: %d, want %d, Cache-Control %q: %.300s", a.name, way, r.status, a.status, r.cache,
					r.body)
			}
			if r.status == http.StatusForbidden &&
				(r.cache != "no-store" || !strings.Contains(r.body, `"forbidden"`) && a.method != http.MethodHead) {
				t.Errorf("%s by %s: Cache-Control %q: %.300s", a.name, way, r.cache, r.body)
			}
		}
	}
	t.Logf("%d attacks", len(all))
}

// good is what is asked for by those who may: else no attack would mean anything.
func (b *battle) good(t *testing.T) {
	t.Helper()
	from := "Referer: https://www.example.com/page\r\n"
	for target, fields := range map[string]string{
		publicID + ".m3u8": "", publicID + "/m1/v/7.m4s": "", signedID + ".m3u8?token=" + b.own.token(nil): "",
		signedID + "?token=" + b.own.token(nil): "",
		signedID + "/" + b.path + "/m1/v.m3u8":  "", signedID + "/" + b.path + "/m1/v/7.m4s": "",
		signedID + "/" + b.restricted + "/m1/v/7.m4s":                                             from,
		signedID + ".m3u8?token=" + b.own.token(claims{"playback_restriction_id": b.restriction}): from,
		signedID + "/" + b.clip + "/m1/v/3.m4s":                                                   "",
		signedID + "/thumbnail.jpg?token=" + b.own.token(claims{"aud": "t"}):                      "",
		signedID + "/high.mp4?token=" + b.own.token(nil):                                          "",
		signedID + "/" + b.path + "/m1/large/7.m4s":                                               "",
		signedID + "/" + b.small + "/m1/v/7.m4s":                                                  "",
		signedID + "/" + b.small + "/m1/a/7.m4s":                                                  "",
		signedID + "/low.mp4?token=" + b.own.token(claims{"max_resolution": "480p"}):              "",
		signedID + "/audio.m4a?token=" + b.own.token(claims{"max_resolution": "480p"}):            "",
		foreignID + ".m3u8?token=" + b.foreign.token(claims{"sub": foreignID}):                    "",
		signedID + "/" + b.board + "/storyboard.jpg":                                              "",
	} {
		for way, addr := range b.addrs {
			if r := send(t, addr, ask("GET", "/"+target, fields)); r.status != http.StatusOK ||
				!strings.Contains(r.body, secret) {
				t.Errorf("%s by %s: %d %s", target, way, r.status, r.body)
			}
		}
	}
}

func (b *battle) withoutToken() (all []attack) {
	for _, target := range []string{
		".m3u8", "", "/m1/v.m3u8", "/m1/v/7.m4s", "/m1/v/7.0.m4s", "/m1/v/init-0.mp4", "/text/t.vtt", "/thumbnail.jpg",
		"/animated.gif", "/storyboard.vtt",
		"/storyboard.jpg", "/high.mp4", "/audio.m4a", "/metadata.json", "/m1/tiles.m3u8",
	} {
		all = append(all, attack{name: "no token: " + target, target: signedID + target})
	}
	return append(all,
		attack{name: "no token: HEAD", method: http.MethodHead, target: signedID + "/m1/v/7.m4s"},
		attack{name: "no token: range", target: signedID + "/m1/v/7.m4s", fields: "Range: bytes=0-9\r\n"},
		attack{
			name: "no token: POST", method: http.MethodPost, target: signedID + "/m1/v/7.m4s",
			fields: "Content-Length: 0\r\n", status: http.StatusMethodNotAllowed,
		},
		attack{
			name: "no token: OPTIONS", method: http.MethodOptions, target: signedID + "/m1/v/7.m4s",
			status: http.StatusNoContent,
		},
		attack{
			name:   "the playback ID in lower case",
			target: strings.ToLower(signedID) + ".m3u8?token=" + b.own.token(nil), status: http.StatusNotFound,
		},
	)
}

// forgeries have no signature of the key.
func (b *battle) forgeries() []attack {
	good := b.own.token(nil)
	parts := strings.Split(good, ".")
	other := keypair{b.own.id, b.foreign.private}
	long := b.own.token(claims{"custom": strings.Repeat("x", 8200)})
	jwk := claims{"kty": "RSA", "n": b64(string(other.private.N.Bytes())), "e": "AQAB"}
	return []attack{
		master("empty token", ""),
		master("not a token", "let-me-in"),
		master("empty parts", ".."),
		master("two parts", parts[0]+"."+parts[1]),
		master("four parts", good+".x"),
		master("five parts, as of an encrypted one", good+".x.y"),
		master("no signature", parts[0]+"."+parts[1]+"."),
		master("signature of other claims", parts[0]+"."+b64(b.own.claims(claims{"exp": 4102444800}))+"."+parts[2]),
		master("signature under another header", b64(b.own.head(claims{"x": 1}))+"."+parts[1]+"."+parts[2]),
		master("signature of zeroes", parts[0]+"."+parts[1]+"."+strings.Repeat("A", len(parts[2]))),
		master("short signature", good[:len(good)-4]),
		master("padded signature", good+"%3D%3D"),
		master("spare bits of the signature", good[:len(good)-1]+neighbour(good[len(good)-1])),
		master("key of the attacker", other.token(nil)),
		master("key of the attacker in the header (jwk)", other.with(claims{"jwk": jwk})),
		master("key of the attacker by URL (jku)", other.with(claims{"jku": "https://evil.test/keys"})),
		master("certificate of the attacker (x5c)", other.with(claims{"x5c": []string{b64("MII")}})),
		master("oversize", long),
		master("two tokens", good+"&token="+good),
		master("two tokens, one written in percent", good+"&%74oken="+good),
		{name: "token in the fragment", target: signedID + ".m3u8%23token=" + good, status: http.StatusNotFound},
		{name: "token behind a semicolon", target: signedID + ".m3u8?a=1;token=" + good},
		{name: "token under another name", target: signedID + ".m3u8?Token=" + good + "&access_token=" + good},
		{name: "token with spaces", target: signedID + ".m3u8?token=%20" + good},
		{name: "token with a line feed", target: signedID + ".m3u8?token=" + good + "%0A"},
	}
}

// neighbour is another character of base64url with the same first four bits: the last two are spare in the last one of
// 256 bytes.
func neighbour(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)^1])
}

// confusions have another algorithm than the one that is known.
func (b *battle) confusions(t *testing.T) []attack {
	t.Helper()
	pkix, err := x509.MarshalPKIXPublicKey(&b.own.private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pkcs1 := x509.MarshalPKCS1PublicKey(&b.own.private.PublicKey)
	inPEM := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	text := func(algorithm string) string {
		return b64(b.own.head(claims{"alg": algorithm})) + "." + b64(b.own.claims(nil))
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text("ES256")))
	r, s, err := ecdsa.Sign(rand.Reader, curve, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sum = sha256.Sum256([]byte(text("PS256")))
	pss, err := rsa.SignPSS(rand.Reader, b.own.private, crypto.SHA256, sum[:], nil)
	if err != nil {
		t.Fatal(err)
	}
	large := sha512.Sum512([]byte(text("RS512")))
	rs512, err := rsa.SignPKCS1v15(nil, b.own.private, crypto.SHA512, large[:])
	if err != nil {
		t.Fatal(err)
	}
	return []attack{
		master("algorithm none", b.own.unsigned("none", "")),
		master("algorithm None", b.own.unsigned("None", "")),
		master("algorithm NONE with a signature", b.own.unsigned("NONE", "AAAA")),
		master("no algorithm", b.own.unsigned("", "")),
		master("algorithm rs256 in lower case", b.own.rs256(text("rs256"))),
		master("HS256 with the public key in PEM", b.own.hs256(inPEM("PUBLIC KEY", pkix))),
		master("HS256 with the public key in PEM without its last line feed",
			b.own.hs256([]byte(strings.TrimSpace(string(inPEM("PUBLIC KEY", pkix)))))),
		master("HS256 with the public key in PKCS 1 PEM", b.own.hs256(inPEM("RSA PUBLIC KEY", pkcs1))),
		master("HS256 with the public key in DER", b.own.hs256(pkix)),
		master("HS256 with the modulus", b.own.hs256(b.own.private.N.Bytes())),
		master("HS256 with an empty secret", b.own.hs256(nil)),
		master("ES256",
			text("ES256")+"."+b64(string(r.FillBytes(make([]byte, 32)))+string(s.FillBytes(make([]byte, 32))))),
		master("ES256 of zeroes", b.own.unsigned("ES256", strings.Repeat("A", 86))),
		master("PS256 of the right key", text("PS256")+"."+b64(string(pss))),
		master("RS512 of the right key", text("RS512")+"."+b64(string(rs512))),
		master("RS256 said, RS512 signed", text("RS256")+"."+b64(string(rs512))),
		master("extensions that are not known (crit)", b.own.with(claims{"crit": []string{"b64"}, "b64": false})),
	}
}

// judged are signed well, and say what is not allowed.
func (b *battle) judged() (all []attack) {
	now := time.Now().Unix()
	for name, c := range map[string]claims{
		"no expiry":                     {"exp": nil},
		"expired":                       {"exp": now - 1},
		"expiry as a string":            {"exp": strconv.FormatInt(now+99, 10)},
		"expiry null":                   {"exp": json.RawMessage("null")},
		"expiry of a million years":     {"exp": 1e15},
		"negative expiry":               {"exp": -1},
		"expiry in a list":              {"exp": []int64{now + 99}},
		"expiry true":                   {"exp": true},
		"not valid yet":                 {"nbf": now + 300},
		"issued tomorrow":               {"iat": now + 86400},
		"not before as a string":        {"nbf": "0"},
		"no subject":                    {"sub": nil},
		"empty subject":                 {"sub": ""},
		"subject in a list":             {"sub": []string{signedID}},
		"subject of the other asset":    {"sub": otherID},
		"subject that begins like it":   {"sub": signedID + "x"},
		"subject in lower case":         {"sub": strings.ToLower(signedID)},
		"subject with a path":           {"sub": signedID + "/"},
		"subject any":                   {"sub": "*"},
		"no audience":                   {"aud": nil},
		"empty audience":                {"aud": ""},
		"audience of thumbnails":        {"aud": "t"},
		"audience of animations":        {"aud": "g"},
		"audience of storyboards":       {"aud": "s"},
		"audience of licences":          {"aud": "d"},
		"audience of counts":            {"aud": "playback_id"},
		"audience V":                    {"aud": "V"},
		"audience any":                  {"aud": "*"},
		"no key":                        {"kid": nil},
		"two keys":                      {"kid": string(b.stolen.id)},
		"restriction that is not there": {"playback_restriction_id": "none"},
		"empty restriction":             {"playback_restriction_id": ""},
		"restriction in a list":         {"playback_restriction_id": []string{"a"}},
	} {
		if name == "no key" {
			all = append(all,
				master("claims: "+name, b.own.rs256(b64(claims{"alg": "RS256"})+"."+b64(b.own.claims(c)))))
			continue
		}
		all = append(all, master("claims: "+name, b.own.token(c)))
	}
	for _, kid := range []string{
		"../../../dev/null", "/dev/null", "' OR '1'='1", string(b.own.id) + "\x00",
		strings.ToUpper(string(b.own.id)) + "_", "%",
	} {
		forged := b.own.rs256(b64(b.own.head(claims{"kid": kid})) + "." + b64(b.own.claims(claims{"kid": nil})))
		all = append(all, master("key ID "+strconv.Quote(kid), forged))
	}
	return all
}

// othersTokens are good for something else.
func (b *battle) othersTokens() []attack {
	mine := b.foreign.token(nil)
	return []attack{
		master("key of another environment", mine),
		master("key of another environment under our key's ID",
			b.foreign.rs256(b64(b.own.head(nil))+"."+b64(b.own.claims(nil)))),
		master("key of another environment, ours in the header",
			b.foreign.rs256(b64(b.own.head(nil))+"."+b64(b.foreign.claims(nil)))),
		{
			name:   "our key for another environment",
			target: foreignID + ".m3u8?token=" + b.own.token(claims{"sub": foreignID}),
		},
		{name: "token of the other asset", target: otherID + ".m3u8?token=" + b.own.token(nil)},
		{name: "video's token for a thumbnail", target: signedID + "/thumbnail.jpg?token=" + b.own.token(nil)},
		{name: "video's token for an animation", target: signedID + "/animated.gif?token=" + b.own.token(nil)},
		{name: "video's token for a storyboard", target: signedID + "/storyboard.vtt?token=" + b.own.token(nil)},
		{name: "thumbnail's token for a file", target: signedID + "/high.mp4?token=" + b.own.token(claims{"aud": "t"})},
		{
			name:   "thumbnail's token for a segment",
			target: signedID + "/m1/v/7.m4s?token=" + b.own.token(claims{"aud": "t"}),
		},
		{
			name:   "token on a public playback ID",
			target: publicID + ".m3u8?token=" + b.own.token(claims{"sub": publicID}), status: http.StatusBadRequest,
		},
		{
			name: "any token on a public playback ID", target: publicID + "/m1/v/7.m4s?token=x",
			status: http.StatusBadRequest,
		},
	}
}

// replays are what was good once.
func (b *battle) replays() []attack {
	return []attack{
		master("deleted key", b.stolen.token(nil)), below("path of a deleted key", b.replay),
		{name: "playlist by the path of a deleted key", target: signedID + "/" + b.replay + "/m1/v.m3u8"},
		{name: "storyboard by the path of a deleted key", target: signedID + "/" + b.replay + "/storyboard.jpg"},
		{name: "text by the path of a deleted key", target: signedID + "/" + b.replay + "/text/t.vtt"},
	}
}

// paths are changed, made up, or another's.
func (b *battle) paths() []attack {
	parts := strings.Split(b.path, ".")
	with := func(i int, v string) string {
		p := append([]string{}, parts...)
		p[i] = v
		return strings.Join(p, ".")
	}
	mac := parts[6]
	return []attack{
		below("path: made up", "signed-v.1.2.3.4.5.6"), below("path: empty fields", "signed-v......"),
		below("path: prefix alone", "signed-"),
		below("path: no MAC", with(6, "")), below("path: MAC of zeroes", with(6, strings.Repeat("A", len(mac)))),
		below("path: short MAC", with(6, mac[:len(mac)-1])),
		below("path: MAC and more", b.path+"A"), below("path: another field", b.path+".x"),
		below("path: MAC in upper case", with(6, strings.ToUpper(mac)+"_")),
		below("path: later expiry", with(2, "4102444800")), below("path: expiry with a sign", with(2, "%2B"+parts[2])),
		below("path: expiry with a zero", with(2, "0"+parts[2])),
		below("path: secret of another turn", with(1, "1")), below("path: secret with a sign", with(1, "%2B"+parts[1])),
		below("path: other use", with(0, "signed-s")),
		below("path: other key", with(3, string(b.foreign.id))), below("path: no key", with(3, "")),
		below("path: with a restriction", with(4, string(b.restriction))),
		below("path: with modifiers", with(5, b64("max_resolution=2160p"))),
		below("path: without its restriction", strings.Replace(b.restricted, string(b.restriction), "", 1)),
		below("path: clip taken out", strings.Replace(b.clip, strings.Split(b.clip, ".")[5], "", 1)),
		below("path: field moved", with(3, parts[3]+".")),
		below("path: oversize", with(5, strings.Repeat("A", 4000))),
		{name: "path: at another playback ID", target: otherID + "/" + b.path + "/m1/v/7.m4s"},
		{name: "path: at another environment", target: foreignID + "/" + b.path + "/m1/v/7.m4s"},
		{
			name: "path: at a public playback ID", target: publicID + "/" + b.path + "/m1/v/7.m4s",
			status: http.StatusNotFound,
		},
		{name: "path: of a storyboard for media", target: signedID + "/" + b.board + "/m1/v/7.m4s"},
		{name: "path: for the multivariant playlist", target: signedID + "/" + b.path, status: http.StatusNotFound},
		{
			name: "path: as the playback ID's end", target: signedID + "." + b.path + ".m3u8",
			status: http.StatusNotFound,
		},
		{
			name: "path: for a thumbnail", target: signedID + "/" + b.path + "/thumbnail.jpg",
			status: http.StatusNotFound,
		},
		{name: "path: for a file", target: signedID + "/" + b.path + "/high.mp4", status: http.StatusNotFound},
		{name: "path: as a token", target: signedID + ".m3u8?token=" + b.path},
		{name: "path: in the query", target: signedID + "/m1/v/7.m4s?" + b.path},
		{
			name: "path: in front of the playback ID", target: b.path + "/" + signedID + "/m1/v/7.m4s",
			status: http.StatusNotFound,
		},
		{name: "path: behind the media", target: signedID + "/m1/" + b.path + "/v/7.m4s"},
	}
}

// encodings write an address so that two readers may understand it differently.
func (b *battle) encodings() []attack {
	const gone = http.StatusNotFound
	return []attack{
		{
			name:   "encoding: dots to another playback ID",
			target: signedID + "/" + b.path + "/../../" + otherID + "/m1/v/7.m4s", status: gone,
		},
		{
			name:   "encoding: dots in percent",
			target: signedID + "/" + b.path + "/%2e%2e/%2e%2e/" + otherID + "/m1/v/7.m4s", status: gone,
		},
		{
			name:   "encoding: slashes in percent",
			target: signedID + "/" + b.path + "/..%2f..%2f" + otherID + "/m1/v/7.m4s", status: gone,
		},
		{name: "encoding: percent twice", target: signedID + "/" + b.path + "/%252e%252e/m1/v/7.m4s", status: gone},
		{
			name: "encoding: backslashes", target: signedID + "/" + b.path + `/..\..\` + otherID + `/m1/v/7.m4s`,
			status: gone,
		},
		{name: "encoding: two slashes in front", target: "//" + signedID + "/m1/v/7.m4s", status: gone},
		{name: "encoding: two slashes inside", target: signedID + "//m1/v/7.m4s", status: gone},
		{name: "encoding: a dot inside", target: signedID + "/./m1/v/7.m4s", status: gone},
		{name: "encoding: a public one in front", target: publicID + "/../" + signedID + "/m1/v/7.m4s", status: gone},
		{
			name:   "encoding: a public one in front in percent",
			target: publicID + "/%2e%2e/" + signedID + "/m1/v/7.m4s", status: gone,
		},
		{
			name:   "encoding: a public one and a slash in percent",
			target: publicID + "%2f..%2f" + signedID + "/m1/v/7.m4s", status: gone,
		},
		{name: "encoding: the ID in percent", target: "%53" + signedID[1:] + "/m1/v/7.m4s"},
		{name: "encoding: a zero byte behind the ID", target: signedID + "%00/m1/v/7.m4s", status: gone},
		{name: "encoding: a space behind the ID", target: signedID + "%20.m3u8", status: gone},
		{name: "encoding: path parameters", target: signedID + ";x=1/m1/v/7.m4s", status: gone},
		{name: "encoding: extension of the playlist twice", target: signedID + ".m3u8.m3u8", status: gone},
		{name: "encoding: extension of the playlist in upper case", target: signedID + ".M3U8", status: gone},
		{
			name:   "encoding: the prefix in upper case",
			target: signedID + "/SIGNED-" + strings.TrimPrefix(b.path, "signed-") + "/m1/v/7.m4s",
		},
		{name: "encoding: the prefix in percent, forged", target: signedID + "/%73igned-v.1.2.3.4.5.6/m1/v/7.m4s"},
		{name: "encoding: a picture's name for a segment", target: signedID + "/m1/v/7.m4s/thumbnail.jpg"},
		{name: "encoding: a file's name behind the media", target: signedID + "/m1/high.mp4"},
		{name: "encoding: a question mark in percent", target: signedID + "/m1/v/7.m4s%3ftoken=x"},
	}
}

// clips reach for what is outside the seconds 4 to 8 of a token.
func (b *battle) clips() []attack {
	path := signedID + "/" + b.clip
	token := "?token=" + b.own.token(claims{"asset_start_time": 4, "asset_end_time": 8})
	return []attack{
		{name: "clip: the segment before", target: path + "/m1/v/1.m4s"},
		{name: "clip: the segment behind", target: path + "/m1/v/4.m4s"},
		{name: "clip: its first part", target: path + "/m1/v/4.0.m4s"},
		{name: "clip: the segment of the sound", target: path + "/m1/a/9.m4s"},
		{name: "clip: widened in the query", target: path + "/m1/v/9.m4s?asset_start_time=0&asset_end_time=99"},
		{name: "clip: by the token itself", target: signedID + "/m1/v/9.m4s" + token},
		{name: "clip: the whole text", target: path + "/text/t.vtt"},
		{name: "clip: the whole file", target: signedID + "/high.mp4" + token},
		{name: "clip: the whole sound", target: signedID + "/audio.m4a" + token},
	}
}

// sizes reach for a larger picture than a token with max_resolution=480p allows.
func (b *battle) sizes() []attack {
	path := signedID + "/" + b.small
	token := "?token=" + b.own.token(claims{"max_resolution": "480p"})
	return []attack{
		{name: "size: the larger playlist", target: path + "/m1/large.m3u8"},
		{name: "size: its segment", target: path + "/m1/large/7.m4s"},
		{name: "size: its part", target: path + "/m1/large/7.0.m4s"},
		{name: "size: its init segment", target: path + "/m1/large/init-0.mp4"},
		{name: "size: a larger playlist that none lists", target: path + "/m1/unlisted.m3u8"},
		{name: "size: the segment that none lists", target: path + "/m1/unlisted/7.m4s"},
		{name: "size: the part that none lists", target: path + "/m1/unlisted/7.0.m4s"},
		{name: "size: the init segment that none lists", target: path + "/m1/unlisted/init-0.mp4"},
		{name: "size: raised in the query", target: path + "/m1/large/7.m4s?max_resolution=1080p"},
		{name: "size: by the token itself", target: signedID + "/m1/large/7.m4s" + token},
		{name: "size: the larger file", target: signedID + "/high.mp4" + token},
		{
			name:   "size: the larger file, raised in the query",
			target: signedID + "/high.mp4" + token + "&max_resolution=1080p",
		},
		{
			name: "size: one range of the larger file", target: signedID + "/high.mp4" + token,
			fields: "Range: bytes=0-9\r\n",
		},
		{
			name: "size: one that can't be read", status: http.StatusBadRequest,
			target: signedID + "/low.mp4?token=" + b.own.token(claims{"max_resolution": "480P"}),
		},
	}
}

// headers claim what only the request line may say.
func (b *battle) headers() (all []attack) {
	good := b.own.token(nil)
	for _, fields := range []string{
		"Authorization: Bearer " + good, "Cookie: token=" + good, "X-Token: " + good, "Token: " + good,
		"X-Original-URL: /" + publicID + "/m1/v/7.m4s",
		"X-Rewrite-URL: /" + publicID + "/m1/v/7.m4s", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: localhost",
		"X-Forwarded-Prefix: /" + b.path, "X-Real-IP: 127.0.0.1",
		"Forwarded: for=127.0.0.1;host=localhost", "X-HTTP-Method-Override: OPTIONS", "X-Accel-Redirect: /" + signedID,
		"Origin: https://www.example.com",
		"Referer: https://stream.example/" + signedID + ".m3u8?token=" + good, "If-None-Match: *",
		"Range: bytes=0-\r\nIf-Range: \"x\"", "Purpose: prefetch",
	} {
		all = append(all, attack{
			name: "field: " + strings.SplitN(fields, ":", 2)[0], target: signedID + "/m1/v/7.m4s",
			fields: fields + "\r\n",
		})
	}
	return append(all,
		attack{name: "absolute address", target: "http://localhost/" + signedID + "/m1/v/7.m4s"},
		attack{
			name:   "absolute address with a user",
			target: "http://" + publicID + "@localhost/" + signedID + "/m1/v/7.m4s",
		},
	)
}

// referrers try to look like www.example.com, with a token that allows that alone, and with its path.
func (b *battle) referrers() (all []attack) {
	token := "?token=" + b.own.token(claims{"playback_restriction_id": b.restriction})
	for _, fields := range []string{
		"", "Referer: ", "Referer: null", "Referer: about:blank", "Referer: https://evil.test/",
		"Referer: https://example.com.evil.test/", "Referer: https://evilexample.com/",
		"Referer: https://www.example.com.evil.test/", "Referer: https://evil.test/https://www.example.com/",
		"Referer: https://evil.test/?https://www.example.com/",
		"Referer: https://evil.test#@www.example.com/", "Referer: https://www.example.com@evil.test/",
		"Referer: https://evil.test@www.example.com/", `Referer: https://evil.test\@www.example.com/`,
		"Referer: //www.example.com/", "Referer: www.example.com", "Referer: ftp://www.example.com/",
		"Referer: data:text/html,https://www.example.com/", "Referer: https://a.b.example.com/",
		"Referer: https:www.example.com", "Referer: https://evil.test, https://www.example.com/",
		"Referer: https://evil.test/\r\nReferer: https://www.example.com/",
		"Referer: https://www.example.com/\r\nReferer: https://evil.test/", "Origin: https://www.example.com",
		"Referrer: https://www.example.com/", "X-Referer: https://www.example.com/",
		"Referer: https://www.ex\u0430mple.com/", "Referer: https://www%2eexample.com/",
		"Referer: https://evil.test%2f.example.com/",
		"Referer: https://www.example.com/\r\nUser-Agent: curl/8.5.0",
		"Referer: https://www.example.com/\r\nUser-Agent: Mozilla/5.0 Lavf/60",
		"Referer: https://www.example.com/\r\nUser-Agent: Mozilla/5.0\r\nUser-Agent: yt-dlp/2026",
	} {
		name := "restricted: " + fields
		if fields != "" {
			fields += "\r\n"
		}
		all = append(all,
			attack{name: name, target: signedID + ".m3u8" + token, fields: fields},
			attack{
				name: name + " below the path", target: signedID + "/" + b.restricted + "/m1/v/7.m4s", fields: fields,
			},
		)
	}
	return all
}
