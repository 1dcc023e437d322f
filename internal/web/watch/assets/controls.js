// The controls on the picture: play, sound, time, picture in picture, full screen, and a seek bar where there is something to
// seek in. They know the video element alone; watch.js says by millraceControls.fit what of them has a meaning.
'use strict';
(() => {
  const el = (id) => document.getElementById(id);
  const video = el('video');
  const stage = el('stage');
  const REST = 2600; // ms without a move after which the controls go
  const VIEWED = 0.25; // of the seek bar's step, seconds

  let has = { sound: true, picture: true, seek: false };
  let dragged = false; // the seek bar is the viewer's, not the video's
  let timer = 0;

  // clock writes seconds as h:mm:ss.
  function clock(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    const two = (n) => String(n).padStart(2, '0');
    const hours = Math.floor(s / 3600);
    return (hours ? hours + ':' + two(Math.floor(s / 60) % 60) : Math.floor(s / 60)) + ':' + two(s % 60);
  }

  function toggle() {
    if (video.paused) video.play().catch(() => {});
    else video.pause();
  }

  function fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else if (stage.requestFullscreen) stage.requestFullscreen().catch(() => {});
    else if (video.webkitEnterFullscreen) video.webkitEnterFullscreen(); // iPhones show the video alone
  }

  function named(button, on, name) {
    button.toggleAttribute('data-on', on);
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
    seek.hidden = !has.seek || !n;
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

  // fit shows what has a meaning: whether there is sound, a picture, and time to seek in.
  function fit(now) {
    has = now;
    el('mute').hidden = el('volume').hidden = !has.sound;
    el('full').hidden = !has.picture || !document.fullscreenEnabled && !video.webkitEnterFullscreen; // a frame may forbid it
    el('pip').hidden = !has.picture || !document.pictureInPictureEnabled;
    move();
  }

  for (const e of ['play', 'pause', 'volumechange', 'ended']) video.addEventListener(e, draw);
  for (const e of ['timeupdate', 'durationchange', 'progress', 'seeking']) video.addEventListener(e, move);
  el('play').addEventListener('click', toggle);
  el('mute').addEventListener('click', () => {
    video.muted = !(video.muted || video.volume === 0);
    if (!video.muted && video.volume === 0) video.volume = 1;
  });
  el('volume').addEventListener('input', (e) => {
    video.volume = Number(e.target.value);
    video.muted = video.volume === 0;
  });
  el('seek').addEventListener('input', () => { dragged = true; move(); });
  el('seek').addEventListener('change', (e) => {
    dragged = false;
    video.currentTime = Number(e.target.value);
  });
  el('full').addEventListener('click', fullScreen);
  document.addEventListener('fullscreenchange', () => {
    el('full').setAttribute('aria-label', document.fullscreenElement ? 'Leave full screen' : 'Full screen');
  });
  el('pip').addEventListener('click', () => {
    const done = document.pictureInPictureElement ? document.exitPictureInPicture() : video.requestPictureInPicture();
    done.catch(() => {});
  });
  video.addEventListener('click', (e) => {
    if (e.pointerType === 'touch') return; // it shows the controls, or makes them go
    toggle();
  });
  video.addEventListener('dblclick', fullScreen);
  stage.addEventListener('pointerdown', (e) => {
    if (e.pointerType === 'touch' && e.target === video && !video.paused && !stage.hasAttribute('data-quiet')) {
      clearTimeout(timer);
      stage.setAttribute('data-quiet', '');
      return;
    }
    stir();
  });
  for (const e of ['pointermove', 'focusin', 'keydown']) {
    stage.addEventListener(e, (event) => { if (event.pointerType !== 'touch') stir(); });
  }
  draw();
  window.millraceControls = { fit, toggle, fullScreen };
})();
