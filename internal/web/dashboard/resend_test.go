package dashboard_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
)

// TestDeliveriesAreResent: one event holds those behind it until it is skipped, after a question; what waits is sent
// now, and what failed again, by a button that is there when there is such, and the audit log has all of it.
func TestDeliveriesAreResent(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	made, page := s.hook(t, "https://example.com/a")
	looker := s.signIn(t, access.VideoRead, access.SystemRead)
	shows := func(cookie, path string, want, not []string) {
		t.Helper()
		body := s.ask(t, cookie, path, nil).Body.String()
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s lacks %q:\n%s", path, text, body)
			}
		}
		for _, text := range not {
			if strings.Contains(body, text) {
				t.Errorf("%s has %q:\n%s", path, text, body)
			}
		}
	}
	do := func(path string) {
		t.Helper()
		s.now = s.now.Add(time.Minute)
		w := s.ask(t, s.cookie, page+path, url.Values{})
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != page+"#deliveries" {
			t.Errorf("%s: %d to %q:\n%s", path, w.Code, to, w.Body)
		}
	}
	test := func() {
		t.Helper()
		if _, err := s.hooks.Test(t.Context(), made.Environment, made.ID, s.now); err != nil {
			t.Fatal(err)
		}
	}
	const now, failed = ">Retry what is waiting<", ">Resend what failed<"
	shows(s.cookie, page, nil, []string{`id="retry"`, `id="replay-failed"`})

	test()
	bad := s.try(t, made.ID, webhook.Waiting, s.now.Add(time.Hour), webhook.Attempt{At: s.now, Status: 500})
	badAt := "/dashboard/events/" + strconv.FormatInt(bad.Sequence, 10)
	test()
	behind := s.try(t, made.ID, webhook.Waiting, time.Time{})
	skip := "/deliveries/" + strconv.FormatInt(bad.Sequence, 10) + "/skip"
	shows(s.cookie, page, []string{
		`It waits for <a href="` + badAt + `">an earlier event</a>`, "next attempt",
		`href="` + page + skip + `" data-ask`,
		`id="retry"`, "Send it now",
	}, []string{`id="replay-failed"`, `aria-label="Resend`})
	shows(looker, page, []string{`It waits for <a href="` + badAt + `">an earlier event</a>`}, []string{
		"/skip", `id="retry"`,
	})
	shows(s.cookie, badAt, []string{`href="` + page + skip + `" data-ask`, "Send it now"}, nil)
	shows(looker, badAt, []string{"next attempt"}, []string{"/skip"})

	do("/retry")
	shows(s.cookie, page, []string{"Waiting for its turn."}, []string{"next attempt", "Send it now"})
	shows(s.cookie, page+skip, []string{"Skip this event?", "<b>" + bad.Type + "</b>", "https://example.com/a"}, nil)
	do(skip)
	shows(s.cookie, page, []string{`state off">Skipped`, `aria-label="Resend`}, []string{
		"an earlier event", skip, `id="retry"`,
	})
	shows(s.cookie, badAt, []string{`state off">Skipped`}, nil)
	if w := s.ask(t, s.cookie, page+skip, url.Values{}); w.Code != http.StatusConflict ||
		!strings.Contains(w.Body.String(), "does not wait to be sent") {
		t.Errorf("skipped again: %d\n%s", w.Code, w.Body)
	}

	s.try(t, made.ID, webhook.Failed, time.Time{}, webhook.Attempt{At: s.now, Status: 500})
	shows(s.cookie, page, []string{failed}, []string{now})
	do("/replay-failed")
	shows(s.cookie, page+"?status=waiting", []string{"event " + strconv.FormatInt(behind.Sequence, 10)}, []string{
		failed,
	})
	shows(s.cookie, "/dashboard/events", []string{">Skipped<"}, nil)
	s.noted(t, string(made.ID), "replay-failed-webhook-deliveries", "skip-webhook-delivery",
		"retry-webhook-deliveries")
}
