package app

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"millrace/internal/app/doctor"
	"millrace/internal/web/api"
	"millrace/internal/web/static/statictest"
)

// TestFront: people who come to the root find the dashboard, where there is one, and programs the API's description.
func TestFront(t *testing.T) {
	t.Parallel()
	empty := http.NotFoundHandler()
	for name, tt := range map[string]struct {
		people       http.Handler
		accept, want string
	}{
		"browser": {http.NotFoundHandler(), "text/html,application/xhtml+xml", "/dashboard"},
		"program": {http.NotFoundHandler(), "*/*", "/docs/reference"},
		"off":     {nil, "text/html", "/docs/reference"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := router(api.New(api.Options{}), empty, empty, nil, empty, empty, empty, empty, tt.people)
			w := statictest.Get(t, h, http.MethodGet, "/", "Accept", tt.accept)
			if got := w.Header().Get("Location"); w.Code != http.StatusFound || got != tt.want {
				t.Errorf("%d to %q", w.Code, got)
			}
		})
	}
}

// TestFirstLink: a link to the dashboard is printed at each start until its password is set, and not when it is off.
func TestFirstLink(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, t.TempDir())
	printed := regexp.MustCompile(`http://\S+/dashboard/link/\w+`)
	s := start(t, cfg)
	first := printed.FindString(s.out.String())
	s.end()
	cfg.Dashboard = false
	s = start(t, cfg)
	if link := printed.FindString(s.out.String()); link != "" {
		t.Errorf("it is off, and prints %s", link)
	}
	if got := ask(t, client(t, nil), http.MethodGet, "http://"+s.addr("http")+"/dashboard/live", "",
		nil); got.status != http.StatusNotFound {
		t.Errorf("it is off, and responds with %d", got.status)
	}
	s.end()
	cfg.Dashboard = true
	s = start(t, cfg)
	link := printed.FindString(s.out.String())
	if first == "" || link == "" || first == link {
		t.Fatalf("the first start printed %q, the next one %q", first, link)
	}
	set := url.Values{"password": {"correct horse battery"}}.Encode()
	c := client(t, nil)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	got := ask(t, c, http.MethodPost, link, set, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	})
	if got.status != http.StatusSeeOther || got.head.Get("Set-Cookie") == "" {
		t.Errorf("the link responds with %d: %s", got.status, got.body)
	}
	s.end()
	if again := start(t, cfg).out.String(); printed.MatchString(again) {
		t.Errorf("with a password a start prints %q", again)
	}
}

// TestHealthInTheDashboard: the owner of a node is told what every check of millrace doctor says there.
func TestHealthInTheDashboard(t *testing.T) {
	t.Parallel()
	cfg := configuration(t, t.TempDir())
	s := start(t, cfg)
	c := client(t, nil)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	form := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	link := regexp.MustCompile(`http://\S+/dashboard/link/\w+`).FindString(s.out.String())
	got := ask(t, c, http.MethodPost, link, "password=correct+horse+battery", form)
	cookie, _, _ := strings.Cut(got.head.Get("Set-Cookie"), ";")
	found := ask(t, c, http.MethodPost, "http://"+s.addr("http")+"/dashboard/settings/health", "",
		func(r *http.Request) { r.Header.Set("Cookie", cookie) })
	for _, check := range doctor.Checks(doctor.Options{Config: cfg}) {
		if found.status != http.StatusOK || !strings.Contains(found.body, "<b>"+check.Name()+"</b>: ") {
			t.Errorf("%d, without %q:\n%s", found.status, check.Name(), found.body)
		}
	}
	if !strings.Contains(found.body, "<b>database</b>: SQLite") || !strings.Contains(found.body, "<b>uploads</b>: ") {
		t.Errorf("neither database nor uploads:\n%s", found.body)
	}
	s.end()
}
