package browser_test

import (
	"testing"

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
	p.Await(t, "shows captions above the controls", "[...video.textTracks].some((t) => t.mode === 'showing' && "+
		"t.activeCues?.[0]?.text === 'Hei maailma' && t.activeCues[0].line < -1)", patience)
	press(t, p, "k")
	p.Await(t, "stands", "video.paused", patience)

	var at float64
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

// press presses a key where the focus is.
func press(t testing.TB, p *browser.Page, key string) {
	t.Helper()
	p.Eval(t, "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: '"+key+"', bubbles: true}))", nil)
}
