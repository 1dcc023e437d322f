package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDashboardWebhooks makes a webhook for a receiver that takes nothing at first, sends it a test event, and sees the
// delivery come, with what the receiver says as text.
func TestDashboardWebhooks(t *testing.T) {
	rig.Parallel(t, rig.Long)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("<script>window.bad = 1</script> Not today."))
		}
	}))
	t.Cleanup(receiver.Close)
	p := firstLink(t, b, s)
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	p.Click(t, ".side a[href='/dashboard/events']")
	p.Click(t, ".local a[href='/dashboard/webhooks']")
	p.Click(t, ".empty a.main")
	p.Fill(t, "#address", receiver.URL+"/broken")
	p.Click(t, "[data-chosen]")
	p.Click(t, "[name=type][value='video.asset.ready']")
	looksRight(t, b, p, "webhook-form-chosen")
	p.Click(t, "form.make button.main")
	p.Await(t, "shows the secret", "document.querySelector('[data-line]')?.textContent.startsWith('whsec_')", patience)
	looksRight(t, b, p, "webhook-secret")
	p.Eval(t, "navigator.clipboard.writeText = async (text) => { window.copied = text; }", nil)
	p.Click(t, "[aria-label='Copy Signing secret']")
	p.Await(t, "copies it", "window.copied === document.querySelector('[data-line]').textContent", patience)
	p.Click(t, "main .once a.btn")
	p.Await(t, "is kept up to date", "document.getElementById('link-state')?.className === 'state ok'", patience)
	looksRight(t, b, p, "webhook-made")
	p.Await(t, "shows the secret no more", "!document.documentElement.outerHTML.includes('whsec_')", patience)
	p.Click(t, "#test")
	p.Await(t, "has failed", "document.querySelector('#deliveries .state.warn') && "+
		"document.querySelector('#trouble .notice')", patience)
	p.Click(t, "#deliveries summary")
	p.Await(t, "says what came", "document.querySelector('.tries pre').textContent.includes('</script> Not today.')",
		patience)
	looksRight(t, b, p, "webhook-fails")

	p.Click(t, "#test")
	p.Await(t, "waits for the one before",
		"document.querySelector('#deliveries p a[href^=\"/dashboard/events/\"]')", patience)
	looksRight(t, b, p, "webhook-waits")
	p.Click(t, "#deliveries li:last-child [data-ask]")
	p.Await(t, "asks", "document.querySelector('dialog h1')?.textContent === 'Skip this event?'", patience)
	looksRight(t, b, p, "webhook-skip")
	p.Click(t, "dialog button.harm")
	p.Await(t, "is skipped, and the next one is tried",
		"document.querySelector('#deliveries li:last-child .state.off') && "+
			"document.querySelector('#deliveries li:first-child .state.warn')", patience)
	p.Click(t, "#edit")
	p.Fill(t, "#address", receiver.URL+"/hook/"+strings.Repeat("a", 200))
	p.Click(t, "form.make button.main")
	p.Click(t, "#retry")
	p.Await(t, "is delivered", "document.querySelector('#deliveries .state.ok') && "+
		"!document.querySelector('#trouble .notice')", patience)
	p.Await(t, "no script of a response ran", "window.bad === undefined", patience)
	for _, width := range []int{large, phone} {
		for name, path := range map[string]string{
			"webhooks-list": "/dashboard/webhooks", "webhook-sent": pathOf(t, p), "event-sent": "/dashboard/events/1",
		} {
			q := b.OpenSize(t, s.HTTP+path, width, 800)
			looksRight(t, b, q, fmt.Sprintf("%s-%d", name, width))
			q.Close(t)
		}
	}
	quiet(t, p, "")
	anotherSecret(t, b, s.HTTP+pathOf(t, p))
	p.Click(t, "#more")
	p.Click(t, "#head .menu .harm")
	p.Click(t, "dialog button.harm")
	p.Await(t, "has it no more", "location.pathname === '/dashboard/webhooks' && document.querySelector('.empty')",
		patience)
	p.StaysHome(t, s.HTTP)
}

// anotherSecret makes a new secret on a small screen: the page of the webhook says that the one before signs too.
func anotherSecret(t *testing.T, b *browser.Browser, page string) {
	t.Helper()
	p := b.OpenSize(t, page, phone, 800)
	defer p.Close(t)
	p.Click(t, "main .pairs a[data-ask]")
	p.Click(t, "dialog button.harm")
	p.Await(t, "shows the new secret",
		"document.querySelector('[data-line]')?.textContent.startsWith('whsec_')", patience)
	looksRight(t, b, p, "webhook-secret-phone")
	p.Click(t, "main .once a.btn")
	p.Await(t, "tells of the old secret, and has none",
		"document.querySelector('main .pairs')?.textContent.includes('The previous one also signs until') && "+
			"!document.documentElement.outerHTML.includes('whsec_')", patience)
	looksRight(t, b, p, "webhook-secret-old-phone")
}

// pathOf is where a page is.
func pathOf(t *testing.T, p *browser.Page) (path string) {
	t.Helper()
	p.Eval(t, "location.pathname", &path)
	return path
}
