// The player of the dashboard: hls.js with the controls of the watch page. It is made for each element with data-player,
// whenever one comes into the page, and ends with it. The kit is fetched only where there is a player.
import { captions } from './captions.js';
import { controls } from './controls.js';
import { engine } from './engine.js';
import { keys } from './keys.js';
import { menus } from './menus.js';
import { storyboard } from './storyboard.js';

const RETRY = 1000; // ms between attempts while the stream has no picture yet
const LOOK = 1000; // ms between two looks at where what is live stands

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

class Player {
  constructor(box, at) {
    this.box = box;
    this.at = at;
    this.live = 'live' in box.dataset;
    this.video = box.querySelector('video');
    this.say = box.querySelector('.pl-say');
    this.gone = new AbortController();
    const { signal } = this.gone;
    this.video.addEventListener(this.live ? 'playing' : 'loadedmetadata', () => { this.say.hidden = true; }, { signal });
    this.bar = controls(box, signal);
    this.menus = menus(box, () => this.hls, signal);
    keys(box, this.video, { ...this.bar, captions: this.menus.captions }, signal);
    captions(box, signal);
    storyboard(box, this.live ? '' : box.dataset.player.replace(/\.m3u8$/, '/storyboard.json'), signal);
    box.querySelector('#live').addEventListener('click', () => this.toEdge(), { signal });
    this.looks = setInterval(() => this.look(), LOOK);
    this.open();
  }

  look() {
    this.bar.edge(this.hls, this.video.played.length > 0);
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
    if (!this.live) await fetch(this.box.dataset.player, { cache: 'reload' }).catch(() => {});
    if (!this.box.isConnected) return;
    if (!Hls.isSupported()) {
      this.video.src = this.box.dataset.player;
      this.start();
      return;
    }
    const hls = engine(Hls, { startPosition: this.at || -1, backBufferLength: 60 });
    this.hls = hls;
    this.menus.follow(hls, Hls);
    hls.on(Hls.Events.MANIFEST_PARSED, () => this.start());
    hls.on(Hls.Events.LEVEL_UPDATED, () => this.look());
    hls.on(Hls.Events.ERROR, (_, data) => { if (data.fatal) this.again(); });
    hls.loadSource(this.box.dataset.player);
    hls.attachMedia(this.video);
  }

  start() {
    if (this.video.autoplay) this.video.play().catch(() => {});
  }

  again() {
    this.stop();
    this.say.hidden = false;
    this.say.textContent = 'Waiting for the picture…';
    setTimeout(() => { if (this.box.isConnected && !this.hls) this.open(); }, RETRY);
  }

  toEdge() {
    if (this.hls?.liveSyncPosition) this.video.currentTime = this.hls.liveSyncPosition;
    this.video.play().catch(() => {});
  }

  stop() {
    this.hls?.destroy();
    this.hls = null;
  }

  end() {
    clearInterval(this.looks);
    this.gone.abort();
    this.stop();
  }
}

const players = new Map();

function look() {
  let at = 0; // where a recorded video goes on whose player is made again, as it has other tracks
  for (const [box, p] of players) {
    if (box.isConnected) continue;
    if (!p.live) at = p.video.currentTime;
    p.end();
    players.delete(box);
  }
  for (const box of document.querySelectorAll('[data-player]')) if (!players.has(box)) players.set(box, new Player(box, at));
}

document.addEventListener('millrace:parts', look);
setTimeout(look); // behind follow.js, which looks at the parts as the server has made them
// What tests and a curious person read.
window.millrace = { get hls() { return players.values().next().value?.hls; } };
