package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// muxDomain is one that mux-player asks for licences too: it ends in mux.com.
const muxDomain = "drm-mux.com"

// muxPage plays with mux-player. Attributes and hls.js's settings are in the page's query. Chromium has no Widevine:
// ClearKey stands in for it, so that the player asks for a licence.
const muxPage = `<!doctype html><title>mux-player</title><body><script src="/mux-player.js"></script><script>
const q = new URLSearchParams(location.search), access = navigator.requestMediaKeySystemAccess.bind(navigator);
navigator.requestMediaKeySystemAccess = (system, how) => access(system === 'com.widevine.alpha' ? 'org.w3.clearkey' : system, how);
const player = window.player = document.createElement('mux-player');
for (const [name, value] of Object.entries({ muted: '', autoplay: 'muted', 'disable-tracking': '', 'disable-cookies': '' })) player.setAttribute(name, value);
for (const [name, value] of q) if (name !== 'licence') player.setAttribute(name, value);
if (q.get('licence')) player._hlsConfig = { emeEnabled: true, drmSystems: { 'org.w3.clearkey': { licenseUrl: q.get('licence') } } };
document.body.append(player);
window.look = () => {
  const media = player.media, v = media && (media.nativeEl || media);
  if (!v || !v.getVideoPlaybackQuality) return { time: 0, frames: 0, pictures: 0 };
  const pictures = Array.from(v.textTracks || [], (t) => (t.label === 'thumbnails' && t.cues ? t.cues.length : 0)).reduce((a, b) => a + b, 0);
  return { time: v.currentTime, frames: v.getVideoPlaybackQuality().totalVideoFrames, pictures };
};
</script></body>`

// muxLook is what the page says.
type muxLook struct {
	Time     float64 `json:"time"`
	Frames   int     `json:"frames"`
	Pictures int     `json:"pictures"` // of the storyboard
}

// muxUntil looks at a page until it is as wanted.
func muxUntil(t *testing.T, p *browser.Page, what string, ok func(x muxLook, l browser.Log) bool) {
	t.Helper()
	var x muxLook
	for end := time.Now().Add(patience); ; rig.Pause(100 * time.Millisecond) {
		p.Eval(t, "window.look()", &x)
		l := p.Log(t)
		if ok(x, l) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %+v\n%+v", what, patience, x, l)
		}
	}
}

// TestMuxPlayer: mux-player plays a signed asset and one under DRM by its own attributes, at a custom domain over
// HTTPS: it asks the hosts stream, image and license of it, each with the token of its use.
func TestMuxPlayer(t *testing.T) {
	rig.Parallel(t)
	certFile, keyFile := ownCertificate(t, t.TempDir(), 1)
	s := rig.Start(t, rig.Options{Args: []string{"--tls-cert", certFile, "--tls-key", keyFile}})
	keys := newSigner(t, s)
	configuration := s.Command(t, "drm-configuration", "create", "--name", "tests", "--clear-key")
	file := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Seconds: 20})
	code, o := s.Do(t, http.MethodPost, "/video/v1/assets", rig.Object{
		"inputs":        []rig.Object{{"url": rig.Files(t, map[string]string{"a.mp4": file}) + "/a.mp4"}},
		"video_quality": "plus", "meta": holiday(),
		"advanced_playback_policies": []rig.Object{
			{"policy": "signed"}, {"policy": "drm", "drm_configuration_id": configuration},
		},
	})
	if code != http.StatusCreated {
		t.Fatalf("create: %d %v", code, o)
	}
	a := s.AwaitAsset(t, o.Text("data.id"), "ready", patience, rig.Ready)
	signed, encrypted := a.Text("playback_ids.0.id"), a.Text("playback_ids.1.id")
	b := browser.Start(t, "--ignore-certificate-errors", fmt.Sprintf(
		"--host-resolver-rules=MAP *.%s %s, MAP *.gstatic.com ~NOTFOUND, MAP *.litix.io ~NOTFOUND", muxDomain,
		strings.TrimPrefix(s.HTTPS, "https://"),
	))
	mux := http.NewServeMux()
	mux.HandleFunc("/mux-player.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, b.Module("@mux/mux-player/dist/mux-player.js"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, muxPage) })
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	open := func(id string, attributes url.Values) *browser.Page {
		attributes.Set("custom-domain", muxDomain)
		attributes.Set("playback-id", id)
		attributes.Set("playback-token", keys.token(t, id))
		return b.Open(t, site.URL+"/?"+attributes.Encode())
	}
	at := func(host string) string { return "https://" + host + "." + muxDomain + "/" }
	begins := func(list []string, prefix string) bool {
		return slices.ContainsFunc(list, func(one string) bool { return strings.HasPrefix(one, prefix) })
	}

	thumbnail, storyboard := keys.token(t, signed, "--type", "thumbnail"), keys.token(t, signed, "--type", "storyboard")
	page := open(signed, url.Values{"thumbnail-token": {thumbnail}, "storyboard-token": {storyboard}})
	muxUntil(t, page, "a signed asset plays, with its storyboard", func(x muxLook, _ browser.Log) bool {
		return x.Time >= 3 && x.Frames > 60 && x.Pictures > 0
	})
	l := page.Log(t)
	for _, want := range []string{
		at("stream") + signed + ".m3u8?token=", at("stream") + signed + "/signed-v.",
		at("image") + signed + "/thumbnail.webp?token=" + thumbnail,
		at("image") + signed + "/storyboard.vtt?token=" + storyboard,
	} {
		if !begins(l.Requests, want) {
			t.Errorf("%s was not asked for: %q", want, l.Requests)
		}
	}
	if begins(l.Failed, "4") || begins(l.Failed, "5") {
		t.Errorf("refused: %q", l.Failed)
	}
	page.Close(t)

	licence := keys.token(t, encrypted, "--type", "drm_license")
	page = open(encrypted, url.Values{
		"drm-token": {licence}, "licence": {at("license") + "license/clearkey/" + encrypted + "?token=" + licence},
	})
	muxUntil(t, page, "an encrypted asset plays", func(x muxLook, _ browser.Log) bool {
		return x.Time >= 3 && x.Frames > 60
	})
	if l = page.Log(t); !begins(l.Requests, at("license")+"license/clearkey/"+encrypted) {
		t.Errorf("no licence was asked for: %q", l.Requests)
	}
	if begins(l.Failed, "403 "+at("stream")) { // of pictures, which it has no tokens for, by their own host
		t.Errorf("refused: %q", l.Failed)
	}
	page.Close(t)
	page = open(encrypted, url.Values{"drm-token": {licence}})
	want := at("license") + "license/widevine/" + encrypted + "?token=" + licence
	muxUntil(t, page, "a licence of Widevine, which this configuration has not, is asked for", func(
		_ muxLook, l browser.Log,
	) bool {
		return begins(l.Failed, "404 "+want)
	})
	page.Close(t)
}
