package dashboard_test

import (
	"html"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"millrace/internal/control/asset"
)

// hidden are the hidden fields of a page, or of one form of it.
func hidden(page string) url.Values {
	out := url.Values{}
	fields := regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`)
	for _, f := range fields.FindAllStringSubmatch(page, -1) {
		out.Set(f[1], html.UnescapeString(f[2]))
	}
	return out
}

// TestSessionEndsInAForm: who sends a form when the session has ended signs in, and finds the form as it was filled in.
// Nothing is done until it is sent again.
func TestSessionEndsInAForm(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v, film := s.stream(t, "Regatta", false), s.ready(t, "Film")
	text, err := s.assets.AddTrack(t.Context(), s.env(t), film.ID, asset.TrackInput{
		URL: "https://example.com/a.vtt", Type: asset.TextTrack, LanguageCode: "fi", Name: "Suomi",
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	_, hook := s.hook(t, "https://example.com/a")
	live, page := "/dashboard/live/"+string(v.ID), "/dashboard/assets/"+string(film.ID)
	before := s.everything(t)
	for path, form := range map[string]url.Values{
		"/dashboard/live":                   {"title": {hostile}, "latency_mode": {"low"}, "policy": {"public"}},
		live + "/edit":                      {"title": {hostile}, "latency_mode": {"low"}, "hours": {"3"}},
		live + "/targets":                   {"url": {"rtmp://example.com/" + hostile}, "stream_key": {"theirs"}},
		"/dashboard/assets":                 {"url": {"https://example.com/" + hostile}, "policy": {"public"}},
		page:                                {"title": {hostile}},
		page + "/clips":                     {"start_time": {"1"}, "end_time": {"2"}, "clip_title": {hostile}},
		page + "/tracks":                    {"track_url": {"https://example.com/" + hostile}, "language_code": {"en"}},
		page + "/tracks/" + string(text.ID): {"name": {hostile}, "language_code": {"fi"}},
		"/dashboard/settings/restrictions":  {"domains": {hostile}},
		"/dashboard/settings/tokens":        {"name": {hostile}, "permission": {"video:read"}},
		"/dashboard/webhooks":               {"address": {"https://example.com/" + hostile}, "which": {"all"}},
		hook:                                {"address": {"https://example.com/" + hostile}, "which": {"all"}},
	} {
		asked := s.ask(t, "", path, form)
		closedPage(t, asked)
		harmless(t, path, asked)
		kept := hidden(asked.Body.String())
		if asked.Code != http.StatusUnauthorized || kept.Get("typed") == "" {
			t.Errorf("%s without a session: %d", path, asked.Code)
			continue
		}
		kept.Del("by")
		kept.Set("password", "wrong and wrong")
		wrong := s.ask(t, "", "/dashboard/sign-in", kept)
		if wrong.Code != http.StatusUnauthorized || hidden(wrong.Body.String()).Get("typed") != kept.Get("typed") {
			t.Errorf("%s: the wrong password loses the form: %d", path, wrong.Code)
		}
		kept.Set("password", password)
		again := s.ask(t, "", "/dashboard/sign-in", kept)
		closedPage(t, again)
		harmless(t, path, again)
		body := again.Body.String()
		if again.Code != http.StatusOK || !strings.Contains(body, html.EscapeString(hostile)) ||
			!strings.Contains(body, "Nothing has been submitted yet") || len(again.Result().Cookies()) == 0 {
			t.Errorf("%s, signed in again: %d\n%s", path, again.Code, body)
		}
		if strings.Contains(body, `class="as-code" data-code="make" open`) {
			t.Errorf("%s shows code", path)
		}
	}
	if now := s.everything(t); !reflect.DeepEqual(now, before) {
		t.Errorf("something was done:\n%+v\nwas\n%+v", now, before)
	}
}

// TestSessionEndsAtAButton: what has nothing to fill in leads back to the page where the button is, of this dashboard;
// so does a form that says it leads elsewhere.
func TestSessionEndsAtAButton(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, "Regatta", false)
	page := "/dashboard/live/" + string(v.ID)
	for from, to := range map[string]string{
		"http://example.com" + page:    "?to=" + url.QueryEscape(page),
		"http://evil.example" + page:   "",
		"http://example.com/elsewhere": "",
		"":                             "",
	} {
		w := s.ask(t, "", page+"/disable", url.Values{"really": {"1"}}, "Referer", from)
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != "/dashboard/sign-in"+to {
			t.Errorf("from %q: %d to %q", from, w.Code, got)
		}
	}
	for _, form := range []string{
		"https://evil.example/dashboard/live", "/elsewhere", page + "/disable", "/dashboard/sign-in",
		page + "/edit/code",
	} {
		w := s.ask(t, "", "/dashboard/sign-in", url.Values{
			"password": {password}, "form": {form}, "typed": {"title=x"}, "to": {page},
		})
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != page {
			t.Errorf("a form that leads to %q: %d to %q", form, w.Code, got)
		}
	}
	long := s.ask(t, "", page+"/edit", url.Values{"title": {strings.Repeat("x", 30<<10)}})
	body := long.Body.String()
	if long.Code != http.StatusUnauthorized || !strings.Contains(body, "too long to be kept") ||
		hidden(body).Get("typed") != "" {
		t.Errorf("too long: %d", long.Code)
	}
}
