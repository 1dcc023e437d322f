package dashboard_test

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
)

// TestSavedAsItWas: a form that is sent as it was shown changes nothing, and no event tells of it.
func TestSavedAsItWas(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	film, lines := s.ready(t, "Film"), "Two\nlines"
	if _, err := s.assets.Patch(t.Context(), s.env(t), film.ID, asset.PatchInput{Passthrough: &lines},
		s.now); err != nil {
		t.Fatal(err)
	}
	text, err := s.assets.AddTrack(t.Context(), s.env(t), film.ID, asset.TrackInput{
		URL: "https://example.com/a.vtt", Type: asset.TextTrack, LanguageCode: "fi", Name: "Suomi",
		ClosedCaptions: true,
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	hook, hooked := s.hook(t, "https://example.com/a", live.EventActive, asset.EventCreated)
	page := "/dashboard/assets/" + string(film.ID)
	events := func() []event.Event {
		all, err := s.db.ListEvents(t.Context(), event.Query{NewestFirst: true, Limit: 99})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before, told := s.everything(t), events()
	s.now = s.now.Add(time.Second)
	for path, form := range map[string]url.Values{
		page: {"title": {"Film"}, "passthrough": {"Twolines"}}, // as browsers send it
		page + "/tracks/" + string(text.ID): {
			"name": {"Suomi"}, "language_code": {"fi"}, "closed_captions": {"1"},
		},
		hooked: {
			"address": {hook.Address}, "which": {"chosen"}, "type": {asset.EventCreated, live.EventActive},
		},
	} {
		if w := s.ask(t, s.cookie, path, form); w.Code != http.StatusSeeOther {
			t.Errorf("%s: %d:\n%s", path, w.Code, w.Body)
		}
	}
	if now := s.everything(t); !reflect.DeepEqual(now, before) || len(events()) != len(told) {
		t.Errorf("it makes of\n%+v\nthis:\n%+v\nand tells %+v", before, now, events())
	}
}
