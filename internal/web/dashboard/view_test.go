package dashboard_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestPagesAreCompressed: what is asked for is compressed where the browser takes it, and says the same. The response
// to a form is not: it may have a secret beside what was typed.
func TestPagesAreCompressed(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	const page = "/dashboard/live/new"
	plain := s.ask(t, s.cookie, page, nil)
	packed := s.ask(t, s.cookie, page, nil, "Accept-Encoding", "br, gzip")
	got, vary := packed.Header().Get("Content-Encoding"), packed.Header().Get("Vary")
	if got != "gzip" || vary != "Accept-Encoding" {
		t.Fatalf("it is encoded as %q", got)
	}
	if packed.Body.Len()*3 > plain.Body.Len() {
		t.Errorf("%d bytes of %d", packed.Body.Len(), plain.Body.Len())
	}
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil || shape(string(text)) != shape(plain.Body.String()) {
		t.Errorf("compressed it says\n%s, %v", text, err)
	}
	made := s.ask(t, s.cookie, "/dashboard/settings/tokens", url.Values{"name": {"x"}, "permission": {"video:read"}},
		"Accept-Encoding", "gzip")
	if made.Code != http.StatusCreated || made.Header().Get("Content-Encoding") != "" {
		t.Errorf("a secret: %d, encoded as %q", made.Code, made.Header().Get("Content-Encoding"))
	}
}

// TestNamesCannotTurn: a name is shown without the characters that turn text round, so that it does not look like
// another one; a script that is written from right to left is shown as it is.
func TestNamesCannotTurn(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	const arabic = "\u0645\u0631\u062d\u0628\u0627"
	v, film := s.stream(t, "safe\u202egpj.exe", false), s.ready(t, "\u2067"+arabic+"\u2069")
	for path, want := range map[string]string{
		"/dashboard/live":                      "safegpj.exe",
		"/dashboard/live/" + string(v.ID):      "safegpj.exe",
		"/dashboard/assets":                    arabic,
		"/dashboard/assets/" + string(film.ID): arabic,
	} {
		body := s.ask(t, s.cookie, path, nil).Body.String()
		head, _, _ := strings.Cut(body, `id="edit"`) // whose form has it as it is, and so has what is no name
		head = regexp.MustCompile(`<dt>Passthrough</dt><dd>[^<]*`).ReplaceAllString(head, "")
		if !strings.Contains(head, want) || strings.ContainsAny(head, "\u202e\u2067\u2069") {
			t.Errorf("%s does not show %q, or not that alone", path, want)
		}
	}
}

// TestUnknownPathsAreOfTheDashboard: who is signed in stays so on a page that there is not.
func TestUnknownPathsAreOfTheDashboard(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for cookie, want := range map[string]bool{s.cookie: true, "": false} {
		w := s.ask(t, cookie, "/dashboard/none/at/all", nil)
		if got := strings.Contains(w.Body.String(), "Sign out"); w.Code != http.StatusNotFound || got != want {
			t.Errorf("%d, signed in: %t, want %t", w.Code, got, want)
		}
	}
}
