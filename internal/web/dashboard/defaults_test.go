package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
)

const defaultsPage = "/dashboard/settings/defaults"

// TestDefaults: what the page says of settings as they are, and of those that are refused; what is saved holds.
func TestDefaults(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for _, tt := range []struct {
		name, value string
		status      int
		want        string // in the page that follows
		then        access.Environment
	}{
		{"video-quality", "premium", 303, `value="premium" selected`, access.Environment{VideoQuality: "premium"}},
		{
			"video-quality", "best", 400, "Video_quality must be one of: basic, plus, premium.",
			access.Environment{VideoQuality: "premium"},
		},
		{"video-quality", "", 303, `value="" selected>Basic for files`, access.Environment{}},
		{"live-rungs", "off", 303, `value="off" selected`, access.Environment{LiveRungs: "off"}},
		{"live-rungs", "", 303, `value="" selected>The service's setting: always`, access.Environment{}},
		{
			"captions", "en=pocketsphinx, *=none", 303, `value="en=pocketsphinx, *=none"`,
			access.Environment{Captions: "en=pocketsphinx, *=none"},
		},
		{
			"captions", "nothing", 400, "Captions must be pairs of a language, or *, and an engine",
			access.Environment{Captions: "en=pocketsphinx, *=none"},
		},
		{
			"captions", "a=\x00", 400, "Captions must not contain",
			access.Environment{Captions: "en=pocketsphinx, *=none"},
		},
		{"captions", hostile, 303, "&lt;script&gt;", access.Environment{Captions: hostile}},
		{"captions", " ", 303, `placeholder="de=vosk"`, access.Environment{}},
		{
			"frame-ancestors", "https://a.example, https://*.b.example", 303,
			`value="https://a.example https://*.b.example"`,
			access.Environment{FrameAncestors: "https://a.example https://*.b.example"},
		},
		{
			"frame-ancestors", "a.example; script-src *", 400, "is not an origin such as https://example.com",
			access.Environment{FrameAncestors: "https://a.example https://*.b.example"},
		},
		{"frame-ancestors", "none", 303, `value="none"`, access.Environment{FrameAncestors: access.FrameNone}},
		{"frame-ancestors", "", 303, `placeholder="all"`, access.Environment{}},
		{"other", "", 404, "There is nothing here", access.Environment{}},
	} {
		w := s.ask(t, s.cookie, defaultsPage+"/"+tt.name, url.Values{"value": {tt.value}})
		page := w.Body.String()
		if tt.status == http.StatusSeeOther {
			path, part, _ := strings.Cut(w.Header().Get("Location"), "#")
			if page = s.ask(t, s.cookie, path, nil).Body.String(); part != tt.name {
				t.Errorf("%s leads to %q", tt.name, part)
			}
		}
		if w.Code != tt.status || !strings.Contains(page, tt.want) || strings.Contains(page, "<script>alert") {
			t.Errorf("%s=%q: %d, without %q:\n%s", tt.name, tt.value, w.Code, tt.want, page)
		}
		got, err := s.tokens.Named(t.Context(), "", s.now)
		then := access.Environment{
			VideoQuality: got.VideoQuality, LiveRungs: got.LiveRungs, Captions: got.Captions,
			FrameAncestors: got.FrameAncestors,
		}
		if err != nil || then != tt.then {
			t.Errorf("%s=%q: %+v, %v", tt.name, tt.value, then, err)
		}
	}
	env := string(s.env(t))
	entries, err := s.db.AuditLog(t.Context(), audit.Query{Resource: env, Limit: 99})
	if err != nil || len(entries) != 10 || entries[0].Operation != "update-environment" ||
		entries[0].Resource.Type != "environment" || entries[0].Actor.Type != audit.Dashboard {
		t.Errorf("audit log %+v, %v", entries, err)
	}
}

// TestSettingsOfTheOwner: what only the owner may see and change is nobody else's, whatever their token permits.
func TestSettingsOfTheOwner(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	all := s.signIn(t, access.Permissions()...)
	for path, form := range map[string]url.Values{
		defaultsPage: nil, defaultsPage + "/live-rungs": {"value": {"off"}},
	} {
		w := s.ask(t, all, path, form)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "This is for the owner") {
			t.Errorf("%s: %d\n%s", path, w.Code, w.Body)
		}
	}
	if body := s.ask(t, all, tokens, nil).Body.String(); strings.Contains(body, defaultsPage) {
		t.Error("the menu offers it")
	}
	if body := s.ask(t, s.cookie, tokens, nil).Body.String(); !strings.Contains(body, defaultsPage) {
		t.Error("the owner's menu does not offer it")
	}
	closedPage(t, s.ask(t, s.cookie, defaultsPage, nil))
}
