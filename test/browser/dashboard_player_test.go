package browser_test

import (
	"slices"
	"testing"
	"time"

	"millrace/test/browser"
)

// usesPlayer goes through the player of the film of TestDashboardAssets, and leaves it at 2.5 s.
func usesPlayer(t *testing.T, b *browser.Browser, p *browser.Page) {
	t.Helper()
	p.Await(t, "has its own controls", "!video.controls && document.getElementById('play').checkVisibility()", patience)
	p.Select(t, "#quality", "270p")
	p.Await(t, "holds the quality", "millrace.hls.manualLevel >= 0 && !millrace.hls.autoLevelEnabled && "+
		"millrace.hls.levels[millrace.hls.manualLevel].height === 270", patience)
	p.Eval(t, "scrollTo(0, 0)", nil)
	looksRight(t, b, p, "menu")
	p.Click(t, "h1") // closes the menu
	p.Await(t, "has no menu open", "!document.getElementById('menu').open", patience)

	p.Eval(t, "video.muted = true; document.getElementById('stage').focus()", nil)
	press(t, p, "k")
	p.Await(t, "plays by a key, in that quality", "!video.paused && video.currentTime > 1 && video.videoHeight === 270",
		patience)
	if shows(t, p, "#live") || shows(t, p, "#delay") {
		t.Error("what is recorded has a way to a live edge")
	}
	p.Eval(t, "[...video.textTracks].some((t) => t.mode === 'showing') && "+
		"document.getElementById('captions').click()", nil) // a track that is the default is on from the first
	press(t, p, "c")
	showsCaption(t, p, "Hei maailma")
	press(t, p, "k")
	p.Await(t, "stands", "video.paused", patience)
	captionsStandClear(t, p)
	p.Eval(t, "document.getElementById('stage').focus()", nil)
	press(t, p, "c")
	p.Await(t, "shows none", "![...video.textTracks].some((t) => t.mode === 'showing')", patience)
	press(t, p, "c")
	showsCaption(t, p, longCue)
	aboveControls(t, p, "off and on, paused")

	var at float64
	p.Eval(t, "document.getElementById('stage').focus(); video.currentTime = 2", nil)
	p.Eval(t, "video.currentTime", &at)
	press(t, p, "ArrowRight")
	p.Eval(t, "video.currentTime", &at)
	if at < 5 || at > 12 {
		t.Errorf("by an arrow it goes to %.1f s", at)
	}
	p.Eval(t, `scrollTo(0, 0); (() => {
		const {left, width} = seek.getBoundingClientRect();
		seek.dispatchEvent(new PointerEvent('pointermove', {clientX: left + width / 2}));
	})()`, nil)
	p.Await(t, "shows the picture there", "tile.checkVisibility() && Math.abs(tile.dataset.start - 6) < 0.5 && "+
		"tile.style.backgroundImage.includes('/storyboard.jpg') && "+
		"Math.abs(tile.getBoundingClientRect().x + tile.offsetWidth / 2 - innerWidth / 2) < innerWidth / 2", patience)
	looksRight(t, b, p, "storyboard")
	p.Eval(t, "seek.dispatchEvent(new PointerEvent('pointerleave'))", nil)
	if shows(t, p, "#tile") {
		t.Error("the picture over the seek bar stays when the pointer leaves")
	}
	p.Eval(t, "video.currentTime = 2.5; scrollTo(0, 0)", nil)
	looksRight(t, b, p, "ready")
}

// longCue is a caption that takes several lines on a phone.
const longCue = "Tämä teksti on niin pitkä, että se ei mahdu yhdelle riville kapeassa kuvassa, vaan vie niitä monta"

// showsCaption awaits the caption that is shown.
func showsCaption(t *testing.T, p *browser.Page, text string) {
	t.Helper()
	p.Await(t, "shows "+text, "[...video.textTracks].some((t) => t.mode === 'showing' && "+
		"t.activeCues?.[0]?.text === "+quoted(text)+")", patience)
}

// captionsStandClear seeks in a player that is paused, and makes it smaller and as large as the screen: no line of a
// caption lies under the controls, which are shown all the time.
func captionsStandClear(t *testing.T, p *browser.Page) {
	t.Helper()
	aboveControls(t, p, "paused")
	press(t, p, "ArrowRight")
	showsCaption(t, p, longCue)
	aboveControls(t, p, "behind a key")
	p.Eval(t, "video.currentTime = 1", nil)
	showsCaption(t, p, "Hei maailma")
	aboveControls(t, p, "behind a seek")
	p.Eval(t, "video.currentTime = 6", nil)
	showsCaption(t, p, longCue)
	p.Resize(t, 320, 640)
	aboveControls(t, p, "on a phone")
	p.Resize(t, 1280, 800)
	aboveControls(t, p, "on a large screen again")
	p.Click(t, "#full")
	p.Await(t, "fills the screen", "document.fullscreenElement", patience)
	aboveControls(t, p, "in full screen")
	p.Click(t, "#full")
	p.Await(t, "fills it no more", "!document.fullscreenElement", patience)
	aboveControls(t, p, "in the page again")
}

// aboveControls awaits that each line of the captions that are shown ends where the controls begin, and that there are
// some.
func aboveControls(t *testing.T, p *browser.Page, when string) {
	t.Helper()
	var top float64
	var lines []browser.Box
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		p.Eval(t, "((bar) => bar.getBoundingClientRect().top + parseFloat(getComputedStyle(bar).paddingTop))"+
			"(document.getElementById('controls'))", &top)
		lines = p.Cues(t)
		under := func(line browser.Box) bool { return line.Bottom > top+1 }
		if len(lines) > 0 && !slices.ContainsFunc(lines, under) {
			p.Screenshot(t, "captions-"+when)
			return
		}
		if time.Now().After(end) {
			p.Screenshot(t, "captions-"+when)
			t.Fatalf("%s: the controls begin at %.0f, and captions have %+v", when, top, lines)
		}
	}
}

// press presses a key where the focus is.
func press(t testing.TB, p *browser.Page, key string) {
	t.Helper()
	p.Eval(t, "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '"+key+"', bubbles: true}))",
		nil)
}
