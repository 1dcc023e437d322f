// The picture over the seek bar: what is to be seen where the pointer, or the handle while it is moved, stands. All pictures
// are in one image, which is asked for when the seek bar is first touched: the service makes it then.
import { clock } from './controls.js';

const LONGER = 160; // pixels of the longer side of a picture, at most
const THUMB = 16; // pixels: the width of the seek bar's handle, whose middle stands for the time
const AGAIN = 60000; // ms between two looks for the pictures of what still grows

// storyboard shows pictures over the seek bar in an element, until a signal aborts. address is that of storyboard.json;
// empty: there are only times.
export function storyboard(stage, address, signal) {
  const el = (id) => stage.querySelector('#' + id);
  const [seek, peek, tile] = [el('seek'), el('peek'), el('tile')];
  let board = null; // the layout, and its image when that is here
  let asked = -AGAIN;
  let at = 0; // the second that is looked at

  // load fetches the layout and the image. Where there are none, as of sound without a picture, the time stands alone.
  async function load() {
    if (!address || performance.now() - asked < AGAIN || board && at <= board.duration) return;
    asked = performance.now();
    try {
      const response = await fetch(address, { credentials: 'omit', signal });
      if (!response.ok) return;
      const layout = await response.json();
      const url = new URL(layout.url);
      const image = new Image();
      image.src = url.pathname + url.search; // of this origin: pages load nothing from elsewhere
      await image.decode();
      board = { ...layout, image };
    } catch {
      return; // nothing is lost but a picture
    }
    if (!peek.hidden) draw();
  }

  function draw() {
    el('peek-time').textContent = clock(at - seek.min);
    const picture = board?.tiles.findLast((t) => t.start <= at - seek.min);
    tile.hidden = !picture;
    if (picture) {
      const k = Math.min(LONGER, stage.clientWidth / 3) / Math.max(board.tile_width, board.tile_height);
      const set = (name, value) => tile.style.setProperty(name, value);
      set('width', board.tile_width * k + 'px');
      set('height', board.tile_height * k + 'px');
      set('background-image', `url("${board.image.src}")`);
      set('background-size', board.image.naturalWidth * k + 'px auto');
      set('background-position', -picture.x * k + 'px ' + -picture.y * k + 'px');
      tile.dataset.start = picture.start;
    }
    const width = seek.clientWidth;
    const middle = THUMB / 2 + (at - seek.min) / (seek.max - seek.min || 1) * (width - THUMB);
    const half = peek.offsetWidth / 2;
    peek.style.setProperty('left', Math.min(Math.max(middle, half), width - half) + 'px');
  }

  function look(second) {
    at = Math.min(Math.max(second, Number(seek.min)), Number(seek.max));
    peek.hidden = false;
    draw();
    load();
  }

  const hide = () => { peek.hidden = true; };
  const on = (event, run) => seek.addEventListener(event, run, { signal });
  on('pointermove', (e) => {
    const { left, width } = seek.getBoundingClientRect();
    const share = (e.clientX - left - THUMB / 2) / (width - THUMB);
    look(Number(seek.min) + share * (seek.max - seek.min));
  });
  on('input', () => look(Number(seek.value)));
  for (const e of ['pointerleave', 'pointercancel', 'blur']) on(e, hide);
  on('pointerup', (e) => { if (e.pointerType === 'touch') hide(); });
}
