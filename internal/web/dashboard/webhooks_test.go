package dashboard_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

const webhooks = "/dashboard/webhooks"

// hook makes a webhook, and gives its page too.
func (s *site) hook(t *testing.T, address string, types ...string) (webhook.Webhook, string) {
	t.Helper()
	w, err := s.hooks.Create(t.Context(), s.env(t), webhook.CreateInput{Address: address, Types: types}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	return w, webhooks + "/" + string(w.ID)
}

// try makes attempts to send the newest event to a webhook, and leaves the delivery in a state.
func (s *site) try(
	t *testing.T, w id.Webhook, state webhook.State, next time.Time, attempts ...webhook.Attempt,
) event.Event {
	t.Helper()
	newest, err := s.db.ListEvents(t.Context(), event.Query{NewestFirst: true, Limit: 1})
	if err != nil || len(newest) == 0 {
		t.Fatalf("events %+v, %v", newest, err)
	}
	held, err := s.db.Claim(t.Context(), "node", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	e := newest[0]
	for _, h := range held {
		if h.ID != w {
			continue
		}
		step := webhook.Step{Webhook: w, From: h.Position, To: e.Sequence, Events: newest}
		if _, err = s.db.Queue(t.Context(), "node", []webhook.Step{step}); err != nil {
			t.Fatal(err)
		}
	}
	for i, a := range attempts {
		result := webhook.Result{Webhook: w, Sequence: e.Sequence, State: webhook.Waiting, Attempt: a, NextAt: next}
		if i == len(attempts)-1 {
			result.State = state
		}
		if err = s.db.Record(t.Context(), "node", []webhook.Result{result}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// TestWebhookPages: what the pages about webhooks say, and to whom.
func TestWebhookPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	empty := newSite(t, "http://example.com")
	_, all := s.hook(t, "https://example.com/all")
	some, someAt := s.hook(t, "https://example.com/"+hostile, asset.EventCreated)
	off, offAt := s.hook(t, "https://example.com/off")
	no := false
	if _, err := s.hooks.Patch(t.Context(), s.env(t), off.ID, webhook.PatchInput{Enabled: &no}, s.now); err != nil {
		t.Fatal(err)
	}
	looker, reader := s.signIn(t, access.VideoRead, access.SystemRead), s.signIn(t, access.VideoRead)
	for name, tt := range map[string]struct {
		on                *site
		cookie, path      string
		status            int
		want, not, header string
	}{
		"list":          {s, s.cookie, webhooks, 200, "https://example.com/all", "No webhook yet", ""},
		"everything":    {s, s.cookie, webhooks, 200, "Everything", "<script>alert", ""},
		"some":          {s, s.cookie, webhooks, 200, "1 type<", "", ""},
		"disabled":      {s, s.cookie, webhooks, 200, `<span class="state off">Disabled</span>`, "", ""},
		"never":         {s, s.cookie, webhooks, 200, "never</td>", "", ""},
		"empty":         {empty, empty.cookie, webhooks, 200, "No webhook yet", "<table", ""},
		"page of list":  {s, s.cookie, webhooks + "?page=9", 200, "There are no more", "", ""},
		"looks at list": {s, looker, webhooks, 200, "https://example.com/all", "New webhook", ""},
		"menu":          {s, looker, "/dashboard/live", 200, `href="/dashboard/events"`, "", ""},
		"no menu":       {s, reader, "/dashboard/live", 200, "", "/dashboard/events", ""},
		"no list":       {s, reader, webhooks, 403, "lacks the permission system:read", "example.com/all", ""},
		"form":          {s, s.cookie, webhooks + "/new", 200, `name="group" value="Live streams"`, "", ""},
		"no form":       {s, looker, webhooks + "/new", 403, "lacks the permission system:write", "", ""},
		"one":           {s, s.cookie, all, 200, "Nothing has been sent yet", "whsec_", ""},
		"secret":        {s, s.cookie, all, 200, "when it was created. If you have lost it", "data-show", ""},
		"one of some":   {s, s.cookie, someAt, 200, "<code>video.asset.created</code>", "<script>alert", ""},
		"is disabled":   {s, s.cookie, offAt, 200, "Enable the webhook first.", "Send a test event", ""},
		"is enabled":    {s, s.cookie, all, 200, "Send a test event", "Enable the webhook first.", ""},
		"looks at one":  {s, looker, all, 200, "https://example.com/all", "/new-secret", ""},
		"edit":          {s, s.cookie, someAt + "/edit", 200, `"video.asset.created" checked`, "<script>alert", ""},
		"no edit":       {s, looker, all + "/edit", 403, "", "", ""},
		"none to edit":  {s, s.cookie, webhooks + "/none/edit", 404, "", "", ""},
		"delete":        {s, s.cookie, someAt + "/delete", 200, "Its secret and the list", "<script>alert", ""},
		"disable":       {s, s.cookie, all + "/disable", 200, "is not sent to it", "", ""},
		"new secret":    {s, s.cookie, all + "/new-secret", 200, "for 24 hours with the present", "at once.", ""},
		"may not ask":   {s, looker, all + "/delete", 403, "", "", ""},
		"may not skip":  {s, looker, all + "/deliveries/1/skip", 403, "", "", ""},
		"none to skip":  {s, s.cookie, all + "/deliveries/1/skip", 404, "", "", ""},
		"none":          {s, s.cookie, webhooks + "/none", 404, "To the events", "", ""},
		"odd query": {
			s, s.cookie, all + "?status=x&before=-9&since=" + url.QueryEscape(hostile), 200, "", "<script>alert", "",
		},
		"none waits":    {s, s.cookie, all + "?status=waiting", 200, "There are none.", "", ""},
		"nobody":        {s, "", all, 303, "", "", "/dashboard/sign-in?to=" + url.QueryEscape(all)},
		"other tenants": {s, s.elsewhere(t), someAt, 404, "", some.Address, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tt.on.shows(t, tt.cookie, tt.path, nil, tt.status, tt.want, tt.not)
			if to := w.Header().Get("Location"); to != tt.header {
				t.Errorf("leads to %q", to)
			}
		})
	}
}

// TestWebhookIsMade: by a form, of the types that are ticked or whose group is, and changed by another.
func TestWebhookIsMade(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		form  url.Values
		types []string
	}{
		"everything": {url.Values{"which": {"all"}, "type": {asset.EventCreated}}, nil},
		"one":        {url.Values{"which": {"chosen"}, "type": {asset.EventCreated}}, []string{asset.EventCreated}},
		"group": {
			url.Values{"which": {"chosen"}, "group": {"Live streams"}, "type": {live.EventActive, asset.EventCreated}},
			[]string{asset.EventCreated, live.EventCreated, live.EventActive},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "http://example.com")
			tt.form.Set("address", " https://example.com/"+name+" ")
			w := s.ask(t, s.cookie, webhooks, tt.form)
			page, secret := s.secretOf(t, w)
			key, _ := strings.CutPrefix(page, webhooks+"/")
			get := func() webhook.Webhook {
				made, err := s.hooks.Get(t.Context(), s.env(t), id.Webhook(key))
				if err != nil {
					t.Fatalf("%d to %q: %v", w.Code, page, err)
				}
				return made
			}
			made := get()
			if made.Address != "https://example.com/"+name || !made.Enabled || made.Secret != secret ||
				!slices.Equal(made.Types, tt.types) {
				t.Errorf("%d, made %+v", w.Code, made)
			}
			s.now = s.now.Add(time.Second)
			edit := url.Values{"address": {made.Address + "/2"}, "which": {"chosen"}, "type": {live.EventCreated}}
			w = s.ask(t, s.cookie, page, edit)
			now := get()
			if w.Code != http.StatusSeeOther || w.Header().Get("Location") != page ||
				now.Address != made.Address+"/2" || !slices.Equal(now.Types, []string{live.EventCreated}) ||
				now.Secret != made.Secret {
				t.Errorf("%d to %q, changed %+v", w.Code, w.Header().Get("Location"), now)
			}
			s.noted(t, key, "update-webhook", "create-webhook")
		})
	}
}

// secretOf is what the page that follows when a secret was made leads to, and the secret, which is nowhere else.
func (s *site) secretOf(t *testing.T, w *httptest.ResponseRecorder) (to, secret string) {
	t.Helper()
	body := w.Body.String()
	secret = linesOf(body)["Signing secret"]
	before, _, _ := strings.Cut(body, `">I have saved it<`)
	to = before[strings.LastIndex(before, `"`)+1:]
	if w.Code != http.StatusCreated || !strings.HasPrefix(secret, "whsec_") || !strings.HasPrefix(to, webhooks+"/") ||
		!strings.Contains(body, "The signing secret is shown only once.") {
		t.Fatalf("%d, secret %q, leads to %q:\n%s", w.Code, secret, to, body)
	}
	closedPage(t, w)
	harmless(t, to, w)
	s.nowhere(t, w, secret, to, webhooks, to+"/edit", to+"/new-secret", to+"/delete", eventLog)
	return to, secret
}

// noted holds the audit log of a webhook to these operations, the newest first.
func (s *site) noted(t *testing.T, key string, operations ...string) {
	t.Helper()
	entries, err := s.db.AuditLog(t.Context(), audit.Query{Resource: key, Limit: 50})
	var got []string
	for _, e := range entries {
		got = append(got, e.Operation)
		if e.Resource.Type != "webhook" || e.Actor.Type != audit.Dashboard {
			t.Errorf("audit log has %+v", e)
		}
	}
	if err != nil || !slices.Equal(got, operations) {
		t.Errorf("audit log has %q, want %q, %v", got, operations, err)
	}
}

// TestWebhookIsRefused: what no webhook is made with stands beside its field, and nothing is made or changed.
func TestWebhookIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	there, page := s.hook(t, "https://example.com/there")
	s.hook(t, "https://example.com/other")
	for name, tt := range map[string]struct {
		address, which string
		types          []string
		status         int
		want           string
	}{
		"no address": {"", "all", nil, 400, "This is required."},
		"no URL":     {hostile, "all", nil, 400, "This must be an absolute http or https URL."},
		"password":   {"https://a:b@example.com", "all", nil, 400, "This must not hold a user name or password"},
		"taken":      {"https://example.com/other", "all", nil, 409, "This is that of another webhook"},
		"no type":    {"https://example.com/new", "chosen", nil, 400, "Choose at least one, or everything."},
		"odd type": {
			"https://example.com/new", "chosen",
			[]string{asset.EventCreated, hostile},
			400,
			"This must be a type of event that can happen",
		},
	} {
		for _, path := range []string{webhooks, page} {
			w := s.ask(t, s.cookie, path, url.Values{
				"address": {tt.address}, "which": {tt.which}, "type": tt.types,
			})
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%s at %s: %d, want %q:\n%s", name, path, w.Code, tt.want, w.Body)
			}
			harmless(t, path, w)
			closedPage(t, w)
		}
	}
	all, err := s.hooks.List(t.Context(), there.Environment, 1, 50)
	now, bad := s.hooks.Get(t.Context(), there.Environment, there.ID)
	if err != nil || bad != nil || len(all) != 2 || now.Address != there.Address || now.UpdatedAt != there.UpdatedAt {
		t.Errorf("%d webhooks, %v, %+v, %v", len(all), err, now, bad)
	}
}

// TestWebhookActs: each does what it says, and the audit log has it.
func TestWebhookActs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	made, page := s.hook(t, "https://example.com/a")
	get := func() webhook.Webhook {
		v, err := s.hooks.Get(t.Context(), made.Environment, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	do := func(path string, form url.Values, to string) {
		t.Helper()
		s.now = s.now.Add(time.Minute)
		if w := s.ask(t, s.cookie, page+path, form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != to {
			t.Errorf("%s: %d to %q:\n%s", path, w.Code, w.Header().Get("Location"), w.Body)
		}
	}
	s.now = s.now.Add(time.Minute)
	w := s.ask(t, s.cookie, page+"/new-secret", url.Values{})
	to, secret := s.secretOf(t, w)
	now := get()
	if to != page || now.Secret != secret || secret == made.Secret || now.OldSecret != made.Secret {
		t.Errorf("leads to %q, the secret is %q, now %+v", to, secret, now)
	}
	s.nowhere(t, w, made.Secret, page)
	if body := w.Body.String(); strings.Contains(html.UnescapeString(body), made.Secret) ||
		!strings.Contains(body, "by 2 May 2026, 12:01 UTC: until then requests are signed with the previous one too") {
		t.Errorf("the page does not say when the old secret ends, or has it:\n%s", body)
	}
	if body := s.ask(t, s.cookie, page, nil).Body.String(); !strings.Contains(body,
		"The previous one also signs until") {
		t.Errorf("the page does not tell of the old secret:\n%s", body)
	}
	if body := s.ask(t, s.cookie, page+"/new-secret", nil).Body.String(); !strings.Contains(body,
		"signs too until 2 May 2026, 12:01 UTC, stops at once") {
		t.Errorf("the question does not tell of the third secret:\n%s", body)
	}
	if w := s.ask(t, s.cookie, page+"/secret", url.Values{}); w.Code != http.StatusNotFound {
		t.Errorf("the secret is shown later: %d", w.Code)
	}
	do("/test", url.Values{}, page+"#deliveries")
	e := s.try(t, made.ID, webhook.Delivered, time.Time{}, webhook.Attempt{At: s.now, Status: 204})
	if e.Type != webhook.EventTest || e.ObjectID != string(made.ID) {
		t.Errorf("the newest event is %+v", e)
	}
	waits := func(want int) {
		t.Helper()
		q := webhook.DeliveryQuery{State: webhook.Waiting}
		found, err := s.hooks.Deliveries(t.Context(), made.Environment, made.ID, q)
		if err != nil || len(found) != want {
			t.Errorf("%d wait, want %d, %v", len(found), want, err)
		}
	}
	waits(0)
	do("/deliveries/"+e.ID+"/replay", url.Values{"back": {page + "?status=failed#deliveries"}}, page+"?status=failed")
	waits(1)
	s.try(t, made.ID, webhook.Delivered, time.Time{}, webhook.Attempt{At: s.now, Status: 204})
	do("/replay", url.Values{"since": {"2026-05-01T14:00:00+02:00"}}, page+"#deliveries")
	held, err := s.db.Claim(t.Context(), "node", time.Hour)
	if err != nil || len(held) != 1 || held[0].Position >= e.Sequence {
		t.Errorf("the position is %+v, behind event %d, %v", held, e.Sequence, err)
	}
	do("/disable", url.Values{}, page)
	off := get()
	if off.Enabled {
		t.Error("it is enabled")
	}
	for _, path := range []string{"/test", "/replay", "/deliveries/" + e.ID + "/replay"} {
		w := s.ask(t, s.cookie, page+path, url.Values{"since": {"2026-05-01"}})
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "enable it first") {
			t.Errorf("%s of one that is disabled: %d", path, w.Code)
		}
	}
	do("/enable", url.Values{}, page+"?since=2026-05-01+12%3A05#again")
	if body := s.ask(t, s.cookie, page+"?since=2026-05-01+12%3A05", nil).Body.String(); !get().Enabled ||
		!strings.Contains(body, `value="2026-05-01 12:05"`) {
		t.Errorf("what it missed is not offered:\n%s", body)
	}
	do("/delete", url.Values{}, webhooks)
	if w := s.ask(t, s.cookie, page, nil); w.Code != http.StatusNotFound {
		t.Errorf("deleted: %d", w.Code)
	}
	s.noted(t, string(made.ID), "delete-webhook", "update-webhook", "update-webhook", "replay-webhook",
		"replay-webhook-delivery", "test-webhook", "rotate-webhook-secret")
}

// TestWebhookActsAreRefused: who may not, and of another environment, and what is no time; nothing is changed.
func TestWebhookActsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	made, page := s.hook(t, "https://example.com/a")
	if _, err := s.hooks.Test(t.Context(), made.Environment, made.ID, s.now); err != nil {
		t.Fatal(err)
	}
	e := s.try(t, made.ID, webhook.Delivered, time.Time{}, webhook.Attempt{At: s.now, Status: 200})
	looker, elsewhere := s.signIn(t, access.VideoRead, access.VideoWrite, access.SystemRead), s.elsewhere(t)
	again := "/deliveries/" + e.ID + "/replay"
	form := url.Values{"since": {"2026-05-01"}, "address": {"https://example.com/b"}}
	for _, path := range []string{
		"", "/replay", again, "/enable", "/disable", "/test", "/new-secret", "/delete", "/retry", "/replay-failed",
		"/deliveries/1/skip",
	} {
		for cookie, want := range map[string]int{looker: 403, elsewhere: 404, "": 303} {
			w := s.ask(t, cookie, page+path, form)
			if cookie == "" && path == "" {
				want = http.StatusUnauthorized // the page to sign in, which keeps the form
			}
			if w.Code != want || strings.Contains(w.Body.String(), "whsec_") {
				t.Errorf("%s: %d, want %d", path, w.Code, want)
			}
		}
		if w := s.ask(t, s.cookie, page+path, form, "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
			t.Errorf("%s of another site: %d", path, w.Code)
		}
	}
	for path, cookie := range map[string]string{webhooks: looker, webhooks + "/code": looker} {
		if w := s.ask(t, cookie, path, form); w.Code != 403 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, since := range []string{"", "yesterday", hostile, "2026-13-01"} {
		w := s.ask(t, s.cookie, page+"/replay", url.Values{"since": {since}})
		if w.Code != 400 || !strings.Contains(w.Body.String(), "This must be a time") {
			t.Errorf("since %q: %d", since, w.Code)
		}
		harmless(t, since, w)
	}
	if w := s.ask(t, s.cookie, page+"/deliveries/none/replay", url.Values{}); w.Code != 404 {
		t.Errorf("no event: %d", w.Code)
	}
	now, err := s.hooks.Get(t.Context(), made.Environment, made.ID)
	if err != nil || now.Address != made.Address || now.Secret != made.Secret || !now.Enabled {
		t.Errorf("now %+v, %v", now, err)
	}
}

// TestDeliveries: what has become of them, with what the endpoint responded, as text.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	made, page := s.hook(t, "https://example.com/a")
	attempts := []webhook.Attempt{
		{At: s.now, Status: 503, Body: hostile + "\x00\u202e", Duration: 112 * time.Millisecond},
		{At: s.now, Error: "dial: " + hostile, Duration: 5 * time.Second},
		{At: s.now, Status: 799},
	}
	for range 12 {
		attempts = append(attempts, webhook.Attempt{At: s.now, Status: 500})
	}
	for _, tt := range []struct {
		state    webhook.State
		next     time.Time
		attempts []webhook.Attempt
		want     []string
	}{
		{webhook.Waiting, s.now.Add(time.Hour), attempts[:3], []string{
			"Waiting</span>", "next attempt", "1 May 2026, 13:00 UTC", "3 attempts, the last: 799",
			"503 Service Unavailable",
			"112 ms", "5.0 s", "dial: &#34;&gt;&lt;script&gt;",
		}},
		{webhook.Failed, time.Time{}, attempts, []string{`state fault">Failed`, "The newest 10 of 15 attempts."}},
		{webhook.Delivered, time.Time{}, attempts[3:4], []string{`state ok">Delivered`, "1 attempt,"}},
		{
			webhook.Waiting,
			time.Time{},
			nil,
			[]string{`state">Waiting<`, "No attempt yet", "earlier event</a> of the same"},
		},
	} {
		if _, err := s.hooks.Test(t.Context(), made.Environment, made.ID, s.now); err != nil {
			t.Fatal(err)
		}
		s.try(t, made.ID, tt.state, tt.next, tt.attempts...)
		w := s.ask(t, s.cookie, page, nil)
		for _, want := range tt.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s lacks %q:\n%s", tt.state, want, w.Body)
			}
		}
		harmless(t, page, w)
		closedPage(t, w)
	}
	for status, want := range map[string]int{
		"": 4, "waiting": 2, "failed": 1, "delivered": 1, "skipped": 0,
	} {
		if n := strings.Count(s.ask(t, s.cookie, page+"?status="+status, nil).Body.String(), `<li id="d-`); n != want {
			t.Errorf("%q: %d deliveries, want %d", status, n, want)
		}
	}
	list := s.ask(t, s.cookie, webhooks, nil).Body.String()
	for _, want := range []string{"Waiting: </span>2", "Failed: </span>1", `<time datetime="2026-05-01T12:00:00Z"`} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	for range 21 {
		if _, err := s.hooks.Test(t.Context(), made.Environment, made.ID, s.now); err != nil {
			t.Fatal(err)
		}
		s.try(t, made.ID, webhook.Waiting, time.Time{})
	}
	first := s.ask(t, s.cookie, page+"?status=waiting", nil).Body.String()
	_, rest, _ := strings.Cut(first, `rel="next"`)
	older := first[strings.LastIndex(first[:len(first)-len(rest)], `href="`)+6:]
	older, _, _ = strings.Cut(strings.ReplaceAll(older, "&amp;", "&"), `#`)
	if n := strings.Count(s.ask(t, s.cookie, older, nil).Body.String(), `<li id="d-`); n != 3 {
		t.Errorf("%q has %d deliveries, want 3", older, n)
	}
	if list := s.ask(t, s.cookie, webhooks, nil).Body.String(); !strings.Contains(list, "Waiting: </span>20&#43;") {
		t.Errorf("more than are counted:\n%s", list)
	}
}

// TestWebhookTrouble: a webhook that fails, and one that was switched off, say why.
func TestWebhookTrouble(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for name, tt := range map[string]struct {
		after    time.Duration // it failed until it was disabled; 0: it fails
		want     string
		list     string
		disabled bool
	}{
		"fails":     {0, "at <time datetime=\"2026-05-02T12:00:00Z\"", `state warn">Fails`, false},
		"gone":      {time.Minute, "It responded with 410 (Gone)", `state fault">Switched off`, true},
		"for a day": {webhook.Patience, "Nothing has been delivered to it since", `state fault">Switched off`, true},
	} {
		made, page := s.hook(t, "https://example.com/"+url.PathEscape(name))
		held, err := s.db.Claim(t.Context(), "node", time.Hour)
		if err == nil {
			err = s.db.Record(t.Context(), "node", nil, map[id.Webhook]time.Time{made.ID: s.now})
		}
		now, bad := s.hooks.Get(t.Context(), made.Environment, made.ID)
		if tt.disabled && bad == nil {
			off, e := now.GivenUp(s.now.Add(tt.after))
			bad = s.db.SaveWebhook(t.Context(), off, e)
		}
		if err != nil || bad != nil {
			t.Fatalf("%+v, %v, %v", held, err, bad)
		}
		body, list := s.ask(t, s.cookie, page, nil).Body.String(), s.ask(t, s.cookie, webhooks, nil).Body.String()
		if !strings.Contains(body, tt.want) || !strings.Contains(body, tt.list) || !strings.Contains(list, tt.list) {
			t.Errorf("%s: the page lacks %q or %q:\n%s", name, tt.want, tt.list, body)
		}
	}
}

// TestFollowWebhook: what is sent to it comes to its page by itself.
func TestFollowWebhook(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	made, page := s.hook(t, "https://example.com/a", asset.EventCreated)
	e := s.follow(t, server, page+"/follow")
	if first := e.until("Nothing has been sent yet"); strings.Contains(first, "whsec_") {
		t.Error("an event has the secret")
	}
	if _, err := s.hooks.Test(t.Context(), made.Environment, made.ID, s.now); err != nil {
		t.Fatal(err)
	}
	s.try(t, made.ID, webhook.Delivered, time.Time{}, webhook.Attempt{At: s.now, Status: 200, Body: hostile})
	if got := e.until(`state ok">Delivered`); strings.Contains(got, "<script>alert") ||
		!strings.Contains(got, `value="`+page+`#deliveries"`) {
		t.Errorf("the page is\n%s", got)
	}
	if got := s.ask(t, s.elsewhere(t), page+"/follow", nil); got.Code != http.StatusNotFound {
		t.Errorf("of another environment: %d", got.Code)
	}
}
