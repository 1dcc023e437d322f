package dashboard_test

import (
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/url"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
)

// sample is what a page shows in a language.
func sample(t *testing.T, page, language string) string {
	t.Helper()
	m := regexp.MustCompile(`(?s)<p class="lang">` + language + `</p>.*?<pre[^>]*>(.*?)</pre>`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no %s:\n%s", language, page)
	}
	return html.UnescapeString(m[1])
}

// curled is what curl would send, and where to, as a shell reads it.
func curled(t *testing.T, page string) (to, body string) {
	t.Helper()
	script := `curl() { [ "$1$4$6" = "-u-H-d" ] && printf '%s\n%s' "$3" "$7"; }; ` + sample(t, page, "curl")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "MUX_TOKEN_ID=a MUX_TOKEN_SECRET=b; "+script).Output()
	if err != nil {
		t.Fatalf("%v:\n%s", err, script)
	}
	to, body, _ = strings.Cut(string(out), "\n")
	return to, body
}

// TestClipAsCode: what is shown as curl asks for what the form asks for.
func TestClipAsCode(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	film := s.ready(t, "Film", playbackid.Public, playbackid.Signed)
	page := "/dashboard/assets/" + string(film.ID)
	for name, form := range map[string]url.Values{
		"all of it":   {},
		"a part":      {"start_time": {"0:00:02.5"}, "end_time": {"1:08"}, "clip_title": {hostile + "\u202e'\\"}},
		"from 0":      {"start_time": {"0"}},
		"ends before": {"end_time": {"90"}},
	} {
		shown := s.ask(t, s.cookie, page+"/clips/code", form)
		closedPage(t, shown)
		to, body := curled(t, shown.Body.String())
		var want, got assetopt.Options
		if err := json.Unmarshal([]byte(body), &got); err != nil || to != "http://example.com/video/v1/assets" {
			t.Errorf("%s: to %s: %v:\n%s", name, to, err, body)
		}
		s.now = s.now.Add(time.Second)
		made := s.ask(t, s.cookie, page+"/clips", form).Header().Get("Location")
		rows, _, err := s.assets.List(t.Context(), s.env(t), asset.ListQuery{Page: 1, Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range rows {
			if strings.HasSuffix(made, string(a.ID)) {
				want = a.Options
			}
		}
		if got.VideoQuality = want.VideoQuality; !reflect.DeepEqual(got.Inputs, want.Inputs) || got.Meta != want.Meta ||
			!reflect.DeepEqual(got.PlaybackPolicies, want.PlaybackPolicies) {
			t.Errorf("%s: the code asks for\n%+v, the form for\n%+v", name, got, want)
		}
	}
}

// TestCode: where code is shown, and what is not in it. Nothing is made by looking.
func TestCode(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	v := s.stream(t, "One", false, playbackid.Public)
	film := s.ready(t, "Film", playbackid.Public)
	target := "/dashboard/live/" + string(v.ID) + "/targets"
	edit := "/dashboard/live/" + string(v.ID) + "/edit"
	clips := "/dashboard/assets/" + string(film.ID) + "/clips"
	withKey := url.Values{"stream_key": {"s3cret"}}
	rule := s.rule(t, false, "a.example")
	ruled := "/dashboard/settings/restrictions/" + string(rule.ID)
	text, err := s.assets.AddTrack(t.Context(), s.env(t), film.ID, asset.TrackInput{
		URL: "https://example.com/a.vtt", Type: asset.TextTrack, LanguageCode: "fi",
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	filmed := strings.TrimSuffix(clips, "/clips")
	track := filmed + "/tracks/" + string(text.ID)
	hook, hooked := s.hook(t, "https://example.com/all")
	month := s.now.AddDate(0, 0, 30).UTC().Format(time.RFC3339)
	before := s.everything(t)
	const newCode, rules = "/dashboard/live/code", "/dashboard/settings/restrictions"
	const unreadable, told = "Fix the invalid field", "Show as curl, Node or Go"
	for name, tt := range map[string]struct {
		path      string
		form      url.Values
		status    int
		want, not string
	}{
		"new":          {"/dashboard/live/new", nil, 200, `latency_mode: &#34;low&#34;`, `data-code="make" open`},
		"add":          {"/dashboard/assets/new", nil, 200, `video.assets.create`, ""},
		"target":       {target + "/new", nil, 200, `createSimulcastTarget(&#34;` + string(v.ID), ""},
		"clip":         {filmed, nil, 200, "mux://assets/" + string(film.ID), ""},
		"refused":      {"/dashboard/assets", url.Values{"url": {"x"}}, 400, `[{&#34;url&#34;: &#34;x&#34;}]`, ""},
		"open":         {newCode, url.Values{"title": {"A"}}, 200, `data-code="make" open`, "Not created"},
		"no number":    {newCode, url.Values{"hours": {"x"}}, 200, unreadable, "liveStreams.create"},
		"no time":      {clips + "/code", url.Values{"end_time": {"x"}}, 200, unreadable, "assets.create("},
		"number again": {newCode, url.Values{"hours": {"2"}}, 200, "7200", unreadable},
		"zero":         {newCode, url.Values{"reconnect_window": {"0"}}, 200, "send: reconnect_window of 0.", ""},
		"Node key":     {target + "/code", withKey, 200, "process.env.STREAM_KEY", "s3cret"},
		"Go key":       {target + "/code", withKey, 200, "Getenv(&#34;STREAM_KEY", "s3cret"},
		"same":         {edit, nil, 200, "Nothing has changed", "liveStreams.update"},
		"differs":      {edit + "/code", url.Values{"title": {"Two"}}, 200, "curl -X PATCH", "latency_mode&#34;"},
		"not changed":  {edit + "/code", url.Values{"hours": {"x"}}, 200, unreadable, "liveStreams.update"},
		"hostile edit": {edit + "/code", url.Values{"title": {hostile}}, 200, told, "<script>alert"},
		"hostile":      {"/dashboard/assets/code", url.Values{"title": {hostile}}, 200, told, "<script>alert"},
		"webhook": {
			webhooks + "/code",
			url.Values{"address": {hostile + "`"}, "which": {"chosen"}, "type": {live.EventActive}},
			200, `&#34;event_types&#34;: [&#34;video.live_stream.active&#34;]`, "<script>alert",
		},
		"no type": {
			webhooks + "/code",
			url.Values{"address": {"https://e.com"}, "which": {"chosen"}},
			200,
			"Choose at least one type", "webhooks.create",
		},
		"webhook secret": {webhooks + "/new", nil, 200, "made.id, made.signing_secret);", ""},
		"webhook, same":  {hooked + "/edit", nil, 200, "Nothing has changed", "webhooks.update"},
		"webhook, other": {
			hooked + "/code",
			url.Values{"address": {hostile + "`"}, "which": {"all"}},
			200,
			`system.webhooks.update(&#34;` + string(hook.ID) + `&#34;, {`, "event_types",
		},
		"webhook, types": {
			hooked + "/code",
			url.Values{"address": {hook.Address}, "which": {"chosen"}, "type": {live.EventActive}},
			200, "http.MethodPatch", "address:",
		},
		"webhook, no type": {
			hooked + "/code", url.Values{"which": {"chosen"}}, 200, "Choose at least one type", "webhooks.update",
		},
		"new track":  {filmed, nil, 200, `createTrack(&#34;` + string(film.ID) + `&#34;, {`, `class="make after" open`},
		"open track": {filmed + "/tracks/code", vtt(), 200, `<details class="make after" open>`, "The track is added"},
		"track refused": {
			filmed + "/tracks",
			url.Values{"track_url": {hostile}, "track_type": {"audio"}},
			400,
			`type: &#34;audio&#34;`, "<script>alert",
		},
		"named, same": {filmed, nil, 200, "Nothing has changed", "video.assets.update("},
		"named": {
			filmed + "/code",
			url.Values{"title": {hostile}, "passthrough": {"Film"}},
			200,
			`creator_id: &#34;creator&#34;`, "<script>alert",
		},
		"passthrough": {
			filmed + "/code",
			url.Values{"title": {"Film"}, "passthrough": {"other"}},
			200,
			"mux.UpdateAssetRequest{Passthrough: &#34;other&#34;}", "creator_id",
		},
		"track, same": {track, nil, 200, "Nothing has changed", "updateTrack"},
		"track": {
			track + "/code",
			url.Values{"name": {hostile}, "language_code": {"fi"}},
			200,
			`updateTrack(&#34;` + string(film.ID) + `&#34;, &#34;` + string(text.ID) + `&#34;, {`, "language_code:",
		},
		"token":       {tokens + "/new", nil, 200, `mux.post(&#34;/system/v1/access-tokens&#34;`, "expires_at"},
		"token, odd":  {tokens + "/code", given(hostile, "30", access.VideoRead), 200, month, "<script>alert"},
		"no day":      {tokens + "/code", given("a", "soon", access.VideoRead), 200, unreadable, "mux.post"},
		"may nothing": {tokens + "/code", given("a", ""), 200, "Choose its permissions", "mux.post"},
		"restriction": {rules + "/new", nil, 200, "allow_no_user_agent&#34;: true", `data-code="make" open`},
		"no domain":   {rules + "/code", url.Values{"domains": {" "}}, 200, "send: allow_no_user_agent of false, ", ""},
		"domains": {
			rules + "/code",
			url.Values{"domains": {hostile + "`\na.example"}, "allow_no_referrer": {"1"}},
			200,
			"&#34;a.example&#34;", "<script>alert",
		},
		"rule, same": {ruled, nil, 200, "Nothing has changed", "playbackRestrictions.update"},
		"rule": {
			ruled + "/code",
			url.Values{"domains": {hostile + "`"}, "allow_no_user_agent": {"1"}},
			200,
			`playbackRestrictions.updateReferrer(&#34;` + string(rule.ID), "updateUserAgent",
		},
		"no rule":   {rules + "/none/code", url.Values{}, 404, "", told},
		"no edit":   {"/dashboard/live/none/edit/code", url.Values{}, 404, "", told},
		"no stream": {"/dashboard/live/none/targets/code", url.Values{}, 404, "", told},
		"no asset":  {"/dashboard/assets/none/clips/code", url.Values{}, 404, "", told},
		"no name":   {"/dashboard/assets/none/code", url.Values{}, 404, "", told},
		"no track":  {filmed + "/tracks/none/code", url.Values{}, 404, "", told},
		"no hook":   {webhooks + "/none/code", url.Values{}, 404, "", told},
	} {
		w := s.ask(t, s.cookie, tt.path, tt.form)
		body := w.Body.String()
		if w.Code != tt.status || !strings.Contains(body, tt.want) || tt.not != "" && strings.Contains(body, tt.not) {
			t.Errorf("%s: %d, want %q and not %q:\n%s", name, w.Code, tt.want, tt.not, body)
		}
		closedPage(t, w)
	}
	if now := s.everything(t); !reflect.DeepEqual(now, before) {
		t.Errorf("looking at code makes of\n%+v\nthis:\n%+v", before, now)
	}
	reader := s.signIn(t, access.VideoRead)
	for _, path := range []string{
		newCode, "/dashboard/assets/code", target + "/code", clips + "/code", edit + "/code", rules + "/code",
		ruled + "/code", filmed + "/code", filmed + "/tracks/code", track + "/code", hooked + "/code", tokens + "/code",
	} {
		if w := s.ask(t, reader, path, url.Values{}); w.Code != http.StatusForbidden {
			t.Errorf("%s for who may not: %d", path, w.Code)
		}
	}
}

// everything is what there is of what the forms with code make and change.
func (s *site) everything(t *testing.T) []any {
	t.Helper()
	env := s.env(t)
	streams, err := s.live.List(t.Context(), env, live.ListQuery{Page: 1, Limit: 9})
	assets, _, bad := s.assets.List(t.Context(), env, asset.ListQuery{Page: 1, Limit: 9})
	rules, failed := s.rules.List(t.Context(), env, 1, 9)
	hooks, refused := s.hooks.List(t.Context(), env, 1, 9)
	keys, wrong := s.tokens.Tokens(t.Context())
	if err = errors.Join(err, bad, failed, refused, wrong); err != nil {
		t.Fatal(err)
	}
	return []any{streams, assets, rules, hooks, keys}
}
