package browser_test

import (
	"fmt"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDashboardPages: each page is right for who sees, hears or moves otherwise, on a large screen and a small one,
// light and dark, while a live stream with a hostile name is on air. On one in between it has room.
func TestDashboardPages(t *testing.T) {
	rig.Parallel(t)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	live := s.CreateLive(t, "low", rig.Object{"meta": rig.Object{"title": streamName}})
	s.Publish(t, live.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	p := firstLink(t, b, s)
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	p.Await(t, "says LIVE", "document.querySelector('.tbl .live')?.textContent === 'LIVE'", patience)
	id := live.Text("id")
	pages := dashboardPages("/dashboard/live/"+id, "/dashboard/assets/"+s.Live(t, id).Text("active_asset_id"))
	for width, screen := range map[int]string{large: "large", phone: "phone"} {
		t.Run(screen, func(t *testing.T) {
			rig.Parallel(t)
			for name, path := range pages {
				p := b.OpenSize(t, s.HTTP+path, width, 800)
				p.Await(t, "is there", "document.readyState === 'complete'", patience)
				looksRight(t, b, p, fmt.Sprintf("%s-%d", name, width))
				var bytes int
				p.Eval(t, "performance.getEntries().reduce((n, e) => n + (e.encodedBodySize || 0), 0)", &bytes)
				if bytes > 150_000 && name != "stream" && name != "asset" { // those have a player
					t.Errorf("%s takes %d bytes", name, bytes)
				}
				if width == large {
					p.Resize(t, tablet, 800)
					p.Screenshot(t, name+"-tablet")
					hasRoom(t, p, name+", on a tablet")
				}
				p.Close(t)
			}
		})
	}
}

// dashboardPages gives the paths of all pages, by name.
func dashboardPages(stream, asset string) map[string]string {
	return map[string]string{
		"list": "/dashboard/live", "none": "/dashboard/live?q=no+such", "new": "/dashboard/live/new", "stream": stream,
		"edit": stream + "/edit", "target": stream + "/targets/new",
		"delete": stream + "/delete", "refused": "/dashboard/other",
		"assets": "/dashboard/assets", "add": "/dashboard/assets/new", "asset": asset,
		"tokens": "/dashboard/settings/tokens", "token": "/dashboard/settings/tokens/new",
		"keys":         "/dashboard/settings/signing-keys",
		"restrictions": "/dashboard/settings/restrictions", "restriction": "/dashboard/settings/restrictions/new",
		"webhooks": "/dashboard/webhooks", "webhook-form": "/dashboard/webhooks/new",
		"events": "/dashboard/events", "event": "/dashboard/events/1",
		"defaults": "/dashboard/settings/defaults", "health": "/dashboard/settings/health",
		"nodes": "/dashboard/settings/nodes",
	}
}
