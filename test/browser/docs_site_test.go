package browser_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/web/docsite"
	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDocsSite: pages of the documentation work from a disk and below a path of a server. Their search finds a section,
// code is copied, colours switch, and on a phone nothing is wider than the screen.
func TestDocsSite(t *testing.T) {
	rig.Parallel(t)
	files, err := docsite.Build(os.DirFS("../../docs"), docsite.Options{})
	made(t, err)
	dir := t.TempDir()
	for name, b := range files {
		at := filepath.Join(dir, name)
		made(t, os.MkdirAll(filepath.Dir(at), 0o755))
		made(t, os.WriteFile(at, b, 0o600))
	}
	server := httptest.NewServer(http.StripPrefix("/below/a/path/", http.FileServer(http.Dir(dir))))
	t.Cleanup(server.Close)
	b := browser.Start(t)
	for name, base := range map[string]string{"disk": "file://" + dir, "server": server.URL + "/below/a/path"} {
		p := b.Open(t, base+"/webhooks.html")
		docsSearch(t, p, name)
		if log := p.Log(t); len(log.Errors)+len(log.Console)+len(log.Failed) > 0 {
			t.Errorf("%s: %v", name, log)
		}
		p.Close(t)
	}
	phone := b.OpenSize(t, "file://"+dir+"/index.html", 360, 740)
	phone.Click(t, ".menu-open")
	phone.Await(t, "menu", `document.querySelector('#pages').offsetParent !== null || `+
		`getComputedStyle(document.querySelector('#pages')).display === 'block'`, 5*time.Second)
	for name := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		phone.Eval(t, `location.href = "`+name+`"`, nil)
		phone.Await(t, name, `location.pathname.endsWith("/`+name+`") && document.readyState === 'complete'`,
			10*time.Second)
		var wide int
		phone.Eval(t, `document.documentElement.scrollWidth - innerWidth`, &wide)
		if wide > 0 {
			t.Errorf("%s is %d pixels wider than a phone", name, wide)
		}
	}
}

// docsSearch looks for a section of another page, goes there, switches the colours and copies code.
func docsSearch(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	var dark, before bool
	const isDark = `getComputedStyle(document.body).colorScheme.includes('dark') && ` +
		`document.documentElement.dataset.theme === 'dark'`
	p.Eval(t, isDark, &before)
	p.Click(t, "#theme")
	p.Eval(t, isDark, &dark)
	if dark == before {
		t.Errorf("%s: the colours stay dark: %t", name, dark)
	}
	p.Fill(t, "#find", "reverse proxy cdn")
	p.Await(t, name+" search", `document.querySelectorAll('#found a').length > 0`, 10*time.Second)
	var first string
	p.Eval(t, `document.querySelector('#found a').getAttribute('href')`, &first)
	if !strings.Contains(first, ".html#") {
		t.Errorf("%s: the search leads to %s first", name, first)
	}
	p.Click(t, "#found a")
	p.Await(t, name+" found", `location.hash !== '' && document.querySelector(location.hash) !== null && `+
		`document.readyState === 'complete'`, 10*time.Second) // with its style sheets
	p.Eval(t, isDark, &before)
	if before != dark {
		t.Errorf("%s: the colours are forgotten", name)
	}
	p.Eval(t, `document.execCommand = () => { window.copied = document.activeElement.value; return true; };`+
		`navigator.clipboard && (navigator.clipboard.writeText = async (text) => { window.copied = text; })`, nil)
	p.Click(t, ".code .copy")
	p.Await(t, name+" copied", `window.copied === document.querySelector('.code code').textContent`, 5*time.Second)
}
