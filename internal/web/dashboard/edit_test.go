package dashboard_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/audit"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// save sends the form of a stream's settings as it is shown, but for some fields. A browser sends no field that is
// disabled.
func (s *site) save(t *testing.T, v live.Stream, other url.Values) (status int, page string) {
	t.Helper()
	form := url.Values{
		"title": {v.Settings.Meta.Title}, "video_quality": {"plus"}, "hours": {"12"},
		"reconnect_slate_url": {v.Settings.ReconnectSlateURL}, "passthrough": {v.Settings.Passthrough},
	}
	if v.ActiveAsset == "" {
		form.Set("latency_mode", string(v.Settings.LatencyMode))
	}
	maps.Copy(form, other)
	w := s.ask(t, s.cookie, "/dashboard/live/"+string(v.ID)+"/edit", form)
	return w.Code, w.Body.String()
}

// find reads a live stream.
func (s *site) find(t *testing.T, v id.LiveStream) live.Stream {
	t.Helper()
	found, err := s.live.Get(t.Context(), s.env(t), v)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// beside is what stands between a field and the hint below it, or the next field.
func beside(page, field string) string {
	_, after, _ := strings.Cut(page, ` name="`+field+`"`)
	before, _, _ := strings.Cut(after, `<p class="hint"`)
	before, _, _ = strings.Cut(before, `<div class="field`)
	return before
}

// TestEdit: the form shows the settings that are there, and changes of them what is another in it.
func TestEdit(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	window, longest := 12.5, 5400
	made, err := s.live.Create(t.Context(), s.env(t), live.CreateInput{
		Meta:        assetopt.Meta{Title: "Harbour", CreatorID: "me", ExternalID: "h-1"},
		LatencyMode: live.Reduced, ReconnectWindow: &window, ReconnectSlateURL: "https://example.com/a.png",
		SlateForStandard: true, MaxContinuous: &longest, Passthrough: "two\nlines",
		NewAsset: &assetopt.Options{VideoQuality: "premium"},
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	path := "/dashboard/live/" + string(made.ID)
	if page := s.ask(t, s.cookie, path, nil).Body.String(); !strings.Contains(page, `href="`+path+`/edit"`) {
		t.Error("its page does not lead to its settings")
	}
	page := s.ask(t, s.cookie, path+"/edit", nil).Body.String()
	for _, want := range []string{
		`name="title" value="Harbour"`, `value="reduced" checked`, `value="12.5"`, `name="slate" value="1" checked`,
		`value="https://example.com/a.png"`, `name="hours" inputmode="decimal" value="1.5"`,
		`<option value="premium" selected>`, "name=\"passthrough\" value=\"two\nlines\"",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %q:\n%s", want, page)
		}
	}
	form := url.Values{
		"title": {"Harbour"}, "latency_mode": {"reduced"}, "reconnect_window": {"12.5"}, "slate": {"1"},
		"hours": {"1.5"}, "reconnect_slate_url": {"https://example.com/a.png"}, "video_quality": {"premium"},
		"passthrough": {"twolines"},
	}
	send := func(want func(*live.Settings)) {
		t.Helper()
		was := s.find(t, made.ID)
		s.now = s.now.Add(time.Second)
		w := s.ask(t, s.cookie, path+"/edit", form)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != path {
			t.Fatalf("%d to %q:\n%s", w.Code, w.Header().Get("Location"), w.Body)
		}
		is := s.find(t, made.ID)
		if want == nil && is.Revision != was.Revision {
			t.Error("a form that changes nothing changed the stream")
		}
		if want != nil {
			want(&was.Settings)
		}
		for name, pair := range map[string][2]any{
			"meta": {is.Settings.Meta, was.Settings.Meta}, "delay": {is.Settings.LatencyMode, was.Settings.LatencyMode},
			"window":      {is.Settings.ReconnectWindow, was.Settings.ReconnectWindow},
			"chosen":      {is.Settings.ReconnectChosen, was.Settings.ReconnectChosen},
			"slate":       {is.Settings.SlateForStandard, was.Settings.SlateForStandard},
			"picture":     {is.Settings.ReconnectSlateURL, was.Settings.ReconnectSlateURL},
			"longest":     {is.Settings.MaxContinuous, was.Settings.MaxContinuous},
			"passthrough": {is.Settings.Passthrough, was.Settings.Passthrough},
			"quality":     {is.Settings.NewAsset.VideoQuality, was.Settings.NewAsset.VideoQuality},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
			}
		}
	}
	send(nil)
	form = url.Values{
		"title": {"Harbour, west"}, "latency_mode": {"standard"}, "reconnect_window": {""}, "hours": {"0,5"},
		"reconnect_slate_url": {""}, "video_quality": {"plus"}, "passthrough": {"p"},
	}
	send(func(set *live.Settings) {
		set.Meta.Title, set.LatencyMode = "Harbour, west", live.Standard
		set.ReconnectWindow, set.ReconnectChosen = 60, false
		set.SlateForStandard, set.ReconnectSlateURL, set.MaxContinuous, set.Passthrough = false, "", 1800, "p"
		set.NewAsset.VideoQuality = "plus"
	})
	form.Set("hours", "")
	form.Set("reconnect_window", "60")
	send(func(set *live.Settings) { set.MaxContinuous, set.ReconnectChosen = live.MaxContinuous, true })
	found, err := s.db.AuditLog(t.Context(), audit.Query{Resource: string(made.ID), Limit: 20})
	if err != nil || len(found) != 2 || found[0].Operation != "update-live-stream" ||
		found[0].Actor.Type != audit.Dashboard {
		t.Errorf("audit log %+v, %v", found, err)
	}
}

// TestEditRefused: each mistake stands beside its field, with what was typed, and nothing is changed.
func TestEditRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	idle, air := s.stream(t, "Idle", false), s.stream(t, "On the air", true)
	for name, tt := range map[string]struct {
		of                   live.Stream
		field, value, beside string
		status               int
	}{
		"window":    {idle, "reconnect_window", "2000", "This must be a number from 0 to 1800.", 400},
		"no number": {idle, "reconnect_window", "long", "This must be a number of seconds.", 400},
		"longest":   {idle, "hours", "13", "This must be a whole number of seconds from 60 to 43200.", 400},
		"no hours":  {idle, "hours", "NaN", "This must be a number of hours.", 400},
		"slate":     {idle, "reconnect_slate_url", "ftp://x", "This must be", 400},
		"delay":     {idle, "latency_mode", "other", "This must be one of", 400},
		"quality":   {idle, "video_quality", "basic", "This must be one of: plus, premium.", 400},
		"name":      {idle, "title", strings.Repeat("a", 513), "This may have at most 512 characters.", 400},
		"long text": {idle, "passthrough", strings.Repeat("a", 256), "This may have at most 255 characters.", 400},
		"on air":    {air, "latency_mode", "standard", "This may be changed only while the live stream is idle.", 409},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, page := s.save(t, tt.of, url.Values{tt.field: {tt.value}})
			got := beside(page, tt.field)
			if status != tt.status || !strings.Contains(got, `class="bad"`) || !strings.Contains(got, tt.beside) {
				t.Errorf("%d, beside it %q", status, got)
			}
			if !strings.Contains(page, "Nothing was saved") {
				t.Error("the page does not say that nothing was saved")
			}
			is, err := s.live.Get(t.Context(), s.env(t), tt.of.ID)
			if err != nil || is.Revision != tt.of.Revision {
				t.Errorf("the stream was changed: %+v, %v", is, err)
			}
		})
	}
}

// TestEditOnAir: the delay is fixed while a broadcast goes on, and the page says so; the rest can be changed.
func TestEditOnAir(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, "On the air", true, playbackid.Public)
	page := s.ask(t, s.cookie, "/dashboard/live/"+string(v.ID)+"/edit", nil).Body.String()
	if strings.Count(page, `name="latency_mode"`) != strings.Count(page, " disabled") ||
		!strings.Contains(page, "The latency can be changed once the broadcast has ended") {
		t.Errorf("the delay can be changed:\n%s", page)
	}
	if status, page := s.save(t, v, url.Values{"title": {"Another"}}); status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", status, page)
	}
	is, err := s.live.Get(t.Context(), s.env(t), v.ID)
	if err != nil || is.Settings.Meta.Title != "Another" || is.Settings.LatencyMode != live.Low {
		t.Errorf("%+v, %v", is.Settings, err)
	}
}

// TestEditIsNotForAll: who may not change a stream neither sees the form nor the way to it; hostile texts stay text.
func TestEditIsNotForAll(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, hostile, false)
	path := "/dashboard/live/" + string(v.ID)
	reader := s.signIn(t, access.VideoRead)
	if page := s.ask(t, reader, path, nil).Body.String(); strings.Contains(page, "/edit") {
		t.Error("a reader is led to the settings")
	}
	for name, tt := range map[string]struct {
		cookie, path string
		status       int
	}{
		"reader": {reader, path, 403}, "another environment": {s.elsewhere(t), path, 404}, "nobody": {"", path, 303},
		"no such stream": {s.cookie, "/dashboard/live/" + string(id.LiveStream(id.New())), 404},
	} {
		for _, form := range []url.Values{nil, {"title": {"x"}}} {
			want := tt.status
			if tt.cookie == "" && form != nil {
				want = http.StatusUnauthorized // the page to sign in, which keeps the form
			}
			if w := s.ask(t, tt.cookie, tt.path+"/edit", form); w.Code != want {
				t.Errorf("%s: %d", name, w.Code)
			}
		}
	}
	w := s.ask(t, s.cookie, path+"/edit", nil)
	harmless(t, "settings", w)
	closedPage(t, w)
	form := url.Values{}
	for _, name := range []string{
		"title", "latency_mode", "reconnect_window", "reconnect_slate_url", "hours", "video_quality", "passthrough",
	} {
		form.Set(name, hostile)
	}
	harmless(t, "typed settings", s.ask(t, s.cookie, path+"/edit", form))
}
