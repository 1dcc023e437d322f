package e2e

import (
	"context"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// flashing gives a page a camera whose picture turns white for three frames of 30 a second each second, and a microphone that beeps then.
const flashing = `navigator.mediaDevices.getUserMedia = async () => {
  const canvas = new OffscreenCanvas(640, 360);
  const g = canvas.getContext('2d', { alpha: false });
  const audio = new AudioContext({ sampleRate: 48000 });
  await audio.resume();
  const out = audio.createMediaStreamDestination();
  const tone = new OscillatorNode(audio, { frequency: 1000 });
  const gain = new GainNode(audio, { gain: 0 });
  tone.connect(gain).connect(out);
  tone.start();
  const begin = audio.currentTime + 0.5;
  for (let i = 0; i < 120; i++) {
    gain.gain.setValueAtTime(0.9, begin + i);
    gain.gain.setValueAtTime(0, begin + i + 0.1);
  }
  // Made by hand, not by captureStream: a page in the background draws nothing. The sound's clock is what the flashes go by, for on a busy
  // machine it falls behind the page's; how late each one is made is kept.
  const track = new MediaStreamTrackGenerator({ kind: 'video' });
  const writer = track.writable.getWriter();
  window.late = [];
  let n = 0, last = 0, was = false;
  setInterval(() => {
    const t = audio.currentTime - begin;
    const white = t >= 0 && t % 1 < 0.1;
    const now = performance.now();
    if (white === was && now - last < 33) return;
    if (white && !was) window.late.push(t % 1);
    last = now;
    was = white;
    g.fillStyle = white ? '#fff' : '#234';
    g.fillRect(0, 0, 640, 360);
    g.fillStyle = white ? '#eee' : '#567';
    g.fillRect(n++ * 7 % 640, 100, 60, 60);
    const frame = new VideoFrame(canvas, { timestamp: Math.round(now * 1000) });
    writer.write(frame).catch(() => frame.close());
  }, 4);
  return new MediaStream([track, ...out.stream.getTracks()]);
}`

// TestPublishFromBrowser publishes from the service's own page in Chromium, over WHIP, and watches that in another tab while it runs and
// as an asset. A second publisher is refused; Stop ends the stream at once, and sound and picture are in step.
func TestPublishFromBrowser(t *testing.T) { //nolint:paralleltest // a medium in real time: nothing else runs beside it
	rig.Pairs(t, func(t *testing.T, p rig.Pair) { //nolint:paralleltest // the same
		s := rig.Start(t, rig.Options{Pair: p})
		b := browser.Start(t)
		stream := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
		key := stream.Text("stream_key")
		page := b.Open(t, s.HTTP+"/publish")
		page.Eval(t, flashing, nil)

		page.Fill(t, "#key", "not-a-key")
		page.Click(t, "#start")
		page.Until(t, "an unknown key is refused", patience, func(p browser.Probe) bool {
			return p.State == "error" && strings.Contains(p.Sentence, "stream key is unknown")
		})
		page.Fill(t, "#key", key)
		page.Select(t, "#quality", "480p, 1 Mbit/s")
		page.Click(t, "#start")
		page.Until(t, "live", patience, func(p browser.Probe) bool { return p.State == "live" })
		page.Screenshot(t, "live")
		live := s.Live(t, stream.Text("id"))
		if live.Text("active_ingest_protocol") != "whip" {
			t.Errorf("active_ingest_protocol is %q", live.Text("active_ingest_protocol"))
		}
		viewer := b.Open(t, s.WatchURL(stream.Text("playback_ids.0.id")))
		viewer.FirstPicture(t, patience)
		v := viewer.Plays(t, 8, patience)
		if !v.Live || v.AudioBytes == 0 || v.Width != 640 {
			t.Errorf("plays wrongly: %+v", v)
		}
		live = s.Live(t, stream.Text("id"))
		recording := live.Text("active_asset_id")
		if live.Text("status") != "active" || recording == "" {
			t.Errorf("the stream is %s with recording %q", live.Text("status"), recording)
		}
		second := b.Open(t, s.HTTP+"/publish/#"+key) // a camera of its own
		second.Click(t, "#start")
		second.Until(t, "a second publisher is refused", patience, func(p browser.Probe) bool {
			return strings.Contains(p.Sentence, "another encoder is live")
		})
		second.Close(t)
		var codec string
		page.Eval(t, "document.getElementById('codec').textContent + ' ' + document.getElementById('bitrate').textContent + ' ' + document.getElementById('picture').textContent", &codec)
		t.Logf("published as %s, %.2f s behind", codec, behind(v))

		page.Click(t, "#stop")
		page.Until(t, "stopped", patience, func(p browser.Probe) bool { return p.State == "idle" })
		page.StaysHome(t, s.HTTP)
		asset := s.AwaitAsset(t, recording, "finished", patience, rig.Finished)
		if keys := keyFrames(t, s.PlayURL(asset.Text("playback_ids.0.id"))); len(keys) < 4 {
			t.Errorf("key frames at %.3f", keys)
		} else {
			for i, k := range keys[1:] {
				if k-keys[i] > 2.6 {
					t.Errorf("key frames at %.3f: %.3f s apart", keys, k-keys[i])
				}
			}
			t.Logf("key frames at %.3f", keys)
		}
		var late []float64
		page.Eval(t, "window.late", &late)
		abreast(t, s.PlayURL(asset.Text("playback_ids.0.id")), late)
		if text := s.Log(); strings.Contains(text, key) {
			t.Error("the stream key is in the log")
		}
	})
}

// onlyVP8 lets a page's connections offer no other codec of video.
const onlyVP8 = `const add = RTCPeerConnection.prototype.addTransceiver;
RTCPeerConnection.prototype.addTransceiver = function (track, init) {
  const t = add.call(this, track, init);
  if (track.kind === 'video') t.setCodecPreferences(RTCRtpSender.getCapabilities('video').codecs.filter((c) => /VP8|rtx/.test(c.mimeType)));
  return t;
}`

// TestPublishVP8 publishes VP8, which players can't play: it is encoded anew, and what it becomes is played.
func TestPublishVP8(t *testing.T) { //nolint:paralleltest // a medium in real time: nothing else runs beside it
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	stream := s.CreateLive(t, "reduced", rig.Object{"reconnect_window": 0})
	page := b.Open(t, s.HTTP+"/publish/#"+stream.Text("stream_key"))
	page.Eval(t, flashing, nil)
	page.Eval(t, onlyVP8, nil)
	page.Select(t, "#quality", "480p, 1 Mbit/s")
	page.Click(t, "#start")
	page.Until(t, "live", patience, func(p browser.Probe) bool { return p.State == "live" })
	viewer := b.Open(t, s.WatchURL(stream.Text("playback_ids.0.id")))
	if v := viewer.Plays(t, 6, patience); v.AudioBytes == 0 || v.Width != 640 {
		t.Errorf("plays wrongly: %+v", v)
	}
	var codec string
	page.Eval(t, "document.getElementById('codec').textContent", &codec)
	if codec != "VP8" {
		t.Errorf("published as %s", codec)
	}
	page.Click(t, "#stop")
	page.Until(t, "stopped", patience, func(p browser.Probe) bool { return p.State == "idle" })
}

// keyFrames are the times of a presentation's key frames, in seconds.
func keyFrames(t *testing.T, url string) (at []float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	probe := filepath.Join(filepath.Dir(rig.FFmpeg(t)), "ffprobe")
	out, err := exec.CommandContext(ctx, probe, "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", url).Output()
	if err != nil {
		t.Fatalf("ffprobe %s: %v", url, err)
	}
	for line := range strings.Lines(string(out)) {
		if pts, flags, ok := strings.Cut(line, ","); ok && strings.HasPrefix(flags, "K") {
			s, err := strconv.ParseFloat(pts, 64)
			if err != nil {
				t.Fatalf("ffprobe %s: %v", url, err)
			}
			at = append(at, s)
		}
	}
	return at
}

// abreast fails the test when sound and picture are more than 40 ms apart, by the median of flashes and beeps: single flashes are late
// whenever the page that makes them has to wait for the machine. late is by how much, in seconds, to be read when the test fails.
func abreast(t *testing.T, url string, late []float64) {
	t.Helper()
	white, beep := flashes(t, url)
	if len(white) < 6 || len(beep) < 6 || len(late) < 6 {
		t.Fatalf("%d flashes at %.3f and %d beeps at %.3f, %d were made", len(white), white, len(beep), beep, len(late))
	}
	var off []float64
	for _, w := range white {
		if w > beep[len(beep)-1]+0.5 || w < 10 {
			continue
		}
		near := math.Inf(1)
		for _, b := range beep {
			if math.Abs(w-b) < math.Abs(near) {
				near = w - b
			}
		}
		off = append(off, near)
	}
	got := median(off)
	t.Logf("the picture is %.1f ms behind the sound: flashes %.3f, beeps %.3f, made late by %.3f", got*1000, white, beep, late)
	if math.Abs(got) > 0.04 {
		t.Errorf("the picture is %.1f ms behind the sound", got*1000)
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
