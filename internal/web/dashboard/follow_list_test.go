package dashboard_test

import (
	"fmt"
	"html"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

// followed is the address of the events that a page names.
func (s *site) followed(t testing.TB, cookie, page string) string {
	t.Helper()
	_, after, ok := strings.Cut(s.ask(t, cookie, page, nil).Body.String(), `data-follow="`)
	if !ok {
		t.Fatalf("%s is not kept up to date", page)
	}
	before, _, _ := strings.Cut(after, `"`)
	return html.UnescapeString(before)
}

// rows are the IDs of the live streams whose rows an event has, sorted.
func rows(data string) (all []string) {
	for _, m := range regexp.MustCompile(`<tr id="row-(\w+)"`).FindAllStringSubmatch(data, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return all
}

// renamed gives a live stream another name.
func (s *site) renamed(t testing.TB, v live.Stream, title string) {
	t.Helper()
	in := live.PatchInput{Meta: &assetopt.MetaPatch{Meta: assetopt.Meta{Title: title}}}
	if _, err := s.live.Patch(t.Context(), v.Environment, v.ID, in, s.now); err != nil {
		t.Fatal(err)
	}
}

// TestFollowList: of a list those rows are sent that have changed, in any state, and how many live streams are new.
func TestFollowList(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	one, two := s.stream(t, hostile, false, playbackid.Public), s.stream(t, "Two", false)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	all := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/live"))
	first := all.until("Two")
	if got := rows(first); len(got) != 2 || strings.Contains(first, "<script>") ||
		strings.Contains(first, one.StreamKey) {
		t.Errorf("the first event has rows %q:\n%s", got, first)
	}
	onAir := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/live?status=active"))
	onAir.until(`id="news"`)

	connected, err := s.broadcasts.Connect(t.Context(), live.Connection{
		StreamKey: one.StreamKey, Protocol: "rtmp", NewAsset: id.Asset(id.New()),
		Owner: live.Owner{Node: "node", Run: "run"},
	}, s.now)
	if err == nil {
		err = s.broadcasts.Active(t.Context(), one.ID, connected.Writer(), s.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	data := all.until(`<span class="live">LIVE</span>`, `id="n-active" data-part>1<`)
	if got := rows(data); len(got) != 1 || got[0] != string(one.ID) || strings.Contains(data, " new<") {
		t.Errorf("one is on air: rows %q:\n%s", got, data)
	}
	data = onAir.until("1 new<")
	if got := rows(data); len(got) > 0 || !strings.Contains(data, `href="/dashboard/live?status=active"`) {
		t.Errorf("one is on air: rows %q:\n%s", got, data)
	}

	shown := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/live?status=active"))
	shown.until("LIVE")
	if _, err = s.broadcasts.End(t.Context(), one.ID, connected.Writer(), live.EndComplete, s.now); err != nil {
		t.Fatal(err)
	}
	idle := `<span class="state">Idle</span>`
	shown.until(idle) // it stays, though it does not fit any more
	all.until(idle)
	onAir.until(`role="status" data-part></div>`) // nothing is new any more

	three := s.stream(t, "Three", false)
	if got := rows(all.until("1 new<")); len(got) > 0 {
		t.Errorf("a new one: rows %q", got)
	}
	if err = s.live.Delete(t.Context(), three.Environment, three.ID, s.now); err != nil {
		t.Fatal(err)
	}
	all.until(`role="status" data-part></div>`)
	if err = s.live.Delete(t.Context(), two.Environment, two.ID, s.now); err != nil {
		t.Fatal(err)
	}
	if data = all.until("Deleted"); !strings.Contains(data, `<span class="name">Two</span>`) {
		t.Errorf("a deleted one loses its name:\n%s", data)
	}
	back := s.follow(t, server, "/dashboard/live/follow?row="+string(two.ID)+"&row="+url.QueryEscape(hostile))
	if data = back.until("Deleted"); strings.Contains(data, "<script>") || strings.Contains(data, "<img src=x") {
		t.Errorf("a row that is asked for has markup:\n%s", data)
	}
}

// TestFollowListOthers: what happens elsewhere changes no page.
func TestFollowListOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	var first live.Stream
	for n := range 51 {
		s.now = s.now.Add(time.Millisecond)
		if v := s.stream(t, fmt.Sprintf("Stream %02d", n), false); n == 0 {
			first = v
		}
	}
	token, err := s.tokens.CreateEnvironment(t.Context(), "Other", "production", s.now)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := s.signInTo(t, access.TokenInput{Environment: token.ID})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	newest := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/live"))
	search := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/live?q=stream+50"))
	last := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/live?page=2"))
	for e, n := range map[*events]int{newest: 50, search: 1, last: 1} {
		if got := rows(e.until(`id="news"`)); len(got) != n {
			t.Errorf("the first event has %d rows, want %d", len(got), n)
		}
	}
	if path := s.followed(t, elsewhere, "/dashboard/live"); path != "/dashboard/live/follow?" {
		t.Errorf("another environment follows %q", path)
	}
	s.renamed(t, first, "Old") // is on the second page
	s.stream(t, "New", false)
	if data := newest.until("new<"); !strings.Contains(data, "1 new<") || len(rows(data)) > 0 {
		t.Errorf("the first page:\n%s", data)
	}
	if got := rows(last.until("Old")); len(got) != 1 {
		t.Errorf("the second page has rows %q", got)
	}
	s.stream(t, "Stream 50 again", false)
	if data := search.until("new<"); !strings.Contains(data, "1 new<") || len(rows(data)) > 0 {
		t.Errorf("the search:\n%s", data)
	}
	s.renamed(t, first, "Older")
	if data := last.until("Older"); strings.Contains(data, "new<") {
		t.Errorf("something is new on the second page:\n%s", data)
	}
}

// TestFollowAssets: of the list of assets those rows are sent that have changed, how far work is also without an event,
// and how many are new.
func TestFollowAssets(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	one, two := s.asset(t, hostile, playbackid.Public), s.asset(t, "Two")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	all := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/assets"))
	first := all.until("Two")
	if got := rows(first); len(got) != 2 || strings.Contains(first, "<script>") {
		t.Errorf("the first event has rows %q:\n%s", got, first)
	}
	failed := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/assets?status=failed"))
	failed.until(`id="news"`)

	moved := asset.Progress{State: asset.Transcoding, Percent: 62}
	if err := s.assets.SetProgress(t.Context(), one.ID, moved, s.now); err != nil {
		t.Fatal(err)
	}
	if got := rows(all.until("Encoding, 62 %")); len(got) != 1 || got[0] != string(one.ID) {
		t.Errorf("work goes on: rows %q", got)
	}
	if err := s.assets.Fail(t.Context(), one.ID, asset.Errors{Messages: []string{"no"}}, s.now); err != nil {
		t.Fatal(err)
	}
	all.until(`<span class="state fault">Failed</span>`)
	data := failed.until("1 new<")
	if len(rows(data)) > 0 || !strings.Contains(data, `href="/dashboard/assets?status=failed"`) {
		t.Errorf("one has failed:\n%s", data)
	}
	s.asset(t, "Three")
	if got := rows(all.until("1 new<")); slices.Contains(got, string(one.ID)) {
		t.Errorf("a new one: rows %q", got)
	}
	if err := s.assets.Delete(t.Context(), two.Environment, two.ID, s.now); err != nil {
		t.Fatal(err)
	}
	if data := all.until("Deleted"); !strings.Contains(data, `<span class="name">Two</span>`) {
		t.Errorf("a deleted one loses its name:\n%s", data)
	}
}

// uploaded makes an asset of an upload.
func (s *site) uploaded(t *testing.T, u id.Upload, title string) asset.Asset {
	t.Helper()
	c, err := s.assets.Uploaded(asset.NewUpload{
		Upload: u, Environment: s.env(t), Options: assetopt.Options{Meta: assetopt.Meta{Title: title}},
		Media: id.Media(id.New()),
	}, s.now)
	if err == nil {
		err = s.db.Assets().Insert(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.Asset
}

// TestFollowUploads: what a page has uploaded itself comes as a row, where it fits, and is no news; what others have
// uploaded is.
func TestFollowUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	old := s.asset(t, "Old")
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	const own = "&upload=another&upload=own"
	all := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/assets")+own)
	all.until("Old")
	failed := s.follow(t, server, s.followed(t, s.cookie, "/dashboard/assets?status=failed")+own)
	failed.until(`id="news"`)
	film := s.uploaded(t, "own", "Own film")
	if got := rows(all.until("Own film")); !slices.Contains(got, string(film.ID)) {
		t.Errorf("the page's own: rows %q", got)
	}
	theirs := s.uploaded(t, "theirs", "Their film")
	if data := all.until("1 new<"); slices.Contains(rows(data), string(theirs.ID)) {
		t.Errorf("somebody else's:\n%s", data)
	}
	if err := s.assets.Fail(t.Context(), film.ID, asset.Errors{Messages: []string{"no"}}, s.now); err != nil {
		t.Fatal(err)
	}
	all.until(`<span class="state fault">Failed</span>`)
	if got := rows(failed.until("Own film")); !slices.Equal(got, []string{string(film.ID)}) {
		t.Errorf("the page's own, once it fits: rows %q", got)
	}
	none := s.followed(t, s.cookie, "/dashboard/assets?q=none")
	again := s.follow(t, server, none+"&upload="+url.QueryEscape(hostile))
	if data := again.until(`id="news"`); strings.Contains(data, "<script>") {
		t.Errorf("an upload that is asked for has markup:\n%s", data)
	}
	// The connection was lost meanwhile.
	back := s.follow(t, server, "/dashboard/assets/follow?row="+string(old.ID)+own)
	data := back.until("1 new<", "Own film")
	if strings.Contains(data, "2 new<") {
		t.Errorf("the page's own is news when it comes back:\n%s", data)
	}
}
