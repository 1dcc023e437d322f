package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// target adds one to a live stream.
func (s *site) target(t *testing.T, v live.Stream, in live.SimulcastTarget) live.SimulcastTarget {
	t.Helper()
	made, err := s.live.AddSimulcastTarget(t.Context(), s.env(t), v.ID, in, s.now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// connect begins a broadcast.
func (s *site) connect(t *testing.T, v live.Stream) live.Writer {
	t.Helper()
	on, err := s.broadcasts.Connect(t.Context(), live.Connection{
		StreamKey: v.StreamKey, Protocol: "rtmp", NewAsset: id.Asset(id.New()),
		Owner: live.Owner{Node: "node", Run: "run"},
	}, s.now)
	if err == nil {
		err = s.broadcasts.Active(t.Context(), v.ID, on.Writer(), s.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return on.Writer()
}

// TestTargets: a target is added by a form and deleted behind a question; the audit log has both, and no page its key.
func TestTargets(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, "One", false)
	page := "/dashboard/live/" + string(v.ID)
	get := func(path string) string { return s.ask(t, s.cookie, path, nil).Body.String() }
	if body := get(page); !strings.Contains(body, "There is no target yet") ||
		!strings.Contains(body, page+"/targets/new") {
		t.Errorf("no way to the first target:\n%s", body)
	}
	w := s.ask(t, s.cookie, page+"/targets", url.Values{
		"url": {" rtmps://live.example.com/app "}, "stream_key": {"not-for-eyes"}, "passthrough": {"second home"},
	})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != page+"#simulcast" {
		t.Fatalf("%d to %q:\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	now, err := s.live.Get(t.Context(), s.env(t), v.ID)
	if err != nil || len(now.Settings.SimulcastTargets) != 1 {
		t.Fatalf("%+v, %v", now.Settings.SimulcastTargets, err)
	}
	made := now.Settings.SimulcastTargets[0]
	if made.URL != "rtmps://live.example.com/app" || made.StreamKey != "not-for-eyes" ||
		made.Passthrough != "second home" {
		t.Errorf("made %+v", made)
	}
	ask := page + "/targets/" + string(made.ID) + "/delete"
	for _, path := range []string{page, ask, page + "/targets/new", page + "/edit"} {
		if strings.Contains(get(path), "not-for-eyes") {
			t.Errorf("%s has the key", path)
		}
	}
	body := get(page)
	for _, want := range []string{
		"rtmps://live.example.com/app", "second home", "••••••••", `<span class="state">Idle</span>`,
		`href="` + ask + `"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if body := get(ask); !strings.Contains(body, "no longer sent to rtmps://live.example.com/app") {
		t.Errorf("the question:\n%s", body)
	}
	if w = s.ask(t, s.cookie, ask, url.Values{}); w.Code != http.StatusSeeOther {
		t.Errorf("delete: %d", w.Code)
	}
	if w = s.ask(t, s.cookie, ask, url.Values{}); w.Code != http.StatusNotFound {
		t.Errorf("delete once more: %d", w.Code)
	}
	for operation, resource := range map[string]string{
		"create-live-stream-simulcast-target": string(v.ID), "delete-live-stream-simulcast-target": string(made.ID),
	} {
		found, err := s.db.AuditLog(t.Context(), audit.Query{Operation: operation, Limit: 5})
		if err != nil || len(found) != 1 || found[0].Resource.ID != resource || found[0].Actor.Type != audit.Dashboard {
			t.Errorf("%s: audit log %+v, %v", operation, found, err)
		}
	}
}

// TestTargetRefused: what is wrong stands beside its field, and the key is not shown to who has typed it either.
func TestTargetRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, "One", false)
	path := "/dashboard/live/" + string(v.ID) + "/targets"
	for name, tt := range map[string]struct{ field, value, want string }{
		"no URL":   {"url", "", "This must have the form rtmp://host/app"},
		"web":      {"url", "https://example.com/app", "This must have the form rtmp://host/app"},
		"password": {"url", "rtmp://a:b@example.com/app", "This must not hold a user name or password"},
		"SRT":      {"url", "srt://example.com:9000?passphrase=short", "passphrase must have 10 to 79 characters"},
		"key":      {"stream_key", "not-for-eyes" + strings.Repeat("a", 2048), "This may have at most 2048"},
		"text":     {"passthrough", strings.Repeat("a", 256), "This may have at most 255 characters."},
		"hostile":  {"url", hostile, "This must have the form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			form := url.Values{"url": {"rtmp://example.com/app"}, "stream_key": {"not-for-eyes"}, tt.field: {tt.value}}
			w := s.ask(t, s.cookie, path, form)
			got := beside(w.Body.String(), tt.field)
			if w.Code != http.StatusBadRequest || !strings.Contains(got, `class="bad"`) ||
				!strings.Contains(got, tt.want) {
				t.Errorf("%d, beside it %q", w.Code, got)
			}
			if strings.Contains(w.Body.String(), "not-for-eyes") {
				t.Error("the page has the key")
			}
			harmless(t, name, w)
			closedPage(t, w)
		})
	}
}

// TestTargetsOnAir: states in words and shapes; while a broadcast goes on, targets stay as they are, and the page says
// so.
func TestTargetsOnAir(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, "One", false)
	page := "/dashboard/live/" + string(v.ID)
	secret := "srt://example.com:9000?streamid=x&passphrase=not-for-eyes"
	starting := s.target(t, v, live.SimulcastTarget{URL: secret, Passthrough: hostile})
	up := s.target(t, v, live.SimulcastTarget{URL: "rtmp://up.example.com/app", StreamKey: "k"})
	down := s.target(t, v, live.SimulcastTarget{URL: "rtmp://down.example.com/app/not-for-eyes"})
	never := s.target(t, v, live.SimulcastTarget{URL: "rtmp://never.example.com/app"})
	epoch := s.connect(t, v)
	for of, fact := range map[id.SimulcastTarget]live.TargetFact{
		up.ID: live.LinkUp, down.ID: live.LinkDown, never.ID: live.LinkImpossible,
	} {
		if err := s.broadcasts.Target(t.Context(), v.ID, epoch, of, fact, s.now); err != nil {
			t.Fatal(err)
		}
	}
	w := s.ask(t, s.cookie, page, nil)
	harmless(t, "targets", w)
	body := w.Body.String()
	if strings.Contains(body, "not-for-eyes") || strings.Contains(body, "/targets/new") ||
		strings.Contains(body, string(starting.ID)+"/delete") {
		t.Errorf("a secret, or an act that is not possible:\n%s", body)
	}
	for where, want := range map[string][]string{
		"srt://example.com:9000…":         {`<span class="state work">Starting</span>`},
		"rtmp://up.example.com/app":       {`<span class="state ok">Broadcasting</span>`},
		"rtmp://down.example.com/app…":    {`<span class="state warn">Errored</span>`, "tried again by itself"},
		"rtmp://never.example.com/app</c": {`<span class="state fault">Errored</span>`, "not tried again"},
	} {
		_, after, found := strings.Cut(body, "<code>"+where)
		row, _, _ := strings.Cut(after, "</li>")
		for _, text := range want {
			if !found || !strings.Contains(row, text) {
				t.Errorf("%s: %q", where, row)
			}
		}
	}
	if !strings.Contains(body, "Targets can be added and deleted once the broadcast has ended.") {
		t.Error("the page does not say why none can be added")
	}
	const refused = "Simulcast targets may be added and deleted only while the live stream is idle."
	add := s.ask(t, s.cookie, page+"/targets", url.Values{"url": {"rtmp://example.com/app"}})
	del := s.ask(t, s.cookie, page+"/targets/"+string(up.ID)+"/delete", url.Values{})
	for name, w := range map[string]*httptest.ResponseRecorder{"add": add, "delete": del} {
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), refused) {
			t.Errorf("%s: %d\n%s", name, w.Code, w.Body)
		}
	}
}

// TestTargetsAreNotForAll: who may not change a stream sees its targets and no way to change them; there are six at
// most.
func TestTargetsAreNotForAll(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v, full := s.stream(t, "One", false), s.stream(t, "Full", false)
	made := s.target(t, v, live.SimulcastTarget{URL: "rtmp://example.com/app"})
	for range live.MaxSimulcastTargets {
		s.target(t, full, live.SimulcastTarget{URL: "rtmp://example.com/app"})
	}
	page, other := "/dashboard/live/"+string(v.ID), "/dashboard/live/"+string(full.ID)
	target := url.Values{"url": {"rtmp://h/app"}}
	reader := s.signIn(t, access.VideoRead)
	if body := s.ask(t, reader, page, nil).Body.String(); strings.Contains(body, "/targets/") ||
		!strings.Contains(body, "rtmp://example.com/app") {
		t.Error("a reader sees no target, or a way to change it")
	}
	for name, tt := range map[string]struct {
		cookie, path string
		form         url.Values
		status       int
	}{
		"reader":       {reader, page + "/targets/new", nil, 403},
		"reader adds":  {reader, page + "/targets", target, 403},
		"elsewhere":    {s.elsewhere(t), page + "/targets/" + string(made.ID) + "/delete", url.Values{}, 404},
		"another's":    {s.cookie, other + "/targets/" + string(made.ID) + "/delete", nil, 404},
		"no such":      {s.cookie, page + "/targets/none/delete", nil, 404},
		"one too many": {s.cookie, other + "/targets", target, 409},
		"nobody":       {"", page + "/targets", url.Values{}, 303},
		"no stream":    {s.cookie, "/dashboard/live/none/targets/new", nil, 404},
		"adds to none": {s.cookie, "/dashboard/live/none/targets", url.Values{}, 404},
	} {
		if w := s.ask(t, tt.cookie, tt.path, tt.form); w.Code != tt.status {
			t.Errorf("%s: %d, want %d\n%s", name, w.Code, tt.status, w.Body)
		}
	}
	if body := s.ask(t, s.cookie, other, nil).Body.String(); !strings.Contains(body, "Delete one to add another") {
		t.Error("the page does not say that there are no more")
	}
}

// TestTargetsFollow: the page of a live stream is sent again when a target comes to another state.
func TestTargetsFollow(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	v := s.stream(t, "One", false, playbackid.Public)
	e := s.follow(t, server, "/dashboard/live/"+string(v.ID)+"/follow")
	e.until("There is no target yet")
	made := s.target(t, v, live.SimulcastTarget{URL: "rtmp://example.com/app", StreamKey: "not-for-eyes"})
	if page := e.until(">Idle</span>"); strings.Contains(page, "not-for-eyes") {
		t.Error("an event has the key")
	}
	epoch := s.connect(t, v)
	e.until(">Starting</span>")
	if err := s.broadcasts.Target(t.Context(), v.ID, epoch, made.ID, live.LinkUp, s.now); err != nil {
		t.Fatal(err)
	}
	e.until(">Broadcasting</span>")
}
