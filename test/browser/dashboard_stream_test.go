package browser_test

import (
	"testing"

	"millrace/test/browser"
)

// changes edits the live stream whose page is open.
func changes(t *testing.T, p *browser.Page) {
	t.Helper()
	p.Click(t, "#edit")
	p.Fill(t, "#passthrough", streamName)
	p.Click(t, "form.make button.main")
	p.Await(t, "is changed", "document.getElementById('facts')?.textContent.includes('window.bad')", patience)
}
