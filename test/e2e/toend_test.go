package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"millrace/internal/programtest"
	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// still leaves out the pictures of three seconds and of two, as screen recordings do.
const still = "select='not(between(t,1.9,4.9)+between(t,6.4,8.4))'"

// uneven are files whose sound or picture begins late, ends early or pauses.
func uneven() map[string]struct {
	name    string
	args    []string
	seconds float64
} {
	h264 := []string{
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "60", "-bf", "3", "-b_strategy", "0",
		"-threads", "1", "-c:a", "aac",
	}
	picture := func(seconds string) []string {
		return []string{"-f", "lavfi", "-i", "testsrc2=size=160x90:rate=30:duration=" + seconds}
	}
	sound := func(seconds string) []string {
		return []string{"-f", "lavfi", "-i", "sine=sample_rate=48000:duration=" + seconds}
	}
	late := func(seconds string) []string { return []string{"-itsoffset", seconds} }
	vfr := []string{"-vf", still, "-fps_mode", "vfr"}
	type file = struct {
		name    string
		args    []string
		seconds float64
	}
	return map[string]file{
		"sound ends":             {"a.mp4", slices.Concat(picture("8"), sound("4"), h264), 8},
		"sound from 3 to 5":      {"a.mp4", slices.Concat(picture("8"), late("3"), sound("2"), h264), 8},
		"sound ends, Matroska":   {"a.mkv", slices.Concat(picture("8"), sound("4"), h264), 8},
		"picture ends":           {"a.mp4", slices.Concat(picture("2"), sound("9"), h264), 9},
		"picture ends, Matroska": {"a.mkv", slices.Concat(picture("2"), sound("9"), h264), 9},
		"picture late":           {"a.mp4", slices.Concat(late("3"), picture("6"), sound("9"), h264), 9},
		"picture late, Matroska": {"a.mkv", slices.Concat(late("3"), picture("6"), sound("9"), h264), 9},
		"pauses":                 {"a.mp4", slices.Concat(picture("10"), sound("10"), vfr, h264), 10},
		"pauses, Matroska":       {"a.mkv", slices.Concat(picture("10"), sound("10"), vfr, h264), 10},
		"pauses, MPEG-4 to encode": {
			"a.mkv", slices.Concat(picture("10"), sound("10"), vfr, h264, []string{"-c:v", "mpeg4", "-bf", "0"}), 10,
		},
	}
}

// player is a page that plays presentations side by side with hls.js, and keeps what became of each.
const player = `<!doctype html><script src="/watch/assets/hls.min.js"></script><body><script>
window.plays = {};
for (const [name, url] of Object.entries(%s)) {
  const v = document.createElement('video'), hls = new Hls();
  const seen = window.plays[name] = { time: 0, skipped: 0, ended: false, errors: [] };
  v.muted = true; v.width = 160; document.body.append(v);
  v.ontimeupdate = () => { if (!v.seeking) seen.time = v.currentTime; };
  v.onseeking = () => { seen.skipped += Math.abs(v.currentTime - seen.time); };
  v.onended = () => { seen.ended = true; seen.time = v.currentTime; };
  hls.on(Hls.Events.ERROR, (_, d) => seen.errors.push(d.details));
  hls.loadSource(url); hls.attachMedia(v); v.play();
}
</script>`

// TestPlayedToTheEnd plays files whose sound or picture has holes in hls.js, side by side: all of it, without a jump,
// to the end.
func TestPlayedToTheEnd(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		files, ids := uneven(), map[string]string{}
		for name, f := range files {
			path := programtest.Media(t, f.name, f.args...)
			ids[name] = s.CreateAsset(t, rig.Files(t, map[string]string{f.name: path})+"/"+f.name).Text("id")
		}
		urls := map[string]string{}
		for name, id := range ids {
			a := s.AwaitAsset(t, id, name, patience, rig.Ready)
			urls[name] = s.PlayURL(a.Text("playback_ids.0.id"))
			if d := a.Number("duration"); math.Abs(d-files[name].seconds) > 0.2 {
				t.Errorf("%s: lasts %.3f s, want %.0f", name, d, files[name].seconds)
			}
			// What stands while nothing comes slows the rate that is measured; a held picture has an init segment of
			// its own without a break.
			checkBut(t, name, []string{"frame-rate", "discontinuity-map"}, hlscheck.Options{
				URL: urls[name], Decoder: rig.FFmpeg(t),
			})
		}
		list, err := json.Marshal(urls)
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("/watch/", watch.Handler(watch.Options{}))
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, player, list)
		})
		site := httptest.NewServer(mux)
		t.Cleanup(site.Close)
		page := browser.Start(t).Open(t, site.URL)
		plays := map[string]struct {
			Time, Skipped float64
			Ended         bool
			Errors        []string
		}{}
		page.Until(t, "all have ended", patience, func(browser.Probe) bool {
			page.Eval(t, "window.plays", &plays)
			for name := range urls {
				if !plays[name].Ended {
					t.Logf("%s: %+v", name, plays[name])
					return false
				}
			}
			return true
		})
		for name, f := range files {
			if x := plays[name]; math.Abs(x.Time-f.seconds) > 0.3 || x.Skipped > 0.3 {
				t.Errorf("%s: ended at %.2f s, %.2f s were jumped over: %v", name, x.Time, x.Skipped, x.Errors)
			}
		}
	})
}

// TestPlaysOverWhatCannotBeDecoded: a reference is missing in the file, so that Chromium ends the playback in the
// middle. The page goes on behind that, by itself, and comes to the end.
func TestPlaysOverWhatCannotBeDecoded(t *testing.T) {
	rig.Parallel(t)
	const seconds = 16
	file := programtest.Media(t, "gap.mp4", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i",
		"sine=frequency=440", "-t", fmt.Sprint(seconds),
		"-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-g", "60", "-x264-params",
		"b-pyramid=strict:b-adapt=0:bframes=3:ref=2:scenecut=0",
		"-bsf:v", "noise=amount=0:drop='eq(n,157)'", "-c:a", "aac")
	s := rig.Start(t, rig.Options{})
	a := s.CreateAsset(t, rig.Files(t, map[string]string{"gap.mp4": file})+"/gap.mp4")
	a = s.AwaitAsset(t, a.Text("id"), "ready", patience, rig.Ready)
	page := browser.Start(t).Open(t, s.WatchURL(a.Text("playback_ids.0.id")))
	p := page.Until(t, "ended", patience, func(p browser.Probe) bool { return p.Ended })
	failed := slices.Contains(p.Errors, "decodeError (fatal)")
	if !failed || p.Restarts > 0 || p.Error != "" || math.Abs(p.Time-seconds) > 0.3 {
		t.Errorf("%+v", p)
	}
}
