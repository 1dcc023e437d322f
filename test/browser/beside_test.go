package browser_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestBeside: a tab that a link opens is given once it is at its address, however long the server takes.
func TestBeside(t *testing.T) {
	rig.Parallel(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/late" {
			<-time.After(time.Second)
		}
		_, _ = w.Write([]byte(`<a href="/late">late</a>`))
	}))
	t.Cleanup(srv.Close)
	page := browser.Start(t).Open(t, srv.URL)
	for range 3 {
		var at string
		tab := page.Beside(t, "a")
		if tab.Eval(t, "location.href", &at); at != srv.URL+"/late" {
			t.Fatalf("the tab is at %s", at)
		}
		tab.Close(t)
	}
}
