package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"millrace/internal/control/playbackid"
)

// summaryOf are the fields that the head of a refused form leads to, in order.
func summaryOf(page string) (fields []string) {
	_, after, _ := strings.Cut(page, `<div class="notice fault"`)
	before, _, _ := strings.Cut(after, "</div>")
	for _, m := range regexp.MustCompile(`href="#([\w-]+)"`).FindAllStringSubmatch(before, -1) {
		fields = append(fields, m[1])
	}
	return fields
}

// TestAllThatIsWrong: a form with several mistakes, of which some can't even be read, says all of them at once, each
// beside its field; its head leads to them in the order of the page, and the first one has the focus.
func TestAllThatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	long, number := strings.Repeat("a", 513), "This must be a number of "
	film, v := s.ready(t, "Film", playbackid.Signed), s.stream(t, "Regatta", false)
	if _, _, err := s.keys.Create(t.Context(), s.env(t), s.now); err != nil {
		t.Fatal(err)
	}
	stream, page := "/dashboard/live/"+string(v.ID), "/dashboard/assets/"+string(film.ID)
	_, hook := s.hook(t, "https://example.com/a")
	settings := url.Values{
		"title": {long}, "latency_mode": {"other"}, "policy": {"other"}, "recordings": {"other"},
		"reconnect_window": {"long"}, "hours": {"13"}, "reconnect_slate_url": {"ftp://x"}, "video_quality": {"other"},
		"passthrough": {long},
	}
	changed := [][2]string{
		{"title", "This may have at most 512 characters."},
		{"latency_mode", "This must be one of: standard, reduced, low."},
		{"reconnect_window", number + "seconds."},
		{"reconnect_slate_url", "This must be an absolute http or https URL."},
		{"hours", "This must be a whole number of seconds from 60 to 43200."},
		{"video_quality", "This must be one of: plus, premium."},
		{"passthrough", "This may have at most 255 characters."},
	}
	for name, tt := range map[string]struct {
		path  string
		form  url.Values
		wrong [][2]string // a field and what is said of it
		line  bool        // its fields are all in sight, so it has no summary
	}{
		"live stream": {
			"/dashboard/live",
			settings,
			[][2]string{
				changed[0],
				changed[1],
				{"policy", "This must be one of: public, signed."},
				{"recordings", "This must be one of: public, signed."},
				changed[2],
				changed[3],
				changed[4],
				changed[5],
				changed[6],
			},
			false,
		},
		"settings": {stream + "/edit", settings, changed, false},
		"asset": {
			"/dashboard/assets",
			url.Values{"title": {long}, "policy": {"public"}, "passthrough": {long}},
			[][2]string{{"url", "This is required."}, changed[0], changed[6]},
			false,
		},
		"clip": {
			page + "/clips",
			url.Values{"start_time": {"soon"}, "end_time": {"1:40"}, "clip_title": {long}},
			[][2]string{
				{"start_time", "This must be a time, as 0:01:30.5 or as seconds."},
				{"end_time", "This must not be more than a second after the end of the source asset."},
				{"clip_title", "This may have at most 512 characters."},
			},
			true,
		},
		"clip that can be read": {
			page + "/clips",
			url.Values{"start_time": {"1:35"}, "end_time": {"1:40"}, "clip_title": {long}},
			[][2]string{
				{"start_time", "This must be at least 0.5 seconds before the end of the source asset."},
				{"end_time", "This must not be more than a second after the end of the source asset."},
				{"clip_title", "This may have at most 512 characters."},
			},
			true,
		},
		"track": {
			page + "/tracks",
			url.Values{"track_type": {"video"}, "track_url": {""}, "language_code": {"?"}, "track_name": {long}},
			[][2]string{
				{"track_type", "This must be one of: text, audio."},
				{"track_url", "This is required."},
				{"language_code", "This must be"},
				{"track_name", "This may have at most 255 characters."},
			},
			true,
		},
		"name": {
			page, url.Values{"title": {long}, "passthrough": {long}}, [][2]string{changed[0], changed[6]}, true,
		},
		"token": {
			tokens,
			url.Values{"name": {long}, "days": {"soon"}},
			[][2]string{
				{"name", "This may have at most 255 characters."},
				{"permission", "Choose what it may do."},
				{"days", "This must be a whole number of days, from 1 to 36500."},
			},
			false,
		},
		"webhook": {
			webhooks,
			url.Values{"address": {"ftp://x"}, "which": {"chosen"}},
			[][2]string{
				{"address", "This must be an absolute http or https URL."},
				{"which", "Choose at least one, or everything."},
			},
			false,
		},
		"change of a webhook": {
			hook,
			url.Values{"address": {""}, "which": {"chosen"}},
			[][2]string{{"address", "This is required."}, {"which", "Choose at least one, or everything."}},
			false,
		},
		"target": {
			stream + "/targets",
			url.Values{"url": {""}, "stream_key": {"k"}, "passthrough": {long}},
			[][2]string{
				{"url", "This must have the form rtmp://host/app"},
				{"stream_key", "It is not stored, so type it again."},
				changed[6],
			},
			false,
		},
		"signed link": {
			page + "/playback-ids/" + string(film.PlaybackIDs[0].ID) + "/link",
			url.Values{"use": {"x"}, "amount": {"0"}, "unit": {"days"}, "key": {"x"}, "restriction": {"x"}},
			[][2]string{
				{"use", "Choose what the link is for."},
				{"amount", "This must be a whole number of minutes, hours or days, up to 366 days."},
				{"key", "This signing key doesn&#39;t exist here."},
				{"private_key", "It is not stored, so paste it again."},
				{"restriction", "This playback restriction no longer exists."},
			},
			false,
		},
		"restriction": {
			restrictions,
			url.Values{"domains": {"a.example https://b.example c/d"}},
			[][2]string{{"domains", "“https://b.example”, “c/d” must be a host name such as example.com"}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.ask(t, s.cookie, tt.path, tt.form)
			page := w.Body.String()
			if w.Code != http.StatusBadRequest {
				t.Fatalf("%d\n%s", w.Code, page)
			}
			var fields []string
			for _, one := range tt.wrong {
				fields = append(fields, one[0])
				if got := beside(page, one[0]); !strings.Contains(got, one[1]) ||
					!strings.Contains(page, ` aria-describedby="`+one[0]+`-bad"`) ||
					strings.Count(page, ` id="`+one[0]+`-bad"`) != 1 || strings.Count(page, ` id="`+one[0]+`"`) != 1 {
					t.Errorf("beside %s stands %q, want %q", one[0], got, one[1])
				}
			}
			if all := strings.Count(page, `<p class="bad"`); all != len(fields) {
				t.Errorf("%d messages, want %d:\n%s", all, len(fields), page)
			}
			if got := summaryOf(page); !tt.line && strings.Join(got, " ") != strings.Join(fields, " ") {
				t.Errorf("the head leads to %q, want %q", got, fields)
			}
			first := regexp.MustCompile(` id="` + fields[0] + `"[^>]* autofocus>`)
			if strings.Count(page, " autofocus") != 1 || !first.MatchString(page) {
				t.Errorf("%s alone should have the focus:\n%s", fields[0], page)
			}
			if !strings.Contains(page, " novalidate>") {
				t.Error("the browser would say one mistake at a time")
			}
		})
	}
}
