package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// drmPlayers are the players of emePage.
var drmPlayers = []string{"hls", "shaka"}

// emePage serves a page of another origin whose player asks a licence server for keys, as docs/drm.md says.
func emePage(t *testing.T, s *rig.Server, b *browser.Browser) string {
	t.Helper()
	const page = `<!doctype html><title>DRM</title><video muted autoplay width="320"></video><script src="/hls.min.js"></script><script src="/shaka.js"></script><script>
const q = new URLSearchParams(location.search), v = document.querySelector('video'), licence = q.get('licence');
const failed = () => { document.body.dataset.state = 'error'; };
v.addEventListener('playing', () => { document.body.dataset.state = 'playing'; });
if (q.get('player') === 'shaka') {
  const player = new shaka.Player();
  player.configure({
    drm: { servers: { 'com.widevine.alpha': licence }, keySystemsMapping: { 'com.widevine.alpha': 'org.w3.clearkey' } },
    manifest: { availabilityWindowOverride: 30, hls: { sequenceMode: true } }, streaming: { segmentPrefetchLimit: 0 },
  });
  const low = player.getConfigurationForLowLatency();
  low.streaming.segmentPrefetchLimit = 0;
  player.configurationForLowLatency(low);
  player.addEventListener('error', failed);
  player.attach(v).then(() => player.load(q.get('source'))).catch(failed);
} else {
  const hls = window.hls = new Hls({ emeEnabled: true, drmSystems: { 'org.w3.clearkey': { licenseUrl: licence } } });
  hls.on(Hls.Events.ERROR, (_, d) => { if (d.fatal) failed(); });
  hls.loadSource(q.get('source'));
  hls.attachMedia(v);
}
</script>`
	_, _, player := s.Get(t, s.HTTP+"/watch/assets/hls.min.js")
	mux := http.NewServeMux()
	mux.HandleFunc("/hls.min.js", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(player) })
	mux.HandleFunc("/shaka.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, b.Module("shaka-player/dist/shaka-player.compiled.js"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// open plays what is live, or on demand, in Chromium with a token for playback and one for the licence.
func (d *drmRig) open(t *testing.T, what, player, id, playback, licence string) *browser.Page {
	t.Helper()
	return d.b.Open(t, d.page+"/?"+url.Values{
		"what":    {what},
		"player":  {player},
		"source":  {d.s.PlayURL(id) + query(playback)},
		"licence": {d.s.HTTP + "/license/clearkey/" + id + query(licence)},
	}.Encode())
}

// plays has each player play with both tokens.
func (d *drmRig) plays(t *testing.T, what, id, playback, licence string) {
	t.Helper()
	for _, player := range drmPlayers {
		page := d.open(t, what, player, id, playback, licence)
		if x := page.Plays(t, 2, patience); x.AudioBytes == 0 || x.Frames == 0 ||
			x.Live != (what == "live" && player == "hls") {
			t.Errorf("%s, %s: %+v", what, player, x)
		}
		page.Close(t)
	}
}

// refused has each player try to play without one of the tokens, with an expired one and with another playback ID's:
// nothing is shown.
func (d *drmRig) refused(t *testing.T, what, id string, good, expired, anothers [2]string) {
	t.Helper()
	pages := map[string]*browser.Page{}
	for _, player := range drmPlayers {
		for i, use := range []string{"playback", "licence"} {
			for kind, token := range map[string]string{"none": "", "expired": expired[i], "another's": anothers[i]} {
				tokens := good
				tokens[i] = token
				pages[fmt.Sprintf("%s, %s, token for %s: %s", what, player, use, kind)] = d.open(t, what, player, id,
					tokens[0], tokens[1])
			}
		}
	}
	for name, page := range pages {
		if x := page.Until(t, name+" is refused", patience, func(x browser.Probe) bool {
			return x.State == "error"
		}); x.Frames > 0 {
			t.Errorf("%s: %+v", name, x)
		}
		page.Close(t)
	}
}

// tokens are one for playback and one for the licence of a playback ID.
func (d *drmRig) tokens(t *testing.T, id string, more ...string) [2]string {
	t.Helper()
	return [2]string{
		d.keys.token(t, id, more...), d.keys.token(t, id, append([]string{"--type", "drm_license"}, more...)...),
	}
}
