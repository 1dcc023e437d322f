package dashboard_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/control/signing"
	"millrace/internal/id"
)

const signingKeys = "/dashboard/settings/signing-keys"

// key makes a signing key of the site's environment, and gives its private half as the API does.
func (s *site) key(t *testing.T) (k signing.Key, private string) {
	t.Helper()
	k, private, err := s.keys.Create(t.Context(), s.env(t), s.now)
	if err != nil {
		t.Fatal(err)
	}
	return k, private
}

// TestKeyPages: what the pages about signing keys say, and to whom.
func TestKeyPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	empty := newSite(t, "http://example.com")
	k, _ := s.key(t)
	ask := signingKeys + "/" + string(k.ID) + "/delete"
	reader := s.signIn(t, access.VideoRead, access.VideoWrite)
	looker := s.signIn(t, access.VideoRead, access.SystemRead)
	elsewhere := s.elsewhere(t)
	for name, tt := range map[string]struct {
		on           *site
		cookie, path string
		form         url.Values
		status       int
		want, not    string
	}{
		"list":           {s, s.cookie, signingKeys, nil, 200, string(k.ID), "No signing key yet"},
		"deletes":        {s, s.cookie, signingKeys, nil, 200, `href="` + ask + `"`, ""},
		"empty":          {empty, empty.cookie, signingKeys, nil, 200, "No signing key yet", "<table"},
		"page":           {s, s.cookie, signingKeys + "?page=9", nil, 200, "There are no more", ""},
		"menu":           {s, looker, tokens, nil, 200, `href="` + signingKeys + `"`, ""},
		"looks":          {s, looker, signingKeys, nil, 200, string(k.ID), "/delete"},
		"makes none":     {s, looker, signingKeys, nil, 200, "", "New key"},
		"may not see":    {s, reader, signingKeys, nil, 403, "lacks the permission system:read", string(k.ID)},
		"may not make":   {s, looker, signingKeys, url.Values{}, 403, "lacks the permission system:write", ""},
		"may not ask":    {s, looker, ask, nil, 403, "lacks the permission system:write", ""},
		"may not delete": {s, looker, ask, url.Values{}, 403, "lacks the permission system:write", ""},
		"question":       {s, s.cookie, ask, nil, 200, "Every link signed with it stops at once", ""},
		"other tenants":  {s, elsewhere, signingKeys, nil, 200, "No signing key yet", string(k.ID)},
		"and their ask":  {s, elsewhere, ask, nil, 404, "There is nothing here", ""},
		"and their act":  {s, elsewhere, ask, url.Values{}, 404, "There is nothing here", ""},
		"no such key":    {s, s.cookie, signingKeys + "/none/delete", url.Values{}, 404, "There is nothing here", ""},
		"hostile": {
			s, s.cookie, signingKeys + "/" + url.PathEscape(hostile) + "/delete", nil, 404, "", "<script>alert",
		},
		"nobody":          {s, "", signingKeys, nil, 303, "", ""},
		"nobody's act":    {s, "", ask, url.Values{}, 303, "", ""},
		"nobody's making": {s, "", signingKeys, url.Values{}, 303, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.on.shows(t, tt.cookie, tt.path, tt.form, tt.status, tt.want, tt.not)
		})
	}
	t.Cleanup(func() { // when all have asked
		left, err := s.keys.List(context.WithoutCancel(t.Context()), k.Environment, 1, 9)
		if err != nil || len(left) != 1 {
			t.Errorf("%d signing keys are left, %v", len(left), err)
		}
	})
}

// TestKeyIsMade: its private half fits, is in one response and in nothing else; deleted, it is gone.
func TestKeyIsMade(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	w := s.ask(t, s.cookie, signingKeys, url.Values{})
	page := w.Body.String()
	closedPage(t, w)
	if w.Code != http.StatusCreated || !strings.Contains(page, "The private key is shown only once.") {
		t.Fatalf("%d:\n%s", w.Code, page)
	}
	private, k := linesOf(page)["Private key"], id.SigningKey(linesOf(page)["Key ID"])
	half, err := signing.ReadPrivate(private)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := s.keys.Get(t.Context(), s.env(t), k); err != nil || !half.PublicKey.Equal(kept.Public) {
		t.Errorf("the private half does not fit the key %+v, %v", kept, err)
	}
	s.nowhere(t, w, private, signingKeys, signingKeys+"/"+string(k)+"/delete", "/dashboard/live")
	s.audited(t, string(k), "signing_key", "create-signing-key")

	s.now = s.now.Add(time.Second)
	w = s.ask(t, s.cookie, signingKeys+"/"+string(k)+"/delete", url.Values{})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != signingKeys {
		t.Errorf("deleted: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if left, err := s.keys.List(t.Context(), s.env(t), 1, 9); err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v", len(left), err)
	}
	s.audited(t, string(k), "signing_key", "delete-signing-key create-signing-key")
}

// nowhere fails the test where a secret is in the header of the response that shows it, in other pages, the log or the
// audit log.
func (s *site) nowhere(t *testing.T, w interface{ Header() http.Header }, secret string, pages ...string) {
	t.Helper()
	middle := secret[len(secret)/3:][:min(40, len(secret)/3)]
	has := func(text string) bool { return strings.Contains(html.UnescapeString(text), middle) }
	for name, values := range w.Header() {
		if has(strings.Join(values, " ")) {
			t.Errorf("header %s has the secret", name)
		}
	}
	for _, path := range pages {
		if has(s.ask(t, s.cookie, path, nil).Body.String()) {
			t.Errorf("%s has the secret", path)
		}
	}
	if has(s.log.String()) {
		t.Errorf("the log has the secret:\n%s", s.log.String())
	}
	entries, err := s.db.AuditLog(t.Context(), audit.Query{Limit: 99})
	if err != nil || has(fmt.Sprintf("%+v", entries)) {
		t.Errorf("the audit log has the secret: %+v, %v", entries, err)
	}
}
