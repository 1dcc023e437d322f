// Captions stand above the controls while those are shown, and above the picture over the seek bar.
const LINE = 0.06; // of the shorter side of the video: the height of a line, as browsers draw it

// captions moves those of the video in an element, until a signal aborts. Those that have a place of their own stay there.
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

  function move() {
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

  const seen = new MutationObserver(move);
  seen.observe(stage, { attributeFilter: ['data-quiet', 'hidden', 'open'], subtree: true });
  signal?.addEventListener('abort', () => seen.disconnect());
  const follow = (track) => track.addEventListener('cuechange', move, { signal });
  for (const track of video.textTracks) follow(track);
  video.textTracks.addEventListener('addtrack', (e) => follow(e.track), { signal });
}
