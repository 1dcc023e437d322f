// The player of the dashboard: hls.js, as the watch page has it, in this design. It is made for each element with data-player, whenever one
// comes into the page, and ends with it. The kit is fetched only where there is a player.
const RETRY = 1000; // ms between attempts while the stream has no picture yet
const EDGE = 5; // seconds behind the edge that still count as live
const icons = {
  play: '<path fill="currentColor" stroke="none" d="M4.5 2.6v10.8c0 .5.5.8.9.5l8-5.4a.6.6 0 0 0 0-1l-8-5.4c-.4-.3-.9 0-.9.5z"/>',
  pause: '<rect fill="currentColor" stroke="none" x="3.6" y="2.6" width="3" height="10.8" rx=".8"/><rect fill="currentColor" stroke="none" x="9.4" y="2.6" width="3" height="10.8" rx=".8"/>',
  sound: '<path d="M2 6.2v3.6h2.4L8 12.8V3.2L4.4 6.2zM10.4 5.8a3 3 0 0 1 0 4.4M12.2 4a5.6 5.6 0 0 1 0 8"/>',
  muted: '<path d="M2 6.2v3.6h2.4L8 12.8V3.2L4.4 6.2zM10.6 6.2l3.6 3.6M14.2 6.2l-3.6 3.6"/>',
  full: '<path d="M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10"/>',
};

let kit = null; // the promise of hls.js

function load(src) {
  kit ||= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement('script'), { src });
    script.addEventListener('load', () => resolve(window.Hls));
    script.addEventListener('error', () => { kit = null; reject(new Error('The player could not be loaded.')); });
    document.head.append(script);
  });
  return kit;
}

function button(name, icon) {
  const b = Object.assign(document.createElement('button'), { type: 'button' });
  b.setAttribute('aria-label', name);
  b.title = name;
  draw(b, icon);
  return b;
}

function draw(b, icon) {
  b.innerHTML = '<svg class="i" viewBox="0 0 16 16" aria-hidden="true">' + icons[icon] + '</svg>'; // of the table above
}

class Player {
  constructor(box, at) {
    this.box = box;
    this.at = at;
    this.video = box.querySelector('video');
    this.say = box.querySelector('.pl-say');
    // A recorded video has the browser's own controls: seek, captions, speed and the rest.
    const live = !this.video.controls;
    this.video.addEventListener(live ? 'playing' : 'loadedmetadata', () => { this.say.hidden = true; });
    if (live) this.bar();
    this.open();
  }

  bar() {
    const v = this.video;
    const row = Object.assign(document.createElement('div'), { className: 'pl-row' });
    const play = button('Play', 'play');
    const mute = button('Unmute', 'muted');
    const edge = Object.assign(document.createElement('button'), { type: 'button', className: 'golive', textContent: 'Live' });
    const full = button('Full screen', 'full');
    play.addEventListener('click', () => (v.paused ? v.play().catch(() => {}) : v.pause()));
    mute.addEventListener('click', () => { v.muted = !v.muted; });
    edge.addEventListener('click', () => this.toEdge());
    full.addEventListener('click', () => (document.fullscreenElement ? document.exitFullscreen() : this.box.requestFullscreen()));
    const name = (b, text, icon) => { b.setAttribute('aria-label', text); b.title = text; draw(b, icon); };
    for (const e of ['play', 'pause']) v.addEventListener(e, () => name(play, v.paused ? 'Play' : 'Pause', v.paused ? 'play' : 'pause'));
    v.addEventListener('volumechange', () => name(mute, v.muted ? 'Unmute' : 'Mute', v.muted ? 'muted' : 'sound'));
    v.addEventListener('timeupdate', () => {
      const behind = this.hls?.liveSyncPosition - v.currentTime;
      const live = !(behind > EDGE);
      edge.toggleAttribute('data-edge', live);
      if (edge.textContent !== (live ? 'Live' : 'Go to live')) edge.textContent = live ? 'Live' : 'Go to live';
    });
    const push = Object.assign(document.createElement('span'), { className: 'push' });
    row.append(play, mute, edge, push, full);
    const bar = Object.assign(document.createElement('div'), { className: 'pl-bar' });
    bar.append(row);
    this.box.append(bar);
  }

  async open() {
    let Hls = null;
    try {
      Hls = await load(this.box.dataset.kit);
    } catch (e) {
      this.say.textContent = e.message;
      return;
    }
    // Caches may keep the playlist of a recorded video for a while: this one may be from before its newest track came.
    if (this.video.controls) await fetch(this.box.dataset.player, { cache: 'reload' }).catch(() => {});
    if (!this.box.isConnected) return;
    if (!Hls.isSupported()) {
      this.video.src = this.box.dataset.player;
      this.start();
      return;
    }
    const hls = new Hls({ lowLatencyMode: true, maxLiveSyncPlaybackRate: 1.3, backBufferLength: 60, capLevelToPlayerSize: true, startPosition: this.at || -1 });
    this.hls = hls;
    hls.on(Hls.Events.MANIFEST_PARSED, () => this.start());
    hls.on(Hls.Events.ERROR, (_, data) => { if (data.fatal) this.again(); });
    hls.loadSource(this.box.dataset.player);
    hls.attachMedia(this.video);
  }

  start() {
    if (this.video.autoplay) this.video.play().catch(() => {});
  }

  again() {
    this.end();
    this.say.hidden = false;
    this.say.textContent = 'Waiting for the picture…';
    setTimeout(() => { if (this.box.isConnected && !this.hls) this.open(); }, RETRY);
  }

  toEdge() {
    if (this.hls?.liveSyncPosition) this.video.currentTime = this.hls.liveSyncPosition;
    this.video.play().catch(() => {});
  }

  end() {
    this.hls?.destroy();
    this.hls = null;
  }
}

const players = new Map();

function look() {
  let at = 0; // where a recorded video goes on whose player is made again, as it has other tracks
  for (const [box, p] of players) {
    if (box.isConnected) continue;
    if (p.video.controls) at = p.video.currentTime;
    p.end();
    players.delete(box);
  }
  for (const box of document.querySelectorAll('[data-player]')) if (!players.has(box)) players.set(box, new Player(box, at));
}

document.addEventListener('millrace:parts', look);
setTimeout(look); // behind follow.js, which looks at the parts as the server has made them
