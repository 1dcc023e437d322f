package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestWatch watches a stream of each latency mode in Chromium: from before it begins, over a reconnect of the encoder,
// rewound on the recording's page, and afterwards as an asset with subtitles and another sound.
func TestWatch(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		b := browser.Start(t)
		for _, mode := range []string{"low", "reduced", "standard"} {
			t.Run(mode, func(t *testing.T) {
				v := viewing{s: s, b: b, mode: mode}
				v.run(t)
			})
		}
	})
}

// germanTone is the pitch of the added sound in Hz, mainTone that of what the encoder sends.
const germanTone, mainTone = 2500, 500

// numbered is an SRT file with a cue for each second.
func numbered(seconds int) string {
	var b strings.Builder
	for i := range seconds {
		fmt.Fprintf(&b, "%d\r\n00:00:%02d,000 --> 00:00:%02d,900\r\nsecond %d\r\n\r\n", i+1, i, i, i)
	}
	return b.String()
}

type viewing struct {
	s    *rig.Server
	b    *browser.Browser
	mode string

	stream rig.Object
	asset  string // ID
	watch  string // page of the asset
}

// The sizes tell the encoders' pictures apart.
const firstWidth, secondWidth = 320, 426

func (v *viewing) run(t *testing.T) {
	v.stream = v.s.CreateLive(t, v.mode, rig.Object{
		"reconnect_window": 60, "meta": rig.Object{"title": "<b>Regatta</b>"},
	})
	page := v.b.Open(t, v.s.WatchURL(v.stream.Text("playback_ids.0.id")))
	page.Until(t, "says that it waits", patience, func(p browser.Probe) bool { return p.State == "waiting" })
	page.Eval(t, "window.notReloaded = true", nil)
	key := v.stream.Text("stream_key")
	first := v.s.Publish(t, key, rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Tone: mainTone})
	page.FirstPicture(t, patience)
	p := page.Plays(t, 5, patience)
	if !p.Live || p.AudioBytes == 0 || p.Width != firstWidth {
		t.Errorf("plays wrongly: %+v", p)
	}
	limit := map[string]float64{"low": 5, "reduced": 15, "standard": 30}[v.mode]
	p = page.Until(t, fmt.Sprintf("less than %.0f s behind", limit), patience, func(p browser.Probe) bool {
		return p.Latency > 0 && p.Latency < limit && p.Behind() > 0 && p.Behind() < limit
	})
	t.Logf("%.2f s behind the encoder (hls.js says %.2f), %d stalls", p.Behind(), p.Latency, p.Stalls)

	first.Kill() // as when its network fails
	// else the second one may be refused beside the first
	v.s.AwaitLive(t, v.stream.Text("id"), "without encoder", patience, away)
	second := v.s.Publish(t, key, rig.Clip{Size: "426x240", Kbit: 300, GOP: 1, Tone: mainTone})
	page.Until(t, "the new encoder's picture", patience, func(p browser.Probe) bool { return p.Width == secondWidth })
	p = page.Plays(t, 3, patience)
	var notReloaded bool
	page.Eval(t, "Boolean(window.notReloaded)", &notReloaded)
	if !notReloaded || p.Restarts > 0 {
		t.Errorf("over a reconnect the page was kept %t, the player began again %d times: %v", notReloaded, p.Restarts,
			p.Errors)
	}
	v.asset = v.s.Live(t, v.stream.Text("id")).Text("active_asset_id")
	v.watch = v.s.WatchURL(v.s.AwaitAsset(t, v.asset, "playable", patience, rig.Ready).Text("playback_ids.0.id"))
	v.rewind(t)

	second.Stop()
	v.s.Complete(t, v.stream.Text("id"))
	page.Await(t, "leads to the recording", "document.querySelector('#recording').checkVisibility()", patience)
	var title string
	if page.Eval(t, "document.title", &title); title != "<b>Regatta</b>" {
		t.Errorf("the page's title is %q", title)
	}
	page.Click(t, "#recording")
	page.Await(t, "is the recording's page", fmt.Sprintf("location.href === %q", v.watch), patience)
	if p := page.Plays(t, 0.5, patience); p.Live {
		t.Errorf("the recording is live: %+v", p)
	}
	v.quiet(t, page)
	v.finished(t, v.s.AwaitAsset(t, v.asset, "finished", patience, rig.Finished).Number("duration"))
}

// rewind goes back to the first seconds on the page of the recording while it is live.
func (v *viewing) rewind(t *testing.T) {
	page := v.b.Open(t, v.watch)
	if p := page.Plays(t, 1, patience); !p.Live {
		t.Errorf("the recording is not live: %+v", p)
	}
	page.Seek(t, 1)
	p := page.Until(t, "the first encoder's picture", patience, func(p browser.Probe) bool {
		return p.Width == firstWidth && p.Time < 20
	})
	page.Plays(t, 1, patience)
	if len(p.Seekable) != 1 || p.Seekable[0][0] > 0.5 || p.Seekable[0][1] < 5 {
		t.Errorf("a recording in progress can be rewound over %v", p.Seekable)
	}
	v.quiet(t, page)
	page.Close(t)
}

// finished plays the asset with its tracks.
func (v *viewing) finished(t *testing.T, duration float64) {
	files := rig.Files(t, map[string]string{
		"tone.m4a": rig.File(t, "tone.m4a", rig.Clip{Seconds: duration + 1, NoVideo: true, Tone: germanTone}),
		"en.srt":   numbered(int(duration) + 1),
	})
	v.s.AddTrack(t, v.asset, rig.Object{
		"url": files + "/en.srt", "type": "text", "text_type": "subtitles", "language_code": "en",
	})
	v.s.AddTrack(t, v.asset, rig.Object{"url": files + "/tone.m4a", "type": "audio", "language_code": "de"})
	a := v.s.AwaitAsset(t, v.asset, "with tracks", patience, func(o rig.Object) bool {
		list := o.List("tracks")
		return len(list) == 4 &&
			!slices.ContainsFunc(list, func(track rig.Object) bool { return track.Text("status") != "ready" })
	})
	check(t, "with tracks", hlscheck.Options{URL: v.s.PlayURL(a.Text("playback_ids.0.id"))}, "pdt", "align-ends")
	page := v.b.Open(t, v.watch)
	p := page.Plays(t, 0.5, patience)
	if p.Live || p.Time > 10 || len(p.AudioTracks) != 2 || p.AudioTrack != 0 {
		t.Errorf("a finished asset plays wrongly: %+v", p)
	}
	page.Eval(t, listen, nil)
	page.Select(t, "#subtitles", "English")
	page.Until(t, "the subtitle of this second", patience, func(p browser.Probe) bool {
		return slices.ContainsFunc(p.TextTracks, func(track browser.TextTrack) bool {
			return track.Mode == "showing" && len(track.Active) == 1 &&
				track.Active[0] == fmt.Sprintf("second %d", int(p.Time))
		})
	})
	v.hears(t, page, mainTone)
	page.Screenshot(t, "subtitles")
	page.Select(t, "#audio", "German")
	page.Until(t, "the other sound", patience, func(p browser.Probe) bool {
		return p.AudioTracks[p.AudioTrack] == "German"
	})
	before := page.Probe(t)
	page.Plays(t, 1, patience)
	v.hears(t, page, germanTone)
	if p = page.Probe(t); p.AudioBytes <= before.AudioBytes {
		t.Errorf("%d bytes of sound decoded, were %d before the switch", p.AudioBytes, before.AudioBytes)
	}
	page.Seek(t, p.Duration-2)
	page.Until(t, "the end", patience, func(p browser.Probe) bool { return p.State == "ended" && p.Ended })
	v.quiet(t, page)
	page.Close(t)
}

// listen puts an analyser behind the video element; pitch reads the loudest frequency in Hz, 0 when there is silence.
const listen = `const c = new AudioContext(), a = c.createAnalyser();
	a.fftSize = 4096; a.smoothingTimeConstant = 0;
	c.createMediaElementSource(document.querySelector('video')).connect(a); a.connect(c.destination);
	window.pitch = () => {
		const bins = new Float32Array(a.frequencyBinCount); a.getFloatFrequencyData(bins);
		let top = 0; bins.forEach((v, i) => { if (v > bins[top]) top = i; });
		return bins[top] < -60 ? 0 : top * c.sampleRate / a.fftSize;
	}`

// hears waits until the loudest frequency is the wanted one: what is heard is the sound that was chosen.
func (v *viewing) hears(t *testing.T, page *browser.Page, hertz float64) {
	t.Helper()
	page.Until(t, fmt.Sprintf("a tone of %.0f Hz", hertz), patience, func(p browser.Probe) bool {
		if p.Ended { // it took longer than the asset lasts: play on
			page.Seek(t, 1)
			page.Eval(t, "document.querySelector('video').play()", nil)
		}
		var pitch float64
		page.Eval(t, "window.pitch()", &pitch)
		return pitch > hertz-50 && pitch < hertz+50
	})
}

// quiet fails the test for anything that the page asked of another origin, threw, or that the browser complained of.
func (v *viewing) quiet(t *testing.T, page *browser.Page) {
	t.Helper()
	page.StaysHome(t, v.s.HTTP)
	l := page.Log(t)
	for _, line := range l.Console {
		// the browser's own word on a stream that has not begun, or is over
		if !strings.Contains(line, "412 (Precondition Failed)") {
			t.Errorf("console: %s", line)
		}
	}
	for _, f := range l.Failed {
		if !strings.HasPrefix(f, "412 ") {
			t.Errorf("the page got %s", f)
		}
	}
}
