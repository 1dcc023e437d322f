package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// fleetPage plays a stream in hls.js and in Shaka, set as docs/api.md and docs/drm.md say, with captions. When a player
// has shown some seconds, it is told to go on in the other size. Shaka empties its buffer for that and seeks, and here
// it does so when it has begun to ask for the other size's init segment, as it does by itself where the page has much
// to do.
const fleetPage = `<!doctype html><title>fleet</title>
<video id="hls" muted autoplay width="320"></video><video id="shaka" muted autoplay width="320"></video>
<script src="/watch/assets/hls.min.js"></script><script src="/shaka.js"></script>
<script type="module">
import { engine } from '/watch/assets/engine.js';
const query = new URLSearchParams(location.search), source = query.get('source'), licence = query.get('licence');
const none = () => ({ played: 0, texts: [], sizes: [], errors: [] });
const seen = window.seen = { hls: none(), shaka: none() };
const drm = licence ? { emeEnabled: true, drmSystems: { 'org.w3.clearkey': { licenseUrl: licence } } } : {};
const h = engine(Hls, { capLevelToPlayerSize: false, ...drm });
h.on(Hls.Events.ERROR, (_, d) => { if (d.fatal) seen.hls.errors.push(d.details); });
h.loadSource(source);
h.attachMedia(document.getElementById('hls'));
const s = new shaka.Player();
s.configure({
  manifest: { availabilityWindowOverride: 30, hls: { sequenceMode: true } }, streaming: { segmentPrefetchLimit: 0 },
});
const low = s.getConfigurationForLowLatency();
low.streaming.segmentPrefetchLimit = 0;
s.configurationForLowLatency(low);
if (licence) {
  s.configure('drm', {
    servers: { 'com.widevine.alpha': licence }, keySystemsMapping: { 'com.widevine.alpha': 'org.w3.clearkey' },
  });
}
const failed = (e) => { // a playlist or segment that Shaka asks for again is none of them, as with hls.js
  const error = e.detail || e;
  if (error.severity !== shaka.util.Error.Severity.RECOVERABLE) seen.shaka.errors.push(error.stack || String(error));
};
s.addEventListener('error', failed);
s.attach(document.getElementById('shaka')).then(() => s.load(source)).catch(failed);
const others = {
  hls(shown) { h.currentLevel = h.levels.findIndex((l) => l.height !== shown); },
  shaka(shown) { // the active track may be one that was chosen and is not shown yet
    s.configure('abr.enabled', false);
    const other = s.getVariantTracks().find((t) => t.height !== shown), v = document.getElementById('shaka');
    const init = shaka.net.NetworkingEngine.AdvancedRequestType.INIT_SEGMENT;
    let sought = false; // it has the segment already where it has shown that size by itself
    s.getNetworkingEngine().registerRequestFilter((_, request, { type, stream }) => {
      if (sought || type !== init || !stream || stream.height !== other.height) return undefined;
      sought = true; // once, before it is sent: Shaka breaks it off and has to ask again
      return new Promise((send) => {
        v.addEventListener('seeking', send, { once: true });
        v.currentTime -= 0.1;
      });
    });
    s.selectVariantTrack(other, true);
  },
};
for (const name of ['hls', 'shaka']) {
  const v = document.getElementById(name), w = seen[name];
  let last = 0, other = others[name];
  setInterval(() => {
    const step = v.currentTime - last;
    if (step > 0 && step < 0.6) w.played += step;
    last = v.currentTime;
    if (v.videoHeight > 0 && !w.sizes.includes(v.videoHeight)) w.sizes.push(v.videoHeight);
    if (w.played > 2 && other) {
      other(v.videoHeight);
      other = null;
    }
    if (name === 'hls' && h.subtitleTracks.length > 0 && h.subtitleTrack < 0) h.subtitleTrack = 0;
    const track = name === 'shaka' && s.getTextTracks()[0];
    if (track && !track.active) s.selectTextTrack(track);
    for (const t of v.textTracks) {
      for (const cue of t.activeCues || []) if (!w.texts.includes(cue.text)) w.texts.push(cue.text);
    }
  }, 100);
}
</script>`

// fleetSeen is what a player on that page has shown.
type fleetSeen struct {
	Played float64  `json:"played"` // seconds
	Texts  []string `json:"texts"`
	Sizes  []int    `json:"sizes"`  // heights of pictures
	Errors []string `json:"errors"` // those that end it
}

// TestFleetInPlayers: hls.js and Shaka, whose every request comes to another node by way of nginx, play streams of each
// latency mode with their captions, in both sizes: one of them is public, one signed and one encrypted.
func TestFleetInPlayers(t *testing.T) {
	rig.Paced(t)
	scaled(t)
	f := rig.StartFleet(t, 3, rig.Options{})
	front := rig.Nginx(t, f.Hosts()...)
	b := browser.Start(t)
	site := fleetSite(t, b, front)
	d := newDRMRig(t, f.Nodes[0], rig.Scaled)
	clip := rig.Clip{File: captionedClipOf(t, "640x360", 120), Seconds: 120}
	for i, kind := range [][2]string{{"standard", "public"}, {"reduced", "signed"}, {"low", "drm"}} {
		owner, mode, policy := f.Nodes[i], kind[0], rig.Object{"policy": kind[1]}
		if kind[1] == "drm" {
			policy["drm_configuration_id"] = d.configuration
		}
		l := owner.CreateLive(t, mode, rig.Object{
			"playback_policies": []string{}, "advanced_playback_policies": []rig.Object{policy},
			"embedded_subtitles": []rig.Object{{"name": "Captions", "language_code": "en", "language_channel": "cc1"}},
		})
		id := l.Text("playback_ids.0.id")
		tokens, at := [2]string{}, url.Values{}
		if kind[1] != "public" {
			tokens = d.tokens(t, id)
		}
		at.Set("source", "/"+id+".m3u8"+query(tokens[0]))
		if kind[1] == "drm" {
			at.Set("licence", "/license/clearkey/"+id+query(tokens[1]))
		}
		encoder := owner.Publish(t, l.Text("stream_key"), clip)
		for _, node := range f.Nodes {
			node.AwaitPlayable(t, node.PlayURL(id)+query(tokens[0]), patience)
		}
		page := b.Open(t, site+"/page?"+at.Encode())
		playsInBoth(t, mode+", "+kind[1], page)
		page.Close(t)
		encoder.Stop() // six players at a time would be more than some machines can do
		owner.Complete(t, l.Text("id"))
	}
}

// playsInBoth waits until both players of a page have shown some seconds, both sizes and captions.
func playsInBoth(t *testing.T, what string, page *browser.Page) {
	t.Helper()
	seen := map[string]fleetSeen{}
	played := func() bool {
		page.Eval(t, "window.seen", &seen)
		for _, x := range seen {
			if x.Played < 6 || len(x.Texts) < 2 || len(x.Sizes) < 2 {
				return false
			}
		}
		return len(seen) == 2
	}
	for end := time.Now().Add(patience); !played(); rig.Pause(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: %+v\n%+v", what, seen, page.Log(t))
		}
	}
	for name, x := range seen {
		if len(x.Errors) > 0 {
			t.Errorf("%s in %s: %v", what, name, x.Errors)
		}
	}
}

// fleetSite serves that page, and all else by way of nginx.
func fleetSite(t *testing.T, b *browser.Browser, front *rig.Front) string {
	t.Helper()
	to, err := url.Parse(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: front.Client.Transport, FlushInterval: -1,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, fleetPage) })
	mux.HandleFunc("/shaka.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, b.Module("shaka-player/dist/shaka-player.compiled.js"))
	})
	mux.Handle("/", pass)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
