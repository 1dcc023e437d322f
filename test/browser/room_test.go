package browser_test

import (
	"testing"

	"millrace/test/browser"
)

// phone, tablet and large are widths of screens in CSS pixels: the smallest that all pages have room on (WCAG 2.2,
// 1.4.10), one in between, and a usual one.
const (
	phone  = 320
	tablet = 800
	large  = 1280
)

// outside finds what is cut off at a side of the screen: the page itself, when it scrolls sideways; an element that is
// past an edge of the screen, unless something around it scrolls; and one whose content is wider than it is and neither
// scrolls with a bar nor ends with an ellipsis. Fields, drawings, and what only screen readers read are left out.
const outside = `(() => {
	const found = [];
	const wide = document.documentElement.scrollWidth - innerWidth;
	if (wide > 0) found.push('the page, by ' + wide + ' pixels');
	const named = (e) => e.localName + [...e.classList].map((c) => '.' + c).join('') + (e.id && '#' + e.id) + ' “' +
		e.textContent.trim().replace(/\s+/g, ' ').slice(0, 30) + '”';
	const style = (e) => getComputedStyle(e);
	const scrolls = (e) => e && e !== document.body &&
		(['auto', 'scroll', 'hidden', 'clip'].includes(style(e).overflowX) || scrolls(e.parentElement));
	for (const e of document.body.querySelectorAll(':not(.vh, .vh *, .skip, svg *, input, option)')) {
		const box = e.getBoundingClientRect();
		if (!e.checkVisibility() || !box.width || !box.height) continue;
		if ((box.left < -1 || box.right > innerWidth + 1) && !scrolls(e.parentElement))
			found.push(named(e) + ', past the edge');
		const hides = ['hidden', 'clip'].includes(style(e).overflowX) && style(e).textOverflow !== 'ellipsis' ||
			['auto', 'scroll'].includes(style(e).overflowX) && style(e).scrollbarWidth === 'none';
		if (hides && e.scrollWidth > e.clientWidth + 1) found.push(named(e) + ', which hides a part');
	}
	return found;
})()`

// hasRoom fails the test for what is cut off at a side of the screen.
func hasRoom(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	var found []string
	p.Eval(t, outside, &found)
	for _, what := range found {
		t.Errorf("%s: cut off is %s", name, what)
	}
}
