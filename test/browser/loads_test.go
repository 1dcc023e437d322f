package browser_test

import (
	"fmt"
	"slices"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// BenchmarkFirstLoads measures how long pages of the dashboard take when nothing of them is in the browser's cache:
// from the start of the navigation to the first paint with content and to the end of the load event. An iteration is
// one load in a tab of its own. The figures stand in BENCHMARKS.md.
func BenchmarkFirstLoads(b *testing.B) {
	const rows = 50 // fill a page
	chromium := browser.Start(b)
	s := rig.Start(b, rig.Options{})
	for n := range rows {
		s.CreateLive(b, "low", rig.Object{"meta": rig.Object{"title": fmt.Sprintf("Regatta, course %d", n)}})
	}
	p := firstLink(b, chromium, s)
	p.Fill(b, "#password", "correct horse battery")
	loads(b, chromium, "sign-in", s.HTTP+"/dashboard/sign-in")
	p.Click(b, "button.main")
	p.Await(b, "is signed in", "location.pathname === '/dashboard/live'", patience)
	loads(b, chromium, "live", s.HTTP+"/dashboard/live")
}

// loads is the part of BenchmarkFirstLoads that measures one page.
func loads(b *testing.B, chromium *browser.Browser, name, url string) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		var paints, ends []float64
		for b.Loop() {
			chromium.Forget(b)
			p := chromium.Open(b, url)
			p.Await(b, "is loaded and painted", "performance.getEntriesByType('navigation')[0].loadEventEnd && "+
				"performance.getEntriesByName('first-contentful-paint').length", patience)
			var seen struct {
				Address          string
				Rows, Kept       int
				Paint, End, Size float64
			}
			p.Eval(b, `(() => {
				const [page] = performance.getEntriesByType('navigation');
				const all = [page, ...performance.getEntriesByType('resource')];
				return {
					address: location.href, rows: document.querySelectorAll('.tbl tbody tr').length,
					kept: all.filter((e) => e.name.startsWith('http') && !e.transferSize).length,
					paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
					end: page.loadEventEnd, size: all.reduce((n, e) => n + (e.transferSize || 0), 0),
				};
			})()`, &seen)
			if seen.Address != url || seen.Kept > 0 {
				b.Fatalf("%s: is %+v", url, seen)
			}
			paints, ends = append(paints, seen.Paint), append(ends, seen.End)
			b.ReportMetric(seen.Size/1000, "kB")
			b.ReportMetric(float64(seen.Rows), "rows")
			p.Close(b)
		}
		slices.Sort(paints)
		slices.Sort(ends)
		b.ReportMetric(paints[len(paints)/2], "ms-paint")
		b.ReportMetric(ends[len(ends)/2], "ms-load")
		b.ReportMetric(ends[len(ends)-1], "ms-load-worst")
	})
}
