// The controls on the picture: play, sound, time, picture in picture, full screen, and a seek bar where there is something
// to seek in. They know the video element and what hls.js plays in it; what plays, and when, is the page's.
const REST = 2600; // ms without a move after which the controls go
const VIEWED = 0.25; // of the seek bar's step, seconds
const FAR = 3; // seconds behind where the player would have it that still count as the newest picture, or a target duration

// clock writes seconds as h:mm:ss.
export function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n) => String(n).padStart(2, '0');
  const hours = Math.floor(s / 3600);
  return (hours ? hours + ':' + two(Math.floor(s / 60) % 60) : Math.floor(s / 60)) + ':' + two(s % 60);
}

// details are those of the media playlist that hls.js plays.
export function details(hls) {
  const level = hls && (hls.levels[hls.currentLevel] || hls.levels[hls.loadLevel]);
  return level && level.details;
}

// late is how many seconds the picture is behind where the player would have it. Read from the positions, for hls.latency is
// as old as the last timeupdate, and a viewer who has just rewound must not be taken back.
export function late(hls, video) {
  const edge = hls && hls.liveSyncPosition;
  return Number.isFinite(edge) ? edge - video.currentTime : 0;
}

// far reports whether that is not the newest picture.
export function far(hls, video) {
  return late(hls, video) > Math.max(FAR, details(hls).targetduration);
}

// controls puts life into those in an element, until a signal aborts.
export function controls(stage, signal) {
  const el = (id) => stage.querySelector('#' + id);
  const on = (target, events, run) => { for (const e of events) target.addEventListener(e, run, { signal }); };
  const video = el('video');
  let has = { sound: true, picture: true, seek: false };
  let dragged = false; // the seek bar is the viewer's, not the video's
  let timer = 0;

  function toggle() {
    if (video.paused) video.play().catch(() => {});
    else video.pause();
  }

  function fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else if (stage.requestFullscreen) stage.requestFullscreen().catch(() => {});
    else if (video.webkitEnterFullscreen) video.webkitEnterFullscreen(); // iPhones show the video alone
  }

  function pictureInPicture() {
    if (el('pip').hidden) return;
    const done = document.pictureInPictureElement ? document.exitPictureInPicture() : video.requestPictureInPicture();
    done.catch(() => {});
  }

  function mute() {
    video.muted = !(video.muted || video.volume === 0);
    if (!video.muted && video.volume === 0) video.volume = 1;
  }

  // step goes some seconds back or ahead, within what there is.
  function step(seconds) {
    const n = video.seekable.length;
    const to = video.currentTime + seconds;
    if (n) video.currentTime = Math.min(Math.max(to, video.seekable.start(0)), video.seekable.end(n - 1));
  }

  function named(button, pressed, name) {
    button.toggleAttribute('data-on', pressed);
    button.setAttribute('aria-label', name);
    button.title = name;
  }

  // draw shows how the video stands.
  function draw() {
    named(el('play'), !video.paused, video.paused ? 'Play' : 'Pause');
    const silent = video.muted || video.volume === 0;
    named(el('mute'), silent, silent ? 'Unmute' : 'Mute');
    el('volume').value = silent ? 0 : video.volume;
    if (video.paused) stir();
  }

  // move shows where the video stands.
  function move() {
    const n = video.seekable.length;
    const seek = el('seek');
    seek.hidden = el('back').hidden = el('ahead').hidden = !has.seek || !n;
    if (seek.hidden) {
      el('time').textContent = '';
      return;
    }
    const from = video.seekable.start(0);
    const to = video.seekable.end(n - 1);
    if (Math.abs(seek.max - to) > VIEWED || seek.min !== String(from)) Object.assign(seek, { min: from, max: to });
    if (!dragged) seek.value = video.currentTime;
    const text = clock(seek.value - from) + ' / ' + clock(to - from);
    if (el('time').textContent === text) return;
    el('time').textContent = text;
    seek.setAttribute('aria-valuetext', text.replace('/', 'of'));
  }

  // stir shows the controls for a while.
  function stir() {
    stage.removeAttribute('data-quiet');
    clearTimeout(timer);
    timer = setTimeout(() => stage.toggleAttribute('data-quiet', !video.paused && !dragged), REST);
  }

  // fit shows what has a meaning: whether there is sound, a picture, and time to seek in. In what is live without a past
  // there is none.
  function fit(hls) {
    const d = details(hls);
    const levels = hls ? hls.levels : [];
    has = {
      sound: !levels.length || hls.audioTracks.length > 0 || levels.some((l) => l.audioCodec || !l.videoCodec),
      picture: !levels.length || levels.some((l) => l.videoCodec || !l.audioCodec),
      seek: d ? !d.live || d.type === 'EVENT' : !hls && Number.isFinite(video.duration),
    };
    el('mute').hidden = el('volume').hidden = !has.sound;
    el('full').hidden = !has.picture || !document.fullscreenEnabled && !video.webkitEnterFullscreen; // a frame may forbid it
    el('pip').hidden = !has.picture || !document.pictureInPictureEnabled;
    move();
  }

  // edge shows how far behind the newest picture what is live is.
  function edge(hls, played) {
    const d = details(hls);
    const live = Boolean(d && d.live);
    el('live').hidden = el('delay').hidden = !live;
    el('speed-label').hidden = live || !d;
    fit(hls);
    if (!live) return;
    const newest = !far(hls, video);
    const latency = hls.latency;
    el('live').dataset.edge = String(newest);
    el('live-text').textContent = newest ? 'Live' : 'Go to live';
    el('live').setAttribute('aria-label', newest ? 'Live: you see the newest picture' : 'Go to live: to the newest picture');
    el('delay').textContent = played && latency > 0 ? (latency < 10 ? latency.toFixed(1) : Math.round(latency)) + ' s behind' : '';
  }

  on(video, ['play', 'pause', 'volumechange', 'ended'], draw);
  on(video, ['timeupdate', 'durationchange', 'progress', 'seeking'], move);
  on(el('play'), ['click'], toggle);
  on(el('back'), ['click'], () => step(-10));
  on(el('ahead'), ['click'], () => step(10));
  on(el('mute'), ['click'], mute);
  on(el('volume'), ['input'], (e) => {
    video.volume = Number(e.target.value);
    video.muted = video.volume === 0;
  });
  on(el('seek'), ['input'], () => { dragged = true; move(); });
  on(el('seek'), ['change'], (e) => {
    dragged = false;
    video.currentTime = Number(e.target.value);
  });
  on(el('full'), ['click'], fullScreen);
  on(document, ['fullscreenchange'], () => {
    const name = document.fullscreenElement ? 'Leave full screen' : 'Full screen';
    el('full').setAttribute('aria-label', name);
    el('full').title = name;
  });
  on(el('pip'), ['click'], pictureInPicture);
  on(video, ['click'], (e) => {
    if (e.pointerType === 'touch') return; // it shows the controls, or makes them go
    toggle();
  });
  on(video, ['dblclick'], fullScreen);
  on(stage, ['pointerdown'], (e) => {
    if (e.pointerType === 'touch' && e.target === video && !video.paused && !stage.hasAttribute('data-quiet')) {
      clearTimeout(timer);
      stage.setAttribute('data-quiet', '');
      return;
    }
    stir();
  });
  on(stage, ['pointermove', 'focusin', 'keydown'], (e) => { if (e.pointerType !== 'touch') stir(); });
  signal?.addEventListener('abort', () => clearTimeout(timer));
  draw();
  return { edge, fit, fullScreen, mute, pictureInPicture, step, toggle };
}
