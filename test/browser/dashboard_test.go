package browser_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// streamName is what somebody may call a live stream; it must stay text.
const streamName = `Regatta <script>window.bad = 1</script>`

// TestDashboard: the settings of a live stream with a hostile name are changed, its key is shown and copied, and what
// its encoder sends is drawn, without a reload. The way of a new person is that of TestDashboardTour.
func TestDashboard(t *testing.T) {
	rig.Paced(t)
	b := browser.Start(t)
	s := rig.Start(t, rig.Options{})
	live := s.CreateLive(t, "low", rig.Object{"meta": rig.Object{"title": streamName}})
	p := firstLink(t, b, s)
	looksRight(t, b, p, "first")
	p.Fill(t, "#password", "correct horse battery")
	p.Click(t, "button.main")
	p.Click(t, ".tbl a.name")
	changes(t, b, p)
	p.Await(t, "is kept up to date", "document.getElementById('link-state')?.className === 'state ok'", patience)
	p.Eval(t, "window.same = true", nil)
	s.Publish(t, live.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	p.Await(t, "says LIVE", "window.same && document.querySelector('#head .live')?.textContent === 'LIVE'", patience)
	copies(t, p, live)
	measures(t, p)
	p.StaysHome(t, s.HTTP)
	quiet(t, p, "")
	p.Await(t, "no script of a name ran", "window.bad === undefined", patience)
}

// firstLink opens the page on which the password is set.
func firstLink(t testing.TB, b *browser.Browser, s *rig.Server) *browser.Page {
	t.Helper()
	s.AwaitLog(t, patience, "/dashboard/link/")
	return b.Open(t, s.HTTP+regexp.MustCompile(`/dashboard/link/\w+`).FindString(s.Log()))
}

// quiet fails the test for what the page's console has, but for lines with these words.
func quiet(t *testing.T, p *browser.Page, but string) {
	t.Helper()
	for _, line := range p.Log(t).Console {
		if but == "" || !strings.Contains(line, but) {
			t.Errorf("the console has %q", line)
		}
	}
}

// copies shows the key and hides it again, and copies a command that has it.
func copies(t *testing.T, p *browser.Page, live rig.Object) {
	t.Helper()
	key := live.Text("stream_key")
	p.Eval(t, "navigator.clipboard.writeText = async (text) => { window.copied = text; }", nil)
	p.Click(t, "#tab-ffmpeg")
	p.Click(t, "#panel-ffmpeg button[data-copy]")
	p.Await(t, "copies the command with the key", fmt.Sprintf("window.copied?.includes('/app/%s')", key), patience)
	p.Click(t, "#tab-OBS")
	p.Await(t, "hides the key", fmt.Sprintf("!document.body.textContent.includes('%s')", key), patience)
	p.Click(t, "#panel-OBS [data-show]")
	p.Await(t, "shows the key", fmt.Sprintf("document.querySelector('#panel-OBS [data-shown]').textContent === '%s'",
		key), patience)
	p.Click(t, "#panel-OBS [data-show]")
	p.Await(t, "hides it again", fmt.Sprintf("!document.body.textContent.includes('%s')", key), patience)
}

// looksRight has axe look at a page, light and dark: nothing serious is wrong for who sees, hears or moves otherwise,
// and nothing is cut off at a side. In the dark it looks at colours alone: that is all that differs.
func looksRight(t *testing.T, b *browser.Browser, p *browser.Page, name string) {
	t.Helper()
	hasRoom(t, p, name)
	axe, err := os.ReadFile(b.Module("axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	p.Eval(t, string(axe), nil)
	for _, look := range [][2]string{{"light", ""}, {"dark", "{runOnly: ['color-contrast', 'link-in-text-block']}"}} {
		theme, only := look[0], look[1]
		p.Eval(t, "document.documentElement.dataset.theme = '"+theme+"'", nil)
		p.Await(t, "has its colours", "!document.getAnimations().some((a) => a.playState === 'running' && "+
			"a.effect.getComputedTiming().endTime < Infinity)", patience)
		p.Screenshot(t, name+"-"+theme)
		var found []string
		p.Eval(t, `axe.run(`+only+`).then((r) => r.violations
			.filter((v) => v.impact === 'serious' || v.impact === 'critical')
			.map((v) => v.id + ' at ' + v.nodes.map((n) => n.target).join(', ')))`, &found)
		if len(found) > 0 {
			t.Errorf("%s, %s: axe finds %q", name, theme, found)
		}
	}
}
