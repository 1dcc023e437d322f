package browser_test

import (
	"testing"

	"millrace/test/browser"
)

// changes edits the live stream whose page is open, and adds a target where nobody is.
func changes(t *testing.T, b *browser.Browser, p *browser.Page) {
	t.Helper()
	p.Click(t, "#edit")
	p.Fill(t, "#passthrough", streamName)
	p.Click(t, "form.make button.main")
	// What offers to undo goes after a while, but for as long as the focus is there.
	p.Await(t, "is changed", "document.getElementById('facts')?.textContent.includes('window.bad') && "+
		"(document.querySelector('.undo button').focus(), true)", patience)
	looksRight(t, b, p, "undo")
	p.Click(t, "#add-target")
	p.Fill(t, "#url", "rtmp://127.0.0.1:1/app")
	p.Fill(t, "#stream_key", "not-for-eyes")
	p.Click(t, "form.make button.main")
	p.Await(t, "has the target", "document.querySelector('.target .state')?.textContent === 'Idle'", patience)
}

// measures awaits what the encoder sends, and what became of the target, on the page that is open.
func measures(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Await(t, "tells what became of the target",
		"window.same && document.querySelector('.target .state.warn')", patience)
	p.Await(t, "draws the bitrate",
		"window.same && document.querySelector('#health .ln')?.getTotalLength() > 0", patience)
	p.Click(t, "#minutes-s")
	p.Eval(t, "window.was = document.querySelector('#health .ln').getAttribute('d')", nil)
	p.Await(t, "draws it again, and leaves the table open",
		"document.querySelector('#health .ln').getAttribute('d') !== window.was && "+
			"document.getElementById('minutes').open", patience)
	for _, part := range []string{"health", "simulcast"} {
		p.Eval(t, "document.getElementById('"+part+"').scrollIntoView()", nil)
		p.Screenshot(t, part)
	}
}
