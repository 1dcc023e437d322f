package dashboard_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/restriction"
)

// TestTwoEdit: a form changes what was typed into it. What somebody else has changed since it was shown stays; where
// both have changed the same, the page says so, with both, and sending it once more replaces the other's.
func TestTwoEdit(t *testing.T) { //nolint:tparallel // see below
	t.Parallel()
	s := newSite(t, "http://example.com")
	v, film := s.stream(t, "First", false), s.ready(t, "First")
	text, err := s.assets.AddTrack(t.Context(), s.env(t), film.ID, asset.TrackInput{
		URL: "https://example.com/a.vtt", Type: asset.TextTrack, LanguageCode: "fi", Name: "First",
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	hook, hookPage := s.hook(t, "https://example.com/first", live.EventActive)
	rule, err := s.rules.Create(t.Context(), s.env(t), restriction.Referrer{AllowedDomains: []string{"first.example"}},
		restriction.UserAgent{}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	stream, page := "/dashboard/live/"+string(v.ID), "/dashboard/assets/"+string(film.ID)
	const rules = "/dashboard/settings/restrictions/"
	track := page + "/tracks/" + string(text.ID)
	for name, tt := range map[string]struct { //nolint:paralleltest // one after the other
		shown, path   string
		first         url.Values // as it is shown
		field, theirs string     // what somebody else changes, and to what
		own, mine     string     // what this form changes
		is            func() [2]string
	}{
		"live stream": {
			stream + "/edit", stream + "/edit",
			url.Values{
				"title": {"First"}, "passthrough": {"First"}, "latency_mode": {"low"}, "hours": {"12"},
				"video_quality": {"plus"},
			},
			"title", "Theirs", "passthrough", "Mine",
			func() [2]string {
				now, err := s.live.Get(t.Context(), v.Environment, v.ID)
				if err != nil {
					t.Fatal(err)
				}
				return [2]string{now.Settings.Meta.Title, now.Settings.Passthrough}
			},
		},
		"asset": {
			page, page,
			url.Values{"title": {"First"}, "passthrough": {"First"}},
			"title", "Theirs", "passthrough", "Mine",
			func() [2]string {
				now := s.again(t, film.ID, nil)
				return [2]string{now.Options.Meta.Title, now.Options.Passthrough}
			},
		},
		"track": {
			track, track,
			url.Values{"name": {"First"}, "language_code": {"fi"}},
			"name", "Theirs", "language_code", "sv",
			func() [2]string {
				for _, now := range s.again(t, film.ID, nil).Tracks {
					if now.ID == text.ID {
						return [2]string{now.Name, now.LanguageCode}
					}
				}
				return [2]string{}
			},
		},
		"webhook": {
			hookPage + "/edit", hookPage,
			url.Values{"address": {"https://example.com/first"}, "which": {"chosen"}, "type": {live.EventActive}},
			"address", "https://example.com/theirs", "type", asset.EventCreated,
			func() [2]string {
				now, err := s.hooks.Get(t.Context(), hook.Environment, hook.ID)
				if err != nil {
					t.Fatal(err)
				}
				return [2]string{now.Address, strings.Join(now.Types, " ")}
			},
		},
		"restriction": {
			rules + string(rule.ID), rules + string(rule.ID),
			url.Values{"domains": {"first.example"}},
			"domains", "theirs.example", "allow_no_user_agent", "1",
			func() [2]string {
				now, err := s.rules.Get(t.Context(), s.env(t), rule.ID)
				if err != nil {
					t.Fatal(err)
				}
				agent := ""
				if now.UserAgent.AllowNone {
					agent = "1"
				}
				return [2]string{strings.Join(now.Referrer.AllowedDomains, " "), agent}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			form := func(field, value string) url.Values {
				f := maps.Clone(tt.first)
				f.Set("former", hidden(s.ask(t, s.cookie, tt.shown, nil).Body.String()).Get("former"))
				f.Set(field, value)
				return f
			}
			theirs, mine := form(tt.field, tt.theirs), form(tt.own, tt.mine)
			alike := form(tt.field, "a"+tt.mine+".example")
			if tt.field == "address" {
				alike.Set("address", "https://example.com/mine")
			}
			if w := s.ask(t, s.cookie, tt.path, theirs); w.Code != http.StatusSeeOther {
				t.Fatalf("theirs: %d\n%s", w.Code, w.Body)
			}
			if w := s.ask(t, s.cookie, tt.path, mine); w.Code != http.StatusSeeOther {
				t.Fatalf("mine: %d\n%s", w.Code, w.Body)
			}
			if is := tt.is(); is != [2]string{tt.theirs, tt.mine} {
				t.Errorf("both have changed something, and it is %q", is)
			}
			w := s.ask(t, s.cookie, tt.path, alike)
			body := w.Body.String()
			if w.Code != http.StatusConflict || !strings.Contains(body, "Changed meanwhile: it is “"+tt.theirs) ||
				!strings.Contains(body, alike.Get(tt.field)) {
				t.Fatalf("both have changed the same: %d\n%s", w.Code, body)
			}
			if is := tt.is(); is != [2]string{tt.theirs, tt.mine} {
				t.Errorf("asked whether to replace it, it is %q", is)
			}
			alike.Set("former", hidden(body).Get("former"))
			if alike.Set(tt.own, tt.mine); tt.field == "name" {
				alike.Set("language_code", tt.mine)
			}
			w = s.ask(t, s.cookie, tt.path, alike)
			if w.Code != http.StatusSeeOther || tt.is()[0] != alike.Get(tt.field) {
				t.Errorf("replaced: %d, %q", w.Code, tt.is())
			}
		})
	}
}
