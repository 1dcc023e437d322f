// The menus on the picture: captions, sound, quality and speed, each where there is something to choose, and the button
// that turns captions on and off.
const names = (tracks) => tracks.map((t, i) => [String(i), t.name || t.lang || 'Track ' + (i + 1)]);
const size = (level) => (level.height ? level.height + 'p' : Math.round(level.bitrate / 1000) + ' kbit/s');

// menus puts life into those in an element, until a signal aborts. playing gives the hls.js that plays; null: none does.
export function menus(stage, playing, signal) {
  const el = (id) => stage.querySelector('#' + id);
  const on = (target, event, run) => target.addEventListener(event, run, { signal });
  const menu = el('menu');

  function fill(name, options, value) {
    const select = el(name);
    el(name + '-label').hidden = options.length === 0;
    const key = JSON.stringify(options);
    if (select.dataset.key !== key) {
      select.dataset.key = key;
      select.replaceChildren(...options.map(([v, text]) => new Option(text, v)));
    }
    if (document.activeElement !== select || select.value !== value) select.value = value;
  }

  // show shows what there is to choose, and what is chosen.
  function show() {
    const hls = playing();
    if (!hls) return;
    const levels = hls.levels.map((l, i) => [String(i), size(l)]).reverse();
    fill('quality', levels.length > 1 ? [['-1', 'Automatic'], ...levels] : [], String(hls.manualLevel));
    const now = hls.levels[hls.currentLevel];
    if (levels.length > 1) el('quality').options[0].text = hls.autoLevelEnabled && now ? `Automatic (${size(now)})` : 'Automatic';
    const audio = names(hls.audioTracks);
    fill('audio', audio.length > 1 ? audio : [], String(hls.audioTrack));
    const texts = names(hls.subtitleTracks);
    const shown = hls.subtitleDisplay ? hls.subtitleTrack : -1;
    fill('subtitles', texts.length ? [['-1', 'Off'], ...texts] : [], String(shown));
    el('captions').hidden = !texts.length;
    el('captions').setAttribute('aria-pressed', String(shown >= 0));
  }

  function choose(track) {
    const hls = playing();
    if (!hls) return;
    hls.subtitleDisplay = track >= 0;
    hls.subtitleTrack = track;
    show();
  }

  // captions turns them on, in the viewer's language where there are such, and off.
  function captions() {
    const tracks = playing()?.subtitleTracks ?? [];
    if (!tracks.length) return;
    if (el('captions').getAttribute('aria-pressed') === 'true') {
      choose(-1);
      return;
    }
    const own = navigator.language.split('-')[0];
    choose(Math.max(0, tracks.findIndex((t) => (t.lang || '').split('-')[0] === own)));
  }

  on(el('captions'), 'click', captions);
  on(el('subtitles'), 'change', (e) => choose(Number(e.target.value)));
  on(el('quality'), 'change', (e) => { if (playing()) playing().nextLevel = Number(e.target.value); });
  on(el('audio'), 'change', (e) => { if (playing()) playing().audioTrack = Number(e.target.value); });
  on(el('speed'), 'change', (e) => { el('video').playbackRate = Number(e.target.value); });
  // The player hides what is outside it: the menu has the room that the picture has.
  on(menu, 'toggle', () => stage.style.setProperty('--room', stage.clientHeight + 'px'));
  on(document, 'pointerdown', (e) => { if (!menu.contains(e.target)) menu.open = false; });
  on(menu, 'keydown', (e) => {
    if (e.key !== 'Escape' || !menu.open) return;
    menu.open = false;
    menu.querySelector('summary').focus();
  });

  // follow shows what changes in a hls.js.
  function follow(hls, Hls) {
    for (const e of [
      'MANIFEST_PARSED', 'AUDIO_TRACKS_UPDATED', 'AUDIO_TRACK_SWITCHED', 'SUBTITLE_TRACKS_UPDATED', 'SUBTITLE_TRACK_SWITCH',
      'LEVELS_UPDATED', 'LEVEL_SWITCHED',
    ]) hls.on(Hls.Events[e], show);
  }

  return { captions, follow };
}
