package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/restriction"
)

const restrictions = "/dashboard/settings/restrictions"

// rule makes a playback restriction of the site's environment.
func (s *site) rule(t *testing.T, noReferrer bool, domains ...string) restriction.Restriction {
	t.Helper()
	v, err := s.rules.Create(t.Context(), s.env(t), restriction.Referrer{
		AllowedDomains: domains, AllowNoReferrer: noReferrer,
	}, restriction.UserAgent{AllowNone: true}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRestrictionPages: what the pages about playback restrictions say, and to whom.
func TestRestrictionPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	empty := newSite(t, "http://example.com")
	v := s.rule(t, false, "a.example", "*.b.example", "c.example", "d.example")
	page := restrictions + "/" + string(v.ID)
	reader := s.signIn(t, access.VideoRead)
	elsewhere := s.elsewhere(t)
	for name, tt := range map[string]struct {
		on           *site
		cookie, path string
		form         url.Values
		status       int
		want, not    string
	}{
		"list":     {s, s.cookie, restrictions, nil, 200, "a.example, *.b.example, c.example and 1 more", ""},
		"referrer": {s, s.cookie, restrictions, nil, 200, "refused", "allowed</td>"},
		"players":  {s, s.cookie, restrictions, nil, 200, "no programs that download", "every one"},
		"empty":    {empty, empty.cookie, restrictions, nil, 200, "No restriction yet", "<table"},
		"page":     {s, s.cookie, restrictions + "?page=9", nil, 200, "There are no more", ""},
		"form":     {s, s.cookie, restrictions + "/new", nil, 200, "Create the restriction", ""},
		"one":      {s, s.cookie, page, nil, 200, "a.example\n*.b.example", ""},
		"question": {s, s.cookie, page + "/delete", nil, 200, "Tokens that name it are refused at once", ""},
		"reads":    {s, reader, restrictions, nil, 200, "a.example", page},
		"menu": {
			s, reader, "/dashboard/live", nil, 200, `href="` + restrictions + `"`, `href="` + tokens + `"`,
		},
		"first settings": {s, reader, "/dashboard/settings", nil, 302, restrictions, ""},
		"may not new":    {s, reader, restrictions + "/new", nil, 403, "lacks the permission video:write", ""},
		"may not make":   {s, reader, restrictions, url.Values{}, 403, "lacks the permission video:write", ""},
		"may not open":   {s, reader, page, nil, 403, "lacks the permission video:write", ""},
		"may not edit":   {s, reader, page, url.Values{}, 403, "lacks the permission video:write", ""},
		"may not ask":    {s, reader, page + "/delete", nil, 403, "lacks the permission video:write", ""},
		"may not delete": {s, reader, page + "/delete", url.Values{}, 403, "lacks the permission video:write", ""},
		"other tenants":  {s, elsewhere, restrictions, nil, 200, "No restriction yet", "a.example"},
		"and their one":  {s, elsewhere, page, nil, 404, "There is nothing here", "a.example"},
		"and their edit": {s, elsewhere, page, url.Values{"domains": {"x.example"}}, 404, "There is nothing here", ""},
		"and their end":  {s, elsewhere, page + "/delete", url.Values{}, 404, "There is nothing here", ""},
		"nobody":         {s, "", restrictions, nil, 303, "", ""},
		"no such domain": {
			s, s.cookie, restrictions,
			url.Values{"domains": {"a.example b_c.example https://d.example"}},
			400,
			"“https://d.example” must be a host name such as example.com", "",
		},
		"hostile": {
			s, s.cookie, page, url.Values{"domains": {hostile}}, 400, "&lt;script&gt;", "<script>alert",
		},
		"too many": {
			s, s.cookie, restrictions,
			url.Values{"domains": {strings.Repeat("a.example ", 101)}},
			400,
			`id="domains-bad"`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tt.on.ask(t, tt.cookie, tt.path, tt.form)
			body := w.Body.String() + w.Header().Get("Location")
			if w.Code != tt.status || !strings.Contains(body, tt.want) ||
				tt.not != "" && strings.Contains(body, tt.not) {
				t.Errorf("%d, want %q and not %q:\n%s", w.Code, tt.want, tt.not, body)
			}
			closedPage(t, w)
		})
	}
	t.Cleanup(func() { // when all have asked
		left, err := s.rules.List(context.WithoutCancel(t.Context()), v.Environment, 1, 9)
		if err != nil || len(left) != 1 || !left[0].UpdatedAt.Equal(v.UpdatedAt) {
			t.Errorf("a refused request changed something: %+v, %v", left, err)
		}
	})
}

// TestRestrictionIsChanged: one is made, changed and deleted, and the audit log has what the API would have written.
func TestRestrictionIsChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	at := restrictions
	var of string
	for name, tt := range []struct {
		form    url.Values
		domains []string
		noRef   bool
		agent   restriction.UserAgent
		audit   string
	}{
		{
			url.Values{"domains": {"A.example\r\n*.b.example, c.example"}, "allow_no_user_agent": {"1"}},
			[]string{"a.example", "*.b.example", "c.example"},
			false,
			restriction.UserAgent{AllowNone: true},
			"create-playback-restriction",
		},
		{
			url.Values{"domains": {"a.example"}, "allow_no_referrer": {"1"}, "allow_no_user_agent": {"1"}},
			[]string{"a.example"},
			true,
			restriction.UserAgent{AllowNone: true},
			"update-referrer-domain-restriction create-playback-restriction",
		},
		{
			url.Values{"domains": {"a.example"}, "allow_no_referrer": {"1"}, "allow_high_risk_user_agent": {"1"}},
			[]string{"a.example"},
			true,
			restriction.UserAgent{AllowHighRisk: true},
			"update-user-agent-restriction update-referrer-domain-restriction create-playback-restriction",
		},
		{
			url.Values{"domains": {"a.example"}, "allow_no_referrer": {"1"}, "allow_high_risk_user_agent": {"1"}},
			[]string{"a.example"},
			true,
			restriction.UserAgent{AllowHighRisk: true},
			"update-user-agent-restriction update-referrer-domain-restriction create-playback-restriction",
		},
	} {
		s.now = s.now.Add(time.Second)
		w := s.ask(t, s.cookie, at, tt.form)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != restrictions {
			t.Fatalf("%d: %d to %q:\n%s", name, w.Code, w.Header().Get("Location"), w.Body)
		}
		all, err := s.rules.List(t.Context(), s.env(t), 1, 9)
		if err != nil || len(all) != 1 {
			t.Fatalf("%d: %d restrictions, %v", name, len(all), err)
		}
		got := all[0]
		of, at = string(got.ID), restrictions+"/"+string(got.ID)
		if !slices.Equal(got.Referrer.AllowedDomains, tt.domains) || got.Referrer.AllowNoReferrer != tt.noRef ||
			got.UserAgent != tt.agent {
			t.Errorf("%d: %+v", name, got)
		}
		s.audited(t, of, "playback_restriction", tt.audit)
	}
	s.now = s.now.Add(time.Second)
	if w := s.ask(t, s.cookie, at+"/delete", url.Values{}); w.Code != http.StatusSeeOther {
		t.Errorf("deleted: %d\n%s", w.Code, w.Body)
	}
	s.audited(t, of, "playback_restriction", "delete-playback-restriction update-user-agent-restriction "+
		"update-referrer-domain-restriction create-playback-restriction")
	if w := s.ask(t, s.cookie, at, nil); w.Code != http.StatusNotFound {
		t.Errorf("it is there still: %d", w.Code)
	}
}
