package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/leaktest"
	"millrace/internal/lifecycle"
	"millrace/internal/masterkey"
	"millrace/internal/media/playback"
	"millrace/internal/programtest"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/web/api"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience is how long anything here may take on a busy machine.
const patience = time.Minute

// service is a running service and what it has logged.
type service struct {
	t    *testing.T
	stop context.CancelFunc
	done chan error
	out  *output
	*logs
}

// logs is a slog.Handler that keeps addresses and tells when the service is ready.
type logs struct {
	slog.Handler
	mu    sync.Mutex
	addrs map[string]string
	warns []string // messages of level WARN and above

	onWarn func() // nil: nothing
	ready  chan struct{}
	once   sync.Once
}

func (l *logs) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logs) WithGroup(string) slog.Handler      { return l }

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }

func (l *logs) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level >= slog.LevelWarn {
		l.warns = append(l.warns, r.Message)
		if l.onWarn != nil {
			l.onWarn()
		}
	}
	switch r.Message {
	case "listening":
		l.addrs[attrs["listener"]] = attrs["address"]
	case "ready":
		l.addrs["base"] = attrs["public_url"]
		l.once.Do(func() { close(l.ready) })
	}
	return nil
}

func (l *logs) addr(what string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addrs[what]
}

// warned reports whether a message of level WARN or above has that text in it.
func (l *logs) warned(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.warns, func(m string) bool { return strings.Contains(m, text) })
}

// output is what a person would read.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// configuration is that of a service on free ports in a data folder. That has a migrated database and its master key.
func configuration(t *testing.T, dir string, args ...string) config.Config {
	t.Helper()
	for _, tool := range []string{"ffmpeg", "ffprobe"} {
		programtest.Path(t, tool)
	}
	dbtest.Fill(t, filepath.Join(dir, "millrace.db"))
	if err := writeMasterKey(filepath.Join(dir, "master-key"), masterkey.Key{}); err != nil &&
		!errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	args = append([]string{
		"--data-dir", dir, "--http-addr", "127.0.0.1:0", "--rtmp-addr", "127.0.0.1:0", "--srt-addr", "127.0.0.1:0",
		"--webrtc-udp-addr", "127.0.0.1:0", "--webrtc-tcp-addr", "127.0.0.1:0",
	}, args...)
	cfg, err := config.Parse(args, nil, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func start(t *testing.T, cfg config.Config) *service {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &service{
		t: t, stop: stop, done: make(chan error, 1), out: &output{},
		logs: &logs{addrs: map[string]string{}, ready: make(chan struct{})},
	}
	go func() { s.done <- serve(ctx, cfg, slog.New(s.logs), s.out) }()
	t.Cleanup(s.end)
	select {
	case <-s.ready:
	case err := <-s.done:
		s.done = nil
		t.Fatalf("it ended at once: %v", err)
	case <-time.After(patience):
		t.Fatal("it is not ready")
	}
	return s
}

// end stops the service and waits for it.
func (s *service) end() {
	s.stop()
	if s.done == nil {
		return
	}
	select {
	case err := <-s.done:
		if err != nil {
			s.t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		s.t.Error("it does not stop")
	}
	s.done = nil
}

// client speaks to a service and leaves no connection behind.
func client(t *testing.T, change func(*http.Transport)) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	if change != nil {
		change(tr)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport: tr, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type response struct {
	status int
	head   http.Header
	body   string
	proto  int
}

func ask(t *testing.T, c *http.Client, method, url string, body string, change func(*http.Request)) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	data, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(data), resp.ProtoMajor}
}

// credentials reads the token that a first start prints.
func credentials(t *testing.T, printed string) (token, secret string) {
	t.Helper()
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, "MILLRACE_TOKEN_ID="); ok {
			token = v
		}
		if v, ok := strings.CutPrefix(line, "MILLRACE_TOKEN_SECRET="); ok {
			secret = v
		}
	}
	if token == "" || secret == "" {
		t.Fatalf("no token in %q", printed)
	}
	return token, secret
}

func TestFirstTokenIsPrintedOnce(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, t.TempDir())
	s := start(t, cfg)
	token, secret := credentials(t, s.out.String())
	s.end()
	again := start(t, cfg)
	if printed := again.out.String(); strings.Contains(printed, "TOKEN") {
		t.Errorf("the second start prints %q", printed)
	}
	c := client(t, nil)
	who := ask(t, c, http.MethodGet, "http://"+again.addr("http")+"/system/v1/whoami", "", func(r *http.Request) {
		r.SetBasicAuth(token, secret)
	})
	if who.status != http.StatusOK {
		t.Errorf("the first token returns %d: %s", who.status, who.body)
	}
}

func TestSeededToken(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, t.TempDir())
	cfg.TokenID, cfg.TokenSecret = "seeded-id", "a secret that is long enough"
	s := start(t, cfg)
	if printed := s.out.String(); strings.Contains(printed, "TOKEN") {
		t.Errorf("it prints %q", printed)
	}
	who := ask(t, client(t, nil), http.MethodGet, "http://"+s.addr("http")+
		"/system/v1/whoami", "", func(r *http.Request) {
		r.SetBasicAuth(cfg.TokenID, cfg.TokenSecret.Reveal())
	})
	if who.status != http.StatusOK {
		t.Errorf("status %d: %s", who.status, who.body)
	}
}

// TestRevokedSeededToken is no reason not to start: the token stays revoked, and the log says so.
func TestRevokedSeededToken(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, t.TempDir())
	cfg.TokenID, cfg.TokenSecret = "seeded-id", "a secret that is long enough"
	start(t, cfg).end()
	tokens, closeDB, err := openAccess(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tokens.RevokeToken(t.Context(), "seeded-id", clock()), closeDB()); err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	who := ask(t, client(t, nil), http.MethodGet, "http://"+s.addr("http")+
		"/system/v1/whoami", "", func(r *http.Request) {
		r.SetBasicAuth(cfg.TokenID, cfg.TokenSecret.Reveal())
	})
	if who.status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", who.status, who.body)
	}
	if !s.warned("was revoked") {
		t.Error("nothing is in the log")
	}
}

func TestSecondServiceOnTheSameFolderIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := configuration(t, dir)
	start(t, cfg)
	err := serve(t.Context(), cfg, slog.New(slog.DiscardHandler), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "another millrace uses the data folder "+dir) ||
		!strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("it says %v", err)
	}
}

// The quality of an environment is that of what is made in it without one, from the moment that it is set.
func TestQualityOfTheEnvironment(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, t.TempDir())
	s := start(t, cfg)
	token, secret := credentials(t, s.out.String())
	c := client(t, nil)
	made := func(path, body string) string {
		a := ask(t, c, http.MethodPost, "http://"+s.addr("http")+"/video/v1/"+path, body, func(r *http.Request) {
			r.SetBasicAuth(token, secret)
			r.Header.Set("Content-Type", "application/json")
		})
		if a.status != http.StatusCreated {
			t.Fatalf("%s returns %d: %s", path, a.status, a.body)
		}
		_, after, _ := strings.Cut(a.body, `"video_quality":"`)
		quality, _, _ := strings.Cut(after, `"`)
		return quality
	}
	for i, tt := range []struct{ set, asset, chosen, live string }{
		{"premium", "premium", "basic", "premium"}, {"basic", "basic", "basic", "plus"}, {"", "basic", "basic", ""},
	} {
		tokens, closeDB, err := openAccess(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 { // the service keeps who somebody is for some seconds
			c, token, secret = client(t, nil), "", ""
			made, raw, err := tokens.CreateToken(t.Context(), access.TokenInput{}, clock())
			if err != nil {
				t.Fatal(err)
			}
			token, secret = string(made.ID), raw
		}
		if err := errors.Join(tokens.SetQuality(t.Context(), "", tt.set, clock()), closeDB()); err != nil {
			t.Fatal(err)
		}
		if got := made("assets", `{"inputs":[{"url":"https://example.invalid/a.mp4"}]}`); got != tt.asset {
			t.Errorf("%q: an asset is %q", tt.set, got)
		}
		if got := made("assets",
			`{"inputs":[{"url":"https://example.invalid/a.mp4"}],"encoding_tier":"baseline"}`); got != tt.chosen {
			t.Errorf("%q: an asset that chose is %q", tt.set, got)
		}
		if got := made("live-streams", `{}`); got != tt.live {
			t.Errorf("%q: a live stream is %q", tt.set, got)
		}
	}
}

// An encoder that was chosen and does not encode is no service with another one. VideoToolbox is in no ffmpeg for
// Linux.
func TestEncoderThatDoesNotEncode(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, t.TempDir(), "--h264-encoder=videotoolbox")
	err := serve(t.Context(), cfg, slog.New(slog.DiscardHandler), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "use --h264-encoder: videotoolbox does not encode: ") ||
		!strings.Contains(err.Error(), "millrace doctor") {
		t.Errorf("it says %v", err)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	cfg := configuration(t, t.TempDir())
	cfg.RTMPAddr = ln.Addr().String()
	err = serve(t.Context(), cfg, slog.New(slog.DiscardHandler), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "listen for rtmp on "+cfg.RTMPAddr) {
		t.Errorf("it says %v", err)
	}
	start(t, configuration(t, cfg.DataDir)) // nothing of it is left in the way
}

func TestBothListeners(t *testing.T) {
	t.Parallel()
	s := start(t, configuration(t, t.TempDir()))
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", s.addr("rtmp"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	base := "http://" + s.addr("http")
	if got := s.addr("base"); got != base {
		t.Errorf("it calls itself %s, and listens on %s", got, base)
	}
	c := client(t, nil)
	for path, want := range map[string]int{
		"/healthz": http.StatusNoContent, "/readyz": http.StatusOK, "/": http.StatusFound,
		"/openapi.json": http.StatusOK,
		"/docs":         http.StatusMovedPermanently, "/docs/": http.StatusOK, "/docs/reference": http.StatusOK,
		"/video/v1/live-streams": http.StatusUnauthorized, "/noSuchPlaybackID.m3u8": http.StatusNotFound,
		"/noSuchPlaybackID":       http.StatusNotFound,
		"/watch/noSuchPlaybackID": http.StatusOK,
		"/embed/noSuchPlaybackID": http.StatusOK, "/oembed": http.StatusBadRequest,
	} {
		if got := ask(t, c, http.MethodGet, base+path, "", nil); got.status != want {
			t.Errorf("GET %s returns %d, want %d: %s", path, got.status, want, got.body)
		}
	}
}

// TestOrigins keeps the API closed to other sites' pages and playback open to them.
func TestOrigins(t *testing.T) {
	t.Parallel()
	s := start(t, configuration(t, t.TempDir()))
	base, c := "http://"+s.addr("http"), client(t, nil)
	foreign := func(r *http.Request) {
		r.Header.Set("Origin", "https://elsewhere.example")
		r.Header.Set("Access-Control-Request-Method", http.MethodGet)
	}
	for path, open := range map[string]bool{
		"/noSuchPlaybackID.m3u8": true, "/noSuchPlaybackID/text/x.vtt": true, "/oembed": true,
		"/video/v1/live-streams": false, "/system/v1/whoami": false, "/healthz": false,
	} {
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			got := ask(t, c, method, base+path, "", foreign).head.Get("Access-Control-Allow-Origin")
			// The health check has only GET; other methods on its path reach playback, which says what it allows.
			if method == http.MethodOptions && path == "/healthz" {
				continue
			}
			if (got == "*") != open || !open && got != "" {
				t.Errorf("%s %s: Access-Control-Allow-Origin is %q", method, path, got)
			}
		}
	}
}

// TestPlaybackAddresses makes a live stream over the API and asks for it under both of its addresses.
func TestPlaybackAddresses(t *testing.T) {
	t.Parallel()
	s := start(t, configuration(t, t.TempDir()))
	token, secret := credentials(t, s.out.String())
	base, c := "http://"+s.addr("http"), client(t, nil)
	made := ask(t, c, http.MethodPost, base+
		"/video/v1/live-streams", `{"playback_policies":["public"]}`, func(r *http.Request) {
		r.SetBasicAuth(token, secret)
		r.Header.Set("Content-Type", "application/json")
	})
	var stream struct {
		Data struct {
			PlaybackIDs []struct {
				ID string `json:"id"`
			} `json:"playback_ids"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(made.body), &stream); err != nil || made.status != http.StatusCreated ||
		len(stream.Data.PlaybackIDs) != 1 {
		t.Fatalf("status %d: %s", made.status, made.body)
	}
	id := stream.Data.PlaybackIDs[0].ID
	for _, path := range []string{"/" + id, "/" + id + ".m3u8"} {
		if got := ask(t, c, http.MethodGet, base+path, "", nil); got.status != http.StatusPreconditionFailed {
			t.Errorf("GET %s returns %d: %s", path, got.status, got.body)
		}
	}
	if got := ask(t, c, http.MethodGet, base+"/counts?token=a.b.c", "", nil); got.status != http.StatusForbidden ||
		!strings.Contains(got.body, "token: is not a JSON Web Token") {
		t.Errorf("viewer counts return %d: %s", got.status, got.body)
	}
}

func TestProtocols(t *testing.T) {
	t.Parallel()
	certFile, keyFile, pool := selfSigned(t)
	s := start(t,
		configuration(t, t.TempDir(), "--tls-cert", certFile, "--tls-key", keyFile, "--https-addr", "127.0.0.1:0",
			"--rtmps-addr", "127.0.0.1:0"))
	versions := func(h1, h2, h2c bool) func(*http.Transport) {
		return func(tr *http.Transport) {
			tr.Protocols = &http.Protocols{}
			tr.Protocols.SetHTTP1(h1)
			tr.Protocols.SetHTTP2(h2)
			tr.Protocols.SetUnencryptedHTTP2(h2c)
			tr.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		}
	}
	for name, tt := range map[string]struct {
		change func(*http.Transport)
		base   string
		want   int
	}{
		"http/1.1":          {versions(true, false, false), "http://" + s.addr("http"), 1},
		"h2c":               {versions(false, false, true), "http://" + s.addr("http"), 2},
		"http/1.1 over tls": {versions(true, false, false), "https://" + s.addr("https"), 1},
		"h2 over tls":       {versions(false, true, false), "https://" + s.addr("https"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, client(t, tt.change), http.MethodGet, tt.base+"/openapi.json", "", nil)
			if got.status != http.StatusOK || got.proto != tt.want {
				t.Errorf("status %d with HTTP/%d", got.status, got.proto)
			}
			strict := got.head.Get("Strict-Transport-Security") == "max-age=15552000" // 180 days
			if strict != strings.HasPrefix(tt.base, "https:") {
				t.Errorf("Strict-Transport-Security %q", got.head["Strict-Transport-Security"])
			}
		})
	}
}

// TestRequestsAtTheEnd tells a request of the API, which may finish, from one for media, which would wait in vain.
func TestRequestsAtTheEnd(t *testing.T) {
	t.Parallel()
	gone := errors.New("the client is gone")
	for name, tt := range map[string]struct {
		path  string
		cause error
		ends  bool
	}{
		"api, the service stops":      {"/video/v1/assets", lifecycle.ErrStop, false},
		"api, the client is gone":     {"/video/v1/assets", gone, true},
		"playback, the service stops": {"/someID.m3u8", lifecycle.ErrStop, true},
		"playback, the client leaves": {"/someID.m3u8", gone, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				var got error
				h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					end(tt.cause)
					synctest.Wait()
					got = context.Cause(r.Context())
				})
				router(h, h, h, h, h, h, h, h, h).ServeHTTP(httptest.NewRecorder(),
					httptest.NewRequestWithContext(ctx, http.MethodGet, tt.path, nil))
				if (got != nil) != tt.ends {
					t.Errorf("it ended with %v", got)
				}
			})
		})
	}
}

// TestRouterNeverRedirects: what a cleaned path would lead to is not asked, neither by us nor by a client that follows.
func TestRouterNeverRedirects(t *testing.T) {
	t.Parallel()
	lives := playback.New(playback.Options{Logger: slog.New(slog.DiscardHandler)})
	h := router(api.New(api.Options{}), lives, http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(),
		http.NotFoundHandler(), http.NotFoundHandler(), http.NotFoundHandler(), nil)
	for _, path := range []string{
		"/video/v1/live-streams/abc/playback-ids/..", "/video/v1/live-streams/abc/playback-ids/%2e%2e",
		"/video/v1/live-streams/abc/playback-ids/../",
		"/video/v1/live-streams/abc/./playback-ids/x", "/video/v1//live-streams/abc", "//video/v1/assets/abc",
		"/video/v1/assets/abc/x/../..", "/system/v1/./whoami",
		"/video", "/system", "/whip/../video", "//", "/abcdefghijklmnopqrstuvwx/../docs",
		"//abcdefghijklmnopqrstuvwx.m3u8", "/abcdefghijklmnopqrstuvwx/m/../v.m3u8",
	} {
		for _, method := range []string{http.MethodDelete, http.MethodGet} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			var e api.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Header().Get("Location") != "" {
				t.Errorf("%s %s: %d %v %s", method, path, w.Code, err, w.Body)
			}
			if w.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
	for _, path := range []string{"/watch", "/docs/reference/", "/docs/nothing"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound || w.Header().Get("Location") != "" {
			t.Errorf("%s: %d to %q", path, w.Code, w.Header().Get("Location"))
		}
	}
}

// selfSigned makes a certificate for the loopback address.
func selfSigned(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "millrace test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) {
		t.Fatal("the certificate can not be read back")
	}
	return certFile, keyFile, pool
}
