package browser_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// assetName is what somebody may call an asset; it must stay text.
const assetName = `Heats <img src=x onerror="window.bad = 1">`

// TestDashboardAssets walks the way of a file: it is added by its URL, its page tells how far it is and turns into the
// video without a reload, it gets subtitles, which are renamed, a clip is made of it, and both are deleted.
func TestDashboardAssets(t *testing.T) {
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	film, pass := held(t, rig.File(t, "film.mp4", rig.Clip{Size: "640x360", Kbit: 300, GOP: 1, Seconds: 12}))
	texts := rig.Files(t, map[string]string{"fi.vtt": "WEBVTT\n\n00:00.000 --> 00:12.000\nHei maailma\n"})
	p := firstLink(t, b, s)
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	p.Click(t, ".side a[href='/dashboard/assets']")
	p.Await(t, "says what to do", "document.querySelector('.empty h2')?.textContent === 'No asset yet'", patience)
	p.Click(t, ".empty a[href='/dashboard/assets/new']")
	p.Fill(t, "#url", film)
	p.Fill(t, "#title", assetName)
	p.Click(t, "form.make button.main")
	p.Await(t, "says how far it is", "/^Preparing, \\d+ %$/.test(document.querySelector('#well h2')?.textContent)",
		patience)
	p.Eval(t, "window.same = true", nil)
	pass()
	p.Await(t, "turns into the video", "window.same && window.video?.duration > 11", patience)
	p.Await(t, "says that it is ready", "document.querySelector('#head .state.ready') && "+
		"document.querySelector('#track-list .state.ready')", patience)

	p.Click(t, "#add-track")
	p.Fill(t, "#track_url", texts+"/fi.vtt")
	p.Fill(t, "#language_code", "fi")
	p.Click(t, "#track-add button.main")
	p.Await(t, "has the subtitles", "[...document.querySelectorAll('#track-list tr')].some((r) => "+
		"r.textContent.includes('Finnish') && r.querySelector('.state.ready'))", patience)
	p.Await(t, "offers them", "[...video.textTracks].some((t) => t.language === 'fi')", patience)
	p.Click(t, "#track-list tr:last-child a.name")
	p.Await(t, "is the page of the track", "document.getElementById('name')?.value === 'Finnish'", patience)
	looksRight(t, b, p, "track")
	p.Fill(t, "#name", "Suomi")
	p.Click(t, "form.make button.main")
	p.Await(t, "offers them by their new name", "[...window.video?.textTracks ?? []].some((t) => t.label === 'Suomi')",
		patience)
	usesPlayer(t, b, p)

	p.Click(t, "[data-take=start_time]")
	p.Fill(t, "#end_time", "8")
	p.Await(t, "takes the time", "document.getElementById('start_time').value === '0:00:02.5'", patience)
	p.Click(t, "#make-clip")
	p.Await(t, "is the page of the clip", "document.querySelector('#head .under')?.textContent.includes('clip of') && "+
		"Math.abs(window.video?.duration - 5.5) < 0.2", patience)
	deleted(t, p)
	p.Click(t, "a.name")
	p.Await(t, "is the page of the film", "document.querySelector('h1')?.textContent.startsWith('Heats <img')",
		patience)
	deleted(t, p)
	p.Await(t, "has none any more", "document.querySelector('.empty h2')?.textContent === 'No asset yet'", patience)
	p.Await(t, "no script of a name ran", "window.bad === undefined", patience)
	p.StaysHome(t, s.HTTP)
}

// deleted deletes the asset whose page is shown.
func deleted(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Click(t, "#delete")
	p.Click(t, "dialog button.harm")
	p.Await(t, "is the list", "location.pathname === '/dashboard/assets' && document.readyState === 'complete'",
		patience)
}

// held serves a file of which the first half comes slowly, as over a bad line, and the second one only after pass.
func held(t *testing.T, file string) (url string, pass func()) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	pass = sync.OnceFunc(func() { close(open) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		const step = 8 << 10
		for rest := content; ; {
			select {
			case <-open:
				_, _ = w.Write(rest)
				return
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
			if len(rest) > len(content)/2 {
				_, _ = w.Write(rest[:step])
				_ = http.NewResponseController(w).Flush()
				rest = rest[step:]
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(pass) // before the server closes
	return server.URL + "/film.mp4", pass
}
