package browser_test

import (
	"maps"
	"net/http"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDashboardScriptless walks all pages of the dashboard in a browser that runs no script, and presses what makes
// others: each control that is seen does something there.
func TestDashboardScriptless(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	pages := filledDashboard(t, b, s)
	for name, path := range pages {
		p := b.OpenScriptless(t, s.HTTP+path)
		allWorks(t, p, name)
		p.Close(t)
	}
	p := b.OpenScriptless(t, s.HTTP+"/dashboard/settings/signing-keys")
	p.Click(t, "#new-key")
	p.Await(t, "shows the private half", "document.querySelector('[data-line^=Private]')", patience)
	allWorks(t, p, "key-made")
	var private string
	p.Eval(t, "document.querySelector('[data-line^=Private]').textContent", &private)
	p.Close(t)

	signed := s.CreateLive(t, "low", rig.Object{"playback_policies": []string{"signed"}}).Text("id")
	p = b.OpenScriptless(t, s.HTTP+"/dashboard/live/"+signed)
	allWorks(t, p, "signed")
	p.Click(t, "[data-show]")
	p.Await(t, "shows the key", "location.pathname.endsWith('/key') && "+
		"!document.querySelector('[data-shown]').textContent.includes('•')", patience)
	allWorks(t, p, "key-shown")
	p.Click(t, "#facts a[href$='/link']")
	p.Await(t, "asks for the private half", "document.getElementById('private_key')", patience)
	allWorks(t, p, "signed-link")
	p.Fill(t, "#private_key", private)
	p.Click(t, "form.make button.main")
	p.Await(t, "has the link", "document.getElementById('open')", patience)
	allWorks(t, p, "signed-link-made")
	p.Click(t, "header .me[open] button:not([name])") // allWorks has opened the menu
	p.Await(t, "is the sign-in", "location.pathname === '/dashboard/sign-in'", patience)
	allWorks(t, p, "sign-in")
}

// idle finds controls that are seen and do nothing without a script: a link without an address, or to a part of the
// page that is not there, a button or field without a form that is sent, and a video without a source, which Chromium
// gives controls where no script runs.
const idle = `(() => {
	for (const box of document.querySelectorAll('details')) box.open = true;
	const found = [];
	const sends = (form) => form && form.hasAttribute('action') &&
		[...form.elements].some((e) => e.type === 'submit' && e.checkVisibility());
	const works = (e) => {
		if (e.localName === 'a') return e.hasAttribute('href') &&
				(!e.getAttribute('href').startsWith('#') || document.querySelector(e.hash));
		if (e.localName === 'summary') return e.parentElement.localName === 'details';
		if (e.localName === 'video') return e.currentSrc;
		if (e.localName === 'button') return e.type === 'submit' && e.form &&
				(e.form.hasAttribute('action') || e.hasAttribute('formaction'));
		return (e.name || e.type === 'submit') && sends(e.form);
	};
	const all = 'a, button, input:not([type=hidden]), select, textarea, summary, video, [role=button], ' +
			'[role=tab], [data-copy]';
	for (const e of document.querySelectorAll(all))
			if (!e.disabled && e.checkVisibility({ visibilityProperty: true }) && !works(e))
		found.push(e.outerHTML.replace(/\s+/g, ' ').slice(0, 160));
	return found;
})()`

// allWorks fails the test for controls of a page that do nothing, and for one that runs scripts.
func allWorks(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	var none bool
	if p.Eval(t, "matchMedia('(scripting: none)').matches && !window.millrace", &none); !none {
		t.Fatalf("%s: scripts run", name)
	}
	p.Await(t, "has its styles", "document.readyState === 'complete'", patience)
	p.Screenshot(t, name)
	var found []string
	p.Eval(t, idle, &found)
	for _, what := range found {
		t.Errorf("%s: nothing happens at %s", name, what)
	}
}

// filledDashboard signs in, and gives the paths of all pages while there is something on each of them: a live stream
// with a hostile name that is on air, a video with a track, a webhook, a token and a restriction.
func filledDashboard(t *testing.T, b *browser.Browser, s *rig.Server) map[string]string {
	t.Helper()
	files := rig.Files(t, map[string]string{
		"film.mp4": rig.File(t, "film.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 12}),
		"fi.vtt":   "WEBVTT\n\n00:00.000 --> 00:05.000\nHei maailma\n",
	})
	film := s.CreateAsset(t, files+"/film.mp4").Text("id")
	live := s.CreateLive(t, "low", rig.Object{"meta": rig.Object{"title": streamName}})
	s.Publish(t, live.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	hook := posted(t, s, "/system/v1/webhooks", rig.Object{"address": files + "/hook"})
	limit := posted(t, s, "/video/v1/playback-restrictions", rig.Object{"referrer": rig.Object{
		"allowed_domains": []string{"example.com"},
	}, "user_agent": rig.Object{"allow_no_user_agent": false, "allow_high_risk_user_agent": false}})
	posted(t, s, "/system/v1/signing-keys", nil)
	s.AwaitAsset(t, film, "ready", patience, rig.Ready)
	track := s.AddTrack(t, film, rig.Object{
		"url": files + "/fi.vtt", "type": "text", "text_type": "subtitles", "language_code": "fi",
	}).Text("id")
	p := firstLink(t, b, s)
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	p.Await(t, "says LIVE", "document.querySelector('.tbl .live')?.textContent === 'LIVE'", patience)
	p.Close(t)
	stream, asset := "/dashboard/live/"+live.Text("id"), "/dashboard/assets/"+film
	pages := dashboardPages(stream, asset)
	maps.Copy(pages, map[string]string{
		"growing": "/dashboard/assets/" + s.Live(t, live.Text("id")).Text("active_asset_id"),
		"track":   asset + "/tracks/" + track, "asset-delete": asset + "/delete", "end": stream + "/end",
		"webhook": "/dashboard/webhooks/" + hook, "webhook-edit": "/dashboard/webhooks/" + hook + "/edit",
		"webhook-delete": "/dashboard/webhooks/" + hook + "/delete",
		"restricted":     "/dashboard/settings/restrictions/" + limit,
	})
	return pages
}

// posted makes something by the API and gives its ID.
func posted(t *testing.T, s *rig.Server, path string, body any) string {
	t.Helper()
	code, made := s.Do(t, http.MethodPost, path, body)
	if code != http.StatusCreated {
		t.Fatalf("POST %s: %d %v", path, code, made)
	}
	return made.Text("id")
}
