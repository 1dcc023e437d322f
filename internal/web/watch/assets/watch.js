// The player of /watch/{playback_id}: plays /{playback_id}.m3u8 with hls.js, waits for a stream that has not begun,
// keeps to the live edge, and starts again by itself after any break. It talks to nothing but its own origin.
'use strict';
(() => {
  const el = (id) => document.getElementById(id);
  const video = el('video');
  const id = decodeURIComponent(location.pathname.replace(/\/+$/, '').split('/').pop());
  const token = new URLSearchParams(location.search).get('token');
  // One folder up from /watch/{id}, so that a prefix in front of the service stays.
  const source = new URL('../' + encodeURIComponent(id) + '.m3u8' + (token ? '?token=' + encodeURIComponent(token) : ''), location.href).href;

  const WAIT_FAST = 250; // ms between attempts in the first minute of waiting
  const WAIT_SLOW = 2000; // ms between attempts later
  const FAR_BEHIND = 2; // target durations beyond the target latency at which, at the latest, a viewer who did not choose it is brought back
  const LOOK = 2000; // ms between looks for the next broadcast of a stream that has ended
  const STEP = 0.5; // seconds: by less than this nobody goes back on purpose

  let hls = null;
  let stoodAt = -1; // seconds: where the player was when it was last looked at for its end
  let playedTo = 0; // seconds: where the player was before it sought
  let attempt = 0; // numbers the attempts; answers that belong to an older one are dropped
  let waitingSince = 0;
  let timer = 0;
  let mediaErrors = [];
  let chosenBehind = false; // the viewer paused or rewound
  let paused = false; // by the viewer
  let everPlayed = false;
  let wasLive = false; // what is played was live
  let media = ''; // what is played: a stream's next broadcast has another name
  const seen = { stalls: 0, restarts: 0, errors: [] };

  function state(name, sentence) {
    document.body.dataset.state = name;
    if (sentence !== undefined && el('sentence').textContent !== sentence) el('sentence').textContent = sentence;
  }

  function later(ms, run) {
    clearTimeout(timer);
    timer = setTimeout(run, ms);
  }

  function again(sentence) {
    if (!waitingSince) waitingSince = Date.now();
    state('waiting', sentence);
    const fast = Date.now() - waitingSince < 60000 && !document.hidden;
    later(fast ? WAIT_FAST : WAIT_SLOW, open);
  }

  // open asks for the playlist until it is there, then plays it.
  async function open() {
    const mine = ++attempt;
    let answer;
    try {
      answer = await fetch(source, { cache: 'no-store', credentials: 'omit' });
    } catch {
      if (mine === attempt) again('The server cannot be reached. Trying again…');
      return;
    }
    if (mine !== attempt) return;
    switch (answer.status) {
      case 200:
        await begin(mine, answer);
        return;
      case 412:
        again(everPlayed ? 'The stream is offline. Waiting for it to come back…' : 'Waiting for the stream to start…');
        return;
      case 404:
        state('error', 'There is no video at this address. It may have been deleted, or the link is not complete.');
        later(15000, open);
        return;
      case 401:
      case 403:
        state('error', token ? 'This link is not valid, or no longer.' : 'This video is private and cannot be played here.');
        return;
      case 429:
      case 503:
        again('Very many people are watching. Trying again…');
        return;
      default:
        again('The server has a problem (' + answer.status + '). Trying again…');
    }
  }

  // begin plays what a multivariant playlist leads to.
  async function begin(mine, answer) {
    const name = mediaOf(await answer.text().catch(() => ''));
    if (mine !== attempt) return;
    waitingSince = 0;
    media = name;
    wasLive = false;
    play();
  }

  // mediaOf is the folder that a multivariant playlist's first variant is in.
  function mediaOf(text) {
    const uri = text.split('\n').find((line) => line && !line.startsWith('#')) || '';
    return uri.split('?')[0].split('/').slice(0, -1).join('/');
  }

  // over says that what was live has ended, and looks for the next broadcast.
  function over() {
    state('ended', wasLive ? 'The stream has ended.' : '');
    if (wasLive) later(LOOK, look);
  }

  async function look() {
    const mine = ++attempt;
    let answer = null;
    try {
      answer = await fetch(source, { cache: 'no-store', credentials: 'omit' });
    } catch { /* it is looked again */ }
    if (mine !== attempt || document.body.dataset.state !== 'ended') return; // the viewer looks at the end once more
    if (answer && answer.status === 200) {
      const copy = answer.clone();
      const name = mediaOf(await copy.text().catch(() => ''));
      if (mine !== attempt) return;
      if (name === media) return; // a recording: nothing comes after it
      await begin(mine, answer);
      return;
    }
    later(LOOK, look);
  }

  function play() {
    stop();
    state(everPlayed ? 'playing' : 'loading', 'Loading…');
    if (window.Hls && Hls.isSupported()) {
      playHls();
    } else if (video.canPlayType('application/vnd.apple.mpegurl')) {
      video.src = source;
      start();
    } else {
      state('error', 'This browser cannot play this video. Please try another one.');
    }
  }

  function stop() {
    if (hls) hls.destroy();
    hls = null;
  }

  function playHls() {
    hls = new Hls({
      lowLatencyMode: true,
      maxLiveSyncPlaybackRate: 1.3, // catches up to the live edge after a stall
      backBufferLength: 90,
      enableWorker: true,
      capLevelToPlayerSize: true,
      manifestLoadPolicy: policy(20000),
      playlistLoadPolicy: policy(30000),
    });
    hls.on(Hls.Events.ERROR, failed);
    hls.on(Hls.Events.MANIFEST_PARSED, () => { menus(); start(); });
    hls.on(Hls.Events.MEDIA_ATTACHED, () => { if (!paused) start(); }); // attaching anew, as after a media error, stops the element
    hls.on(Hls.Events.LEVEL_UPDATED, timing);
    for (const e of ['AUDIO_TRACKS_UPDATED', 'AUDIO_TRACK_SWITCHED', 'SUBTITLE_TRACKS_UPDATED', 'SUBTITLE_TRACK_SWITCH', 'LEVELS_UPDATED', 'LEVEL_SWITCHED']) hls.on(Hls.Events[e], menus);
    hls.loadSource(source);
    hls.attachMedia(video);
  }

  function policy(longest) {
    const retry = { maxNumRetry: 6, retryDelayMs: 500, maxRetryDelayMs: 4000 };
    return { default: { maxTimeToFirstByteMs: longest, maxLoadTimeMs: longest, timeoutRetry: retry, errorRetry: retry } };
  }

  async function start() {
    try {
      await video.play();
    } catch (e) {
      if (e.name !== 'NotAllowedError') return;
      video.muted = true; // a page may start by itself only without sound
      el('sound').hidden = false;
      await video.play().catch(() => state('playing'));
    }
  }

  function failed(_, data) {
    seen.errors.push(data.details + (data.fatal ? ' (fatal)' : ''));
    if (seen.errors.length > 100) seen.errors.shift();
    if (data.details === 'bufferStalledError') seen.stalls++;
    if (!data.fatal) return;
    if (data.type === Hls.ErrorTypes.MEDIA_ERROR) {
      const now = Date.now();
      mediaErrors = mediaErrors.filter((t) => now - t < 30000);
      mediaErrors.push(now);
      if (mediaErrors.length <= 3) { hls.recoverMediaError(); return; }
      if (mediaErrors.length > 6) {
        stop();
        state('error', 'This browser cannot decode this video.');
        return;
      }
    }
    seen.restarts++;
    stop();
    again(everPlayed ? 'The stream was interrupted. Waiting for it to come back…' : 'Waiting for the stream to start…');
  }

  // menus fills and shows those selects that offer a choice.
  function menus() {
    if (!hls) return;
    const levels = hls.levels.map((l, i) => [String(i), (l.height ? l.height + 'p' : Math.round(l.bitrate / 1000) + ' kbit/s')]).reverse();
    fill('quality', levels.length > 1 ? [['-1', 'Automatic'], ...levels] : [], hls.autoLevelEnabled ? '-1' : String(hls.currentLevel));
    const audio = hls.audioTracks.map((t, i) => [String(i), t.name || t.lang || 'Track ' + (i + 1)]);
    fill('audio', audio.length > 1 ? audio : [], String(hls.audioTrack));
    const subtitles = hls.subtitleTracks.map((t, i) => [String(i), t.name || t.lang || 'Track ' + (i + 1)]);
    fill('subtitles', subtitles.length ? [['-1', 'Off'], ...subtitles] : [], hls.subtitleDisplay ? String(hls.subtitleTrack) : '-1');
  }

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

  function details() {
    const level = hls && (hls.levels[hls.currentLevel] || hls.levels[hls.loadLevel]);
    return level && level.details;
  }

  // late is how many seconds the picture is behind where the player would have it. Read from the positions, for hls.latency is
  // as old as the last timeupdate, and a viewer who has just rewound must not be taken back.
  function late() {
    const edge = hls && hls.liveSyncPosition;
    return Number.isFinite(edge) ? edge - video.currentTime : 0;
  }

  function far(d) {
    return late() > Math.max(3, d.targetduration);
  }

  // astray says that a viewer is farther behind than hls.js catches up by playing faster, which it does within a target duration of twice the
  // target latency, or farther than that would take long.
  function astray(d) {
    return late() > Math.min(FAR_BEHIND * d.targetduration + 2, hls.targetLatency === null ? Infinity : hls.targetLatency + d.targetduration);
  }

  // timing shows how far behind the live edge the picture is, and brings back who fell behind without wishing to.
  function timing() {
    const d = details();
    const live = Boolean(d && d.live);
    if (live || !hls && video.duration === Infinity) wasLive = true;
    el('live').hidden = el('delay').hidden = !live;
    el('speed-label').hidden = live || !d;
    if (d && !live) conclude(d);
    if (!live) return;
    const latency = hls.latency;
    const edge = !far(d);
    el('live').dataset.edge = String(edge);
    el('live-text').textContent = edge ? 'Live' : 'Go to live';
    el('live').setAttribute('aria-label', edge ? 'Live: you see the newest picture' : 'Go to the live picture');
    el('delay').textContent = everPlayed && latency > 0 ? (latency < 10 ? latency.toFixed(1) : Math.round(latency)) + ' s behind' : '';
    if (edge && !video.paused) chosenBehind = false;
    if (!chosenBehind && !video.paused && everPlayed && !video.seeking && astray(d)) toLive();
  }

  // conclude ends what hls.js would let stand still a moment before its end: it finds no end behind a hole that it takes for none. The little
  // steps that it makes then may leave the element seeking for ever, which stands where it stood a second ago; a viewer's seek does not.
  function conclude(d) {
    const n = video.buffered.length;
    const moved = video.currentTime !== stoodAt;
    stoodAt = video.currentTime;
    if (video.paused || video.ended || video.seeking && moved || video.readyState > 2 || !n) return;
    const end = video.buffered.end(n - 1);
    if (d.edge - end < 1 && video.currentTime > end - 1) hls.trigger(Hls.Events.BUFFER_EOS, {});
  }

  function toLive() {
    chosenBehind = false;
    if (hls && hls.liveSyncPosition) video.currentTime = hls.liveSyncPosition;
    video.play().catch(() => {});
  }

  video.addEventListener('playing', () => { everPlayed = true; state('playing'); });
  video.addEventListener('timeupdate', () => {
    if (!video.seeking) playedTo = video.currentTime;
    if (!video.paused && document.body.dataset.state === 'loading') { everPlayed = true; state('playing'); }
  });
  video.addEventListener('ended', over);
  video.addEventListener('play', () => { paused = false; });
  video.addEventListener('pause', () => { if (!video.ended) paused = chosenBehind = true; });
  video.addEventListener('seeking', () => {
    const d = details();
    if (!d || !d.live) return;
    if (!far(d)) chosenBehind = false;
    else if (video.currentTime < playedTo - STEP) chosenBehind = true; // forward is hls.js's way over what it can't play
  });
  video.addEventListener('volumechange', () => { if (!video.muted) el('sound').hidden = true; });
  video.addEventListener('error', () => {
    if (hls || !video.error) return; // hls.js sees to its own
    seen.restarts++;
    again('The stream was interrupted. Waiting for it to come back…');
  });
  setInterval(timing, 1000);

  el('live').addEventListener('click', toLive);
  el('sound').addEventListener('click', () => { video.muted = false; el('sound').hidden = true; });
  el('quality').addEventListener('change', (e) => { if (hls) hls.nextLevel = Number(e.target.value); });
  el('audio').addEventListener('change', (e) => { if (hls) hls.audioTrack = Number(e.target.value); });
  el('speed').addEventListener('change', (e) => { video.playbackRate = Number(e.target.value); });
  el('subtitles').addEventListener('change', (e) => {
    if (!hls) return;
    hls.subtitleDisplay = e.target.value !== '-1';
    hls.subtitleTrack = Number(e.target.value);
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden && document.body.dataset.state === 'waiting') later(0, open); });
  document.addEventListener('keydown', (e) => {
    if (e.altKey || e.ctrlKey || e.metaKey || /^(INPUT|SELECT|BUTTON|VIDEO)$/.test(document.activeElement.tagName)) return;
    const keys = {
      ' ': () => (video.paused ? video.play().catch(() => {}) : video.pause()),
      k: () => (video.paused ? video.play().catch(() => {}) : video.pause()),
      ArrowLeft: () => { video.currentTime -= 5; },
      ArrowRight: () => { video.currentTime += 5; },
      m: () => { video.muted = !video.muted; },
      f: () => (document.fullscreenElement ? document.exitFullscreen() : video.requestFullscreen()),
    };
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });

  // What tests and a curious person read.
  window.millrace = { get hls() { return hls; }, video, seen, toLive };
  open();
})();
