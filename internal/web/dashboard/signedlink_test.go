package dashboard_test

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// linesOf are what a page with a signed link has to copy, by what it is.
func linesOf(page string) map[string]string {
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`data-line="([^"]+)">([^<]*)<`).FindAllStringSubmatch(page, -1) {
		out[m[1]] = html.UnescapeString(m[2])
	}
	return out
}

// TestSignedLink: each link has a token that the service takes, for that alone, until then; the private half and the
// tokens are in one response and in nothing else.
func TestSignedLink(t *testing.T) { //nolint:tparallel // see below
	t.Parallel()
	s := newSite(t, "https://video.example")
	k, private := s.key(t)
	open, closed := s.rule(t, true, "a.example"), s.rule(t, false, "b.example")
	a := s.ready(t, hostile, playbackid.Public, playbackid.Signed)
	protected, err := s.assets.Create(t.Context(), s.env(t), asset.CreateInput{Options: assetopt.Options{
		Inputs: []assetopt.Input{{URL: "https://example.com/a.mp4"}}, VideoQuality: "plus",
		AdvancedPolicies: []playbackid.Request{{Policy: playbackid.DRM, DRMConfigurationID: "configuration"}},
	}}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	v := s.stream(t, "On the air", true, playbackid.Signed)
	page := func(path string, ids []playbackid.ID) string {
		return path + "/playback-ids/" + string(ids[len(ids)-1].ID) + "/link"
	}
	film, drm := "/dashboard/assets/"+string(a.ID), "/dashboard/assets/"+string(protected.ID)
	stream := "/dashboard/live/" + string(v.ID)
	for name, tt := range map[string]struct { //nolint:paralleltest // the log is read behind each request
		at, of           string
		ids              []playbackid.ID
		use, amount      string
		unit, rule, want string
		holds            time.Duration
		lines            []string
		more             string // in the page
	}{
		"asset": {
			film, film, a.PlaybackIDs, "v", "6", "hours", "", "/watch/%s?token=", 6 * time.Hour,
			[]string{"Embed code", "Embed page", "Playlist for players", "Watch page"},
			"Open the watch page",
		},
		"stream": {
			stream, stream, v.PlaybackIDs, "v", "90", "minutes", "", "/%s.m3u8?token=", 90 * time.Minute,
			[]string{"Embed code", "Embed page", "Playlist for players", "Watch page"},
			"--expiry 90m",
		},
		"restriction": {
			film, film, a.PlaybackIDs, "v", "366", "days", string(open.ID), "/embed/%s?token=", 366 * 24 * time.Hour,
			[]string{"Embed code", "Embed page", "Playlist for players", "Watch page"},
			"--param playback_restriction_id=",
		},
		"refuses the watch page": {
			film, film, a.PlaybackIDs, "v", "1", "days", string(closed.ID), "/%s.m3u8?token=", 24 * time.Hour,
			[]string{"Playlist for players"},
			"they send no referrer",
		},
		"thumbnail": {
			film, film, a.PlaybackIDs, "t", "1", "minutes", "", "/%s/thumbnail.jpg?token=", time.Minute,
			[]string{"Thumbnail"},
			"--type thumbnail",
		},
		"animated": {
			film, film, a.PlaybackIDs, "g", "1", "days", string(closed.ID), "/%s/animated.gif?token=", 24 * time.Hour,
			[]string{"Animated GIF", "Animated WebP"},
			"playback_restriction_id",
		},
		"storyboard": {
			stream, stream, v.PlaybackIDs, "s", "1", "days", "", "/%s/storyboard.vtt?token=", 24 * time.Hour,
			[]string{"Its picture", "Storyboard as WebVTT"},
			"--type storyboard",
		},
		"licence": {
			drm, drm, protected.PlaybackIDs, "v", "1", "days", "", "/watch/%s?token=", 24 * time.Hour,
			[]string{"Embed code", "Embed page", "Watch page"},
			"a second token, for the licence",
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := page(tt.at, tt.ids)
			if shown := s.ask(t, s.cookie, tt.of, nil).Body.String(); !strings.Contains(shown, `href="`+at+`"`) {
				t.Errorf("the page does not lead to it:\n%s", shown)
			}
			w := s.ask(t, s.cookie, at, url.Values{
				"use": {tt.use}, "amount": {tt.amount}, "unit": {tt.unit}, "restriction": {tt.rule},
				"key": {string(k.ID)}, "private_key": {private},
			})
			body := w.Body.String()
			closedPage(t, w)
			lines := linesOf(body)
			var names []string
			for what := range lines {
				names = append(names, what)
			}
			slices.Sort(names)
			if w.Code != http.StatusOK || !slices.Equal(names, tt.lines) || !strings.Contains(body, tt.more) ||
				strings.Contains(body, "<script>alert") {
				t.Fatalf("%d with %q, want %q and %q:\n%s", w.Code, names, tt.lines, tt.more, body)
			}
			until := s.now.Add(tt.holds)
			if !strings.Contains(body, until.Format(time.RFC3339)) {
				t.Errorf("it does not say that it is valid until %s", until)
			}
			playback := string(tt.ids[len(tt.ids)-1].ID)
			want := "https://video.example" + fmt.Sprintf(tt.want, playback)
			if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(lines[n], want) }) {
				t.Errorf("no line begins with %q: %q", want, lines)
			}
			for _, what := range names {
				s.holds(t, lines[what], playback, tt.use, tt.rule, until)
			}
			if strings.Contains(body, private[:80]) {
				t.Error("the page has the private half")
			}
			s.nowhere(t, w, private, at, tt.of)
		})
	}
	s.nowhere(t, s.ask(t, s.cookie, film, nil), private)
}

// TestSignedLinkIsNotFramed: where the environment lets no site embed players, no code for it is offered.
func TestSignedLinkIsNotFramed(t *testing.T) {
	t.Parallel()
	s := newSite(t, "https://video.example")
	k, private := s.key(t)
	a := s.ready(t, "Film", playbackid.Signed)
	at := "/dashboard/assets/" + string(a.ID) + "/playback-ids/" + string(a.PlaybackIDs[0].ID) + "/link"
	for _, tt := range []struct {
		origins string
		want    []string
	}{
		{"none", []string{"Playlist for players", "Watch page"}},
		{"https://a.example", []string{"Embed code", "Embed page", "Playlist for players", "Watch page"}},
		{"all", []string{"Embed code", "Embed page", "Playlist for players", "Watch page"}},
	} {
		if err := s.tokens.SetFrameAncestors(t.Context(), s.env(t), []string{tt.origins}, s.now); err != nil {
			t.Fatal(err)
		}
		page := s.ask(t, s.cookie, at, url.Values{
			"use": {"v"}, "amount": {"1"}, "unit": {"hours"}, "key": {string(k.ID)}, "private_key": {private},
		}).Body.String()
		names := slices.Sorted(maps.Keys(linesOf(page)))
		if !slices.Equal(names, tt.want) || tt.origins == "none" && strings.Contains(page, "/embed/") {
			t.Errorf("%s: %q, want %q", tt.origins, names, tt.want)
		}
	}
}

// holds has the service read the tokens of something to copy.
func (s *site) holds(t *testing.T, line, playback, use, rule string, until time.Time) {
	t.Helper()
	uses := map[string]string{"token": use, "drm-token": "d"}
	found := regexp.MustCompile(`\b((?:drm-)?token)=([\w.-]+)`).FindAllStringSubmatch(html.UnescapeString(line), -1)
	if len(found) == 0 {
		t.Errorf("%q has no token", line)
	}
	for _, m := range found {
		got, err := s.keys.Verify(t.Context(), m[2], s.env(t), s.now)
		if err != nil || got.Subject != playback || !slices.Equal(got.Audience, []string{uses[m[1]]}) ||
			!got.Expires.Equal(until) || got.Restriction != id.PlaybackRestriction(rule) {
			t.Errorf("%s of %q: %+v, %v", m[1], line, got, err)
		}
	}
}

// TestSignedLinkIsRefused: who may make none, and what none is made with.
func TestSignedLinkIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	empty := newSite(t, "http://example.com")
	k, private := s.key(t)
	second, other := s.key(t)
	env, err := s.tokens.CreateEnvironment(t.Context(), "Third", "production", s.now)
	if err != nil {
		t.Fatal(err)
	}
	foreign, stranger, err := s.keys.Create(t.Context(), env.ID, s.now)
	if err != nil {
		t.Fatal(err)
	}
	a := s.ready(t, hostile, playbackid.Public, playbackid.Signed)
	v := s.stream(t, "On the air", true, playbackid.Signed)
	film, stream := "/dashboard/assets/"+string(a.ID), "/dashboard/live/"+string(v.ID)
	at := film + "/playback-ids/" + string(a.PlaybackIDs[1].ID) + "/link"
	live := stream + "/playback-ids/" + string(v.PlaybackIDs[0].ID) + "/link"
	none := empty.stream(t, "None", false, playbackid.Signed)
	reader, elsewhere := s.signIn(t, access.VideoRead, access.VideoWrite), s.elsewhere(t)
	looker := s.signIn(t, access.VideoRead, access.SystemRead)
	with := func(change ...string) url.Values {
		f := url.Values{
			"use": {"v"}, "amount": {"1"}, "unit": {"hours"}, "key": {string(k.ID)}, "private_key": {private},
		}
		for i := 0; i < len(change); i += 2 {
			f.Set(change[i], change[i+1])
		}
		return f
	}
	const amount = "a whole number of minutes, hours or days, up to 366 days"
	for name, tt := range map[string]struct {
		on           *site
		cookie, path string
		form         url.Values
		status       int
		want, not    string
	}{
		"form":             {s, s.cookie, at, nil, 200, short(string(k.ID)), "<script>alert"},
		"form of a stream": {s, s.cookie, live, nil, 200, "On the air", ""},
		"reads keys":       {s, looker, live, with(), 200, "The signed link is ready", ""},
		"no key yet": {
			empty, empty.cookie,
			"/dashboard/live/" + string(none.ID) + "/playback-ids/" + string(none.PlaybackIDs[0].ID) +
				"/link", nil, 200, "No signing key yet", "private_key",
		},
		"nobody":           {s, "", at, nil, 303, "", ""},
		"nobody's act":     {s, "", at, with(), 303, "", "token="},
		"may not":          {s, reader, at, nil, 403, "lacks the permission system:read", ""},
		"may not make":     {s, reader, at, with(), 403, "lacks the permission system:read", "token="},
		"is not offered":   {s, reader, film, nil, 200, "Only with signed links", "/link"},
		"nor of a stream":  {s, reader, stream, nil, 200, "plays only with signed links", "/link"},
		"other tenants":    {s, elsewhere, at, nil, 404, "There is nothing here", ""},
		"and their making": {s, elsewhere, at, with(), 404, "There is nothing here", "token="},
		"and their stream": {s, elsewhere, live, with(), 404, "There is nothing here", "token="},
		"public": {
			s, s.cookie, film + "/playback-ids/" + string(a.PlaybackIDs[0].ID) + "/link", with(), 404, "", "token=",
		},
		"of another": {
			s, s.cookie, film + "/playback-ids/" + string(v.PlaybackIDs[0].ID) + "/link", with(), 404, "", "",
		},
		"foreign key": {
			s, s.cookie, at, with("key", string(foreign.ID), "private_key", stranger), 400, "This signing key doesn",
			"",
		},
		"unknown key": {s, s.cookie, at, with("key", hostile), 400, "This signing key doesn", "<script>alert"},
		"no private":  {s, s.cookie, at, with("private_key", ""), 400, "neither a PEM nor the base64 of one", ""},
		"hostile":     {s, s.cookie, at, with("private_key", hostile), 400, "neither a PEM", "<script>alert"},
		"long": {
			s, s.cookie, at, with("private_key", strings.Repeat("A", 9000)), 400, "more than 8192 bytes", "AAAAAAAA",
		},
		"half of it": {s, s.cookie, at, with("private_key", private[:800]), 400, "not a whole PEM", ""},
		"of another key": {
			s, s.cookie, at, with("private_key", other), 400,
			"This is the private key of " + short(string(second.ID)), "",
		},
		"of no key": {
			s, s.cookie, at, with("private_key", stranger), 400, "belongs to none of the signing keys", "",
		},
		"no use":    {s, s.cookie, at, with("use", "d"), 400, "Choose what the link is for", ""},
		"no time":   {s, s.cookie, at, with("amount", "0"), 400, amount, ""},
		"no number": {s, s.cookie, at, with("amount", hostile), 400, amount, "<script>alert"},
		"too long":  {s, s.cookie, at, with("amount", "367", "unit", "days"), 400, amount, ""},
		"ages":      {s, s.cookie, at, with("amount", "213504", "unit", "days"), 400, amount, ""}, // 2^64 ns
		"overflows": {s, s.cookie, at, with("amount", "9223372036854775807", "unit", "days"), 400, amount, ""},
		"no unit":   {s, s.cookie, at, with("unit", "years"), 400, amount, ""},
		"no rule": {
			s, s.cookie, at, with("restriction", hostile), 400, "This playback restriction no longer exists",
			"<script>alert",
		},
		"pasted again": {s, s.cookie, at, with("amount", "x"), 400, "It is not stored, so paste it again", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tt.on.shows(t, tt.cookie, tt.path, tt.form, tt.status, tt.want, tt.not)
			body := w.Body.String()
			if w.Code == http.StatusBadRequest && linesOf(body)["Watch page"] != "" {
				t.Error("it is made all the same")
			}
			for _, secret := range []string{private, other, stranger} {
				if strings.Contains(body, secret[:80]) || strings.Contains(w.Header().Get("Location"), secret[:80]) {
					t.Error("the private half is shown")
				}
			}
		})
	}
}

// short is an ID as pages show it.
func short(text string) string { return text[:6] + "…" + text[len(text)-4:] }
