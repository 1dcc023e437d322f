// Captions stand above the controls while those are shown, and above the picture over the seek bar.
const LINE = 0.06; // of the shorter side of the video: the height of a line, as browsers draw it
const LINES = 4; // that stand above the controls at most

// boxed reports whether the browser has captions in a box that a page can style, as Chromium and Safari have. There a cue
// that is shown keeps its place while the video is paused, whatever its line is set to.
const boxed = CSS.supports('selector(::-webkit-media-text-track-container)');

// captions keeps those of the video in an element above its controls, until a signal aborts. Those that have a place of
// their own at the top stay there.
export function captions(stage, signal) {
  const el = (id) => stage.querySelector('#' + id);
  const video = el('video');
  const bar = el('controls');
  const moved = new WeakSet();

  // covered is how much of the video is behind controls, in pixels from the bottom.
  function covered() {
    const gone = stage.hasAttribute('data-quiet') && !bar.querySelector(':focus-visible, details[open]'); // as player.css has it
    if (gone || !bar.checkVisibility()) return 0;
    const top = el('peek').hidden ? bar.getBoundingClientRect().top + parseFloat(getComputedStyle(bar).paddingTop)
      : el('peek').getBoundingClientRect().top;
    return Math.max(0, video.getBoundingClientRect().bottom - top);
  }

  // shrink has the box of captions end where the controls begin. Browsers place a cue at a share of the box that leaves
  // room for its lines in a box as high as the video; in a lower one that share is less than the lines need.
  function shrink() {
    stage.style.setProperty('--covered', Math.ceil(covered() / (1 - LINES * LINE)) + 'px');
  }

  // raise gives cues a line above the controls.
  function raise() {
    const line = LINE * Math.min(video.clientWidth, video.clientHeight) || 1;
    const free = Math.ceil(covered() / line);
    for (const track of video.textTracks) {
      if (track.mode !== 'showing') continue;
      for (const cue of track.activeCues ?? []) {
        if (!cue.snapToLines || cue.line !== 'auto' && !moved.has(cue)) continue;
        moved.add(cue);
        const to = free ? -(free + cue.text.split('\n').length) : 'auto';
        if (cue.line !== to) cue.line = to;
      }
    }
  }

  const place = boxed ? shrink : raise;
  const seen = new MutationObserver(place);
  seen.observe(stage, { attributeFilter: ['data-quiet', 'hidden', 'open'], subtree: true });
  const sized = new ResizeObserver(place);
  for (const box of [stage, bar]) sized.observe(box);
  signal?.addEventListener('abort', () => {
    seen.disconnect();
    sized.disconnect();
  });
  for (const event of ['focusin', 'focusout']) bar.addEventListener(event, () => queueMicrotask(place), { signal });
  if (boxed) return;
  const follow = (track) => track.addEventListener('cuechange', place, { signal });
  for (const track of video.textTracks) follow(track);
  video.textTracks.addEventListener('addtrack', (e) => follow(e.track), { signal });
  video.textTracks.addEventListener('change', place, { signal }); // shown, or not any more
}
