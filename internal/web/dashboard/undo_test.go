package dashboard_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// visitor is a browser that keeps the cookies of the dashboard.
type visitor struct {
	*site

	cookies map[string]string
}

func (s *site) visitor(session string) *visitor {
	return &visitor{s, map[string]string{"millrace": session}}
}

// send sends a form, or asks for a page when form is nil; header are pairs.
func (v *visitor) send(t *testing.T, path string, form url.Values, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	var all []string
	for name, value := range v.cookies {
		all = append(all, name+"="+value)
	}
	w := v.ask(t, "", path, form, append(header, "Cookie", strings.Join(all, "; "))...)
	for _, c := range w.Result().Cookies() {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return w
}

// does sends a form, and gives the page that follows.
func (v *visitor) does(t *testing.T, path string, form url.Values) string {
	t.Helper()
	w := v.send(t, path, form)
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%s responds with %d:\n%s", path, w.Code, w.Body)
	}
	to, _, _ := strings.Cut(w.Header().Get("Location"), "#")
	page := v.send(t, to, nil)
	closedPage(t, page)
	return page.Body.String()
}

// undoing is the form that a page offers to undo something with.
func undoing(page string) (said, to string, form url.Values) {
	notice := regexp.MustCompile(`(?s)class="toast undo" data-fades><span>([^<]*)</span>(.*?)</div>`)
	m := notice.FindStringSubmatch(page)
	if m == nil {
		return "", "", nil
	}
	form = url.Values{}
	for _, f := range regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
		form.Add(f[1], html.UnescapeString(f[2]))
	}
	if a := regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(m[2]); a != nil {
		to = html.UnescapeString(a[1])
	}
	return m[1], to, form
}

// TestUndo: what can be undone is offered once, on the page that follows, and is as it was when the form is sent;
// unless it has changed since.
func TestUndo(t *testing.T) { //nolint:tparallel // see below
	t.Parallel()
	s := newSite(t, "http://example.com")
	v, film := s.stream(t, hostile, false), s.ready(t, hostile)
	_, hookPage := s.hook(t, "https://example.com/"+url.PathEscape(hostile), live.EventActive, asset.EventCreated)
	stream, page := "/dashboard/live/"+string(v.ID), "/dashboard/assets/"+string(film.ID)
	in := asset.TrackInput{URL: "https://example.com/a.vtt", Type: asset.TextTrack, LanguageCode: "en", Name: hostile}
	added, err := s.assets.AddTrack(t.Context(), film.Environment, film.ID, in, s.now)
	if err != nil {
		t.Fatal(err)
	}
	off, offPage := s.hook(t, "https://example.com/off")
	disabled := webhook.PatchInput{Enabled: new(false)}
	if _, err = s.hooks.Patch(t.Context(), off.Environment, off.ID, disabled, s.now); err != nil {
		t.Fatal(err)
	}
	text, third := page+"/tracks/"+string(added.ID), url.Values{"title": {"Third"}}
	settings := url.Values{
		"title": {"Other"}, "latency_mode": {"standard"}, "reconnect_window": {"7"}, "slate": {"1"}, "hours": {"2"},
		"video_quality": {"premium"}, "passthrough": {"p"},
	}
	for name, tt := range map[string]struct { //nolint:paralleltest // one after the other
		path string
		form url.Values
		said string
		in   string     // the page whose form has what is changed
		then url.Values // what somebody else does to it
		at   string
	}{
		"live stream": {stream + "/edit", settings, "Saved.", stream + "/edit", third, stream + "/edit"},
		"disabled":    {stream + "/disable", url.Values{}, "Disabled.", stream, url.Values{}, stream + "/enable"},
		"asset":       {page, url.Values{"title": {"Other"}}, "Saved.", page, third, page},
		"track": {
			text,
			url.Values{"name": {"Other"}, "language_code": {"fi"}, "closed_captions": {"1"}},
			"Saved.", text,
			url.Values{"name": {"Third"}, "language_code": {"fi"}},
			text,
		},
		"webhook": {
			hookPage,
			url.Values{"address": {"https://example.com/b"}, "which": {"all"}},
			"Saved.", hookPage + "/edit",
			url.Values{"address": {"https://example.com/c"}, "which": {"all"}},
			hookPage,
		},
		"enabled": {offPage + "/enable", url.Values{}, "Enabled.", offPage, url.Values{}, offPage + "/disable"},
	} {
		t.Run(name, func(t *testing.T) {
			u := s.visitor(s.cookie)
			was := shape(u.send(t, tt.in, nil).Body.String())
			shown := u.does(t, tt.path, tt.form)
			said, to, form := undoing(shown)
			if said != tt.said || to == "" || strings.Contains(shown, "<script>alert") {
				t.Fatalf("it says %q and leads to %q:\n%s", said, to, shown)
			}
			if changed := shape(u.send(t, tt.in, nil).Body.String()); changed == was {
				t.Error("nothing has changed")
			}
			if again, _, _ := undoing(u.send(t, tt.in, nil).Body.String()); again != "" {
				t.Errorf("it says %q once more", again)
			}
			cross := u.send(t, to, form, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")
			if cross.Code != http.StatusForbidden {
				t.Errorf("sent by another site: %d", cross.Code)
			}
			back, more, _ := undoing(u.does(t, to, form))
			if back != "It is as it was before." || more != "" {
				t.Errorf("behind it, the page says %q and leads to %q", back, more)
			}
			if is := shape(u.send(t, tt.in, nil).Body.String()); is != was {
				t.Errorf("it was\n%s\nand is\n%s", was, is)
			}
			_, to, form = undoing(u.does(t, tt.path, tt.form))
			if w := s.ask(t, s.cookie, tt.at, tt.then); w.Code != http.StatusSeeOther {
				t.Fatalf("somebody else's change: %d", w.Code)
			}
			late := u.send(t, to, form)
			if late.Code != http.StatusConflict || !strings.Contains(late.Body.String(), "has been changed since") {
				t.Errorf("too late: %d:\n%s", late.Code, late.Body)
			}
		})
	}
}

// shape is what a page says, without the parts that differ each time it is shown, what is hidden, and the undoing.
func shape(page string) string {
	_, page, _ = strings.Cut(page, "<main")
	page, _, _ = strings.Cut(page, "</main>")
	page, _, _ = strings.Cut(page, `<section id="events"`)
	return regexp.MustCompile(`name="(press|former)" value="[^"]*"`).ReplaceAllString(page, "")
}

// TestUndoTrack: a track that was added is taken away again.
func TestUndoTrack(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	film := s.ready(t, "Film")
	u, page := s.visitor(s.cookie), "/dashboard/assets/"+string(film.ID)
	said, to, form := undoing(u.does(t, page+"/tracks", url.Values{
		"track_url": {"https://example.com/a.vtt"}, "track_type": {"text"}, "language_code": {"en"},
		"track_name": {hostile},
	}))
	if said != "The track is added." || len(s.again(t, film.ID, nil).Tracks) != len(film.Tracks)+1 {
		t.Fatalf("it says %q", said)
	}
	if back, _, _ := undoing(u.does(t, to, form)); back != "It is as it was before." {
		t.Errorf("behind it: %q", back)
	}
	if n := len(s.again(t, film.ID, nil).Tracks); n != len(film.Tracks) {
		t.Errorf("%d tracks", n)
	}
}

// TestNoUndo: what changes nothing, can't be brought back, or is another person's is not offered.
func TestNoUndo(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	air, film, odd := s.stream(t, "On the air", true), s.ready(t, "Film"), s.ready(t, "Odd")
	wide := s.ready(t, strings.Repeat("\u6c34", 255))
	_, hookPage := s.hook(t, "https://example.com/a")
	failed, failedPage := s.hook(t, "https://example.com/failed")
	lines := "two\nlines"
	_, err := s.assets.Patch(t.Context(), s.env(t), odd.ID, asset.PatchInput{Passthrough: &lines}, s.now)
	if err == nil {
		_, err = s.db.Claim(t.Context(), "node", time.Hour)
	}
	if err == nil {
		disabled := webhook.PatchInput{Enabled: new(false)}
		_, err = s.hooks.Patch(t.Context(), failed.Environment, failed.ID, disabled, s.now)
	}
	if err == nil {
		err = s.db.Record(t.Context(), "node", nil, map[id.Webhook]time.Time{failed.ID: s.now})
	}
	if err != nil {
		t.Fatal(err)
	}
	page := func(a asset.Asset) string { return "/dashboard/assets/" + string(a.ID) }
	renames := url.Values{"title": {"Other"}}
	for name, tt := range map[string]struct {
		path string
		form url.Values
	}{
		"same":              {page(film), url.Values{"title": {"Film"}, "passthrough": {film.Options.Passthrough}}},
		"line breaks":       {page(odd), renames},
		"too long":          {page(s.ready(t, strings.Repeat("<", 255))), renames},
		"on air":            {"/dashboard/live/" + string(air.ID) + "/disable", url.Values{}},
		"webhook failed":    {failedPage + "/enable", url.Values{}},
		"webhook gives up":  {hookPage + "/disable", url.Values{}},
		"deleted asset too": {page(s.ready(t, "Gone")) + "/delete", url.Values{}},
	} {
		u := s.visitor(s.cookie)
		if said, _, _ := undoing(u.does(t, tt.path, tt.form)); said != "" {
			t.Errorf("%s: %q", name, said)
		}
	}
	u := s.visitor(s.cookie)
	if said, _, _ := undoing(u.does(t, hookPage+"/delete", url.Values{})); said != "" {
		t.Errorf("deleted: %q", said)
	}
	if _, _, form := undoing(u.does(t, page(wide), renames)); form.Get("title") != wide.Options.Meta.Title {
		t.Errorf("a long name comes back as %q", form.Get("title"))
	}
	if w := u.send(t, page(film), renames); w.Code != http.StatusSeeOther {
		t.Fatalf("%d", w.Code)
	}
	for name, cookie := range map[string]string{
		"another session": s.signIn(t, access.VideoRead, access.VideoWrite), "nobody": "",
	} {
		other := s.visitor(cookie)
		other.cookies["millrace-undo"] = u.cookies["millrace-undo"]
		if said, _, _ := undoing(other.send(t, page(film), nil).Body.String()); said != "" {
			t.Errorf("%s is shown %q", name, said)
		}
	}
	for _, cookie := range []string{"x", "e30", strings.Repeat("A", 3600), "bnVsbA"} {
		u.cookies["millrace-undo"] = cookie
		if w := u.send(t, page(film), nil); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "data-fades") {
			t.Errorf("cookie %q: %d", cookie, w.Code)
		}
	}
}
