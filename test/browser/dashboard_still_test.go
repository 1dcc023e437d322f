package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// mostShift is how far the parts of a page may move by themselves, as the cumulative layout shift of browsers; 0.1 is
// what is still called good.
const mostShift = 0.02

// TestDashboardStandsStill: what is read stays where it is while the scripts and pictures of a page come late, and
// while it is kept up to date.
func TestDashboardStandsStill(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	pages := filledDashboard(t, b, s)
	for range 12 { // a screen full of them
		s.CreateLive(t, "low", nil)
		s.CreateAsset(t, s.HTTP+"/nothing.mp4")
	}
	changes := []string{
		strings.Replace(pages["stream"], "/dashboard/live/", "/video/v1/live-streams/", 1),
		strings.Replace(pages["asset"], "/dashboard/assets/", "/video/v1/assets/", 1),
	}
	late := lateScripts(t, s.HTTP)
	for name, path := range pages {
		widths := []int{large}
		if slices.Contains([]string{"list", "assets", "events"}, name) {
			widths = append(widths, phone)
		}
		for _, width := range widths {
			b.Forget(t)
			p := b.OpenSize(t, late+path, width, 800)
			p.Await(t, "is there", "document.readyState === 'complete'", patience)
			p.Await(t, "is kept up to date", "!document.querySelector('[data-follow]') || "+
				"document.getElementById('link-state').className === 'state ok'", patience)
			if len(widths) > 1 {
				changed(t, s, p, changes, fmt.Sprintf("Regatta of %s, %d", name, width))
			}
			standsStill(t, p, fmt.Sprintf("%s-%d", name, width))
			p.Close(t)
		}
	}
}

// changed gives objects another name, and awaits that a list shows it, or says that there is more.
func changed(t *testing.T, s *rig.Server, p *browser.Page, objects []string, name string) {
	t.Helper()
	for _, path := range objects {
		meta := rig.Object{"meta": rig.Object{"title": name}}
		if code, said := s.Do(t, http.MethodPatch, path, meta); code != http.StatusOK {
			t.Fatalf("PATCH %s: %d %v", path, code, said)
		}
	}
	p.Await(t, "has what changed", "document.querySelector('main').textContent.includes("+quoted(name)+") || "+
		"location.pathname === '/dashboard/events' && document.querySelector('#news a')", patience)
}

// lateScripts serves what a server does, scripts and pictures half a second later.
func lateScripts(t *testing.T, origin string) string {
	t.Helper()
	u, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { // also when a page is closed
		w.WriteHeader(http.StatusBadGateway)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".js") || strings.Contains(r.URL.Path, "thumbnail") {
			<-time.After(500 * time.Millisecond)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// standsStill fails the test for a page whose parts have moved too far, and says which.
func standsStill(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	var moved struct {
		By    float64
		Parts []string
	}
	p.Eval(t, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => {
		const seen = new PerformanceObserver(() => {});
		seen.observe({ type: 'layout-shift', buffered: true });
		const all = seen.takeRecords().filter((e) => !e.hadRecentInput);
		const named = (n) => n ? (n.id && '#' + n.id) || n.className ||
			n.nodeName + ' ' + n.textContent.slice(0, 20) : 'gone';
		const at = (r) => [r.x, r.y, r.width, r.height].map(Math.round).join(' ');
		return {
			By: all.reduce((n, e) => n + e.value, 0),
			Parts: all.map((e) => e.value.toFixed(4) + ': ' + e.sources.map((s) =>
				named(s.node) + ' from ' + at(s.previousRect) + ' to ' + at(s.currentRect)).join(', ')),
		};
	})`, &moved)
	t.Logf("%s: moved by %.4f", name, moved.By)
	if moved.By > mostShift {
		t.Errorf("%s: moved by %.4f:\n%s", name, moved.By, strings.Join(moved.Parts, "\n"))
	}
}
