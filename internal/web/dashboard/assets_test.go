package dashboard_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/audit"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// asset makes an asset of a URL, in preparation.
func (s *site) asset(t *testing.T, title string, policies ...playbackid.Policy) asset.Asset {
	t.Helper()
	a, err := s.assets.Create(t.Context(), s.env(t), asset.CreateInput{Options: assetopt.Options{
		Inputs: []assetopt.Input{{URL: "https://user:secret@example.com/a.mp4"}}, PlaybackPolicies: policies,
		Meta: assetopt.Meta{Title: title, CreatorID: "creator"}, Passthrough: title,
		StaticRenditions: []assetopt.StaticRendition{{Resolution: assetopt.Highest}},
	}}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ready makes an asset with picture and sound, of a minute and a half.
func (s *site) ready(t *testing.T, title string, policies ...playbackid.Policy) asset.Asset {
	t.Helper()
	a := s.asset(t, title, policies...)
	err := s.assets.Finish(t.Context(), a.ID, asset.Finished{
		Index: "index",
		Facts: asset.Facts{Duration: 90, Width: 1920, Height: 1080, FrameRate: 29.97, HasVideo: true, HasAudio: true},
		Tracks: []asset.Track{
			{Type: asset.VideoTrack, Rendition: "v", Duration: 90},
			{Type: asset.AudioTrack, Rendition: "a", Duration: 90},
		},
	}, s.now)
	return s.again(t, a.ID, err)
}

func (s *site) failed(t *testing.T, title, why string) asset.Asset {
	t.Helper()
	a := s.asset(t, title)
	err := s.assets.Fail(t.Context(), a.ID, asset.Errors{Type: "invalid_input", Messages: []string{why}}, s.now)
	return s.again(t, a.ID, err)
}

// growing makes the recording of a broadcast.
func (s *site) growing(t *testing.T, title string) asset.Asset {
	t.Helper()
	a := id.Asset(id.New())
	_, err := s.assets.Record(t.Context(), asset.NewRecording{
		ID: a, Environment: s.env(t), LiveStream: "stream", Origin: asset.FromLiveRTMP, Media: id.Media(id.New()),
		Options: assetopt.Options{Meta: assetopt.Meta{Title: title}},
	}, s.now)
	return s.again(t, a, err)
}

// again reads an asset after what was done to it.
func (s *site) again(t *testing.T, a id.Asset, err error) asset.Asset {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.assets.Get(t.Context(), s.env(t), a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAssetPages: what each page says of an asset in each state.
func TestAssetPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	empty := newSite(t, "http://example.com")
	ready := s.ready(t, "Ready one", playbackid.Public)
	signed := s.ready(t, "Signed one", playbackid.Signed)
	closed := s.ready(t, "Closed one")
	work := s.asset(t, "At work", playbackid.Public)
	if err := s.assets.SetProgress(t.Context(), work.ID, asset.Progress{State: asset.Transcoding, Percent: 62.4},
		s.now); err != nil {
		t.Fatal(err)
	}
	bad := s.failed(t, "Failed one", "the server answered 404 for this URL")
	grows := s.growing(t, "On the air")
	page := func(a asset.Asset) string { return "/dashboard/assets/" + string(a.ID) }
	for name, tt := range map[string]struct {
		on         *site
		path, want string
		not        string
	}{
		"list":         {s, "/dashboard/assets", `href="` + page(ready) + `"`, ""},
		"length":       {s, "/dashboard/assets", `<span class="len">0:01:30</span>`, ""},
		"poster":       {s, "/dashboard/assets", string(ready.PlaybackIDs[0].ID) + "/thumbnail.webp", ""},
		"empty":        {empty, "/dashboard/assets", "No asset yet", `role="search"`},
		"at work":      {s, "/dashboard/assets?status=preparing", "Encoding, 62 %", "Ready one"},
		"growing":      {s, "/dashboard/assets?status=growing", "On the air", "At work"},
		"only ready":   {s, "/dashboard/assets?status=ready", "Ready one", "Failed one"},
		"failed":       {s, "/dashboard/assets?status=failed", "The server answered 404 for this URL", "Ready one"},
		"other state":  {s, "/dashboard/assets?status=pink", "Ready one", "No asset fits"},
		"by name":      {s, "/dashboard/assets?q=rEADY", "Ready one", "Failed one"},
		"by ID":        {s, "/dashboard/assets?q=" + string(bad.ID), "Failed one", "Ready one"},
		"by playback":  {s, "/dashboard/assets?q=" + string(ready.PlaybackIDs[0].ID), "Ready one", "Failed one"},
		"both":         {s, "/dashboard/assets?status=failed&q=ready", "No asset fits", "Ready one"},
		"no such page": {s, "/dashboard/assets?page=9", "There are no more", ""},

		"plays":      {s, page(ready), `data-player="/` + string(ready.PlaybackIDs[0].ID) + `.m3u8"`, "secret"},
		"facts":      {s, page(ready), "1920 × 1080, 29.97 fps", ""},
		"links":      {s, page(ready), "http://example.com/watch/" + string(ready.PlaybackIDs[0].ID), ""},
		"tracks":     {s, page(ready), "Sound, main", "Delete Default"},
		"files":      {s, page(ready), "highest.mp4", ""},
		"its events": {s, page(ready), "video.asset.ready", ""},
		"clip":       {s, page(ready), "Make the clip", ""},
		"signed":     {s, page(signed), "Only with signed links", "data-player"},
		"closed":     {s, page(closed), "Nobody may watch it", "data-player"},
		"prepared":   {s, page(work), "<h2>Encoding, 62 %</h2>", "Make the clip"},
		"why":        {s, page(bad), "<p>The server answered 404 for this URL</p>", "data-player"},
		"recorded":   {s, page(grows), "The broadcast has just begun", "data-player"},
		"delete":     {s, page(ready) + "/delete", "2 tracks, 1 file to download. Its playback ID", ""},
		"playback ID": {
			s, page(ready) + "/playback-ids/" + string(ready.PlaybackIDs[0].ID) + "/delete",
			"nobody may watch the asset then", "",
		},
		"add": {s, "/dashboard/assets/new", "Address of the file", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if w := tt.on.ask(t, "", tt.path, nil); w.Code != http.StatusSeeOther {
				t.Errorf("without a session: %d", w.Code)
			}
			w := tt.on.ask(t, tt.on.cookie, tt.path, nil)
			if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, tt.want) ||
				tt.not != "" && strings.Contains(body, tt.not) {
				t.Errorf("%d, without %q or with %q:\n%s", w.Code, tt.want, tt.not, body)
			}
			closedPage(t, w)
		})
	}
}

// TestAssetPaging: lists of more than a page lead on and back, and searches say where they end.
func TestAssetPaging(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	for n := range 51 {
		s.now = s.now.Add(time.Millisecond)
		s.asset(t, fmt.Sprintf("Asset %02d", n))
	}
	for path, want := range map[string]string{
		"":                  `href="/dashboard/assets?page=2" rel="next"`,
		"?page=2":           `href="/dashboard/assets" rel="prev"`,
		"?q=asset":          `href="/dashboard/assets?from=50&amp;q=asset" rel="next"`,
		"?q=asset&from=50":  "Asset 00",
		"?q=asset+00":       "Asset 00",
		"?status=preparing": `href="/dashboard/assets?from=50&amp;status=preparing" rel="next"`,
	} {
		if body := s.ask(t, s.cookie, "/dashboard/assets"+path, nil).Body.String(); !strings.Contains(body, want) {
			t.Errorf("%s has no %q", path, want)
		}
	}
}

// TestAddAsset: a form makes what the API would make, and each mistake stands beside its field.
func TestAddAsset(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	w := s.ask(t, s.cookie, "/dashboard/assets", url.Values{
		"url": {"https://example.com/a.mp4"}, "title": {"Film"}, "policy": {"signed"}, "video_quality": {"plus"},
		"download": {"1"}, "test": {"1"}, "passthrough": {"p"},
	})
	if w.Code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", w.Code, w.Body)
	}
	a := s.again(t, id.Asset(strings.TrimPrefix(w.Header().Get("Location"), "/dashboard/assets/")), nil)
	if o := a.Options; o.Meta.Title != "Film" || len(a.PlaybackIDs) != 1 || a.PlaybackIDs[0].Policy !=
		playbackid.Signed || o.VideoQuality != "plus" || len(o.StaticRenditions) != 1 || !o.Test ||
		o.Passthrough != "p" {
		t.Errorf("made %+v", a)
	}
	for field, tt := range map[string]struct{ value, want string }{
		"url":           {"ftp://x", "This must be"},
		"title":         {strings.Repeat("a", 513), "This"},
		"policy":        {"other", "This must be one of: public, signed."},
		"video_quality": {"other", "This must be one of"},
		"passthrough":   {strings.Repeat("a", 256), "This"},
	} {
		form := url.Values{"url": {"https://example.com/a.mp4"}, "policy": {"public"}, field: {tt.value}}
		wrongBeside(t, s.ask(t, s.cookie, "/dashboard/assets", form), field, tt.want)
	}
}

// wrongBeside fails the test when a page does not say of a field what is wrong with it.
func wrongBeside(t *testing.T, w *httptest.ResponseRecorder, field, want string) {
	t.Helper()
	got := beside(w.Body.String(), field)
	if w.Code != http.StatusBadRequest || !strings.Contains(got, `class="bad"`) || !strings.Contains(got, want) {
		t.Errorf("%s: %d, beside it %q", field, w.Code, got)
	}
}

// TestAssetForms: what is changed on the page of an asset, what is refused, and what the audit log says of it.
func TestAssetForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	a := s.ready(t, "One", playbackid.Public)
	page := "/dashboard/assets/" + string(a.ID)
	do := func(path string, form url.Values, to string) {
		t.Helper()
		s.now = s.now.Add(time.Second)
		w := s.ask(t, s.cookie, page+path, form)
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasPrefix(got, to) {
			t.Errorf("%s: %d to %q:\n%s", path, w.Code, got, w.Body)
		}
	}
	do("", url.Values{"title": {"Two"}, "passthrough": {""}}, page)
	do("/playback-ids", url.Values{"policy": {"signed"}}, page+"#share")
	do("/playback-ids/"+string(a.PlaybackIDs[0].ID)+"/delete", url.Values{}, page)
	track := url.Values{"track_type": {"text"}, "track_url": {"https://example.com/a.vtt"}, "language_code": {"fi"}}
	do("/tracks", track, page+"#tracks")
	now := s.again(t, a.ID, nil)
	if o := now.Options; o.Meta != (assetopt.Meta{Title: "Two", CreatorID: "creator"}) || o.Passthrough != "" ||
		len(now.PlaybackIDs) != 1 || now.PlaybackIDs[0].Policy != playbackid.Signed || len(now.Tracks) != 3 ||
		now.Tracks[2].Name != "Finnish" {
		t.Errorf("now %+v", now)
	}
	text := "/tracks/" + string(now.Tracks[2].ID)
	do(text, url.Values{"name": {"Suomi"}, "language_code": {"fi-FI"}, "closed_captions": {"1"}}, page+"#tracks")
	if got := s.again(t, a.ID, nil).Tracks[2]; got.Name != "Suomi" || got.LanguageCode != "fi-FI" ||
		!got.ClosedCaptions {
		t.Errorf("now %+v", got)
	}
	wrongBeside(t, s.ask(t, s.cookie, page+text, url.Values{"language_code": {"?"}}), "language_code", "This must be")
	do("/tracks/"+string(now.Tracks[1].ID), url.Values{"name": {"Main"}, "language_code": {""}}, page+"#tracks")
	text += "/delete"
	if w := s.ask(t, s.cookie, page+text, nil); !strings.Contains(w.Body.String(), "<b>Suomi</b>") {
		t.Errorf("asks %s", w.Body)
	}
	do(text, url.Values{}, page)
	for field, tt := range map[string]struct{ path, value, want string }{
		"title":         {"", strings.Repeat("a", 513), "This"},
		"passthrough":   {"", strings.Repeat("a", 256), "This"},
		"track_url":     {"/tracks", "ftp://x", "This must be"},
		"track_type":    {"/tracks", "video", "This must be one of: text, audio."},
		"language_code": {"/tracks", "?", "This must be"},
		"start_time":    {"/clips", "1:61", "This must be a time"},
		"end_time":      {"/clips", "1:40", "This must not be more than a second after the end"},
		"clip_title":    {"/clips", strings.Repeat("a", 513), "This"},
	} {
		form := vtt()
		form.Set(field, tt.value)
		wrongBeside(t, s.ask(t, s.cookie, page+tt.path, form), field, tt.want)
	}
	do("/delete", url.Values{}, "/dashboard/assets")
	if w := s.ask(t, s.cookie, page, nil); w.Code != http.StatusNotFound {
		t.Errorf("deleted: %d", w.Code)
	}
	s.audited(t, string(a.ID), "asset", "delete-asset create-asset-track create-asset-playback-id update-asset")
	s.audited(t, string(now.Tracks[2].ID), "track", "delete-asset-track update-asset-track")
	s.audited(t, string(a.PlaybackIDs[0].ID), "playback_id", "delete-asset-playback-id")
}

// audited compares what the audit log says of a resource, newest first.
func (s *site) audited(t *testing.T, resource, noun, want string) {
	t.Helper()
	found, err := s.db.AuditLog(t.Context(), audit.Query{Resource: resource, Limit: 20})
	var said []string
	for _, e := range found {
		said = append(said, e.Operation)
		if e.Resource.Type != noun || e.Actor.Type != audit.Dashboard {
			t.Errorf("entry %+v", e)
		}
	}
	if got := strings.Join(said, " "); err != nil || got != want {
		t.Errorf("of %s the audit log has %q, %v", noun, got, err)
	}
}

// TestClip: a clip is what is between two times, and may be watched as its source.
func TestClip(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	a := s.ready(t, "One", playbackid.Signed, playbackid.Public, playbackid.Public)
	for text, want := range map[string]struct{ start, end float64 }{
		"0:00:10.5-0:01:02": {10.5, 62}, "5-1:00": {5, 60}, "-7,25": {-1, 7.25}, "0:01-": {1, -1},
	} {
		from, to, _ := strings.Cut(text, "-")
		form := url.Values{"start_time": {from}, "end_time": {to}, "clip_title": {"Best of"}}
		w := s.ask(t, s.cookie, "/dashboard/assets/"+string(a.ID)+"/clips", form)
		if w.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d\n%s", text, w.Code, w.Body)
		}
		c := s.again(t, id.Asset(strings.TrimPrefix(w.Header().Get("Location"), "/dashboard/assets/")), nil)
		at := func(v *float64) float64 {
			if v == nil {
				return -1
			}
			return *v
		}
		in := c.Options.Inputs[0]
		if at(in.StartTime) != want.start || at(in.EndTime) != want.end || c.SourceAsset != a.ID ||
			c.Options.Meta.Title != "Best of" || len(c.PlaybackIDs) != 2 ||
			c.PlaybackIDs[0].Policy != playbackid.Public {
			t.Errorf("%s: made %+v of %+v", text, c, in)
		}
	}
	for _, text := range []string{"x", "1:2:3:4", "-1", "1e3", "1:60", "1.5:00", ":", "NaN", "0x1p4", "1_0"} {
		w := s.ask(t, s.cookie, "/dashboard/assets/"+string(a.ID)+"/clips", url.Values{"start_time": {text}})
		wrongBeside(t, w, "start_time", "This must be a time")
	}
}

// TestAssetRefusals: what is not to be had, and what nobody may do.
func TestAssetRefusals(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	a := s.ready(t, "One", playbackid.Public)
	grows := s.growing(t, "On the air")
	page := "/dashboard/assets/" + string(a.ID)
	reader, elsewhere := s.signIn(t, access.VideoRead), s.elsewhere(t)
	for name, tt := range map[string]struct {
		cookie, path string
		form         url.Values
		status       int
	}{
		"no such asset":        {s.cookie, "/dashboard/assets/none", nil, 404},
		"no such track":        {s.cookie, page + "/tracks/none/delete", nil, 404},
		"name of the picture":  {s.cookie, page + "/tracks/" + string(a.Tracks[0].ID), url.Values{}, 404},
		"no such playback ID":  {s.cookie, page + "/playback-ids/none/delete", url.Values{}, 404},
		"another environment":  {elsewhere, page, nil, 404},
		"and its end":          {elsewhere, page + "/delete", url.Values{}, 404},
		"and its name":         {elsewhere, page, url.Values{"title": {"x"}}, 404},
		"and a clip of it":     {elsewhere, page + "/clips", url.Values{}, 404},
		"and its events":       {elsewhere, page + "/follow", nil, 404},
		"main track":           {s.cookie, page + "/tracks/" + string(a.Tracks[0].ID) + "/delete", url.Values{}, 409},
		"is being recorded":    {s.cookie, "/dashboard/assets/" + string(grows.ID) + "/delete", url.Values{}, 409},
		"track of a live one":  {s.cookie, "/dashboard/assets/" + string(grows.ID) + "/tracks", vtt(), 409},
		"policy":               {s.cookie, page + "/playback-ids", url.Values{"policy": {"pink"}}, 409},
		"reads only: add":      {reader, "/dashboard/assets", url.Values{}, 403},
		"reads only: form":     {reader, "/dashboard/assets/new", nil, 403},
		"reads only: delete":   {reader, page + "/delete", url.Values{}, 403},
		"reads only: question": {reader, page + "/delete", nil, 403},
		"reads only: clip":     {reader, page + "/clips", url.Values{}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if w := s.ask(t, tt.cookie, tt.path, tt.form); w.Code != tt.status {
				t.Errorf("%d, want %d:\n%s", w.Code, tt.status, w.Body)
			}
		})
	}
	body := s.ask(t, reader, page, nil).Body.String()
	for _, bad := range []string{"Make the clip", "/delete", "<form class=\"line", "Add by URL"} {
		if strings.Contains(body, bad) {
			t.Errorf("who may only read is offered %q", bad)
		}
	}
}

func vtt() url.Values {
	return url.Values{"track_type": {"text"}, "track_url": {"https://e.com/a.vtt"}, "language_code": {"en"}}
}

// TestHostileAssets: what anybody can put into an asset stays text on every page.
func TestHostileAssets(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	text := "\u202e" + hostile
	ready, bad := s.ready(t, text, playbackid.Public), s.failed(t, text, text)
	named, err := s.assets.AddTrack(t.Context(), s.env(t), ready.ID, asset.TrackInput{
		URL: "https://example.com/a.vtt", Type: asset.TextTrack, LanguageCode: "en", Name: hostile,
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	page := "/dashboard/assets/" + string(ready.ID)
	for _, path := range []string{
		"/dashboard/assets", "/dashboard/assets?q=" + url.QueryEscape(hostile), page, page + "/delete",
		page + "/tracks/" + string(named.ID), "/dashboard/assets/" + string(bad.ID),
		"/dashboard/assets/" + url.PathEscape(hostile),
	} {
		harmless(t, path, s.ask(t, s.cookie, path, nil))
	}
	form := url.Values{}
	for _, name := range []string{
		"url", "title", "policy", "video_quality", "passthrough", "track_url", "track_type", "language_code",
		"track_name", "start_time", "end_time", "clip_title",
	} {
		form.Set(name, hostile)
	}
	for _, path := range []string{"/dashboard/assets", page + "/tracks", page + "/clips"} {
		w := s.ask(t, s.cookie, path, form)
		harmless(t, path, w)
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestFollowAsset: the page of an asset is sent again when something of it changes, when work on it goes on, which no
// event tells, and when it is deleted.
func TestFollowAsset(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	a := s.asset(t, "One", playbackid.Public)
	e := s.follow(t, server, "/dashboard/assets/"+string(a.ID)+"/follow")
	e.until("<h2>Preparing</h2>")
	if err := s.assets.SetProgress(t.Context(), a.ID, asset.Progress{State: asset.Ingesting, Percent: 41},
		s.now); err != nil {
		t.Fatal(err)
	}
	e.until("Preparing, 41 %")
	done := asset.Finished{Index: "index", Facts: asset.Facts{HasVideo: true, Width: 640, Height: 360}}
	if err := s.assets.Finish(t.Context(), a.ID, done, s.now); err != nil {
		t.Fatal(err)
	}
	e.until("data-player=")
	file := a.Static.Files[0].ID
	err := errors.Join(s.assets.StaticProgress(t.Context(), a.ID, file, 0, s.now.Add(-time.Minute)),
		s.assets.StaticProgress(t.Context(), a.ID, file, 37, s.now))
	if err != nil {
		t.Fatal(err)
	}
	e.until("Preparing, 37 %</span><div class=\"s dim\">About 2 minutes left</div>")
	if err := s.assets.Delete(t.Context(), s.env(t), a.ID, s.now); err != nil {
		t.Fatal(err)
	}
	for {
		if name, data := e.next(); name == "over" {
			if data != "deleted\n" {
				t.Errorf("over: %q", data)
			}
			return
		}
	}
}
