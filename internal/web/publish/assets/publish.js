// The publisher of /publish/: takes a camera or a screen and sends it over WHIP (RFC 9725) to its own origin. The stream key stays in this
// page: it goes into the Authorization header, never into an address.
'use strict';
(() => {
  const el = (id) => document.getElementById(id);
  const endpoint = new URL('../whip', location.href);
  const QUALITY = { 480: [854, 480, 1_000_000], 720: [1280, 720, 2_500_000], 1080: [1920, 1080, 5_000_000] };
  const AUDIO_BITRATE = 128_000;
  const PATIENCE = 500; // ms that a connection may be gone before ICE is restarted
  const LONGEST_PAUSE = 10000; // ms between attempts

  let media = null; // MediaStream
  let pc = null;
  let session = null; // URL
  let wanted = false; // the person wants to be live
  let attempt = 0;
  let timer = 0;
  let meter = 0;
  let last = null;

  if (location.hash.length > 1) { // a link may bring the key in its fragment, which no server sees; it does not stay in the address
    el('key').value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, '', location.pathname + location.search);
  }

  function state(name, sentence) {
    document.body.dataset.state = name;
    if (sentence !== undefined) el('sentence').textContent = sentence;
    const busy = wanted;
    el('start').hidden = busy;
    el('stop').hidden = !busy;
    for (const id of ['key', 'source', 'camera', 'microphone', 'quality', 'preview']) el(id).disabled = busy;
    el('figures').hidden = name !== 'live';
  }

  function explain(e) {
    switch (e && e.name) {
      case 'NotAllowedError': return 'The browser was not allowed to use the camera, the microphone or the screen. Allow it beside the address and try again.';
      case 'NotFoundError': return 'There is no such camera or microphone on this machine.';
      case 'NotReadableError': return 'The camera or the microphone is used by another program.';
      case 'OverconstrainedError': return 'The camera that was chosen is not there any more.';
      default: return 'The camera, the microphone or the screen cannot be used: ' + (e && e.message ? e.message : e);
    }
  }

  function release() {
    if (media) for (const t of media.getTracks()) t.stop();
    media = null;
    el('video').srcObject = null;
    el('empty').hidden = false;
  }

  // capture asks for what is chosen and shows it.
  async function capture() {
    if (!navigator.mediaDevices) throw new Error('a page may use them over HTTPS only, or on localhost. Open this page with https://');
    release();
    const [width, height] = QUALITY[el('quality').value];
    const source = el('source').value;
    const microphone = el('microphone').value;
    const audio = microphone === 'none' ? false : microphone ? { deviceId: { exact: microphone } } : true;
    const size = { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: 30 } };
    let stream;
    if (source === 'screen') {
      stream = await navigator.mediaDevices.getDisplayMedia({ video: size, audio: true });
      if (audio && !stream.getAudioTracks().length) {
        const voice = await navigator.mediaDevices.getUserMedia({ audio });
        for (const t of voice.getAudioTracks()) stream.addTrack(t);
      }
    } else {
      const camera = el('camera').value;
      const video = source === 'none' ? false : { ...size, ...(camera ? { deviceId: { exact: camera } } : {}) };
      if (!video && !audio) throw new Error('choose a picture or a microphone');
      stream = await navigator.mediaDevices.getUserMedia({ video, audio });
    }
    media = stream;
    for (const t of media.getVideoTracks()) {
      t.contentHint = source === 'screen' ? 'detail' : 'motion';
      t.addEventListener('ended', () => { if (media === stream) finish('The browser stopped showing the picture.'); });
    }
    el('video').srcObject = media;
    el('empty').hidden = media.getVideoTracks().length > 0;
    devices().catch(() => {});
  }

  // devices fills the menus; names are known once something was allowed.
  async function devices() {
    if (!navigator.mediaDevices) return;
    const all = await navigator.mediaDevices.enumerateDevices();
    for (const [id, kind, fixed] of [['camera', 'videoinput', [['', 'Standard']]], ['microphone', 'audioinput', [['', 'Standard'], ['none', 'None']]]]) {
      const select = el(id);
      const value = select.value;
      const options = all.filter((d) => d.kind === kind && d.deviceId && d.deviceId !== 'default').map((d, i) => [d.deviceId, d.label || 'Device ' + (i + 1)]);
      select.replaceChildren(...fixed.concat(options).map(([v, text]) => new Option(text, v)));
      select.value = value;
      if (select.selectedIndex < 0) select.value = '';
    }
  }

  function request(method, url, body, headers) {
    return fetch(url, { method, body, headers: { Authorization: 'Bearer ' + el('key').value.trim(), ...headers }, cache: 'no-store', credentials: 'omit', redirect: 'follow' });
  }

  async function reason(response) {
    try {
      return (await response.json()).detail || response.statusText;
    } catch {
      return response.statusText || 'status ' + response.status;
    }
  }

  // iceServers reads what the service tells in Link headers, RFC 9725 section 4.6.
  function iceServers(link) {
    return Array.from((link || '').matchAll(/<((?:stuns?|turns?):[^>]+)>([^<]*)/g), ([, url, rest]) => {
      const part = (name) => (rest.match(new RegExp('\\b' + name + '="((?:[^"\\\\]|\\\\.)*)"')) || [])[1]?.replace(/\\(.)/g, '$1');
      return part('rel') === 'ice-server' ? { urls: url, username: part('username'), credential: part('credential') } : null;
    }).filter(Boolean);
  }

  function failed(mine, sentence, fatal) {
    if (mine !== attempt || !wanted) return;
    hangUp();
    if (fatal) {
      wanted = false;
      state('error', sentence);
      return;
    }
    failed.count = (failed.count || 0) + 1;
    state('waiting', sentence + ' Trying again…');
    clearTimeout(timer);
    timer = setTimeout(connect, Math.min(LONGEST_PAUSE, 500 * 2 ** failed.count));
  }

  function hangUp() {
    clearInterval(meter);
    clearTimeout(timer);
    if (pc) pc.close();
    pc = null;
    session = null;
    last = null;
  }

  async function connect() {
    const mine = ++attempt;
    hangUp();
    state('connecting', 'Connecting…');
    const conn = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
    pc = conn;
    let lostSince = 0;
    conn.addEventListener('connectionstatechange', () => {
      if (conn !== pc) return;
      switch (conn.connectionState) {
        case 'connected':
          failed.count = 0;
          clearTimeout(lostSince);
          state('live', 'You are live.');
          break;
        case 'disconnected':
        case 'failed':
          state('waiting', 'The connection is gone. Bringing it back…');
          clearTimeout(lostSince);
          lostSince = setTimeout(() => restart(conn, mine), conn.connectionState === 'failed' ? 0 : PATIENCE);
          break;
        case 'closed':
          failed(mine, 'The service closed the connection.');
      }
    });
    try {
      for (const track of media.getTracks()) {
        const video = track.kind === 'video';
        const t = conn.addTransceiver(track, {
          direction: 'sendonly', streams: [media], sendEncodings: [{ maxBitrate: video ? QUALITY[el('quality').value][2] : AUDIO_BITRATE }],
        });
        if (video) { // another size in mid-stream is a discontinuity for viewers: rather fewer pictures than smaller ones
          const p = t.sender.getParameters();
          p.degradationPreference = 'maintain-resolution';
          await t.sender.setParameters(p).catch(() => {});
        }
      }
      await conn.setLocalDescription();
      // Without waiting for candidates: the service is ICE-lite, and it is this side that connects.
      const response = await request('POST', endpoint, conn.localDescription.sdp, { 'Content-Type': 'application/sdp' });
      if (mine !== attempt) return;
      if (response.status !== 201) {
        const why = await reason(response);
        failed(mine, 'The service says: ' + why + '.', response.status < 500 && response.status !== 409 && response.status !== 429);
        return;
      }
      session = new URL(response.headers.get('Location'), response.url);
      const servers = iceServers(response.headers.get('Link'));
      if (servers.length) conn.setConfiguration({ bundlePolicy: 'max-bundle', iceServers: servers });
      await conn.setRemoteDescription({ type: 'answer', sdp: await response.text() });
      meter = setInterval(figures, 1000);
      timer = setTimeout(() => {
        if (conn === pc && conn.connectionState !== 'connected') failed(mine, 'No way to the service was found: its WebRTC port may be closed.');
      }, 15000);
    } catch (e) {
      failed(mine, e instanceof TypeError ? 'The service cannot be reached.' : 'The connection could not be made: ' + e.message + '.');
    }
  }

  // restart makes a new ICE session for the same publication, RFC 9725 section 4.3.3.
  async function restart(conn, mine) {
    if (conn !== pc || conn.connectionState === 'connected' || !session) return;
    try {
      const before = conn.remoteDescription.sdp;
      await conn.setLocalDescription(await conn.createOffer({ iceRestart: true }));
      const offer = conn.localDescription.sdp;
      const find = (sdp, key) => sdp.match(new RegExp('^a=' + key + ':(.*)$', 'm'))[1].trim();
      const body = ['a=group:' + find(offer, 'group'), offer.match(/^m=.*$/m)[0].trim(), 'a=mid:' + find(offer, 'mid'),
        'a=ice-ufrag:' + find(offer, 'ice-ufrag'), 'a=ice-pwd:' + find(offer, 'ice-pwd'), ''].join('\r\n');
      const response = await request('PATCH', session, body, { 'Content-Type': 'application/trickle-ice-sdpfrag', 'If-Match': '*' });
      if (response.status !== 200) throw new Error(await reason(response));
      const text = await response.text();
      await conn.setRemoteDescription({
        type: 'answer', sdp: before.replace(/^a=ice-ufrag:.*$/gm, 'a=ice-ufrag:' + find(text, 'ice-ufrag')).replace(/^a=ice-pwd:.*$/gm, 'a=ice-pwd:' + find(text, 'ice-pwd')),
      });
      setTimeout(() => { if (conn === pc && conn.connectionState !== 'connected') failed(mine, 'The connection is gone.'); }, 8000);
    } catch {
      failed(mine, 'The connection is gone.');
    }
  }

  async function figures() {
    const conn = pc;
    if (!conn) return;
    const now = { at: performance.now(), bytes: 0 };
    let lost = 0;
    let packets = 0;
    const reports = await conn.getStats();
    reports.forEach((r) => {
      if (r.type === 'outbound-rtp') {
        now.bytes += r.bytesSent;
        packets += r.packetsSent;
        if (r.kind !== 'video') return;
        el('picture').textContent = r.frameWidth ? r.frameWidth + '×' + r.frameHeight + ', ' + Math.round(r.framesPerSecond || 0) + '/s' : '–';
        const codec = reports.get(r.codecId);
        el('codec').textContent = codec ? codec.mimeType.split('/')[1] : '–';
      } else if (r.type === 'remote-inbound-rtp') {
        lost += Math.max(0, r.packetsLost || 0);
        if (r.roundTripTime !== undefined) el('trip').textContent = Math.round(r.roundTripTime * 1000) + ' ms';
      }
    });
    if (last) el('bitrate').textContent = Math.round((now.bytes - last.bytes) * 8 / (now.at - last.at)) + ' kbit/s';
    el('lost').textContent = packets ? (100 * lost / (packets + lost)).toFixed(1) + ' %' : '–';
    last = now;
  }

  async function start() {
    wanted = true;
    failed.count = 0;
    state('connecting', 'Waiting for the camera…');
    try {
      if (!media) await capture();
    } catch (e) {
      wanted = false;
      state('error', explain(e));
      return;
    }
    if (wanted) connect();
  }

  async function finish(sentence) {
    const url = session;
    const live = wanted;
    wanted = false;
    attempt++;
    release();
    if (live && url) {
      state('ending', 'Ending the stream…');
      await request('DELETE', url).catch(() => {}); // without it the service notices a moment later
    }
    hangUp();
    state('idle', sentence);
  }

  el('form').addEventListener('submit', (e) => { e.preventDefault(); start(); });
  el('stop').addEventListener('click', () => finish('The stream has ended.'));
  el('preview').addEventListener('click', () => capture().then(() => state('idle', 'This is what will be published.'), (e) => state('error', explain(e))));
  for (const id of ['source', 'camera', 'microphone', 'quality']) {
    el(id).addEventListener('change', () => {
      el('camera').hidden = el('camera-label').hidden = el('source').value !== 'camera';
      if (media) release();
    });
  }
  window.addEventListener('beforeunload', (e) => { if (wanted) e.preventDefault(); });
  devices().catch(() => {});
  window.millrace = { connection: () => pc };
})();
