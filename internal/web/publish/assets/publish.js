// The publisher of /publish/: shows a camera or a screen and publishes it. The stream key stays in this page.
import { QUALITY, capture, devices, explain } from './capture.js';
import { meter } from './level.js';
import { Publication } from './whip.js';

const el = (id) => document.getElementById(id);
const choice = (name) => el('form').elements[name].value;

let media = null; // MediaStream
let asked = 0; // how often the browser was asked for something
let silence = () => {}; // ends the level meter
let publication = null; // while the person wants to be live
let begun = 0; // when it was live first, of performance.now()
let clock = 0;

// A link may bring the key in its fragment, which no server sees. It does not stay in the address.
if (location.hash.length > 1) {
  el('key').value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, '', location.pathname + location.search);
}

function state(name, sentence) {
  document.body.dataset.state = name;
  el('sentence').textContent = sentence;
  el('start').hidden = Boolean(publication) || name === 'connecting';
  el('stop').hidden = !el('start').hidden;
  el('stop').disabled = name === 'ending';
  for (const field of el('form').elements) if (field.id !== 'start') field.disabled = el('start').hidden;
  el('figures').hidden = name !== 'live';
  el('mute').hidden = !media || !media.getAudioTracks().length;
}

function stop(stream) {
  for (const track of stream.getTracks()) track.stop();
}

// release gives back what the browser has given, and wants nothing any more of what was asked for.
function release() {
  asked++;
  silence();
  silence = () => {};
  if (media) stop(media);
  media = null;
  el('video').srcObject = null;
  el('empty').hidden = false;
  el('mute').hidden = true;
}

// show asks for what is chosen and shows it; it reports whether there is something.
async function show() {
  release();
  const mine = asked;
  let stream;
  try {
    stream = await capture({
      source: choice('source'), camera: el('camera').value, microphone: el('microphone').value,
      speech: el('speech').checked, quality: choice('quality'),
    });
    if (mine !== asked) {
      stop(stream);
      return false;
    }
  } catch (e) {
    if (mine !== asked) return false;
    state('error', explain(e));
    return false;
  }
  media = stream;
  for (const track of media.getVideoTracks()) {
    track.addEventListener('ended', () => {
      if (media === stream) finish('The browser stopped showing the picture.');
    });
  }
  el('video').srcObject = media;
  el('empty').hidden = true;
  silence = meter(media, el('level'));
  mute(false);
  menus().catch(() => {});
  return true;
}

// menus fills the lists of cameras and microphones, and keeps what was chosen.
async function menus() {
  const fixed = { camera: [['', 'Standard']], microphone: [['', 'Standard'], ['none', 'None']] };
  for (const [id, kind] of [['camera', 'videoinput'], ['microphone', 'audioinput']]) {
    const select = el(id);
    const value = select.value;
    const options = fixed[id].concat(await devices(kind));
    select.replaceChildren(...options.map(([device, name]) => new Option(name, device)));
    select.value = value;
    if (select.selectedIndex < 0) select.value = '';
  }
}

function mute(on) {
  for (const track of media.getAudioTracks()) track.enabled = !on;
  el('mute').setAttribute('aria-pressed', on);
}

async function figures() {
  const f = publication && await publication.figures();
  if (!f) return;
  const known = (value, text) => (value === undefined ? '–' : text(value));
  el('time').textContent = hours((performance.now() - begun) / 1000);
  el('bitrate').textContent = known(f.bitrate, (b) => Math.round(b / 1000) + ' kbit/s');
  el('picture').textContent = known(f.width, (w) => w + '×' + f.height + ', ' + Math.round(f.rate || 0) + '/s');
  el('codec').textContent = f.codec || '–';
  el('lost').textContent = known(f.lost, (l) => (100 * l).toFixed(1) + ' %');
  el('trip').textContent = known(f.trip, (t) => Math.round(t * 1000) + ' ms');
}

function hours(seconds) {
  const two = (n) => String(Math.floor(n) % 60).padStart(2, '0');
  return Math.floor(seconds / 3600) + ':' + two(seconds / 60) + ':' + two(seconds);
}

async function start() {
  if (publication) return;
  if (!media) {
    state('connecting', 'Waiting for the browser’s permission…');
    if (!await show()) return;
  }
  publication = new Publication({
    key: el('key').value.trim(), media, bitrate: QUALITY[choice('quality')][2],
    say(name, sentence) {
      if (name === 'error') leave();
      if (name === 'live') begun ||= performance.now();
      state(name, sentence);
    },
  });
  clock = setInterval(figures, 1000);
  publication.connect();
}

// leave forgets the publication, which has ended.
function leave() {
  clearInterval(clock);
  publication = null;
  begun = 0;
}

async function finish(sentence) {
  const ending = publication;
  release();
  if (ending) {
    state('ending', 'Ending the stream…');
    await ending.end();
    leave();
  }
  state('idle', sentence);
}

function preview() {
  show().then((shown) => { if (shown) state('preview', 'Ready. Nobody sees you yet.'); });
}

el('form').addEventListener('submit', (e) => { e.preventDefault(); start(); });
el('stop').addEventListener('click', () => finish('The stream has ended.'));
el('mute').addEventListener('click', () => mute(el('mute').getAttribute('aria-pressed') !== 'true'));
for (const button of document.querySelectorAll('[data-show]')) {
  button.addEventListener('click', () => {
    el('form').elements.source.value = button.dataset.show;
    el('cameras').hidden = button.dataset.show !== 'camera';
    preview();
  });
}
el('form').addEventListener('change', (e) => {
  el('cameras').hidden = choice('source') !== 'camera';
  const megabits = QUALITY[choice('quality')][2] / 1e6;
  el('quality-help').textContent = 'Needs ' + Math.ceil(megabits * 1.2) + ' Mbit/s of upload.';
  if (media && e.target.id !== 'key') preview(); // of what is chosen now
});
window.addEventListener('beforeunload', (e) => { if (publication) e.preventDefault(); });
menus().catch(() => {});
window.millrace = { connection: () => publication && publication.connection };
