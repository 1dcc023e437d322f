// A publication over WHIP (RFC 9725) to the page's own origin. The stream key goes into the Authorization header, never
// into an address.

const endpoint = new URL('../whip', location.href);
const AUDIO_BITRATE = 128_000;
const PATIENCE = 500; // ms that a connection may be gone before ICE is restarted
const LONGEST_PAUSE = 10000; // ms between attempts

// Publication sends one stream until it is ended. It calls say(state, sentence) when something changes; states are
// connecting, live, waiting and error, after which it has given up.
export class Publication {
  #key;
  #media;
  #bitrate;
  #say;
  #pc = null;
  #session = null; // URL
  #wanted = true;
  #attempt = 0;
  #failures = 0;
  #timer = 0;
  #last = null; // what was sent, at the last look

  constructor({ key, media, bitrate, say }) {
    this.#key = key;
    this.#media = media;
    this.#bitrate = bitrate;
    this.#say = say;
  }

  get connection() { return this.#pc; }

  async connect() {
    const mine = ++this.#attempt;
    this.#hangUp();
    this.#say('connecting', 'Connecting…');
    const pc = this.#pc = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
    this.#watch(pc, mine);
    try {
      for (const track of this.#media.getTracks()) await this.#add(pc, track);
      await pc.setLocalDescription();
      // Without waiting for candidates: the service is ICE-lite, and it is this side that connects.
      const response = await this.#request('POST', endpoint, pc.localDescription.sdp,
        { 'Content-Type': 'application/sdp' });
      if (mine !== this.#attempt) return;
      if (response.status !== 201) {
        const fatal = response.status < 500 && response.status !== 409 && response.status !== 429;
        this.#failed(mine, 'The service says: ' + await reason(response) + '.', fatal);
        return;
      }
      this.#session = new URL(response.headers.get('Location'), response.url);
      const servers = iceServers(response.headers.get('Link'));
      if (servers.length) pc.setConfiguration({ bundlePolicy: 'max-bundle', iceServers: servers });
      await pc.setRemoteDescription({ type: 'answer', sdp: await response.text() });
      this.#timer = setTimeout(() => {
        if (pc === this.#pc && pc.connectionState !== 'connected') {
          this.#failed(mine, 'No way to the service was found: its WebRTC port may be closed.');
        }
      }, 15000);
    } catch (e) {
      this.#failed(mine, e instanceof TypeError ? 'The service cannot be reached.'
        : 'The connection could not be made: ' + e.message + '.');
    }
  }

  // end ends the publication at the service, too.
  async end() {
    const url = this.#session;
    this.#wanted = false;
    this.#attempt++;
    if (url) await this.#request('DELETE', url).catch(() => {}); // without it the service notices a moment later
    this.#hangUp();
  }

  async #add(pc, track) {
    const video = track.kind === 'video';
    const sendEncodings = [{ maxBitrate: video ? this.#bitrate : AUDIO_BITRATE }];
    const t = pc.addTransceiver(track, { direction: 'sendonly', streams: [this.#media], sendEncodings });
    if (!video) return;
    // Another size in mid-stream is a discontinuity for viewers: rather fewer pictures than smaller ones.
    const parameters = t.sender.getParameters();
    parameters.degradationPreference = 'maintain-resolution';
    await t.sender.setParameters(parameters).catch(() => {});
  }

  #watch(pc, mine) {
    let lost = 0;
    pc.addEventListener('connectionstatechange', () => {
      if (pc !== this.#pc) return;
      switch (pc.connectionState) {
        case 'connected':
          this.#failures = 0;
          clearTimeout(lost);
          this.#say('live', 'You are live.');
          break;
        case 'disconnected':
        case 'failed':
          this.#say('waiting', 'The connection is gone. Bringing it back…');
          clearTimeout(lost);
          lost = setTimeout(() => this.#restart(pc, mine), pc.connectionState === 'failed' ? 0 : PATIENCE);
          break;
        case 'closed':
          this.#failed(mine, 'The service closed the connection.');
      }
    });
  }

  // restart makes a new ICE session for the same publication, RFC 9725 section 4.3.3.
  async #restart(pc, mine) {
    if (pc !== this.#pc || pc.connectionState === 'connected' || !this.#session) return;
    try {
      const before = pc.remoteDescription.sdp;
      await pc.setLocalDescription(await pc.createOffer({ iceRestart: true }));
      const offer = pc.localDescription.sdp;
      const line = (key) => 'a=' + key + ':' + attribute(offer, key);
      const medium = offer.match(/^m=.*$/m)[0].trim();
      const body = [line('group'), medium, line('mid'), line('ice-ufrag'), line('ice-pwd'), ''].join('\r\n');
      const response = await this.#request('PATCH', this.#session, body,
        { 'Content-Type': 'application/trickle-ice-sdpfrag', 'If-Match': '*' });
      if (response.status !== 200) throw new Error(await reason(response));
      const text = await response.text();
      const sdp = before.replace(/^a=ice-ufrag:.*$/gm, 'a=ice-ufrag:' + attribute(text, 'ice-ufrag'))
        .replace(/^a=ice-pwd:.*$/gm, 'a=ice-pwd:' + attribute(text, 'ice-pwd'));
      await pc.setRemoteDescription({ type: 'answer', sdp });
      setTimeout(() => {
        if (pc === this.#pc && pc.connectionState !== 'connected') this.#failed(mine, 'The connection is gone.');
      }, 8000);
    } catch {
      this.#failed(mine, 'The connection is gone.');
    }
  }

  // failed tries again after a pause, or gives up where that can't help.
  #failed(mine, sentence, fatal) {
    if (mine !== this.#attempt || !this.#wanted) return;
    this.#hangUp();
    if (fatal) {
      this.#wanted = false;
      this.#say('error', sentence);
      return;
    }
    this.#failures++;
    this.#say('waiting', sentence + ' Trying again…');
    this.#timer = setTimeout(() => this.connect(), Math.min(LONGEST_PAUSE, 500 * 2 ** this.#failures));
  }

  #hangUp() {
    clearTimeout(this.#timer);
    this.#pc?.close();
    this.#pc = this.#session = this.#last = null;
  }

  #request(method, url, body, headers) {
    return fetch(url, {
      method, body, headers: { Authorization: 'Bearer ' + this.#key, ...headers },
      cache: 'no-store', credentials: 'omit', redirect: 'follow',
    });
  }

  // figures are what is sent: bits a second since the last look, the picture's size and rate, codec, share of packets
  // that were lost, round trip in seconds. What is not known is undefined; without a connection there are none.
  async figures() {
    const pc = this.#pc;
    if (!pc) return null;
    const out = {};
    const now = { at: performance.now(), bytes: 0 };
    let lost = 0;
    let packets = 0;
    const reports = await pc.getStats();
    reports.forEach((r) => {
      if (r.type === 'outbound-rtp') {
        now.bytes += r.bytesSent;
        packets += r.packetsSent;
        if (r.kind !== 'video') return;
        Object.assign(out, { width: r.frameWidth, height: r.frameHeight, rate: r.framesPerSecond });
        out.codec = reports.get(r.codecId)?.mimeType.split('/')[1];
      } else if (r.type === 'remote-inbound-rtp') {
        lost += Math.max(0, r.packetsLost || 0);
        out.trip = r.roundTripTime ?? out.trip;
      }
    });
    if (pc !== this.#pc) return null;
    if (this.#last) out.bitrate = (now.bytes - this.#last.bytes) * 8000 / (now.at - this.#last.at);
    if (packets) out.lost = lost / (packets + lost);
    this.#last = now;
    return out;
  }
}

// attribute is the first value of an attribute in a session description.
function attribute(sdp, key) {
  return sdp.match(new RegExp('^a=' + key + ':(.*)$', 'm'))[1].trim();
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
    const part = (name) =>
      (rest.match(new RegExp('\\b' + name + '="((?:[^"\\\\]|\\\\.)*)"')) || [])[1]?.replace(/\\(.)/g, '$1');
    if (part('rel') !== 'ice-server') return null;
    return { urls: url, username: part('username'), credential: part('credential') };
  }).filter(Boolean);
}
