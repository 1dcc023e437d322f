package browser_test

import (
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDashboardList: the list of live streams shows what happens without a reload, keeps the focus where it is, lets
// what is new wait, and says when it is not up to date.
func TestDashboardList(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	named := rig.Object{"meta": rig.Object{"title": streamName}}
	live := s.CreateLive(t, "low", named)
	p := firstLink(t, b, s)
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	const follows = "document.readyState === 'complete' && " + // all modules listen
		"document.getElementById('link-state')?.className === 'state ok'"
	p.Await(t, "is kept up to date", follows, patience)
	const press = `(key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))`
	p.Eval(t, `(window.same = true, window.press = `+press+`, window.press('j'))`, nil)
	const focused = "document.activeElement.matches('.tbl .go')"
	p.Await(t, "goes to the first row by a key", focused, patience)

	encoder := s.Publish(t, live.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	p.Await(t, "says LIVE", "window.same && document.querySelector('.tbl .live')?.textContent === 'LIVE'", patience)
	p.Await(t, "keeps the focus", focused, patience)
	p.Await(t, "counts it", "document.getElementById('n-active').textContent === '1'", patience)
	p.Await(t, "has newer pictures", "document.querySelector('img[data-newest]')?.src.includes('&at=')", patience)
	s.CreateLive(t, "low", named)
	p.Await(t, "lets the new one wait", "document.querySelector('#news a')?.textContent.startsWith('1 new') && "+
		"document.querySelectorAll('.tbl .go').length === 1", patience)
	looksRight(t, b, p, "news")
	p.Click(t, "#news a")
	p.Await(t, "shows it", "!window.same && document.querySelectorAll('.tbl .go').length === 2", patience)
	p.Await(t, "is kept up to date", follows, patience)

	p.Eval(t, `(window.same = true, window.press = `+press+`,
		document.querySelector('input[type=search]').focus(), window.press('j'))`, nil)
	p.Await(t, "lets people type", "document.activeElement.matches('input')", patience)
	encoder.Stop()
	p.Await(t, "says Idle", "window.same && !document.querySelector('.tbl .live')", patience)
	p.Await(t, "no script of a name ran", "window.bad === undefined", patience)
	s.Kill(t)
	p.Await(t, "says that it is not up to date", "document.getElementById('link-state').textContent."+
		"startsWith('Not live since ')", patience)
}
