package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/audit"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/node"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/retention"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/leaktest"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/web/dashboard"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	password = "correct horse battery"
	beat     = 100 * time.Millisecond // of open pages
)

// site is a dashboard on services and a database of its own.
type site struct {
	http.Handler

	db         *db.DB
	tokens     *access.Service
	sessions   *access.Sessions
	live       *live.Service
	broadcasts live.Broadcasts
	assets     struct {
		*asset.Service
		*asset.Work
	}
	uploads *upload.Service
	hooks   *webhook.Service
	keys    *signing.Service
	rules   *restriction.Service
	log     bytes.Buffer // what the dashboard logs
	health  measured     // of all encoders
	examine dashboard.Examine
	nodes   func() ([]node.Node, error)
	now     time.Time
	cookie  string // of the owner
}

// measured tells how an encoder does.
type measured func(live.Stream) live.Health

func (m measured) Health(ctx context.Context, all []live.Stream, brief bool) (out []live.Health) {
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > time.Second {
		return nil // who asks would wait for a lost node
	}
	for _, v := range all {
		h := m(v)
		if brief {
			h.Samples = nil
		}
		out = append(out, h)
	}
	return out
}

// badly is an encoder that says and does what it should not.
func badly(live.Stream) live.Health {
	return live.Health{
		Encoder: &live.Encoder{Name: hostile, Protocol: "rtmp", Remote: hostile},
		Trouble: []live.Trouble{
			{Warning: live.Warning{Type: "keyframes", Message: hostile}},
		},
	}
}

// newSite makes one whose owner has a password.
func newSite(t testing.TB, public string) *site {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s := &site{
		db: d, health: badly, nodes: func() ([]node.Node, error) { return nil, nil },
		now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
	}
	s.tokens = access.New(access.Options{Store: d.Access()})
	s.sessions = access.NewSessions(access.SessionOptions{Store: d.Sessions(), Access: s.tokens})
	s.live, s.broadcasts = live.New(live.Options{Store: d.LiveStreams()}), live.NewBroadcasts(d.LiveStreams())
	of := asset.Options{
		Store: d.Assets(), DRM: func(context.Context, id.Environment, string) (playbackid.Configuration, error) {
			return playbackid.Configuration{}, nil
		},
	}
	s.assets.Service, s.assets.Work = asset.New(of), asset.NewWork(of)
	s.uploads = upload.New(upload.Options{Store: d.Uploads()})
	types := []string{asset.EventCreated, live.EventCreated, live.EventActive, webhook.EventTest}
	s.hooks = webhook.New(d, types)
	s.keys = signing.New(signing.Options{Store: d.Signing()})
	s.rules = restriction.New(restriction.Options{Store: d.Restrictions()})
	s.Handler = dashboard.Handler(dashboard.Options{
		Services: dashboard.Services{
			Access: s.tokens, Live: s.live, Assets: s.assets, Uploads: s.uploads,
			Webhooks:     s.hooks,
			Signing:      s.keys,
			Restrictions: s.rules,
			Retention:    retention.New(clocked{db.Retention(d), func() time.Time { return s.now }}),
			Nodes:        nodesOf(func() ([]node.Node, error) { return s.nodes() }),
		},
		Sessions: s.sessions, Health: measured(func(v live.Stream) live.Health { return s.health(v) }), Beat: beat,
		Events: d, Clients: clientaddr.Finder{}, PublicURL: public,
		Logger:     slog.New(slog.NewTextHandler(&s.log, nil)),
		Now:        func() time.Time { return s.now },
		Examine:    func(ctx context.Context, tell func(dashboard.Finding)) error { return s.examine(ctx, tell) },
		Configured: dashboard.Configured{LiveRungs: "always", Speech: "de=vosk"},
		EventTypes: types,
		ShowEvent: func(_ context.Context, e event.Event) ([]byte, error) {
			return json.Marshal(map[string]any{"type": e.Type, "data": e.Data, "hostile": hostile})
		},
		Ingest: &dashboard.Ingest{
			RTMP: "rtmp://h/app", RTMPS: "rtmps://h:1936/app", SRT: "h:6001", WHIP: public + "/whip",
		},
	})
	link, err := s.sessions.CreateLink(t.Context(), s.now)
	if err == nil {
		s.cookie, err = s.sessions.SetPassword(t.Context(), link, password, "", s.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request; form is nil for GET. header are pairs.
func (s *site) ask(t testing.TB, cookie, target string, form url.Values, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	name := "millrace"
	if strings.HasPrefix(target, "https:") {
		name = "__Host-millrace"
	}
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: name, Value: cookie})
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// shows asks for a page, and fails the test unless it has a status and one text, and not the other (empty: any).
func (s *site) shows(
	t *testing.T, cookie, path string, form url.Values, status int, want, not string,
) *httptest.ResponseRecorder {
	t.Helper()
	w := s.ask(t, cookie, path, form)
	if body := w.Body.String(); w.Code != status || !strings.Contains(body, want) ||
		not != "" && strings.Contains(body, not) {
		t.Errorf("%d, want %d, %q and not %q:\n%s", w.Code, status, want, not, body)
	}
	closedPage(t, w)
	return w
}

func (s *site) env(t testing.TB) id.Environment {
	t.Helper()
	env, err := s.tokens.Named(t.Context(), "", s.now)
	if err != nil {
		t.Fatal(err)
	}
	return env.ID
}

// hostile is what somebody may put into every field and name.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}'`

// stream makes a live stream; on air it has a broadcast.
func (s *site) stream(t testing.TB, title string, onAir bool, policies ...playbackid.Policy) live.Stream {
	t.Helper()
	env := s.env(t)
	v, err := s.live.Create(t.Context(), env, live.CreateInput{
		Meta: assetopt.Meta{Title: title}, Passthrough: title, LatencyMode: live.Low, PlaybackPolicies: policies,
	}, s.now)
	if err == nil && onAir {
		v, err = s.broadcasts.Connect(t.Context(), live.Connection{
			StreamKey: v.StreamKey, Protocol: "rtmp", NewAsset: id.Asset(id.New()),
			Owner: live.Owner{Node: "node", Run: "run"},
		}, s.now)
		if err == nil {
			err = s.broadcasts.Active(t.Context(), v.ID, v.Writer(), s.now)
		}
	}
	if err == nil {
		v, err = s.live.Get(t.Context(), env, v.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPages: every page is there for who is signed in, and for nobody else, with the strictest headers and nothing
// inline.
func TestPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	idle := s.stream(t, "Idle one", false, playbackid.Public)
	air := s.stream(t, "On the air", true, playbackid.Public)
	closed := s.stream(t, "Closed", true, playbackid.Signed)
	link, err := s.sessions.CreateLink(t.Context(), s.now)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path, want string
		open       bool // needs no session
	}{
		"list":      {"/dashboard/live", "On the air", false},
		"on air":    {"/dashboard/live?status=active", "LIVE", false},
		"counted":   {"/dashboard/live", `On air <span class="n" id="n-active" data-part>2</span>`, false},
		"search":    {"/dashboard/live?q=ON+THE", "On the air", false},
		"none fits": {"/dashboard/live?q=no+such", "No live stream fits", false},
		"by ID":     {"/dashboard/live?q=" + string(idle.ID), "Idle one", false},
		"new":       {"/dashboard/live/new", "Who may watch", false},
		"waiting":   {"/dashboard/live/" + string(idle.ID), "Waiting for your encoder", false},
		"live": {"/dashboard/live/" + string(air.ID), "data-player=\"/" + string(air.PlaybackIDs[0].ID) +
			".m3u8\"", false},
		"signed":        {"/dashboard/live/" + string(closed.ID), "plays only with signed links", false},
		"end":           {"/dashboard/live/" + string(air.ID) + "/end", "The recording is ready at once", false},
		"disable":       {"/dashboard/live/" + string(idle.ID) + "/disable", "Encoders are refused", false},
		"delete":        {"/dashboard/live/" + string(idle.ID) + "/delete", "Its recordings are kept", false},
		"delete on air": {"/dashboard/live/" + string(air.ID) + "/delete", "Type <b>On the air</b>", false},
		"new key": {
			"/dashboard/live/" + string(idle.ID) + "/new-key", "Encoders with the old key are refused",
			false,
		},
		"sign in": {"/dashboard/sign-in", "Use an access token instead", true},
		"link":    {"/dashboard/link/" + link, "Set your password", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !tt.open {
				w := s.ask(t, "", tt.path, nil)
				if w.Code != http.StatusSeeOther || !strings.HasPrefix(w.Header().Get("Location"),
					"/dashboard/sign-in") {
					t.Errorf("without a session: %d to %q", w.Code, w.Header().Get("Location"))
				}
			}
			cookie := s.cookie
			if tt.open {
				cookie = ""
			}
			w := s.ask(t, cookie, tt.path, nil)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%d, without %q:\n%s", w.Code, tt.want, w.Body)
			}
			closedPage(t, w)
		})
	}
}

// closedPage holds a page to its word.
func closedPage(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	csp := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self';", "style-src 'self';",
		"media-src 'self' blob: data:;", // hls.js gives tracks data:,WEBVTT
		"frame-ancestors 'none'",
	} {
		if !strings.Contains(csp, want) || strings.Contains(csp, "unsafe") {
			t.Errorf("policy %q lacks %q", csp, want)
		}
	}
	page := w.Body.String()
	for _, bad := range []string{` style="`, " onclick=", "<style", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("page has %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`<script[^>]*>([^<]*)</script>`).FindAllStringSubmatch(page, -1) {
		if m[1] != "" {
			t.Errorf("inline script %q", m[1])
		}
	}
}

// TestRefusals: what is not to be had, and what nobody may do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	air := s.stream(t, "On the air", true)
	page := "/dashboard/live/" + string(air.ID)
	reader := s.signIn(t, access.VideoRead)
	elsewhere := s.elsewhere(t)
	cross := []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}
	for name, tt := range map[string]struct {
		cookie, path string
		form         url.Values
		status       int
		header       []string
	}{
		"no such page":        {s.cookie, "/dashboard/other", nil, 404, nil},
		"no such stream":      {s.cookie, "/dashboard/live/none", nil, 404, nil},
		"another environment": {elsewhere, page, nil, 404, nil},
		"and its key":         {elsewhere, page + "/key", url.Values{}, 404, nil},
		"and its end":         {elsewhere, page + "/delete", url.Values{}, 404, nil},
		"used link":           {"", "/dashboard/link/x", nil, 404, nil},
		"password by it":      {"", "/dashboard/link/x", url.Values{"password": {password}}, 404, nil},
		"other site":          {s.cookie, page + "/end", url.Values{}, 403, cross},
		"other site signs in": {"", "/dashboard/sign-in", url.Values{"password": {password}}, 403, cross},
		"other origin":        {s.cookie, page + "/end", url.Values{}, 403, []string{"Origin", "http://evil.example"}},
		"other port":          {s.cookie, page + "/end", url.Values{}, 403, []string{"Sec-Fetch-Site", "same-site"}},
		"reads only: new":     {reader, "/dashboard/live/new", nil, 403, nil},
		"reads only: create":  {reader, "/dashboard/live", url.Values{}, 403, nil},
		"reads only: end":     {reader, page + "/end", url.Values{}, 403, nil},
		"name not typed":      {s.cookie, page + "/delete", url.Values{"name": {"On air"}}, 400, nil},
		"no session: end":     {"", page + "/end", url.Values{}, 303, nil},
		"no session: key":     {"", page + "/key", url.Values{}, 401, []string{"Accept", "application/json"}},
		"no session: follow":  {"", page + "/follow", nil, 401, []string{"Accept", "text/event-stream"}},
		"wrong theme":         {"", "/dashboard/theme", url.Values{"theme": {"pink"}}, 400, nil},
		"another cookie":      {"x", "/dashboard/live", nil, 303, nil},
		"wrong password":      {"", "/dashboard/sign-in", url.Values{"password": {"wrong"}}, 401, nil},
		"wrong token": {"", "/dashboard/sign-in", url.Values{
			"by": {"token"}, "token_id": {"a"},
			"secret": {"b"},
		}, 401, nil},
		"large": {
			s.cookie, "/dashboard/live",
			url.Values{"title": {strings.Repeat("a", 100_000)}},
			413,
			nil,
		},
		"no form": {s.cookie, page + "/end?a;b=%zz", url.Values{}, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if w := s.ask(t, tt.cookie, tt.path, tt.form, tt.header...); w.Code != tt.status {
				t.Errorf("%d, want %d:\n%s", w.Code, tt.status, w.Body)
			}
		})
	}
	t.Cleanup(func() { // when all have asked
		v, err := s.db.LiveStreams().Find(context.WithoutCancel(t.Context()), air.ID)
		if err != nil || v.State != live.Active {
			t.Errorf("a refused request changed the stream: %s, %v", v.State, err)
		}
	})
}

// signIn gives the cookie of an access token.
func (s *site) signIn(t *testing.T, permissions ...string) string {
	t.Helper()
	return s.signInTo(t, access.TokenInput{Permissions: permissions})
}

func (s *site) signInTo(t *testing.T, in access.TokenInput) string {
	t.Helper()
	token, secret, err := s.tokens.CreateToken(t.Context(), in, s.now)
	if err != nil {
		t.Fatal(err)
	}
	w := s.ask(t, "", "/dashboard/sign-in", url.Values{
		"by": {"token"}, "token_id": {string(token.ID)},
		"secret": {secret},
	})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("sign in: %d\n%s", w.Code, w.Body)
	}
	return w.Result().Cookies()[0].Value
}

// elsewhere gives the cookie of somebody of another environment.
func (s *site) elsewhere(t *testing.T) string {
	t.Helper()
	env, err := s.tokens.CreateEnvironment(t.Context(), "Other", "production", s.now)
	if err != nil {
		t.Fatal(err)
	}
	return s.signInTo(t, access.TokenInput{Environment: env.ID})
}

// TestSessionEnds: a session is over after two weeks, at the sign-out, and with that of another browser when all are
// signed out.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	in := func(cookie string) bool { return s.ask(t, cookie, "/dashboard/live", nil).Code == http.StatusOK }
	sign := func() string {
		w := s.ask(t, "", "/dashboard/sign-in", url.Values{"password": {password}})
		return w.Result().Cookies()[0].Value
	}
	second, third := sign(), sign()
	if w := s.ask(t, second, "/dashboard/sign-out", url.Values{}); w.Code != http.StatusSeeOther || in(second) ||
		!in(third) {
		t.Errorf("signed out here: %d", w.Code)
	}
	s.ask(t, third, "/dashboard/sign-out", url.Values{"everywhere": {"1"}})
	if in(third) || in(s.cookie) {
		t.Error("signed in after signing out everywhere")
	}
	cookie := sign()
	if s.now = s.now.Add(access.SessionLife); in(cookie) {
		t.Error("signed in after two weeks")
	}
}

// TestBackOff: who types wrong passwords waits.
func TestBackOff(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for range 5 {
		s.ask(t, "", "/dashboard/sign-in", url.Values{"password": {"wrong password"}})
	}
	w := s.ask(t, "", "/dashboard/sign-in", url.Values{"password": {password}})
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(w.Body.String(), "Too many wrong passwords. Try again in 2 seconds.") {
		t.Errorf("%d, %q:\n%s", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
}

// TestCookie: over TLS, here or at a proxy, browsers send it nowhere else.
func TestCookie(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		public, target, want string
		secure               bool
	}{
		"plain":        {"http://example.com", "http://example.com", "millrace", false},
		"TLS":          {"http://example.com", "https://example.com", "__Host-millrace", true},
		"proxy":        {"https://example.com", "http://example.com", "__Host-millrace", true},
		"beside proxy": {"https://video.example", "http://example.com", "millrace", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.public)
			w := s.ask(t, "", tt.target+"/dashboard/sign-in?to=/dashboard/live/new", url.Values{"password": {password}})
			c := w.Result().Cookies()
			if len(c) != 1 || c[0].Name != tt.want || c[0].Secure != tt.secure || !c[0].HttpOnly ||
				c[0].SameSite != http.SameSiteLaxMode || c[0].Path != "/" || c[0].Domain != "" {
				t.Errorf("cookies %+v", c)
			}
			if to := w.Header().Get("Location"); to != "/dashboard/live/new" {
				t.Errorf("leads to %q", to)
			}
		})
	}
}

// TestNowhereElse: no address in a form leads away from the dashboard.
func TestNowhereElse(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for _, to := range []string{
		"https://evil.example/dashboard/", "//evil.example/dashboard/", "/dashboard/\\evil.example",
		"javascript:alert(1)",
		"/dashboard//evil.example", "/video/v1", "", "http:dashboard/live", "/dashboard/%2F/evil.example\n",
	} {
		w := s.ask(t, "", "/dashboard/theme", url.Values{"theme": {"dark"}, "back": {to}})
		if got := w.Header().Get("Location"); got != "/dashboard/live" {
			t.Errorf("%q leads to %q", to, got)
		}
	}
	w := s.ask(t, "", "/dashboard/theme", url.Values{"theme": {"dark"}, "back": {"/dashboard/live?q=a&page=2"}})
	if got := w.Header().Get("Location"); got != "/dashboard/live?q=a&page=2" {
		t.Errorf("leads to %q", got)
	}
	if w = s.ask(t, "", "/dashboard/sign-in", nil, "Cookie",
		"millrace-theme=dark"); !strings.Contains(w.Body.String(), `data-theme="dark"`) {
		t.Error("the theme is not kept")
	}
}

// TestHostileTexts: what anybody can put into a name stays text on every page.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for _, onAir := range []bool{false, true} {
		v := s.stream(t, hostile, onAir, playbackid.Public)
		page := "/dashboard/live/" + string(v.ID)
		for _, path := range []string{
			page, page + "/end", page + "/delete", "/dashboard/live", "/dashboard/live?q=" + url.QueryEscape(hostile),
			"/dashboard/live?status=" + url.QueryEscape(hostile), "/dashboard/sign-in?to=" + url.QueryEscape(hostile),
		} {
			w := s.ask(t, s.cookie, path, nil)
			harmless(t, path, w)
		}
		harmless(t, "typed", s.ask(t, s.cookie, page+"/delete", url.Values{"name": {hostile + "no"}}))
	}
	all := url.Values{"by": {"token"}, "token_id": {hostile}, "to": {hostile}}
	harmless(t, "sign-in", s.ask(t, "", "/dashboard/sign-in", all))
	form := url.Values{"latency_mode": {"low"}}
	for _, name := range []string{
		"title", "latency_mode", "policy", "recordings", "reconnect_window", "reconnect_slate_url", "hours",
		"video_quality", "passthrough",
	} {
		form.Set(name, hostile)
	}
	w := s.ask(t, s.cookie, "/dashboard/live", form)
	harmless(t, "create", w)
	if w.Code != http.StatusBadRequest {
		t.Errorf("create: %d", w.Code)
	}
}

func harmless(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	for _, bad := range []string{"<script>", "<img src=x", "ZgotmplZ"} {
		if strings.Contains(w.Body.String(), bad) {
			t.Errorf("%s: the page has %q", what, bad)
		}
	}
}

// TestCreate: a form makes what the API would make, and each mistake stands beside its field.
func TestCreate(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	w := s.ask(t, s.cookie, "/dashboard/live", url.Values{
		"title": {"Regatta"}, "latency_mode": {"standard"}, "policy": {"public"}, "recordings": {"signed"},
		"reconnect_window": {"12.5"},
		"slate":            {"1"}, "hours": {"1,5"}, "video_quality": {"plus"}, "download": {"1"}, "passthrough": {"p"},
	})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	v, err := s.live.Get(t.Context(), s.env(t), id.LiveStream(strings.TrimPrefix(w.Header().Get("Location"),
		"/dashboard/live/")))
	if err != nil {
		t.Fatal(err)
	}
	set := v.Settings
	if set.Meta.Title != "Regatta" || set.LatencyMode != live.Standard || set.ReconnectWindow != 12.5 ||
		!set.SlateForStandard ||
		set.MaxContinuous != 5400 || set.Passthrough != "p" || len(v.PlaybackIDs) != 1 ||
		v.PlaybackIDs[0].Policy != playbackid.Public ||
		set.NewAsset.PlaybackPolicies[0] != playbackid.Signed || set.NewAsset.VideoQuality != "plus" ||
		len(set.NewAsset.StaticRenditions) != 1 {
		t.Errorf("made %+v with %+v", v, set.NewAsset)
	}
	for field, tt := range map[string]struct{ value, want string }{
		"reconnect_window":    {"2000", "This must be a number from 0 to 1800."},
		"hours":               {"13", "This must be a whole number of seconds from 60 to 43200."},
		"reconnect_slate_url": {"ftp://x", "This must be"},
		"latency_mode":        {"other", "This must be one of"},
		"policy":              {"other", "This must be one of: public, signed."},
		"recordings":          {"other", "This must be one of: public, signed."},
		"video_quality":       {"other", "This must be one of"},
		"title":               {strings.Repeat("a", 513), "This"},
		"passthrough":         {strings.Repeat("a", 256), "This"},
	} {
		form := url.Values{"latency_mode": {"low"}, "policy": {"public"}, "recordings": {"same"}, field: {tt.value}}
		w := s.ask(t, s.cookie, "/dashboard/live", form)
		_, after, _ := strings.Cut(w.Body.String(), ` name="`+field+`"`)
		before, _, _ := strings.Cut(after, "<p class=\"hint\"")
		if w.Code != http.StatusBadRequest || !strings.Contains(before, `class="bad"`) || !strings.Contains(before,
			tt.want) {
			t.Errorf("%s: %d, beside it %q", field, w.Code, before)
		}
	}
}

// TestActs: what is done to a live stream, and what the audit log says of it.
func TestActs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, "One", true, playbackid.Public)
	page := "/dashboard/live/" + string(v.ID)
	state := func() live.Stream {
		now, err := s.db.LiveStreams().Find(t.Context(), v.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	key := s.ask(t, s.cookie, page+"/key", url.Values{}, "Accept", "application/json")
	if want := fmt.Sprintf(`"key":"%s"`, v.StreamKey); !strings.Contains(key.Body.String(), want) {
		t.Errorf("key %s", key.Body)
	}
	if shown := s.ask(t, s.cookie, page+"/key", url.Values{}); !strings.Contains(shown.Body.String(), v.StreamKey) {
		t.Error("without a script the key is not shown")
	}
	for _, path := range []string{page, "/dashboard/live"} {
		if body := s.ask(t, s.cookie, path, nil).Body.String(); strings.Contains(body, v.StreamKey) ||
			strings.Contains(body, v.SRTPassphrase) {
			t.Errorf("%s has the key unasked", path)
		}
	}
	do := func(name string, form url.Values, to string) {
		t.Helper()
		s.now = s.now.Add(time.Second)
		if w := s.ask(t, s.cookie, page+"/"+name, form); w.Code != http.StatusSeeOther ||
			w.Header().Get("Location") != to {
			t.Errorf("%s: %d to %q", name, w.Code, w.Header().Get("Location"))
		}
	}
	do("publish", url.Values{}, "/publish/#"+v.StreamKey)
	do("new-key", url.Values{}, page)
	if state().StreamKey == v.StreamKey {
		t.Error("the key is the same")
	}
	do("end", url.Values{}, page)
	if state().EndWanted != live.EndComplete {
		t.Error("no end is wanted")
	}
	do("disable", url.Values{}, page)
	do("enable", url.Values{}, page)
	if got := state().State; got != live.Idle {
		t.Errorf("enabled: %s", got)
	}
	do("delete", url.Values{"name": {"One"}}, "/dashboard/live")
	if w := s.ask(t, s.cookie, page, nil); w.Code != http.StatusNotFound {
		t.Errorf("deleted: %d", w.Code)
	}
	found, err := s.db.AuditLog(t.Context(), audit.Query{Resource: string(v.ID), Limit: 20})
	var said []string
	for _, e := range found {
		said = append(said, e.Operation)
		if e.Actor.Type != audit.Dashboard || e.Address != "192.0.2.1" || e.RequestID == "" {
			t.Errorf("entry %+v", e)
		}
	}
	want := "delete-live-stream enable-live-stream disable-live-stream complete-live-stream reset-stream-key " +
		"show-stream-key show-stream-key show-stream-key"
	if got := strings.Join(said, " "); err != nil || got != want {
		t.Errorf("audit log %q, %v", got, err)
	}
}

// TestPaging: lists of more than a page lead on and back.
func TestPaging(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for n := range 51 {
		s.now = s.now.Add(time.Millisecond)
		s.stream(t, fmt.Sprintf("Stream %02d", n), false)
	}
	first := s.ask(t, s.cookie, "/dashboard/live", nil).Body.String()
	second := s.ask(t, s.cookie, "/dashboard/live?page=2", nil).Body.String()
	third := s.ask(t, s.cookie, "/dashboard/live?page=3", nil).Body.String()
	if !strings.Contains(first, "Stream 50") || strings.Contains(first, "Stream 00") || !strings.Contains(first,
		`href="/dashboard/live?page=2" rel="next"`) {
		t.Error("the first page")
	}
	if !strings.Contains(second, "Stream 00") || strings.Contains(second, `rel="next"`) || !strings.Contains(second,
		`rel="prev"`) {
		t.Error("the second page")
	}
	if !strings.Contains(third, "There are no more") {
		t.Error("the third page")
	}
	if found := s.ask(t, s.cookie, "/dashboard/live?q=stream", nil).Body.String(); !strings.Contains(found,
		`href="/dashboard/live?from=50&amp;q=stream" rel="next"`) {
		t.Error("a search with more than a page does not go on")
	}
}
