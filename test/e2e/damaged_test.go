package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/programtest"
	"millrace/test/browser"
	"millrace/test/rig"
)

// both is a page on which hls.js and Shaka play presentations side by side, set as docs/api.md says, and which keeps
// what became of each. hls.js by itself may never begin a broadcast that has just begun.
const both = `<!doctype html><script src="/watch/assets/hls.min.js"></script><script src="/shaka.js"></script><body>
<script type="module">
import { engine } from '/watch/assets/engine.js';
window.plays = {};
const watch = (name) => {
  const v = document.createElement('video');
  const seen = window.plays[name] = { time: 0, played: 0, ended: false, errors: [] };
  v.muted = true; v.autoplay = true; v.width = 160; document.body.append(v);
  v.ontimeupdate = () => {
    const step = v.currentTime - seen.time;
    if (step > 0 && step < 1) seen.played += step;
    seen.time = v.currentTime;
  };
  v.onended = () => { seen.ended = true; };
  v.onerror = () => { seen.errors.push(v.error.message); };
  return v;
};
for (const [name, url] of Object.entries(%s)) {
  const h = watch(name + ', hls.js'), hls = engine(Hls, {});
  hls.on(Hls.Events.ERROR, (_, d) => { if (d.fatal) window.plays[name + ', hls.js'].errors.push(d.details); });
  hls.loadSource(url); hls.attachMedia(h);
  const s = watch(name + ', Shaka'), player = new shaka.Player();
  player.configure({
    manifest: { availabilityWindowOverride: 30, hls: { sequenceMode: true } }, streaming: { segmentPrefetchLimit: 0 },
  });
  const low = player.getConfigurationForLowLatency();
  low.streaming.segmentPrefetchLimit = 0;
  player.configurationForLowLatency(low);
  const failed = (e) => { // a playlist or segment that Shaka asks for again is none of them, as with hls.js
    const error = e.detail || e;
    const { errors } = window.plays[name + ', Shaka'];
    if (error.severity !== shaka.util.Error.Severity.RECOVERABLE) errors.push(error.stack || String(error));
  };
  player.addEventListener('error', failed);
  player.attach(s).then(() => player.load(url)).catch(failed);
}
</script>`

// played is what became of one of them; times are in seconds.
type played struct {
	Time, Played float64
	Ended        bool
	Errors       []string
}

// inBoth opens that page.
func inBoth(t *testing.T, s *rig.Server, urls map[string]string) *browser.Page {
	t.Helper()
	list, err := json.Marshal(urls)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(s.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	b := browser.Start(t)
	mux := http.NewServeMux()
	mux.Handle("/watch/assets/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }})
	mux.HandleFunc("/shaka.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, b.Module("shaka-player/dist/shaka-player.compiled.js"))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, both, list)
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	return b.Open(t, site.URL)
}

// awaitBoth waits until all of them are as wanted.
func awaitBoth(t *testing.T, p *browser.Page, what string, n int, ok func(played) bool) map[string]played {
	t.Helper()
	plays := map[string]played{}
	p.Until(t, what, patience, func(browser.Probe) bool {
		p.Eval(t, "window.plays", &plays)
		done := len(plays) == 2*n
		for name, x := range plays {
			if !ok(x) {
				t.Logf("%s: %+v", name, x)
				done = false
			}
		}
		return done
	})
	return plays
}

// TestDamagedPlays: files and a broadcast with packets that Chromium's decoder refuses, at which its playback would end
// for good, play in hls.js and Shaka.
func TestDamagedPlays(t *testing.T) {
	rig.Parallel(t, rig.Long)
	const seconds = 12
	encoded := []string{
		"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i", "sine=frequency=440",
		"-t", fmt.Sprint(seconds),
		"-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-g", "60", "-c:a", "aac",
	}
	dir := t.TempDir()
	damaged := func(name string, damage func(data []byte)) string {
		data, err := os.ReadFile(programtest.Media(t, name, encoded...))
		if err != nil {
			t.Fatal(err)
		}
		damage(data)
		path := filepath.Join(dir, name)
		if err = os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := map[string]string{
		"a.mp4": damaged("a.mp4", func(data []byte) {
			for i, x := range samples(t, data, frame.Video) {
				if i == 70 || i == 200 {
					clear(x[5:9]) // the header of its slice
				}
			}
			for i, x := range samples(t, data, frame.Audio) {
				for j := 0; i >= 300 && i < 310 && j < len(x); j += 3 {
					x[j] ^= 0x5a
				}
			}
		}),
		"a.ts": damaged("a.ts", func(data []byte) {
			for i := 100; i < len(data)/188; i += 97 { // null packets are as good as none
				copy(data[188*i:], []byte{0x47, 0x1f, 0xff, 0x10})
			}
		}),
	}
	s := rig.Start(t, rig.Options{})
	site, urls := rig.Files(t, files), map[string]string{}
	for name := range files {
		a := s.CreateAsset(t, site+"/"+name)
		a = s.AwaitAsset(t, a.Text("id"), name, patience, rig.Ready)
		urls[name] = s.PlayURL(a.Text("playback_ids.0.id"))
	}
	page := inBoth(t, s, urls)
	plays := awaitBoth(t, page, "have ended", len(urls), func(x played) bool { return x.Ended })
	for name, x := range plays {
		if math.Abs(x.Time-seconds) > 0.4 || math.Abs(x.Played-seconds) > 1 || len(x.Errors) > 0 {
			t.Errorf("%s: %+v", name, x)
		}
	}
	page.Close(t)

	l := s.CreateLive(t, "low", nil)
	s.Publish(t, l.Text("stream_key"), rig.Clip{File: damaged("live.mp4", func(data []byte) {
		for i, x := range samples(t, data, frame.Video) {
			if i%60 == 25 {
				clear(x[5:9])
			}
		}
	})})
	live := s.PlayURL(l.Text("playback_ids.0.id"))
	s.AwaitPlayable(t, live, patience)
	page = inBoth(t, s, map[string]string{"live": live})
	plays = awaitBoth(t, page, "play what is live", 1, func(x played) bool { return x.Played > 6 })
	for name, x := range plays {
		if len(x.Errors) > 0 {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// samples are those of an MP4's picture or sound; they share its memory.
func samples(t *testing.T, data []byte, kind frame.Kind) [][]byte {
	t.Helper()
	f, err := mp4.Index(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, x := range f.Tracks {
		if x.Kind != kind {
			continue
		}
		_, at, err := mp4.Layout(x, 0, x.Len())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range at {
			out = append(out, data[r.Offset:r.Offset+r.Length])
		}
	}
	return out
}
