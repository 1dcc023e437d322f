package browser_test

import (
	"fmt"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDashboardSettings makes and revokes an access token, has everything looked at, and sees a form as code that
// follows what is typed, on a large screen and a small one.
func TestDashboardSettings(t *testing.T) {
	rig.Parallel(t, rig.Long)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	first := firstLink(t, b, s)
	first.Fill(t, "#password", "correct horse battery")
	first.Click(t, "button.main")
	first.Await(t, "is signed in", "location.pathname === '/dashboard/live'", patience)
	signedLink(t, b, s)
	for _, width := range []int{large, phone} {
		p := b.OpenSize(t, s.HTTP+"/dashboard/live", width, 800)
		p.Click(t, ".side a[href='/dashboard/settings/tokens']")
		p.Click(t, ".sec-h a.main")
		p.Fill(t, "#name", fmt.Sprintf("Uploads %d", width))
		p.Click(t, "form.make button.main")
		p.Await(t, "shows the secret",
			"document.querySelector('[data-line=Secret]')?.textContent.length > 20", patience)
		looksRight(t, b, p, fmt.Sprintf("token-made-%d", width))
		p.Eval(t, "navigator.clipboard.writeText = async (text) => { window.copied = text; }", nil)
		p.Click(t, "[aria-label='Copy Secret']")
		p.Await(t, "copies it", "window.copied === document.querySelector('[data-line=Secret]').textContent", patience)
		p.Click(t, "main a.btn")
		revoke := fmt.Sprintf("a[aria-label='Revoke Uploads %d']", width)
		p.Click(t, revoke)
		p.Await(t, "asks", "document.querySelector('dialog')?.textContent.includes('It was never used.')", patience)
		p.Click(t, "dialog button.harm")
		p.Await(t, "has it no more", fmt.Sprintf("document.querySelector('.tbl') && "+
			"!document.querySelector(%q)", revoke), patience)

		p.Click(t, ".local a[href='/dashboard/settings/health']")
		p.Click(t, ".look button")
		p.Await(t, "says what was found", "document.querySelectorAll('.found li').length > 5", patience)
		looksRight(t, b, p, fmt.Sprintf("health-found-%d", width))
		p.Close(t)

		p = b.OpenSize(t, s.HTTP+"/dashboard/live/new", width, 800)
		p.Click(t, ".as-code summary")
		p.Fill(t, "#title", `"Heats"<img src=x onerror="window.bad = 1">`)
		p.Await(t, "follows what is typed", "[...document.querySelectorAll('.as-code pre')].every((e) => "+
			`e.textContent.includes('Heats') || e.textContent.includes("can't send: meta"))`, patience)
		looksRight(t, b, p, fmt.Sprintf("as-code-%d", width))
		p.Await(t, "no script of a name ran", "window.bad === undefined", patience)
		quiet(t, p, "")
		p.Close(t)
	}
}

// signedLink makes a signing key, saves it, and makes a link with it by which the watch page plays a live stream.
func signedLink(t *testing.T, b *browser.Browser, s *rig.Server) {
	t.Helper()
	live := s.CreateLive(t, "low", rig.Object{"playback_policies": []string{"signed"}})
	encoder := s.Publish(t, live.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	defer encoder.Stop()
	p := b.OpenSize(t, s.HTTP+"/dashboard/settings/signing-keys", phone, 800)
	p.Click(t, "#new-key")
	p.Await(t, "shows the private half", "document.querySelector('[data-line^=Private]')", patience)
	looksRight(t, b, p, "key-made-phone")
	p.Eval(t, `(HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; },
		URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return 'blob:x'; })`,
		nil)
	p.Click(t, "[data-pem]")
	p.Await(t, "saves a PEM", "window.saved === atob(document.querySelector('[data-line^=Private]').textContent) && "+
		"window.savedAs.endsWith('.pem')", patience)
	var private string
	p.Eval(t, "document.querySelector('[data-line^=Private]').textContent", &private)
	p.Close(t)

	p = b.OpenSize(t, s.HTTP+"/dashboard/live/"+live.Text("id"), phone, 800)
	p.Click(t, "#facts a[href$='/link']")
	p.Await(t, "asks for the private half", "document.getElementById('private_key')", patience)
	looksRight(t, b, p, "signed-link-phone")
	p.Fill(t, "#private_key", private)
	p.Click(t, "form.make button.main")
	p.Await(t, "has the link", "document.getElementById('open')", patience)
	looksRight(t, b, p, "signed-link-made-phone")
	var watch string
	p.Eval(t, "document.querySelector('[data-line=\"Watch page\"]').textContent", &watch)
	quiet(t, p, "")
	p.Close(t)
	p = b.Open(t, watch)
	p.Plays(t, 0.5, patience)
	p.Close(t)
}
