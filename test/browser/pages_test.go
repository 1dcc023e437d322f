package browser_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestPressedOnceItListens: a page is there before its module listens, and what is pressed waits for that.
func TestPressedOnceItListens(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	site := http.NewServeMux()
	site.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><title>late</title><link rel="icon" href="data:,">
<script type="module" src="/late.js"></script><a href="/next">Next</a><button>Press</button>`)
	})
	site.HandleFunc("/late.js", func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(time.Second)
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, `document.querySelector('button').onclick = () => { window.pressed = true; };`)
	})
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	p := b.Open(t, server.URL)
	p.Click(t, "a")
	p.Await(t, "is the next page", "location.pathname === '/next' && document.querySelector('button')", patience)
	p.Click(t, "button")
	p.Await(t, "heard it", "window.pressed", patience)
}

// TestBeside: a tab that a link opens is given once it is at its address, however long the server takes.
func TestBeside(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/late" {
			<-time.After(time.Second)
		}
		_, _ = io.WriteString(w, `<!doctype html><title>late</title><a href="/late">Late</a>`)
	}))
	t.Cleanup(server.Close)
	p := b.Open(t, server.URL)
	for range 3 {
		tab := p.Beside(t, "a")
		var path string
		tab.Eval(t, "location.pathname", &path)
		if path != "/late" {
			t.Fatalf("the tab is at %q", path)
		}
		tab.Close(t)
	}
}
