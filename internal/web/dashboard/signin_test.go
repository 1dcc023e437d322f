package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/fault"
)

// TestSignInAgain: a browser has one session, and what it had before it signs in anew is over. A wrong password ends
// none, and neither does another browser.
func TestSignInAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	signIn := func(cookie, typed string, want int) {
		t.Helper()
		if w := s.ask(t, cookie, "/dashboard/sign-in", url.Values{"password": {typed}}); w.Code != want {
			t.Fatalf("sign-in: %d", w.Code)
		}
	}
	person := func() (access.Person, error) { return s.sessions.Person(t.Context(), s.cookie, s.now) }
	signIn(s.cookie, "wrong", http.StatusUnauthorized)
	signIn("", password, http.StatusSeeOther)
	if _, err := person(); err != nil {
		t.Errorf("after another browser has signed in: %v", err)
	}
	signIn(s.cookie, password, http.StatusSeeOther)
	if _, err := person(); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the session that the browser had before: %v", err)
	}
}
