package dashboard_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/id"
)

const tokens = "/dashboard/settings/tokens"

// TestTokenPages: what the pages about access tokens say, and to whom.
func TestTokenPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	empty := newSite(t, "http://example.com")
	made := func(name string, ends time.Duration, permissions ...string) string {
		in := access.TokenInput{Name: name, Permissions: permissions}
		if ends > 0 {
			in.ExpiresAt = s.now.Add(ends)
		}
		v, _, err := s.tokens.CreateToken(t.Context(), in, s.now)
		if err != nil {
			t.Fatal(err)
		}
		return string(v.ID)
	}
	all, some := made("All of it", 0), made("Some of it", time.Hour, access.VideoRead)
	over := made(hostile, time.Second)
	reader := s.signIn(t, access.VideoRead)
	looker := s.signIn(t, access.VideoRead, access.SystemRead)
	s.now = s.now.Add(time.Minute)
	for name, tt := range map[string]struct {
		on                *site
		cookie, path      string
		status            int
		want, not, header string
	}{
		"list":        {s, s.cookie, tokens, 200, "All of it", "No token yet", ""},
		"everything":  {s, s.cookie, tokens, 200, "Everything", "", ""},
		"permissions": {s, s.cookie, tokens, 200, `<span class="nowrap">video:read</span>`, "", ""},
		"expires":     {s, s.cookie, tokens, 200, "1 May 2026, 13:00 UTC", "", ""},
		"expired":     {s, s.cookie, tokens, 200, "Expired", "<script>alert", ""},
		"never used":  {s, s.cookie, tokens, 200, "never</td>", "", ""},
		"the owner":   {s, s.cookie, tokens, 200, tokens + "/" + all + "/revoke", "you are signed in with it", ""},
		"own":         {s, looker, tokens, 200, "you are signed in with it", "New token", ""},
		"may not":     {s, looker, tokens, 200, "Some of it", "/revoke", ""},
		"empty":       {empty, empty.cookie, tokens, 200, "Give each program its own", "<table", ""},
		"page":        {s, s.cookie, tokens + "?page=9", 200, "There are no more", "", ""},
		"menu":        {s, s.cookie, "/dashboard/live", 200, `href="` + tokens + `"`, "", ""},
		"no menu":     {s, reader, "/dashboard/live", 200, "", `href="` + tokens + `"`, ""},
		"no list":     {s, reader, tokens, 403, "lacks the permission system:read", "All of it", ""},
		"no form":     {s, looker, tokens + "/new", 403, "lacks the permission system:write", "", ""},
		"form":        {s, s.cookie, tokens + "/new", 200, `value="data:write"`, "", ""},
		"question":    {s, s.cookie, tokens + "/" + some + "/revoke", 200, "It was never used.", "", ""},
		"lost": {
			s, s.cookie, tokens + "/" + over + "/revoke", 200, "Programs that use it are refused from then on",
			"<script>alert", "",
		},
		"nothing to ask": {s, s.cookie, tokens + "/none/revoke", 404, "", "", ""},
		"may not ask":    {s, looker, tokens + "/" + all + "/revoke", 403, "", "", ""},
		"other tenants":  {s, s.elsewhere(t), tokens + "/" + all + "/revoke", 404, "", "", ""},
		"settings":       {s, s.cookie, "/dashboard/settings", 302, "", "", tokens},
		"and with slash": {s, s.cookie, "/dashboard/settings/", 302, "", "", tokens},
		"nobody": {
			s, "", tokens, 303, "", "", "/dashboard/sign-in?to=%2Fdashboard%2Fsettings%2Ftokens",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tt.on.ask(t, tt.cookie, tt.path, nil)
			body := w.Body.String()
			bad := !strings.Contains(body, tt.want) || tt.not != "" && strings.Contains(body, tt.not)
			if bad || w.Code != tt.status || w.Header().Get("Location") != tt.header {
				t.Errorf("%d to %q, want %q and not %q:\n%s", w.Code, w.Header().Get("Location"), tt.want, tt.not, body)
			}
			closedPage(t, w)
		})
	}
}

// TestTokenIsMade: its secret is right, is in one response and in nothing else, and what it may do is what was chosen.
func TestTokenIsMade(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	w := s.ask(t, s.cookie, tokens, url.Values{
		"name": {"Upload page"}, "permission": {access.VideoWrite, access.VideoRead}, "days": {"90"},
	})
	page := w.Body.String()
	closedPage(t, w)
	if w.Code != http.StatusCreated || !strings.Contains(page, "The secret is shown only once.") {
		t.Fatalf("%d:\n%s", w.Code, page)
	}
	secret, key := linesOf(page)["Secret"], linesOf(page)["Token ID"]
	who, err := s.tokens.Authenticate(t.Context(), access.Credentials{Token: id.Token(key), Secret: secret}, s.now)
	if err != nil || who.Token.Name != "Upload page" || !who.Token.ExpiresAt.Equal(s.now.AddDate(0, 0, 90)) ||
		!slices.Equal(who.Token.Permissions, []string{access.VideoRead, access.VideoWrite}) {
		t.Errorf("token %+v, %v", who.Token, err)
	}
	s.nowhere(t, w, secret, tokens, tokens+"/"+key+"/revoke", "/dashboard/live")
	entries, err := s.db.AuditLog(t.Context(), audit.Query{Resource: key, Limit: 9})
	if err != nil || len(entries) != 1 || entries[0].Operation != "create-access-token" ||
		entries[0].Resource.Type != "access_token" {
		t.Errorf("audit log %+v, %v", entries, err)
	}
}

// given is the form of a token.
func given(name, days string, permissions ...string) url.Values {
	return url.Values{"name": {name}, "days": {days}, "permission": permissions}
}

// TestTokenIsRefused: what no token is made with. Nobody gives what they do not have.
func TestTokenIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	manager := s.signIn(t, access.VideoRead, access.SystemRead, access.SystemWrite)
	form := s.ask(t, manager, tokens+"/new", nil).Body.String()
	if !strings.Contains(form, `value="video:read" checked`) || strings.Contains(form, `value="video:write"`) {
		t.Errorf("the form offers what the token does not have:\n%s", form)
	}
	before, err := s.tokens.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		cookie string
		form   url.Values
		want   string
	}{
		"no name":        {s.cookie, given("", "", access.VideoRead), "Say what will use it."},
		"long name":      {s.cookie, given(strings.Repeat("a", 256), "", access.VideoRead), "at most 255 characters"},
		"nothing":        {s.cookie, given("a", ""), "Choose what it may do."},
		"unknown":        {s.cookie, given("a", "", hostile), "You can only grant permissions that you have yourself."},
		"installation":   {s.cookie, given("a", "", access.InstallationWrite), "You can only grant"},
		"not had":        {manager, given("a", "", access.VideoRead, access.VideoWrite), "You can only grant"},
		"never was":      {s.cookie, given("a", "0", access.VideoRead), "from 1 to 36500"},
		"no day":         {s.cookie, given("a", "soon", access.VideoRead), "whole number of days"},
		"hostile, typed": {s.cookie, given(hostile, ""), "&lt;script&gt;"},
		"no text":        {s.cookie, given("a\x00b", "", access.VideoRead), "This must"},
	} {
		w := s.ask(t, tt.cookie, tokens, tt.form)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d, without %q:\n%s", name, w.Code, tt.want, w.Body)
		}
	}
	after, err := s.tokens.Tokens(t.Context())
	if err != nil || len(after) != len(before) {
		t.Errorf("%d tokens after %d, %v", len(after), len(before), err)
	}
}

// TestTokenIsRevoked: it ends at once, and so do the sessions of those who signed in with it, who are told.
func TestTokenIsRevoked(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	first := s.signIn(t, access.VideoRead, access.SystemRead, access.SystemWrite)
	all, err := s.tokens.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Second)
	own := tokens + "/" + string(all[0].ID) + "/revoke"
	if asked := s.ask(t, first, own, nil).Body.String(); !strings.Contains(asked, "you will be signed out at once") {
		t.Errorf("the question does not say so:\n%s", asked)
	}
	if w := s.ask(t, first, own, url.Values{}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != tokens {
		t.Fatalf("%d to %q:\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	out := s.ask(t, first, tokens, nil)
	w := s.ask(t, first, out.Header().Get("Location"), nil)
	if w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(),
			"You were signed out: the access token you signed in with was revoked or has expired") {
		t.Errorf("%d at %q:\n%s", w.Code, out.Header().Get("Location"), w.Body)
	}
	if c := w.Result().Cookies(); len(c) != 1 || c[0].Name != "millrace" || c[0].MaxAge >= 0 {
		t.Errorf("cookies %v", c)
	}
	if again := s.ask(t, "", "/dashboard/sign-in", nil).Body.String(); strings.Contains(again, "revoked") {
		t.Error("it is said to everybody")
	}
	if w := s.ask(t, s.cookie, own, url.Values{}); w.Code != http.StatusNotFound {
		t.Errorf("revoked again: %d", w.Code)
	}
	if body := s.ask(t, s.cookie, tokens, nil).Body.String(); strings.Contains(body, string(all[0].ID)) {
		t.Error("the list has it still")
	}
	entries, err := s.db.AuditLog(t.Context(), audit.Query{Resource: string(all[0].ID), Limit: 9})
	if err != nil || len(entries) != 2 || entries[0].Operation != "delete-access-token" ||
		entries[0].Actor.Type != audit.AccessToken || entries[0].Actor.ID != string(all[0].ID) {
		t.Errorf("audit log %+v, %v", entries, err)
	}
}
