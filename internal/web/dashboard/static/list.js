// The lists of live streams and assets: keys to go through it, and newer pictures of those that are on air.
// EVERY is how many ms there are between two pictures: each costs the server the decoding of a key frame, so a page asks
// for one at a time, row after row.
const EVERY = 2000;
const still = matchMedia('(prefers-reduced-motion: reduce)');
let turn = 0;
let asked = null; // the picture that is on its way

document.addEventListener('keydown', (e) => {
  const step = { j: 1, k: -1 }[e.key];
  if (!step || e.altKey || e.ctrlKey || e.metaKey) return;
  if (e.target.closest('input:not([type=radio]), select, textarea, dialog')) return;
  const links = [...document.querySelectorAll('.tbl .go')];
  const at = links.findIndex((link) => link.closest('tr').contains(document.activeElement));
  const to = at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step;
  if (!links[to]) return;
  e.preventDefault();
  links[to].focus();
});

function seen(img) {
  const { top, bottom } = img.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

function newer() {
  if (document.hidden || still.matches || navigator.connection?.saveData || asked) return;
  const pictures = [...document.querySelectorAll('img[data-newest]')].filter(seen);
  if (!pictures.length) return;
  const img = pictures[turn++ % pictures.length];
  asked = new Image();
  asked.addEventListener('load', () => { img.src = asked.src; asked = null; });
  asked.addEventListener('error', () => { asked = null; }); // the one that is there stays
  asked.src = img.dataset.newest + '&at=' + Math.floor(Date.now() / EVERY);
}

setInterval(newer, EVERY);
