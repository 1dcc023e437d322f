package dashboard_test

import (
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/live"
)

// TestDoublePress: a form that is sent twice makes one thing, and both times leads to it. What is another form, or was
// filled in otherwise, or is sent again a minute later, makes another one, and so does one that was refused.
func TestDoublePress(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	count := func() int {
		all, err := s.live.List(t.Context(), s.env(t), live.ListQuery{Page: 1, Limit: 99})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	form := url.Values{"title": {"Regatta"}, "latency_mode": {"low"}, "policy": {"public"}}
	form.Set("press", hidden(s.ask(t, s.cookie, "/dashboard/live/new", nil).Body.String()).Get("press"))
	if form.Get("press") == "" {
		t.Fatal("the form has nothing that tells two presses from two forms")
	}
	var both [2]string
	var done sync.WaitGroup
	for i := range both {
		done.Go(func() {
			w := s.ask(t, s.cookie, "/dashboard/live", form)
			if both[i] = w.Header().Get("Location"); w.Code != http.StatusSeeOther {
				t.Errorf("%d", w.Code)
			}
		})
	}
	if done.Wait(); both[0] != both[1] || count() != 1 {
		t.Errorf("pressed twice, it makes %d, and leads to %q", count(), both)
	}
	other := url.Values{"title": {"Another"}, "latency_mode": {"low"}, "policy": {"public"}, "press": form["press"]}
	if s.ask(t, s.cookie, "/dashboard/live", other); count() != 2 {
		t.Errorf("filled in otherwise, there are %d", count())
	}
	if s.ask(t, s.signIn(t, "video:read", "video:write"), "/dashboard/live", form); count() != 3 {
		t.Errorf("sent by another person, there are %d", count())
	}
	bad := url.Values{"title": {"Regatta"}, "latency_mode": {"none"}, "press": {"x"}}
	for range 2 {
		if w := s.ask(t, s.cookie, "/dashboard/live", bad); w.Code != http.StatusBadRequest {
			t.Errorf("what is wrong: %d", w.Code)
		}
	}
	s.now = s.now.Add(time.Minute)
	if s.ask(t, s.cookie, "/dashboard/live", form); count() != 4 {
		t.Errorf("a minute later, there are %d", count())
	}
}
