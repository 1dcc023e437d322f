// The player of /watch/{playback_id} and /embed/{playback_id}: plays /{playback_id}.m3u8 with hls.js, waits for a stream that
// has not begun, keeps to the live edge, and starts again by itself after any break. It talks to nothing but its own origin.
import { captions } from './captions.js';
import { controls, details, far, late } from './controls.js';
import { engine } from './engine.js';
import { keys } from './keys.js';
import { menus } from './menus.js';
import { storyboard } from './storyboard.js';

const el = (id) => document.getElementById(id);
const video = el('video');
const bar = controls(el('stage'));
const menu = menus(el('stage'), () => hls);
const id = decodeURIComponent(location.pathname.replace(/\/+$/, '').split('/').pop());
const query = new URLSearchParams(location.search);
const token = query.get('token');
const licenceToken = query.get('drm-token');
const pictureToken = query.get('storyboard-token');
// One folder up from the page, so that a prefix in front of the service stays.
const withToken = token ? '?token=' + encodeURIComponent(token) : '';
const source = new URL('../' + encodeURIComponent(id) + '.m3u8' + withToken, location.href).href;
const about = new URL('../watch/' + encodeURIComponent(id) + '/about' + withToken, location.href).href;
const known = document.body.dataset; // what the server knew when it made the page: about, recording, poster
const embedded = document.body.classList.contains('embed');
const from = known.about === 'video' ? seconds(query.get('start')) : 0; // what is live is played at its edge

// What hls.js calls the DRM systems that a playlist may name, and where their licences are. ClearKey is taken where it is
// offered: a playlist for it names Widevine too, for players that know no other name.
const systems = [
  { keyFormat: 'org.w3.clearkey', name: 'org.w3.clearkey', path: 'clearkey' },
  { keyFormat: 'com.apple.streamingkeydelivery', name: 'com.apple.fps', path: 'fairplay' },
  { keyFormat: 'urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed', name: 'com.widevine.alpha', path: 'widevine' },
  { keyFormat: 'com.microsoft.playready', name: 'com.microsoft.playready', path: 'playready' },
];

// What a viewer can do something about, by the code of the error: TestWatchSigned has each of them.
const refusals = {
  token_missing: 'This video is private: it plays only with a link that was made for you.',
  token_expired: 'This link has expired. Please ask for a new one.',
  token_not_yet_valid: 'This link is not valid yet. Please try it again later.',
  token_subject: 'This link is for another video.',
  token_audience: 'This link is not for watching: it is for a picture or for something else of this video.',
  token_key_unknown: 'This link was withdrawn: the key that signed it is deleted, or not known here.',
  token_invalid: 'This link was changed or is not complete.',
  token_unexpected: 'This video is public, and this link has a token. Please open it without one.',
  referrer_denied: 'This video may be played on certain websites only, and not on this page.',
  user_agent_denied: 'This video may not be played by this browser.',
  restriction_unknown: 'This link was withdrawn: the rules that it was made with are deleted.',
};

const WAIT_FAST = 250; // ms between attempts in the first minute of waiting
const WAIT_SLOW = 2000; // ms between attempts later
const FAR_BEHIND = 2; // target durations beyond the target latency at which, at the latest, a viewer who did not choose it is brought back
// ms between looks for a recording or the next broadcast after the end; then there are no more
const LOOKS = [1000, 2000, 4000, 8000, 15000, 30000, 60000];
const STEP = 0.5; // seconds: by less than this nobody goes back on purpose

let hls = null;
let textWaits = false; // hls.js has loaded text and not shown it: it waits for the media of its stretch
let stoodAt = -1; // seconds: where the player was when it was last looked at for its end
let playedTo = 0; // seconds: where the player was before it sought
let attempt = 0; // numbers the attempts; responses that belong to an older one are dropped
let waitingSince = 0;
let timer = 0;
let mediaErrors = [];
let chosenBehind = false; // the viewer paused or rewound
let paused = false; // by the viewer
let wanted = !embedded || wishes('autoplay'); // it may begin: a page of others says whether without a press
let everPlayed = false;
let wasLive = false; // what is played was live
let drm = null; // settings of hls.js for what is encrypted
let media = ''; // what was played to its end: a stream's next broadcast has another name
let looks = 0; // how many there were since the end
let asked = false; // the viewer wants this look
const seen = { stalls: 0, restarts: 0, broughtTo: 0, errors: [] };

// state shows how it stands: by a sentence, a headline above it, the way to a recording, and a button with which to look
// once more.
function state(name, sentence, { headline = '', recording = '', more = false } = {}) {
  document.body.dataset.state = name;
  if (sentence !== undefined) {
    say('sentence', sentence);
    say('headline', headline);
  }
  el('message').hidden = name === 'playing' || name === 'ready' || name === 'ended' && !headline;
  el('again').hidden = !more;
  el('recording').hidden = !recording;
  const to = encodeURIComponent(recording) + (embedded ? '?autoplay' : '');
  if (recording) el('recording').href = new URL(to, location.href).href;
}

// wishes reports whether the address asks for something: ?muted, ?muted=1 and ?muted=true do, ?muted=0 does not.
function wishes(name) {
  return query.has(name) && !/^(0|false|no|off)$/i.test(query.get(name));
}

// seconds reads 90, 90.5, 90s, 1m30s and 1h2m3s; anything else is 0.
function seconds(text) {
  const parts = /^(?:(\d{1,3})h)?(?:(\d{1,4})m)?(?:(\d{1,6}(?:\.\d{1,6})?)s?)?$/i.exec(text || '');
  return parts ? 3600 * (parts[1] || 0) + 60 * (parts[2] || 0) + Number(parts[3] || 0) : 0;
}

function say(where, text) {
  if (el(where).textContent !== text) el(where).textContent = text; // what stays the same is not read out again
}

function later(ms, run) {
  clearTimeout(timer);
  timer = setTimeout(run, ms);
}

function again(sentence, more) {
  if (!waitingSince) waitingSince = Date.now();
  state('waiting', sentence, more);
  const fast = Date.now() - waitingSince < 60000 && !document.hidden;
  later(fast ? WAIT_FAST : WAIT_SLOW, open);
}

// open asks for the playlist until it is there, then plays it.
async function open() {
  const mine = ++attempt;
  let response;
  try {
    response = await fetch(source, { cache: 'no-store', credentials: 'omit' });
  } catch {
    if (mine === attempt) again('The server cannot be reached. Trying again…');
    return;
  }
  if (mine !== attempt) return;
  switch (response.status) {
    case 200:
      await begin(mine, response);
      return;
    case 412:
      if (wasLive) lost();
      else soon();
      return;
    case 404:
      state('error', 'There is no video at this address. It may have been deleted, or the link is not complete.', { more: true });
      return;
    case 400: // a token that does not fit the video: it never will
    case 401:
    case 403:
      await refused(mine, response);
      return;
    case 429:
    case 503:
      again('Very many people are watching. Trying again…');
      return;
    default:
      again('The server has a problem (' + response.status + '). Trying again…');
  }
}

// soon says that there is nothing to play yet, and leads to the last recording.
function soon() {
  if (known.about === 'video') again('It plays by itself as soon as it can.', { headline: 'This video is not ready yet' });
  else if (known.recording) again('The picture comes by itself when the next broadcast begins.', { headline: 'Not on air now', recording: known.recording });
  else again('The picture comes by itself. You can leave this page open.', { headline: 'Waiting for the stream to start' });
}

// refused says why the video may not be played, by the error's code.
async function refused(mine, response) {
  const body = await response.json().catch(() => null);
  if (mine !== attempt) return;
  const code = String(body && body.error && body.error.code || '');
  const sentence = Object.hasOwn(refusals, code) && refusals[code];
  const link = token || response.status === 400;
  refuse(sentence || (link ? 'This link is not valid.' : 'This video is private and cannot be played here.'));
}

// begin plays what a multivariant playlist leads to.
async function begin(mine, response) {
  const text = await response.text().catch(() => '');
  if (mine !== attempt) return;
  const reason = await decrypting(text);
  if (mine !== attempt) return;
  if (reason) {
    refuse(reason);
    return;
  }
  waitingSince = 0;
  media = mediaOf(text);
  wasLive = false;
  if (wanted) play();
  else ready();
}

// ready shows a picture and waits for a press: none of the media are asked for before.
function ready() {
  if (known.poster) video.poster = known.poster;
  state('ready', '');
}

function press() {
  wanted = true;
  video.play().catch(() => {}); // some browsers let only the press itself begin with sound
  el('stage').focus(); // the button goes
  play();
}

// decrypting prepares for what is encrypted, and gives the reason where it cannot be played.
async function decrypting(text) {
  drm = null;
  const keys = text.split('\n').filter((line) => line.startsWith('#EXT-X-SESSION-KEY:'));
  if (!keys.length) return '';
  if (!licenceToken) return 'This video is protected, and the link has no token for its licence.';
  if (!navigator.requestMediaKeySystemAccess) {
    return isSecureContext ? 'This browser cannot play protected video here.' : 'Browsers play protected video over HTTPS only.';
  }
  let offered = systems.filter((s) => keys.some((line) => line.includes('KEYFORMAT="' + s.keyFormat + '"')));
  if (offered.length && offered[0].path === 'clearkey' && await has(offered[0].name)) offered = offered.slice(0, 1);
  const asked = encodeURIComponent(id) + '?token=' + encodeURIComponent(licenceToken);
  const at = (path) => new URL('../' + path + '/' + asked, location.href).href;
  drm = {};
  for (const s of offered) {
    drm[s.name] = { licenseUrl: at('license/' + s.path) };
    if (s.path === 'fairplay') drm[s.name].serverCertificateUrl = at('appcert/fairplay');
  }
  return '';
}

// has reports whether the browser has a DRM system at all; for which codecs, hls.js asks.
function has(system) {
  const video = [{ contentType: 'video/mp4; codecs="avc1.42E01E"' }];
  return navigator.requestMediaKeySystemAccess(system, [{ initDataTypes: ['cenc'], videoCapabilities: video }]).then(() => true, () => false);
}

function refuse(sentence) {
  clearTimeout(timer);
  state('error', sentence);
}

// mediaOf is the folder that a multivariant playlist's first variant is in.
function mediaOf(text) {
  const uri = text.split('\n').find((line) => line && !line.startsWith('#')) || '';
  return uri.split('?')[0].split('/').slice(0, -1).join('/');
}

// over says that what was live has ended, and leads to its recording or its next broadcast.
function over() {
  if (!wasLive || known.about === 'video') {
    state('ended', '');
    return;
  }
  looks = 0;
  ended('');
  learn();
}

// lost is over for what the player lost before it came to an end: the same broadcast may come back.
function lost() {
  media = '';
  over();
}

function ended(sentence, more) {
  state('ended', sentence, { headline: 'This broadcast has ended', ...more });
}

// learn asks what there is after the end, and asks once more later: no playlist is asked for while nothing is on air.
async function learn() {
  const mine = ++attempt;
  const now = await told();
  if (mine !== attempt || document.body.dataset.state !== 'ended') return; // the viewer looks at the end once more
  if (now.state === 'live') {
    await next(mine);
    if (mine !== attempt || document.body.dataset.state !== 'ended') return;
    if (!media) ended('The connection to it is lost. Waiting for the picture…', { headline: 'The stream is interrupted' });
  } else if (now.recording) {
    ended('The recording is ready.', { recording: now.recording, more: true });
    return;
  } else if (now.refused || asked || looks >= LOOKS.length) {
    ended(asked ? 'There is nothing new yet.' : '', { more: true });
    asked = false;
    return;
  } else {
    ended(now.state === 'finishing' ? 'The recording will be here in a moment.' : '');
  }
  const pause = LOOKS[Math.min(looks++, LOOKS.length - 1)];
  later(pause * (0.75 + Math.random() / 2), learn); // all viewers saw the end at once
}

// told is what the server says of the stream now; refused: it will not say anything else.
async function told() {
  try {
    const response = await fetch(about, { cache: 'no-store', credentials: 'omit' });
    if (response.ok) return await response.json();
    return { refused: response.status < 500 && response.status !== 429 };
  } catch {
    return {};
  }
}

// next plays the next broadcast, if it has begun.
async function next(mine) {
  let response = null;
  try {
    response = await fetch(source, { cache: 'no-store', credentials: 'omit' });
  } catch { /* it is looked again */ }
  if (mine !== attempt || !response || response.status !== 200) return;
  const copy = response.clone();
  const name = mediaOf(await copy.text().catch(() => ''));
  if (mine === attempt && name !== media) await begin(mine, response);
}

function more() {
  if (document.body.dataset.state !== 'ended') {
    state('loading', 'Looking…');
    open();
    return;
  }
  asked = true;
  ended('Looking…');
  learn();
}

function play() {
  stop();
  state(everPlayed ? 'playing' : 'loading', 'Loading…');
  if (window.Hls && Hls.isSupported()) {
    playHls(everPlayed || !from ? -1 : from);
  } else if (!drm && video.canPlayType('application/vnd.apple.mpegurl')) {
    video.src = source;
    const skip = () => { if (from < video.duration) video.currentTime = from; };
    if (from && !everPlayed) video.addEventListener('loadedmetadata', skip, { once: true });
    start();
  } else {
    state('error', 'This browser cannot play this video. Please try another one.');
  }
}

function stop() {
  if (hls) hls.destroy();
  hls = null;
}

// playHls plays from a second on, -1: from the beginning, and of what is live from the edge.
function playHls(second = -1) {
  hls = engine(Hls, {
    startPosition: second,
    backBufferLength: 90,
    manifestLoadPolicy: policy(20000),
    playlistLoadPolicy: policy(30000),
    emeEnabled: Boolean(drm),
    drmSystems: drm || {},
    keyLoadPolicy: policy(20000, 1), // hls.js would ask again at once
  });
  hls.on(Hls.Events.ERROR, failed);
  hls.on(Hls.Events.MANIFEST_PARSED, () => { bar.fit(hls); start(); });
  hls.on(Hls.Events.MEDIA_ATTACHED, () => { if (!paused) start(); }); // attaching it again, as after a media error, stops the element
  hls.once(Hls.Events.LEVEL_LOADED, (_, loaded) => {
    if (from && from >= loaded.details.edge && !everPlayed) hls.startLoad(-1); // there is no such second
  });
  hls.on(Hls.Events.LEVEL_UPDATED, timing);
  menu.follow(hls, Hls);
  hls.on(Hls.Events.FRAG_LOADED, (_, { frag }) => { if (frag.type === 'subtitle') textWaits = true; });
  hls.on(Hls.Events.SUBTITLE_FRAG_PROCESSED, () => { textWaits = false; });
  textWaits = false;
  hls.loadSource(source);
  hls.attachMedia(video);
}

// freeText has hls.js load text again that waits for media from which the viewer seeks away: it would wait for ever.
function freeText() {
  if (!hls || !textWaits) return;
  textWaits = false;
  const track = hls.subtitleTrack;
  hls.subtitleTrack = -1;
  hls.subtitleTrack = track;
}

function policy(longest, retries = 6) {
  const retry = { maxNumRetry: retries, retryDelayMs: 500, maxRetryDelayMs: 4000 };
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
  if (data.type === Hls.ErrorTypes.KEY_SYSTEM_ERROR) {
    unlicensed(data.response ? data.response.code : -1);
    return;
  }
  if (data.type === Hls.ErrorTypes.MEDIA_ERROR && recover()) return;
  seen.restarts++;
  stop();
  interrupted();
}

function interrupted() {
  if (everPlayed) again('The stream was interrupted. Waiting for it to come back…');
  else again('The picture comes by itself.', { headline: 'Waiting for the stream to start' });
}

// recover has the browser begin again where it could not decode and, when it fails there too, further and further behind that place: decoding begins
// at the key frame before, and what cannot be decoded may come behind that. Of what is live the edge is played. false: to open it again is better.
function recover() {
  const now = Date.now();
  mediaErrors = mediaErrors.filter((t) => now - t < 30000);
  mediaErrors.push(now);
  const errors = mediaErrors.length;
  if (errors > 6) {
    stop();
    state('error', 'This browser cannot decode this video.');
    return true;
  }
  const d = details(hls);
  const live = Boolean(d && d.live);
  if (live && errors > 3) return false;
  const place = video.currentTime;
  if (errors === 1 || live) {
    hls.recoverMediaError();
  } else {
    stop();
    playHls(Math.min(place + 2 ** (errors - 1), video.duration || Infinity));
  }
  return true;
}

// unlicensed sees to a licence that did not come, by the status of the response; 0: there was none, -1: it is not about one.
function unlicensed(status) {
  stop();
  const slowly = (sentence) => {
    seen.restarts++;
    state('waiting', sentence);
    later(WAIT_SLOW, open);
  };
  switch (status) {
    case -1:
      refuse('This browser cannot decrypt this video.');
      return;
    case 401:
    case 403:
      refuse('The licence token of this link is not valid, or no longer.');
      return;
    case 0:
    case 429:
    case 503:
      slowly('The licence server is busy. Trying again…');
      return;
    default:
      if (status < 500) refuse('The licence server refuses this video (' + status + ').');
      else slowly('The licence server has a problem (' + status + '). Trying again…');
  }
}

// astray says that a viewer is farther behind than hls.js catches up by playing faster, which it does within a target duration of twice the
// target latency, or farther than that would take long.
function astray(d) {
  return late(hls, video) > Math.min(FAR_BEHIND * d.targetduration + 2, hls.targetLatency === null ? Infinity : hls.targetLatency + d.targetduration);
}

// timing shows how far behind the live edge the picture is, and brings back who fell behind without wishing to.
function timing() {
  const d = details(hls);
  const live = Boolean(d && d.live);
  if (live || !hls && video.duration === Infinity) wasLive = true;
  bar.edge(hls, everPlayed);
  if (d && !live) conclude(d);
  if (!live) return;
  if (!far(hls, video) && !video.paused) chosenBehind = false;
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
  if (hls && hls.liveSyncPosition) video.currentTime = seen.broughtTo = hls.liveSyncPosition;
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
  freeText();
  const d = details(hls);
  if (!d || !d.live) return;
  if (!far(hls, video)) chosenBehind = false;
  else if (video.currentTime < playedTo - STEP) chosenBehind = true; // forward is hls.js's way over what it can't play
});
video.addEventListener('volumechange', () => { if (!video.muted) el('sound').hidden = true; });
video.addEventListener('error', () => {
  if (!video.error) return;
  if (hls) { // it sees none of what happens behind its last append
    failed(null, { fatal: true, type: Hls.ErrorTypes.MEDIA_ERROR, details: 'decodeError' });
    return;
  }
  seen.restarts++;
  interrupted();
});
setInterval(timing, 1000);

el('live').addEventListener('click', toLive);
el('again').addEventListener('click', more);
el('begin').addEventListener('click', press);
el('sound').addEventListener('click', () => { video.muted = false; el('sound').hidden = true; });
document.addEventListener('visibilitychange', () => { if (!document.hidden && document.body.dataset.state === 'waiting') later(0, open); });
keys(document, video, { ...bar, captions: menu.captions, toggle: () => (document.body.dataset.state === 'ready' ? press : bar.toggle)() });
captions(el('stage'));
// A token for watching is none for pictures.
const pictures = !token || pictureToken ? new URL('../' + encodeURIComponent(id) + '/storyboard.json', location.href) : '';
if (pictures && pictureToken) pictures.searchParams.set('token', pictureToken);
storyboard(el('stage'), pictures && pictures.href);

// What tests and a curious person read.
window.millrace = { get hls() { return hls; }, video, seen, toLive };
if (wishes('muted')) video.muted = true;
open();
