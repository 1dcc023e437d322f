package browser_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/playback"
	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/origin"
	"millrace/test/rig"
)

// numberOf is JavaScript: the number of the picture that a media element shows, -1: there is none.
const numberOf = `(v) => {
  if (!v || !v.videoWidth) return -1;
  const size = 32, bits = 12, canvas = Object.assign(document.createElement('canvas'), { width: 640, height: 360 });
  const c = canvas.getContext('2d', { willReadFrequently: true });
  c.drawImage(v, 0, 0, 640, 360);
  const row = c.getImageData(0, 360 - size / 2, bits * size, 1).data;
  let n = 0;
  for (let k = 0; k < bits; k++) if (row[4 * (k * size + size / 2)] > 127) n += 1 << k;
  return n;
}`

// The versions are those of driver/package.json, and of the watch page.
const playersPage = `<!doctype html><title>players</title>
<video id="hls" muted autoplay width="320"></video><video id="shaka" muted autoplay width="320"></video>
<video id="videojs" muted autoplay playsinline width="320"></video>
<mux-player id="mux" muted autoplay="muted" disable-tracking disable-cookies style="width:320px"></mux-player>
<script src="/watch/assets/hls.min.js"></script>
<script src="/modules/shaka-player/dist/shaka-player.compiled.js"></script>
<script src="/modules/@mux/mux-player/dist/mux-player.js"></script>
<script src="/modules/video.js/dist/video.min.js"></script>
<script type="module">
import { engine } from '/watch/assets/engine.js';
const source = location.origin + '/streamPlaybackID.m3u8' + (new URLSearchParams(location.search).get('modifiers') || '');
const el = (id) => document.getElementById(id);
const names = (new URLSearchParams(location.search).get('players') || 'hls,shaka,mux').split(',');
const errors = { hls: [], shaka: [], mux: [], videojs: [] };
const said = window.said = { hls: [], mux: [] }; // what hls.js said last
const early = { hls: 0, mux: 0 }; // appends that failed as the one before them was not over
const logger = (name) => {
  const say = (...words) => {
    const line = words.join(' ');
    if (line.includes('This SourceBuffer is still processing')) early[name]++;
    said[name].push(Math.round(performance.now()) + ' ' + line);
    if (said[name].length > 4000) said[name].shift();
  };
  return { trace: say, debug: say, log: say, info: say, warn: say, error: say };
};
const settings = {}; // of hls.js, for both
const set = { debug: logger('hls'), ...settings };
const plain = new URLSearchParams(location.search).has('plain'); // hls.js by itself
const h = plain ? new Hls({ lowLatencyMode: true, ...set }) : engine(Hls, set); // set as docs/api.md says
h.on(Hls.Events.ERROR, (_, d) => errors.hls.push(d.details + (d.fatal ? ' fatal' : '')));
if (names.includes('hls')) {
  h.loadSource(source);
  h.attachMedia(el('hls'));
}
const s = new shaka.Player();
s.configure({ // as docs/api.md says
  manifest: { availabilityWindowOverride: 30, hls: { sequenceMode: true } }, streaming: { segmentPrefetchLimit: 0 },
});
const low = s.getConfigurationForLowLatency();
low.streaming.segmentPrefetchLimit = 0;
s.configurationForLowLatency(low);
s.addEventListener('error', (e) => errors.shaka.push('error ' + e.detail.code + ' ' + JSON.stringify(e.detail.data).slice(0, 300)));
if (names.includes('shaka')) s.attach(el('shaka')).then(() => s.load(source)).catch((e) => errors.shaka.push('load ' + e.code + ' ' + JSON.stringify(e.data || String(e)).slice(0, 300)));
el('mux').addEventListener('error', (e) => errors.mux.push(String(e.detail && e.detail.message || e.message || e.type)));
if (names.includes('mux')) {
  el('mux')._hlsConfig = { debug: logger('mux'), ...settings };
  el('mux').src = source;
}
if (names.includes('videojs')) {
  // Its own engine, also where the browser has one for HLS, and whole segments, as docs/api.md says.
  const v = videojs('videojs', { html5: { vhs: { overrideNative: true, llhls: false } } });
  v.on('error', () => errors.videojs.push(v.error().code + ' ' + v.error().message));
  v.src({ src: source, type: 'application/vnd.apple.mpegurl' });
}
const media = {
  hls: () => el('hls'), shaka: () => el('shaka'),
  mux: () => el('mux').media && (el('mux').media.nativeEl || el('mux').media),
  videojs: () => document.querySelector('video.vjs-tech'),
};
const date = {
  hls: () => h.playingDate, shaka: () => s.getPlayheadTimeAsDate(),
  mux: () => el('mux')._hls && el('mux')._hls.playingDate, videojs: () => null,
};
window.text = () => { // that Shaka shows of its first text track, and at which second since 1970
  const [track] = s.getTextTracks();
  if (!track) return { cues: [], date: 0 };
  if (!track.active) s.selectTextTrack(track);
  const shown = Array.from(el('shaka').textTracks).flatMap((t) => Array.from(t.activeCues || []));
  return { cues: shown.map((c) => c.text), date: s.getPlayheadTimeAsDate().getTime() };
};
const holdBack = (hls) => hls.config.liveSyncDuration ?? hls.latestLevelDetails.partHoldBack; // whatever stalls have added
window.holdBack = () => ({ // seconds behind live that each player is told to stay
  hls: holdBack(h), mux: holdBack(el('mux')._hls), shaka: s.getManifest().presentationTimeline.getDelay(),
});
window.partHoldBack = () => h.latestLevelDetails.partHoldBack;
window.rest = (behind) => { // pauses hls.js until it is so many seconds behind live
  el('hls').pause();
  const look = setInterval(() => {
    if (Date.now() - h.playingDate < 1000 * behind) return;
    clearInterval(look);
    el('hls').play();
    window.rested = true;
  }, 50);
};
window.read = (on) => { h.subtitleTrack = on ? 0 : -1; el('mux').textTracks[0].mode = on ? 'showing' : 'disabled'; };
window.shown = (name) => { // text, and when what is shown was sent, in ms since 1970
  const cues = Array.from(media[name]().textTracks).filter((t) => t.mode === 'showing').flatMap((t) => Array.from(t.activeCues || []));
  return { cues: cues.map((c) => c.text), date: date[name]().getTime() };
};
const watched = {};
for (const name of names) {
  watched[name] = { played: 0, last: 0, stalls: 0 };
  setInterval(() => {
    const v = media[name](), w = watched[name];
    if (!v) return;
    if (!w.heard) { w.heard = true; v.addEventListener('waiting', () => { if (w.played > 1) w.stalls++; }); }
    const step = v.currentTime - w.last;
    if (step > 0 && step < 0.6) w.played += step;
    w.last = v.currentTime;
  }, 100);
}
const number = ` + numberOf + `;
window.look = () => names.map((name) => {
  const v = media[name](), d = v && date[name]();
  return {
    name, played: watched[name].played, stalls: watched[name].stalls, frames: v ? v.getVideoPlaybackQuality().totalVideoFrames : 0,
    early: early[name] || 0, audioBytes: v && v.webkitAudioDecodedByteCount || 0, behind: d ? (Date.now() - d.getTime()) / 1000 : -1, errors: errors[name],
    buffered: v ? Array.from({ length: v.buffered.length }, (_, i) => [v.buffered.start(i), v.buffered.end(i)]) : [], time: v ? v.currentTime : -1, rate: v ? v.playbackRate : 0,
    number: number(v), now: Date.now(), began: v && v.played.length ? v.played.start(0) : 0,
  };
});
</script>`

// player is what one of the page's players says.
type player struct {
	Name       string       `json:"name"`
	Played     float64      `json:"played"` // seconds
	Stalls     int          `json:"stalls"` // since it has played for a second
	Frames     int          `json:"frames"`
	AudioBytes int          `json:"audioBytes"`
	Early      int          `json:"early"`  // appends that failed as the one before them was not over
	Behind     float64      `json:"behind"` // seconds since the encoder sent what is shown, -1: not known
	Errors     []string     `json:"errors"`
	Buffered   [][2]float64 `json:"buffered"`
	Time       float64      `json:"time"`
	Rate       float64      `json:"rate"`
	Number     int          `json:"number"` // of the picture that is shown
	Now        int64        `json:"now"`    // ms since 1970
	Began      float64      `json:"began"`  // the first time that it played
}

// players opens a page on which hls.js, Shaka and mux-player, each as it is delivered and set as docs/api.md says, play
// a stream side by side, or those that are named, of which there is video.js (videojs) too, with whole segments alone.
func players(t testing.TB, b *browser.Browser, s *stream, names ...string) *browser.Page {
	t.Helper()
	server := httptest.NewServer(playersSite(s))
	t.Cleanup(server.Close)
	url := server.URL + "/players"
	if len(names) > 0 {
		url += "?players=" + strings.Join(names, ",")
	}
	return b.Open(t, url)
}

// playersSite serves that page, the watch page, and a stream.
func playersSite(s *stream) http.Handler {
	mux := playersMux(playersPage)
	mux.Handle("/", playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)}))
	return mux
}

// playersMux serves a page and what it is made of.
func playersMux(page string) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/watch/", watch.Handler(watch.Options{}))
	mux.Handle("/modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir("driver/node_modules"))))
	mux.HandleFunc("/players", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) })
	return mux
}

// await waits until each player is as wanted.
func await(t testing.TB, p *browser.Page, what string, ok func(player) bool) []player {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		var all []player
		p.Eval(t, "window.look()", &all)
		done := len(all) > 0
		for _, x := range all {
			done = done && ok(x)
		}
		if done {
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %+v\n%+v", what, patience, all, p.Log(t))
		}
	}
}

// TestPlayers plays low-latency streams of every age, from the first whole segment on. In the youngest fewer than three
// segments are whole: Shaka 5.2.12 would look for closed captions in the one that is being written, which has no URI,
// if the playlist did not say that there are none.
func TestPlayers(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	for _, age := range []time.Duration{time.Second, 3 * time.Second, 8 * time.Second, 20 * time.Second, time.Minute} {
		t.Run(age.String(), func(t *testing.T) {
			s := newStream(t, c[0], age, 0)
			s.awaitListed(t)
			p := players(t, b, s)
			for _, x := range await(t, p, "play 6 s", func(x player) bool {
				return x.Played >= 6 && x.AudioBytes > 0
			}) {
				t.Logf("%+v", x)
				x.unharmed(t, p)
			}
			p.Close(t)
		})
	}
}

// unharmed wants a player of a page to have had no error that it could not go on from by itself, and to be whole.
func (pl player) unharmed(t *testing.T, p *browser.Page) {
	t.Helper()
	for _, e := range pl.Errors {
		if pl.Name != "hls" || strings.HasSuffix(e, " fatal") {
			t.Errorf("%s: %s", pl.Name, e)
		}
	}
	pl.whole(t, p)
}

// whole wants a player of a page to have no hole in what it has buffered from where it began to play. Else the test
// shows what hls.js said. The hls.js of mux-player 3.14.0 has a hole for each append that it began too early, which
// fails: engine.js tells how, and TestPlayersWithLateUpdates shows that hls.js has none with it.
func (pl player) whole(t *testing.T, p *browser.Page) {
	t.Helper()
	if pl.holes() == 0 {
		return
	}
	if pl.Name == "mux" && pl.holes() <= pl.Early {
		t.Logf("mux has holes: %v, and %d appends failed that it began too early", pl.Buffered, pl.Early)
		return
	}
	t.Errorf("%s has holes: %v, played from %v", pl.Name, pl.Buffered, pl.Began)
	var said []string
	p.Eval(t, fmt.Sprintf("said[%q] || []", pl.Name), &said)
	t.Log(strings.Join(said, "\n"))
}

// holes is how many there are in what is buffered from where the player began to play.
func (pl player) holes() int {
	n := -1
	for _, r := range pl.Buffered {
		if r[1] > pl.Began {
			n++
		}
	}
	return max(n, 0)
}

// shows reports whether a player is past what the encoder sent at a time.
func (pl player) shows(at time.Time) bool {
	return pl.Behind >= 0 && time.UnixMilli(pl.Now).Add(-time.Duration(pl.Behind*float64(time.Second))).After(at)
}

// TestPlayersOverABreak has the encoder reconnect while the players watch: they go on, and have no hole in what they
// have buffered, although pictures are presented later than they are decoded (B-frames). It is cut off behind a whole
// group of pictures; TestPlayersOverCuts has the other places.
func TestPlayersOverABreak(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	s := newStream(t, c[0], 20*time.Second, 0)
	p := players(t, browser.Start(t), s)
	await(t, p, "play up to the break", func(x player) bool { return x.Played >= 2 })
	last := s.cutOff(0)
	over := func(x player) bool { return x.Played >= 10 && x.shows(last.Add(4*time.Second)) }
	for _, x := range await(t, p, "play on", over) {
		t.Logf("%+v", x)
		x.whole(t, p)
	}
}

// TestPlayersOverCuts has the encoder reconnect after pictures that lie everywhere in a group and in its B-frames,
// again and again: nowhere is there a hole in what the players with hls.js have buffered, not even of one picture.
func TestPlayersOverCuts(t *testing.T) {
	rig.Paced(t, rig.Long)
	c, err := clips()
	made(t, err)
	s := newStream(t, c[0], 20*time.Second, 0)
	p := players(t, browser.Start(t), s, "hls", "mux")
	await(t, p, "play up to the first cut", func(x player) bool { return x.Played >= 2 })
	pictures := []int{origin.GOPSeconds*origin.FrameRate - 1}
	for n := range 15 {
		pictures = append(pictures, 16+4*n+n%4)
	}
	last := s.cutOff(pictures...)
	for _, x := range await(t, p, "play over all", func(x player) bool { return x.shows(last.Add(2 * time.Second)) }) {
		t.Logf("%+v", x)
		x.unharmed(t, p)
	}
}
