package browser_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDashboardAssets: the subtitles of a video are renamed, it is watched with all that the player has, and is
// deleted. TestDashboardTour adds a video, subtitles and a clip.
func TestDashboardAssets(t *testing.T) {
	rig.Paced(t)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	files := rig.Files(t, map[string]string{
		"film.mp4": rig.File(t, "film.mp4", rig.Clip{Size: "640x360", Kbit: 300, GOP: 1, Seconds: 12}),
		"fi.vtt":   "WEBVTT\n\n00:00.000 --> 00:05.000\nHei maailma\n\n00:05.000 --> 00:12.000\n" + longCue + "\n",
	})
	p := firstLink(t, b, s)
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	p.Click(t, ".side a[href='/dashboard/assets']")
	p.Await(t, "says what to do", "document.querySelector('.empty h2')?.textContent === 'No asset yet'", patience)
	film := s.CreateAsset(t, files+"/film.mp4").Text("id")
	s.AwaitAsset(t, film, "ready", patience, rig.Ready)
	s.AddTrack(t, film, rig.Object{
		"url": files + "/fi.vtt", "type": "text", "text_type": "subtitles", "language_code": "fi",
	})
	p.Click(t, "#news a")
	p.Click(t, ".tbl a.name")
	p.Await(t, "offers subtitles", "[...window.video?.textTracks ?? []].some((t) => t.language === 'fi')", patience)
	p.Click(t, "#track-list tr:last-child a.name")
	p.Await(t, "is the page of the track", "document.getElementById('name')?.value === 'Finnish'", patience)
	looksRight(t, b, p, "track")
	p.Fill(t, "#name", "Suomi")
	p.Click(t, "form.make button.main")
	p.Await(t, "offers them by their new name", "[...window.video?.textTracks ?? []].some((t) => t.label === 'Suomi')",
		patience)
	usesPlayer(t, b, p)
	codeFollows(t, b, p)
	clipRefused(t, b, p)
	deleted(t, p)
	p.Await(t, "has none any more", "document.querySelector('.empty h2')?.textContent === 'No asset yet'", patience)
	p.StaysHome(t, s.HTTP)
}

// codeFollows opens the code of all forms of an asset's page: each follows what is typed into its own.
func codeFollows(t *testing.T, b *browser.Browser, p *browser.Page) {
	t.Helper()
	p.Click(t, "#add-track")
	for _, section := range []string{"#clip", "#tracks", "#edit"} {
		p.Click(t, section+" .as-code summary")
	}
	p.Fill(t, "#clip_title", "Finish")
	p.Fill(t, "#track_name", "Svenska")
	p.Fill(t, "#title", "Regatta")
	for section, text := range map[string]string{"#clip": "Finish", "#tracks": "Svenska", "#edit": "Regatta"} {
		p.Await(t, section+" follows what is typed", fmt.Sprintf(`((all) => all.length === 3 &&
			all.every((e) => e.textContent.includes(%q)))([...document.querySelectorAll('%s .as-code pre')])`,
			text, section), patience)
	}
	looksRight(t, b, p, "asset-code")
}

// clipRefused sends the form of a clip with three mistakes: each is said below its field, where the fields of the line
// and their button stay side by side, and the first has the focus and can be seen.
func clipRefused(t *testing.T, b *browser.Browser, p *browser.Page) {
	t.Helper()
	const line = `(['start_time', 'end_time', 'clip_title', 'make-clip'].map((id) =>
		document.getElementById(id).getBoundingClientRect().top - document.getElementById('clip').getBoundingClientRect().top))`
	var before, after []float64
	p.Eval(t, line, &before)
	p.Fill(t, "#start_time", "soon")
	p.Fill(t, "#end_time", "1:00:00")
	p.Eval(t, "document.getElementById('clip_title').removeAttribute('maxlength')", nil)
	p.Fill(t, "#clip_title", strings.Repeat("a", 513))
	p.Click(t, "#make-clip")
	p.Await(t, "says all that is wrong", "document.querySelectorAll('#clip .bad').length === 3 && "+
		"document.readyState === 'complete'", patience)
	p.Await(t, "has the focus in the first field, in sight", "document.activeElement.id === 'start_time' && "+
		"document.activeElement.getBoundingClientRect().bottom < innerHeight && "+
		"document.activeElement.getBoundingClientRect().top > document.querySelector('.top').offsetHeight", patience)
	p.Eval(t, line, &after)
	if !slices.Equal(before, after) || slices.Min(before) != slices.Max(before) {
		t.Errorf("the line is at %v, and was at %v", after, before)
	}
	looksRight(t, b, p, "clip-refused")
}

// deleted deletes the asset whose page is shown.
func deleted(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Click(t, "#delete")
	p.Click(t, "dialog button.harm")
	p.Await(t, "is the list", "location.pathname === '/dashboard/assets' && document.readyState === 'complete'",
		patience)
}
