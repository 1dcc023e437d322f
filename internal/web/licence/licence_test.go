package licence_test

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/playback"
	"millrace/internal/permit"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/web/licence"
	"millrace/internal/web/pace"
)

// world is a licence server over the real services, and a vendor's server behind it.
type world struct {
	t       *testing.T
	env     id.Environment
	drm     *drm.Service
	signing *signing.Service
	rules   *restriction.Service
	key     id.SigningKey
	private *rsa.PrivateKey
	objects map[id.Playback]playbackid.Object
	handler http.Handler

	smallest int // picture that playlists offer

	sent    *http.Request // what the vendor got last
	body    []byte
	respond func() (licence.Response, error)
}

func newWorld(t *testing.T, set drm.Settings) *world {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	w := &world{
		t: t, drm: drm.New(drm.Options{Store: d.DRM()}), signing: signing.New(signing.Options{Store: d.Signing()}),
		rules: restriction.New(restriction.Options{Store: d.Restrictions()}),
		respond: func() (licence.Response, error) {
			return licence.Response{Status: 200, ContentType: "application/x-licence", Body: []byte("LICENCE")}, nil
		},
	}
	env, err := access.New(access.Options{Store: d.Access()}).Default(t.Context(), time.Now())
	w.must(err)
	w.env = env.ID
	w.key, w.private = w.makeKey(env.ID)
	made, err := w.drm.Create(t.Context(), env.ID, "", set, time.Now())
	w.must(err)
	of := func(policy playbackid.Policy, object string, c id.DRMConfiguration) playbackid.Object {
		return playbackid.Object{
			ID:          playbackid.ID{ID: id.Playback(object), Policy: policy, DRMConfigurationID: string(c)},
			Environment: env.ID, Kind: playbackid.OfAsset, ObjectID: "asset-of-" + object,
		}
	}
	foreign := of(playbackid.DRM, "foreign", made.ID)
	foreign.Environment = "another environment" // which names a configuration that is not its own
	w.objects = map[id.Playback]playbackid.Object{
		"pb1": of(playbackid.DRM, "pb1", made.ID), "pb2": of(playbackid.DRM, "pb2", made.ID), "foreign": foreign,
		"public": of(playbackid.Public, "public", ""), "signed": of(playbackid.Signed, "signed", ""),
		"none": of(playbackid.DRM, "none", ""),
	}
	guard := permit.New(permit.Options{Signing: w.signing, Restrictions: w.rules})
	w.handler = licence.Handler(licence.Options{
		Resolve: func(_ context.Context, p id.Playback) (playbackid.Object, error) {
			o, ok := w.objects[p]
			if !ok {
				return o, fault.New(fault.NotFound, "the playback ID does not exist")
			}
			return o, nil
		},
		Smallest: func(context.Context, playbackid.Object) (int, error) { return w.smallest, nil },
		Admit: func(ctx context.Context, o playbackid.Object, r licence.Request, now time.Time) (url.Values, error) {
			token, err := guard.Licence(ctx, o, playback.Request{
				Tokens: r.Tokens, Referrers: r.Referrers, UserAgents: r.UserAgents,
			}, now)
			return token.Modifiers, err
		},
		DRM: w.drm, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Post: func(
			ctx context.Context, to string, header http.Header, body []byte, most int64,
		) (licence.Response, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, nil)
			w.must(err)
			r.Header = header
			w.sent, w.body = r, body
			out, err := w.respond()
			out.Body = out.Body[:min(int64(len(out.Body)), most)]
			return out, err
		},
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) makeKey(env id.Environment) (id.SigningKey, *rsa.PrivateKey) {
	w.t.Helper()
	k, text, err := w.signing.Create(w.t.Context(), env, time.Now())
	w.must(err)
	raw, err := base64.StdEncoding.DecodeString(text)
	w.must(err)
	block, _ := pem.Decode(raw)
	private, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	w.must(err)
	return k.ID, private
}

// token signs claims; those that are not given are of a good token for pb1.
func (w *world) token(claims map[string]any) string {
	w.t.Helper()
	all := map[string]any{"sub": "pb1", "aud": "d", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	text, err := signing.Sign(w.key, w.private, all)
	w.must(err)
	return text
}

func (w *world) ask(method, path, token, body string, header http.Header) *http.Response {
	w.t.Helper()
	if token != "" {
		path += "?token=" + token
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	maps.Copy(r.Header, header)
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	resp := rec.Result()
	if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Access-Control-Allow-Origin") != "*" ||
		resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		w.t.Errorf("%s %s: headers %v", method, path, resp.Header)
	}
	return resp
}

func (w *world) expect(what string, resp *http.Response, status int, text string) {
	w.t.Helper()
	body, err := io.ReadAll(resp.Body)
	w.must(err)
	if resp.StatusCode != status || !strings.Contains(string(body), text) {
		w.t.Errorf("%s: %d %s, want %d with %q", what, resp.StatusCode, body, status, text)
	}
}

// challenge is what a ClearKey player asks for one key.
func (w *world) challenge(playback id.Playback) string {
	w.t.Helper()
	o := w.objects[playback]
	c, err := w.drm.Content(w.t.Context(), o.Environment, drm.ResourceOf(o), drm.ConfigurationOf(o), time.Now())
	w.must(err)
	return `{"kids":["` + base64.RawURLEncoding.EncodeToString(c.Keys[0].ID[:]) + `"],"type":"temporary"}`
}

func builtIn() drm.Settings {
	return drm.Settings{Scheme: drm.CBCS, ClearKey: true, KeysByClass: true, EncryptAudio: true}
}

// TestClearKey: the response holds all keys that a token allows, whichever are asked for.
func TestClearKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, builtIn())
	o := w.objects["pb1"]
	c, err := w.drm.Content(t.Context(), w.env, drm.ResourceOf(o), drm.ConfigurationOf(o), time.Now())
	w.must(err)
	all := []drm.Class{drm.SD, drm.HD, drm.UHD1, drm.Audio}
	for _, tt := range []struct {
		claim    string
		smallest int
		want     []drm.Class
	}{
		{"", 0, all},
		{"480p", 0, []drm.Class{drm.SD, drm.Audio}},
		{"720p", 0, []drm.Class{drm.SD, drm.HD, drm.Audio}},
		{"2160p", 0, all},
		// as playlists keep them, by the shorter side
		{"540p", 0, []drm.Class{drm.ClassOf(1280, 536), drm.Audio}},
		{"1080p", 0, []drm.Class{drm.SD, drm.ClassOf(2560, 1080), drm.Audio}},
		{"480p", 270, []drm.Class{drm.SD, drm.Audio}},
		// playlists keep the smallest where every one is larger
		{"480p", 720, []drm.Class{drm.SD, drm.HD, drm.Audio}},
		{"270p", 536, []drm.Class{drm.SD, drm.Audio}},
		{"1080p", 1440, all},
	} {
		claim, want := tt.claim, tt.want
		w.smallest = tt.smallest
		resp := w.ask("POST", "/license/clearkey/pb1", w.token(map[string]any{"max_resolution": claim}),
			w.challenge("pb1"), nil)
		var set struct {
			Keys []struct {
				Kty string `json:"kty"`
				Kid string `json:"kid"`
				K   string `json:"k"`
			} `json:"keys"`
			Type string `json:"type"`
		}
		w.must(json.NewDecoder(resp.Body).Decode(&set))
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" || set.Type != "temporary" ||
			len(set.Keys) != len(want) {
			t.Fatalf("%s: %d %+v", claim, resp.StatusCode, set)
		}
		for i, class := range want {
			k, _ := c.Key(class, 0)
			if got := set.Keys[i]; got.Kty != "oct" || got.Kid != base64.RawURLEncoding.EncodeToString(k.ID[:]) ||
				got.K != base64.RawURLEncoding.EncodeToString(k.Value[:]) {
				t.Errorf("%s: %+v is not the key of %s", claim, got, class)
			}
		}
	}
	resp := w.ask("OPTIONS", "/license/clearkey/pb1", "", "", nil)
	if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Methods") != "POST, OPTIONS" ||
		!strings.Contains(resp.Header.Get("Access-Control-Allow-Headers"), "SOAPAction") {
		t.Errorf("preflight: %d %v", resp.StatusCode, resp.Header)
	}
}

// TestNoLicence is what nobody gets a licence by.
func TestNoLicence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, builtIn())
	good, challenge := w.token(nil), w.challenge("pb1")
	narrow, err := w.rules.Create(t.Context(), w.env, restriction.Referrer{AllowedDomains: []string{"ours.example"}},
		restriction.UserAgent{AllowNone: true, AllowHighRisk: true}, time.Now())
	w.must(err)
	own, ownPrivate := w.key, w.private
	w.key, w.private = w.makeKey("another environment")
	foreign, ofForeign := w.token(nil), w.token(map[string]any{"sub": "foreign"})
	w.key, w.private = w.makeKey(w.env)
	deleted := w.token(nil)
	w.must(w.signing.Delete(t.Context(), w.env, w.key))
	w.key, w.private = own, ownPrivate
	parts := strings.Split(good, ".")
	of := func(sub string) string { return w.token(map[string]any{"sub": sub}) }
	type attack struct{ name, path, token, body, says string }
	for status, list := range map[int][]attack{
		403: {
			{"no token", "pb1", "", challenge, "add ?token="},
			{"playback token", "pb1", w.token(map[string]any{"aud": "v"}), challenge, "(aud) must be d"},
			{"thumbnail token", "pb1", w.token(map[string]any{"aud": "t"}), challenge, "(aud) must be d"},
			{"another asset's token", "pb1", of("pb2"), challenge, "(sub)"},
			{
				"expired", "pb1", w.token(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), challenge,
				"expired",
			},
			{"key of another environment", "pb1", foreign, challenge, "not known"},
			{"deleted key", "pb1", deleted, challenge, "not known"},
			{"two tokens", "pb1", good + "&token=" + good, challenge, "there must be one"},
			{"restricted", "pb1", w.token(map[string]any{"playback_restriction_id": string(narrow.ID)}), challenge, ""},
			{
				"unsigned", "pb1",
				base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"`+string(w.key)+`"}`)) + "." +
					parts[1] + ".", challenge, "alg",
			},
			{"tampered", "pb1", parts[0] + "." + parts[1] + "." + parts[2][:len(parts[2])-4] + "AAAA", challenge, ""},
			{"no token and no challenge", "pb1", "", "", "token"},
		},
		404: {
			{"deleted playback ID", "gone", of("gone"), challenge, "does not exist"},
			{"public playback ID", "public", "", challenge, "needs no licence"},
			{"signed playback ID", "signed", of("signed"), challenge, "needs no licence"},
			{"configuration of another environment", "foreign", ofForeign, challenge, "DRM configuration"},
			{"no configuration", "none", of("none"), challenge, "DRM configuration"},
			{"path behind it", "pb1/x", good, challenge, "no such path"},
			{"no playback ID", "", good, challenge, "no such path"},
		},
		400: {
			{"no challenge", "pb1", good, "", "empty"},
			{"not JSON", "pb1", good, "\x08\x04", "not the JSON"},
			{"no kids", "pb1", good, `{}`, "kids"},
			{"keys of another asset", "pb1", good, w.challenge("pb2"), "no key"},
			{"short kid", "pb1", good, `{"kids":["AAAA"]}`, "16 bytes"},
			{"kid that is no text", "pb1", good, `{"kids":[1]}`, "not the JSON"},
			{"to keep", "pb1", good, strings.Replace(challenge, "temporary", "persistent-license", 1), "temporary"},
			{"two challenges", "pb1", good, challenge + challenge, "data after its JSON"},
			{
				"size in upper case", "pb1", w.token(map[string]any{"max_resolution": "720P"}), challenge,
				"max_resolution",
			},
			{"size by name", "pb1", w.token(map[string]any{"max_resolution": "hd"}), challenge, "max_resolution"},
			{"size of nothing", "pb1", w.token(map[string]any{"max_resolution": "0p"}), challenge, "max_resolution"},
			{"size as a number", "pb1", w.token(map[string]any{"max_resolution": 720}), challenge, "max_resolution"},
			{"too many kids", "pb1", good, `{"kids":["` + strings.Repeat(`","`, 1000) + `"]}`, "1 to 1000"},
		},
		413: {{"oversize", "pb1", good, strings.Repeat(" ", 64<<10) + challenge, "at most 65536"}},
	} {
		for _, a := range list {
			w.expect(a.name, w.ask("POST", "/license/clearkey/"+a.path, a.token, a.body, nil), status, a.says)
		}
	}
	w.expect("of our page",
		w.ask("POST", "/license/clearkey/pb1", w.token(map[string]any{
			"playback_restriction_id": string(narrow.ID),
		}), challenge, http.Header{"Referer": {"https://ours.example/"}}), 200, "oct")
	w.expect("another method", w.ask("GET", "/license/clearkey/pb1", good, "", nil), 405, "POST, OPTIONS")
	w.expect("another system", w.ask("POST", "/license/primetime/pb1", good, challenge, nil), 404, "clearkey")
	w.expect("a system that is off", w.ask("POST", "/license/widevine/pb1", good, challenge, nil), 404, "no Widevine")
	w.expect("a certificate that is not there", w.ask("GET", "/appcert/fairplay/pb1", good, "", nil), 404,
		"no FairPlay")
	w.expect("a certificate of Widevine", w.ask("GET", "/appcert/widevine/pb1", good, "", nil), 404, "no such path")
	if w.sent != nil {
		t.Error("a vendor was asked")
	}
}

// failing is a body that can't be read to its end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestBodyThatFails: who sends a licence request too slowly is told so, and not that it is wrong.
func TestBodyThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, builtIn())
	for name, tt := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"below the pace":      {pace.ErrSlow, 408, "too slowly"},
		"not before a time":   {fmt.Errorf("read: %w", os.ErrDeadlineExceeded), 408, "too slowly"},
		"the connection lost": {io.ErrUnexpectedEOF, 400, "can't be read"},
	} {
		path := "/license/clearkey/pb1?token=" + w.token(nil)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, failing{tt.err})
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		w.expect(name, rec.Result(), tt.status, tt.says)
	}
}

func vendors() drm.Settings {
	return drm.Settings{Scheme: drm.CBCS, Vendors: drm.Vendors{
		Widevine: &drm.LicenceServer{
			URL:     "https://wv.example/{playback_id}",
			Headers: map[string]string{"X-Api-Key": "secret", "X-Content": "{content_id}"},
		},
		PlayReady: &drm.LicenceServer{URL: "https://pr.example/rights"},
		FairPlay: &drm.LicenceServer{
			URL: "https://fp.example/", Body: drm.BodyForm, Certificate: []byte("CERTIFICATE"),
		},
	}}
}

// TestVendors: requests of players reach the vendors' servers in the form that those take, and nothing of ours does.
func TestVendors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vendors())
	good, binary := w.token(nil), "\x08\x04\x00\xff<?&="
	w.expect("Widevine",
		w.ask("POST", "/license/widevine/pb1", good, binary, http.Header{
			"Content-Type": {"text/plain"}, "Cookie": {"a=b"}, "Authorization": {"Basic x"},
		}), 200, "LICENCE")
	if got := w.sent; got.URL.String() != "https://wv.example/pb1" || string(w.body) != binary ||
		got.Header.Get("Content-Type") != "application/octet-stream" ||
		got.Header.Get("X-Api-Key") != "secret" || got.Header.Get("X-Content") != "asset-of-pb1" ||
		len(got.Header) != 3 {
		t.Errorf("Widevine got %s %q %v", got.URL, w.body, got.Header)
	}
	const action = `"http://schemas.microsoft.com/DRM/2007/03/protocols/AcquireLicense"`
	w.expect("PlayReady",
		w.ask("POST", "/license/playready/pb1", good, "<soap/>", http.Header{
			"Soapaction": {action}, "Content-Type": {"text/xml"},
		}), 200, "LICENCE")
	if w.sent.Header.Get("SOAPAction") != action || w.sent.Header.Get("Content-Type") != "text/xml" ||
		string(w.body) != "<soap/>" {
		t.Errorf("PlayReady got %q %v", w.body, w.sent.Header)
	}
	w.ask("POST", "/license/playready/pb1", good, "<soap/>", http.Header{
		"Soapaction": {"a\r\nX: y"}, "Content-Type": {"\x00"},
	})
	if w.sent.Header.Get("SOAPAction") != "" || w.sent.Header.Get("Content-Type") != "text/xml; charset=utf-8" {
		t.Errorf("PlayReady got %v", w.sent.Header)
	}
	spc := []byte{0xff, 0xfe, 0, '+', '/'}
	want := url.Values{"spc": {base64.StdEncoding.EncodeToString(spc)}}.Encode()
	for name, sent := range map[string]struct{ body, kind string }{
		"raw":  {string(spc), "application/octet-stream"},
		"form": {want, "application/x-www-form-urlencoded; charset=utf-8"},
		"form of a careless player": {
			"spc=" + base64.StdEncoding.EncodeToString(spc), "application/x-www-form-urlencoded",
		},
	} {
		for _, licenceText := range []string{"TElDRU5DRQ==", "<ckc>TElDRU5DRQ==</ckc>\n", "LICENCE!"} {
			w.respond = func() (licence.Response, error) {
				return licence.Response{Status: 200, Body: []byte(licenceText)}, nil
			}
			w.expect("FairPlay "+name,
				w.ask("POST", "/license/fairplay/pb1", good, sent.body, http.Header{"Content-Type": {sent.kind}}), 200,
				"LICENCE")
			if string(w.body) != want || w.sent.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
				t.Errorf("FairPlay %s got %q %v", name, w.body, w.sent.Header)
			}
		}
	}
	w.expect("FairPlay, bad form",
		w.ask("POST", "/license/fairplay/pb1", good, "spc=%%%", http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"},
		}), 400, "")
	w.expect("certificate", w.ask("GET", "/appcert/fairplay/pb1", good, "", nil), 200, "CERTIFICATE")
	w.expect("certificate without a token", w.ask("GET", "/appcert/fairplay/pb1", "", "", nil), 403, "token")
	w.expect("ClearKey", w.ask("POST", "/license/clearkey/pb1", good, `{}`, nil), 404, "no ClearKey")
	raw := vendors()
	raw.FairPlay.Body = ""
	w = newWorld(t, raw)
	w.expect("raw FairPlay", w.ask("POST", "/license/fairplay/pb1", w.token(nil), string(spc), nil), 200, "LICENCE")
	if !bytes.Equal(w.body, spc) {
		t.Errorf("raw FairPlay got %q", w.body)
	}
}

// TestVendorErrors: a player is told what is wrong, and nothing of where the vendor's server is.
func TestVendorErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, vendors())
	for name, tt := range map[string]struct {
		response licence.Response
		err      error
		status   int
	}{
		"bad challenge":           {licence.Response{Status: 400}, nil, 400},
		"unprocessable":           {licence.Response{Status: 422}, nil, 400},
		"our credentials":         {licence.Response{Status: 401}, nil, 502},
		"not entitled":            {licence.Response{Status: 403}, nil, 403},
		"redirect":                {licence.Response{Status: 302}, nil, 502},
		"gone":                    {licence.Response{Status: 404}, nil, 502},
		"too many":                {licence.Response{Status: 429}, nil, 503},
		"broken":                  {licence.Response{Status: 500, Body: []byte("secret trace")}, nil, 502},
		"down":                    {licence.Response{Status: 503}, nil, 503},
		"away":                    {licence.Response{}, errors.New("dial tcp wv.example: secret"), 502},
		"slow":                    {licence.Response{}, context.DeadlineExceeded, 504},
		"refused by the one door": {licence.Response{}, fault.New(fault.Invalid, "wv.example is secret"), 502},
		"huge":                    {licence.Response{Status: 200, Body: make([]byte, 300<<10)}, nil, 502},
	} {
		w.respond = func() (licence.Response, error) { return tt.response, tt.err }
		resp := w.ask("POST", "/license/widevine/pb1", w.token(nil), "x", nil)
		body, err := io.ReadAll(resp.Body)
		w.must(err)
		if resp.StatusCode != tt.status || !strings.Contains(string(body), "the Widevine licence server") ||
			strings.Contains(string(body), "wv.example") || strings.Contains(string(body), "secret") {
			t.Errorf("%s: %d %s, want %d", name, resp.StatusCode, body, tt.status)
		}
		if again := resp.Header.Get("Retry-After"); (again != "") != (tt.status == 503) {
			t.Errorf("%s: Retry-After %q", name, again)
		}
	}
}

func FuzzLicenceRequest(f *testing.F) {
	f.Add([]byte(`{"kids":["AAAAAAAAAAAAAAAAAAAAAA"],"type":"temporary"}`))
	f.Add([]byte(`{"kids":[]}`))
	f.Add([]byte("spc=AAAA"))
	f.Fuzz(func(t *testing.T, challenge []byte) {
		if wanted, err := licence.ParseRequest(challenge); err == nil && (len(wanted) == 0 || len(wanted) > 1000) ||
			err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%d keys, %v", len(wanted), err)
		}
		if raw, err := licence.SPC("application/x-www-form-urlencoded", challenge); err == nil && len(raw) == 0 ||
			err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q, %v", raw, err)
		}
		if out := licence.CKC(challenge); len(out) > len(challenge) ||
			slices.Equal(out, []byte{}) && len(challenge) > 0 {
			t.Errorf("%q", out)
		}
	})
}
