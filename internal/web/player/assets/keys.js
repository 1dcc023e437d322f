// The keys of the player. A key that a part with the focus has a use for stays that part's.
const STEP = 5; // seconds
const LEAP = 10;
const LOUDER = 0.1;

// its reports whether a part has a use for a key itself.
function its(part, key) {
  if (part.matches('select, textarea, [contenteditable], input:not([type=range])')) return true;
  if (part.matches('input')) return /^(Arrow|Home|End|Page)/.test(key);
  return key === ' ' && part.matches('button, summary, a');
}

// keys has an element, or the document, take the keys. act has toggle, mute, step, captions, fullScreen and
// pictureInPicture.
export function keys(scope, video, act, signal) {
  const volume = (by) => {
    video.volume = Math.min(1, Math.max(0, (video.muted ? 0 : video.volume) + by));
    video.muted = video.volume === 0;
  };
  const of = {
    ' ': act.toggle, k: act.toggle, m: act.mute, c: act.captions, f: act.fullScreen, p: act.pictureInPicture,
    ArrowLeft: () => act.step(-STEP), ArrowRight: () => act.step(STEP), j: () => act.step(-LEAP), l: () => act.step(LEAP),
    ArrowUp: () => volume(LOUDER), ArrowDown: () => volume(-LOUDER),
  };
  scope.addEventListener('keydown', (e) => {
    if (e.altKey || e.ctrlKey || e.metaKey || e.defaultPrevented || its(document.activeElement ?? document.body, e.key)) return;
    const run = of[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!run) return;
    e.preventDefault();
    run();
  }, { signal });
}
