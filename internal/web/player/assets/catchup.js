// How near its live edge a low-latency stream is played, by the rate of playback. hls.js raises the rate only while more
// than a second is buffered, which a player near the edge never has: it stays where it happened to begin.
const MOST = 0.1; // faster: with the pitch kept, hardly anybody hears it
const FASTEST = 0.3; // faster, while much is buffered: after a stall
const SLOWEST = 0.05; // slower, until a stall is made up for
const GAIN = 0.5; // of the rate, for each second behind
const STEP = 0.02; // of the rate: each change costs the browser something
const NEAR = 0.05; // seconds beside the aim that are left as they are
const LOADS = 0.5; // seconds after a start, in which a player still loads what is there already
const FIRST = 1.2; // seconds after a start from which on it is known what is buffered
const LOOKED = 15; // seconds: what counts is the least that was buffered for so long
const SPARE = 1.25; // parts that stay buffered at the worst moment: the next one may come later than any before
const NEARER = 0.75; // of a part, than PART-HOLD-BACK
const CALM = 60; // seconds without a stall after which the target comes nearer again, by a part
const BACK = 0.5; // seconds: by less than this nobody goes back on purpose

const stepped = (rate) => Math.round(rate / STEP) * STEP;

// Pace finds the rate for what a player sees of itself. Times are seconds.
export class Pace {
  constructor() {
    this.added = 0; // to the target, by stalls
    this.since = 0; // the last change of that
    this.again();
  }

  // again forgets what was buffered, at a start: behind a seek, a pause or a stall.
  again() {
    this.began = Infinity;
    this.looks = []; // what was buffered, and when, but where a later look saw less
  }

  // stalled widens the target: each stall by a part, all of them by a target duration.
  stalled(now, { part, most }) {
    this.again();
    this.added = Math.min(this.added + part, most);
    this.since = now;
  }

  // look remembers what is buffered.
  look(now, ahead) {
    this.began = Math.min(this.began, now);
    if (now - this.began < LOADS) return;
    while (this.looks.length && this.looks[0].at < now - LOOKED) this.looks.shift();
    while (this.looks.length && this.looks.at(-1).ahead >= ahead) this.looks.pop();
    this.looks.push({ at: now, ahead });
  }

  // rate is the one to play with. latency: behind live; target: what hls.js keeps to; ahead: what is buffered; part: a
  // part's length; most: a target duration; held: nobody goes nearer than the target, which has to do with text.
  rate(now, { latency, target, ahead, part, most, held }) {
    this.look(now, ahead);
    if (this.added > 0 && now - this.since > CALM) {
      this.added = Math.max(0, this.added - part);
      this.since = now;
    }
    if (now - this.began < FIRST || latency > 2 * target + most) return 1; // it is an earlier time that is watched
    const aim = target + this.added - (held ? 0 : NEARER * part);
    const least = this.looks[0].ahead;
    const over = Math.min(latency - aim, least - SPARE * part - this.added);
    if (over > NEAR) return stepped(1 + Math.min(GAIN * over, FASTEST, Math.max(MOST, least - 0.8)));
    const under = aim - latency;
    return this.added > 0 && under > NEAR ? stepped(1 - Math.min(GAIN * under, SLOWEST)) : 1;
  }
}

// catchUp has an hls.js play a low-latency stream as Pace says, and any other by its own means. It leaves alone who has
// gone back or has chosen a rate.
export function catchUp(hls, { BUFFER_APPENDING, DESTROYING, LEVEL_UPDATED, MEDIA_ATTACHED, MEDIA_DETACHING }) {
  const pace = new Pace();
  const clock = () => performance.now() / 1000;
  const { liveSyncOnStallIncrease } = hls.config; // seconds that hls.js adds to its target for each stall, for good
  let media = null;
  let set = 1; // the rate that was set here
  let played = 0; // seconds: where the player was before it sought; 0: it has not played
  let back = false; // the viewer has gone back

  // edge is the playlist whose edge is followed, if there is one.
  const edge = () => {
    const details = hls.latestLevelDetails;
    return hls.config.lowLatencyMode && details?.live && details.partTarget > 0 && hls.targetLatency !== null ? details : null;
  };
  const latency = (details) => details.edge + details.age - media.currentTime;
  const ahead = () => (media.buffered.length ? media.buffered.end(media.buffered.length - 1) - media.currentTime : 0);
  const plays = () => played > 0 && !media.paused && !media.seeking;
  const play = (rate) => {
    if (media && media.playbackRate === set && rate !== set) media.playbackRate = set = rate;
  };
  const halt = () => {
    pace.again();
    play(1);
  };

  const on = {
    timeupdate() {
      const details = edge();
      if (!details || media.paused || media.seeking) return;
      played = media.currentTime;
      if (media.playbackRate === 1) set = 1; // also a new source's
      const target = hls.targetLatency;
      const held = hls.config.liveSyncDuration > details.partHoldBack;
      const now = { latency: latency(details), target, ahead: ahead(), part: details.partTarget, most: details.targetduration, held };
      back &&= now.latency > target + BACK;
      const rate = pace.rate(clock(), now);
      play(back ? 1 : rate);
    },
    seeking() {
      const details = edge();
      if (details && played && media.currentTime < played - BACK) back = latency(details) > hls.targetLatency + BACK;
      halt();
    },
    waiting() {
      const details = edge();
      if (details && plays()) pace.stalled(clock(), { part: details.partTarget, most: details.targetduration });
      play(1);
    },
    pause: halt,
  };
  const leave = () => {
    halt();
    for (const [event, run] of Object.entries(on)) media?.removeEventListener(event, run);
    media = null;
  };
  hls.on(MEDIA_ATTACHED, (_, data) => {
    media = data.media;
    played = 0;
    for (const [event, run] of Object.entries(on)) media.addEventListener(event, run);
  });
  hls.on(BUFFER_APPENDING, () => { if (media && edge() && plays()) pace.look(clock(), ahead()); }); // when least is there
  hls.on(LEVEL_UPDATED, () => {
    hls.config.liveSyncOnStallIncrease = edge() ? 0 : liveSyncOnStallIncrease; // Pace has its own answer
    const own = edge() ? 1 : 1 + FASTEST; // 1: hls.js leaves the rate alone
    if (own === hls.config.maxLiveSyncPlaybackRate) return;
    hls.config.maxLiveSyncPlaybackRate = own;
    if (media && own === 1 && media.playbackRate <= 1 + FASTEST) set = media.playbackRate; // by hls.js
    halt();
  });
  hls.on(MEDIA_DETACHING, leave);
  hls.on(DESTROYING, leave);
}
