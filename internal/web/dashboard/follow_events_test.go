package dashboard_test

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
)

// TestFollowEvents: of the event log those rows are sent whose deliveries go on, in any state, and how many events are
// new that fit.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	hook, _ := s.hook(t, "https://example.com/a")
	one := s.stream(t, hostile, false)
	for range 51 {
		if _, err := s.hooks.Test(t.Context(), hook.Environment, hook.ID, s.now); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	log := func(query string) *events { return s.follow(t, server, s.followed(t, s.cookie, eventLog+query)) }
	all, older, made := log(""), log("?before=3"), log("?type="+live.EventCreated)
	about, last := log("?object_id="+string(one.ID)), `<tr id="row-52" data-part>`
	if got := rows(all.until(last)); len(got) != 50 {
		t.Errorf("the first event has %d rows", len(got))
	}
	for e, n := range map[*events]int{older: 2, made: 1, about: 1} {
		if got := rows(e.until(`id="news"`)); len(got) != n {
			t.Errorf("the first event has %d rows, want %d", len(got), n)
		}
	}

	s.try(t, hook.ID, webhook.Waiting, s.now.Add(time.Hour), webhook.Attempt{At: s.now, Status: 503, Body: hostile})
	data := all.until("Attempt failed")
	if !strings.Contains(data, last) || !strings.Contains(data, `datetime="2026-05-01T13:00:00Z"`) ||
		strings.Contains(data, " new<") || strings.Contains(data, "<script>") {
		t.Errorf("an attempt has failed:\n%s", data)
	}
	s.try(t, hook.ID, webhook.Delivered, time.Time{}, webhook.Attempt{At: s.now, Status: 200})
	if got := rows(all.until(`state ok">Delivered`)); len(got) != 1 {
		t.Errorf("one is delivered: rows %q", got)
	}

	s.stream(t, "Two", false)
	if got := rows(all.until("1 new<")); len(got) > 0 {
		t.Errorf("a new one: rows %q", got)
	}
	if data = made.until("1 new<"); !strings.Contains(data, `href="`+eventLog+"?type="+live.EventCreated+`"`) {
		t.Errorf("it leads elsewhere:\n%s", data)
	}
	if err := s.live.Delete(t.Context(), one.Environment, one.ID, s.now); err != nil {
		t.Fatal(err)
	}
	all.until("2 new<")
	if data = about.until("1 new<"); strings.Contains(data, "2 new<") {
		t.Errorf("what happens to others is new:\n%s", data)
	}

	if n, err := s.db.PruneEvents(t.Context(), s.now.Add(time.Hour), 1); err != nil || n != 1 {
		t.Fatalf("%d are removed, %v", n, err)
	}
	kept := s.follow(t, server, eventLog+"/follow?row=1&row=2&row="+url.QueryEscape(hostile))
	if data = kept.until("No longer kept"); !strings.Contains(data, `id="row-1" class="gone"`) ||
		strings.Contains(data, "<script>") {
		t.Errorf("it is not kept:\n%s", data)
	}
}

// TestFollowEventsOthers: who may not see the log, and other environments.
func TestFollowEventsOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	s.stream(t, "One", false)
	for name, tt := range map[string]struct {
		cookie string
		status int
	}{
		"nobody": {"", 401}, "may not": {s.signIn(t, access.VideoRead), 403},
	} {
		w := s.ask(t, tt.cookie, eventLog+"/follow?row=1", nil, "Accept", "text/event-stream")
		if w.Code != tt.status {
			t.Errorf("%s: %d, want %d", name, w.Code, tt.status)
		}
	}
	if path := s.followed(t, s.elsewhere(t), eventLog); path != eventLog+"/follow?" {
		t.Errorf("another environment follows %q", path)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.cookie = s.elsewhere(t)
	data := s.follow(t, server, fmt.Sprintf("%s/follow?row=%d", eventLog, 1)).until(`id="row-1"`)
	if strings.Contains(data, live.EventCreated) {
		t.Errorf("another environment's event is shown:\n%s", data)
	}
}
