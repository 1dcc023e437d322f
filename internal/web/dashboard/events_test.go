package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
)

const eventLog = "/dashboard/events"

// TestEventPages: what the log and the pages of events say, and to whom.
func TestEventPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	empty := newSite(t, "http://example.com")
	film, stream := s.ready(t, hostile), s.stream(t, hostile, false)
	made, hookPage := s.hook(t, "https://example.com/"+hostile)
	_, other := s.hook(t, "https://example.com/other")
	if _, err := s.hooks.Test(t.Context(), made.Environment, made.ID, s.now); err != nil {
		t.Fatal(err)
	}
	e := s.try(t, made.ID, webhook.Waiting, s.now.Add(time.Hour),
		webhook.Attempt{At: s.now, Status: 503, Body: hostile}, webhook.Attempt{At: s.now, Error: hostile})
	picky := newSite(t, "http://example.com")
	picky.hook(t, "https://example.com/picky", live.EventCreated)
	picky.ready(t, "No live stream")
	picky.stream(t, "Is wanted", false)
	looker, reader := s.signIn(t, access.VideoRead, access.SystemRead), s.signIn(t, access.VideoRead)
	one := fmt.Sprintf("%s/%d", eventLog, e.Sequence)
	first := eventLog + "/1"
	for name, tt := range map[string]struct {
		on           *site
		cookie, path string
		status       int
		want, not    string
	}{
		"log":        {s, s.cookie, eventLog, 200, `href="` + one + `">system.webhook.test</a>`, "Nothing has"},
		"attempts":   {s, s.cookie, eventLog, 200, `state fault">Attempt failed`, "<script>alert"},
		"next":       {s, s.cookie, eventLog, 200, `next attempt <time datetime="2026-05-01T13:00:00Z"`, ""},
		"waits":      {picky, picky.cookie, eventLog, 200, `state">Waiting`, ""},
		"not wanted": {picky, picky.cookie, eventLog, 200, `state off">No webhook wants it`, "Not sent"},
		"was before": {s, s.cookie, eventLog, 200, `state off">Not sent`, ""},
		"objects":    {s, s.cookie, eventLog, 200, `href="/dashboard/live/` + string(stream.ID) + `"`, ""},
		"empty":      {empty, empty.cookie, eventLog, 200, "Nothing has happened yet", "<table"},
		"type": {
			s, s.cookie, eventLog + "?type=video.asset.created", 200, ">video.asset.created</a>",
			">system.webhook.test</a>",
		},
		"object": {
			s, s.cookie, eventLog + "?object_id=" + string(film.ID), 200, ">video.asset.created</a>",
			">video.live_stream.created</a>",
		},
		"neither": {s, s.cookie, eventLog + "?object_id=none", 200, "No event fits", "<table"},
		"odd query": {
			s, s.cookie, eventLog + "?before=-1&type=x&object_id=" + url.QueryEscape(hostile), 200, "No event fits",
			"<script>alert",
		},
		"no log":      {s, reader, eventLog, 403, "lacks the permission system:read", "<table"},
		"other log":   {s, s.elsewhere(t), eventLog, 200, "Nothing has happened yet", "<table"},
		"one":         {s, s.cookie, one, 200, "&#34;hostile&#34;: &#34;\\&#34;\\u003e", "<script>alert"},
		"its tries":   {s, s.cookie, one, 200, "503 Service Unavailable", "of 2 attempts"},
		"its next":    {s, s.cookie, one, 200, "1 May 2026, 13:00 UTC", other},
		"again":       {s, s.cookie, one, 200, hookPage + "/deliveries/" + e.ID + "/replay", ""},
		"not sent":    {s, s.cookie, first, 200, `state off">Not sent`, "Resend"},
		"to others":   {s, s.cookie, first, 200, other + "/deliveries/", ""},
		"looks":       {s, looker, one, 200, "Payload", "/replay"},
		"not one":     {s, reader, one, 403, "", "Payload"},
		"none":        {s, s.cookie, eventLog + "/999", 404, "To the events", ""},
		"no number":   {s, s.cookie, eventLog + "/x", 404, "", ""},
		"zero":        {s, s.cookie, eventLog + "/0", 404, "", ""},
		"other's one": {s, s.elsewhere(t), one, 404, "", "Payload"},
		"nobody":      {s, "", one, 303, "", "Payload"},
		"of an asset": {s, s.cookie, "/dashboard/assets/" + string(film.ID), 200, `href="/dashboard/events/`, ""},
		"not shown":   {s, reader, "/dashboard/assets/" + string(film.ID), 200, "", `href="/dashboard/events/`},
		"of a stream": {s, s.cookie, "/dashboard/live/" + string(stream.ID), 200, "object_id=" + string(stream.ID), ""},
		"of a hook":   {s, s.cookie, hookPage, 200, `href="` + one + `"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.on.shows(t, tt.cookie, tt.path, nil, tt.status, tt.want, tt.not)
		})
	}
}

// TestEventIsSent: again from its page, which comes back, and the log has those that were before.
func TestEventIsSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	made, page := s.hook(t, "https://example.com/a")
	for range 51 {
		if _, err := s.hooks.Test(t.Context(), made.Environment, made.ID, s.now); err != nil {
			t.Fatal(err)
		}
	}
	e := s.try(t, made.ID, webhook.Delivered, time.Time{}, webhook.Attempt{At: s.now, Status: 200})
	log := s.ask(t, s.cookie, eventLog, nil).Body.String()
	older := fmt.Sprintf("%s?before=%d", eventLog, e.Sequence-49)
	if strings.Count(log, "system.webhook.test</a>") != 50 || !strings.Contains(log, `href="`+older+`" rel="next"`) ||
		!strings.Contains(log, `state ok">Delivered`) {
		t.Errorf("the log:\n%s", log)
	}
	found, err := s.db.ListEvents(t.Context(), event.Query{Environment: made.Environment, Limit: 99})
	if rest := s.ask(t, s.cookie, older, nil).Body.String(); err != nil || len(found) != 51 ||
		strings.Count(rest, "system.webhook.test</a>") != 1 || strings.Contains(rest, `rel="next"`) {
		t.Errorf("%d events, %v:\n%s", len(found), err, rest)
	}
	one := fmt.Sprintf("%s/%d", eventLog, e.Sequence)
	w := s.ask(t, s.cookie, page+"/deliveries/"+e.ID+"/replay", url.Values{"back": {one}})
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != one {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	if body := s.ask(t, s.cookie, one, nil).Body.String(); !strings.Contains(body, "Waiting") {
		t.Errorf("it does not wait:\n%s", body)
	}
}
