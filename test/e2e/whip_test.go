package e2e

import (
	"context"
	"math"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// flashing gives a page a camera whose picture turns white for three frames of 30 a second each second, and a
// microphone that beeps then. It keeps what it did: see made. While the page is noisy, a corner of the picture needs
// every bit that there is.
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
  // machine it falls behind the page's.
  const track = new MediaStreamTrackGenerator({ kind: 'video' });
  const writer = track.writable.getWriter();
  const noise = new OffscreenCanvas(64, 36);
  const dots = new Uint8ClampedArray(64 * 36 * 4);
  const made = window.made = []; // of the camera that was opened last
  let n = 0, last = 0, was = false;
  setInterval(() => {
    const t = audio.currentTime - begin;
    const white = t >= 0 && t % 1 < 0.1;
    const now = performance.now();
    if (white === was && now - last < 33) return;
    // Each timestamp is far from the one before, or the browser corrects it by how late the last hundred pictures were,
    // and after a moment without a processor it dates pictures before they were made.
    const timestamp = Math.round(now * 1000) + (n % 2) * 1e9;
    if (white) made.push({ at: now / 1000, late: t % 1, behind: now / 1000 - audio.currentTime });
    last = now;
    was = white;
    g.fillStyle = white ? '#fff' : '#234';
    g.fillRect(0, 0, 640, 360);
    g.fillStyle = white ? '#eee' : '#567';
    g.fillRect(n++ * 7 % 640, 100, 60, 60);
    if (window.noisy) {
      noise.getContext('2d').putImageData(new ImageData(crypto.getRandomValues(dots), 64, 36), 0, 0);
      g.drawImage(noise, 0, 270, 160, 90);
    }
    const frame = new VideoFrame(canvas, { timestamp });
    writer.write(frame).catch(() => frame.close());
  }, 4);
  return new MediaStream([track, ...out.stream.getTracks()]);
}`

// stamping has a page keep the RTP timestamps that the browser gives to pictures. window.sent gives the pictures of
// flashes with the moment of theirs on the page's clock: 0 is where the picture that was encoded soonest was made. What
// has none near, the browser has left out or stamped late. window.pause is the longest time without a picture.
const stamping = `const Connection = RTCPeerConnection;
window.RTCPeerConnection = class extends Connection {
  constructor(configuration) { super({ ...configuration, encodedInsertableStreams: true }); }
  addTransceiver(track, init) {
    const transceiver = super.addTransceiver(track, init);
    const { readable, writable } = transceiver.sender.createEncodedStreams();
    (track.kind === 'video' ? readable.pipeThrough(keeping()) : readable).pipeTo(writable).catch(() => {});
    return transceiver;
  }
};
let stamps = []; // of the last connection
function keeping() {
  const mine = stamps = [];
  return new TransformStream({
    transform(picture, controller) {
      const rtp = picture.getMetadata().rtpTimestamp;
      const begin = mine[0]?.rtp ?? rtp;
      mine.push({ rtp, stamp: (rtp - begin | 0) / 90000, at: performance.now() / 1000 });
      controller.enqueue(picture);
    },
  });
}
window.sent = () => {
  const soonest = stamps.reduce((most, s) => Math.max(most, s.stamp - s.at), -Infinity);
  const times = stamps.map((s) => s.stamp - soonest);
  return window.made.map((m) => ({ ...m, stamp: times.find((t) => Math.abs(t - m.at) < 0.015) }))
    .filter((m) => m.stamp !== undefined);
};
window.pause = () => stamps.reduce((most, s, i) => Math.max(most, i && s.stamp - stamps[i - 1].stamp), 0)`

// TestPublishFromBrowser publishes from the service's own page in Chromium, over WHIP, and watches that in another tab
// while it runs and as an asset. A second publisher is refused; Stop ends the stream at once, and sound and picture are
// in step.
func TestPublishFromBrowser(t *testing.T) {
	rig.Paced(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		b := browser.Start(t)
		stream := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
		key := stream.Text("stream_key")
		page := b.Open(t, s.HTTP+"/publish")
		page.Eval(t, flashing, nil)
		page.Eval(t, stamping, nil)

		page.Fill(t, "#key", "not-a-key")
		page.Click(t, "#start")
		page.Until(t, "an unknown key is refused", patience, func(p browser.Probe) bool {
			return p.State == "error" && strings.Contains(p.Sentence, "stream key is unknown")
		})
		page.Fill(t, "#key", key)
		page.Click(t, "#quality-480")
		page.Click(t, "#start")
		page.Until(t, "live", patience, func(p browser.Probe) bool { return p.State == "live" })
		page.Eval(t, estimates, nil)
		page.Screenshot(t, "live")
		live := s.Live(t, stream.Text("id"))
		if live.Text("active_ingest_protocol") != "whip" {
			t.Errorf("active_ingest_protocol is %q", live.Text("active_ingest_protocol"))
		}
		viewer := b.Open(t, s.WatchURL(stream.Text("playback_ids.0.id")))
		viewer.FirstPicture(t, patience)
		v := viewer.Plays(t, 8, patience)
		if !v.Live || v.AudioBytes == 0 || !slices.Contains(v.Levels, 360) { // a busy machine plays a smaller rung
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
		viewer.Close(t) // what it costs to watch is not to tell the publisher that the way is narrow
		climbs(t, page)
		var codec string
		page.Eval(t,
			"document.getElementById('codec').textContent + ' ' + document.getElementById('bitrate').textContent + ' "+
				"' + document.getElementById('picture').textContent", &codec)
		t.Logf("published as %s, %.2f s behind", codec, v.Behind())

		page.Click(t, "#stop")
		page.Until(t, "stopped", patience, func(p browser.Probe) bool { return p.State == "idle" })
		page.StaysHome(t, s.HTTP)
		asset := s.AwaitAsset(t, recording, "finished", patience, rig.Finished)
		often(t, keyFrames(t, s.PlayURL(asset.Text("playback_ids.0.id"))))
		var flashed []made
		page.Eval(t, "window.sent()", &flashed)
		abreast(t, s.PlayURL(asset.Text("playback_ids.0.id")), flashed)
		if text := s.Log(); strings.Contains(text, key) {
			t.Error("the stream key is in the log")
		}
	})
}

// estimates has a page that publishes keep the most that the browser has believed the way to the service to carry, and
// has encoded for, how often it changed its mind, and whether the machine is busy: the processor has kept it from
// encoding for more, or the page from looking every quarter of a second.
const estimates = `const best = window.best = { way: 0, target: 0, moves: 0, busy: false };
let way = 0, looked = performance.now();
setInterval(async () => {
  best.busy ||= performance.now() - looked > 350;
  looked = performance.now();
  const connection = window.millrace.connection();
  if (!connection) return;
  (await connection.getStats()).forEach((r) => {
    if (r.type === 'candidate-pair' && r.nominated) {
      best.way = Math.max(best.way, r.availableOutgoingBitrate || 0);
      if (r.availableOutgoingBitrate !== way) best.moves++;
      way = r.availableOutgoingBitrate;
    }
    if (r.type !== 'outbound-rtp' || r.kind !== 'video') return;
    best.target = Math.max(best.target, r.targetBitrate || 0);
    best.busy ||= r.qualityLimitationReason === 'cpu';
  });
}, 250)`

// climbs waits until the browser has believed that the way to the service carries twice the 300 kbit/s with which it
// begins: it learns that from the service's feedback (transport-wide congestion control) alone, and does not while it
// has nothing to send. On a busy machine packets and feedback wait for a processor, and the browser takes the way for a
// narrow one: there it is enough that what it believes follows the feedback.
func climbs(t *testing.T, page *browser.Page) {
	t.Helper()
	var rates struct {
		Way    float64 `json:"way"`    // bits a second
		Target float64 `json:"target"` // of the encoder
		Moves  int     `json:"moves"`  // how often Way has changed
		Busy   bool    `json:"busy"`   // the machine is
	}
	defer func() { t.Logf("the browser has believed in %+v", rates) }()
	page.Eval(t, "window.noisy = true", nil)
	defer page.Eval(t, "window.noisy = false", nil)
	page.Until(t, "bitrate", patience, func(browser.Probe) bool {
		page.Eval(t, "window.best", &rates)
		return rates.Way > 0.6e6 && rates.Target > 0.5e6 || rates.Busy && rates.Moves > 3
	})
}

// onlyCodec lets a page's connections offer no other codec of video.
func onlyCodec(name string) string {
	return `const add = RTCPeerConnection.prototype.addTransceiver;
RTCPeerConnection.prototype.addTransceiver = function (track, init) {
  const t = add.call(this, track, init);
  if (track.kind === 'video') t.setCodecPreferences(RTCRtpSender.getCapabilities('video').codecs.filter((c) => /` +
		name + `|rtx/.test(c.mimeType)));
  return t;
}`
}

// TestPublishVP8 publishes VP8, which players can't play: it is encoded again, and what it becomes is played.
func TestPublishVP8(t *testing.T) {
	rig.Paced(t)
	publishCodec(t, "VP8", "h264")
}

// TestPublishCodecs publishes from Chromium what it encodes beside H.264 and goes into the recording as it is.
func TestPublishCodecs(t *testing.T) {
	rig.Paced(t)
	for _, codec := range []string{"VP9", "AV1"} {
		t.Run(codec, func(t *testing.T) {
			rig.Paced(t)
			publishCodec(t, codec, strings.ToLower(codec))
		})
	}
}

// keyFrameOnDemand is how many seconds a browser may take for the key frame that it is asked for, each half second, on
// a busy machine: the picture may be lost in its turn.
const keyFrameOnDemand = 3

// publishCodec publishes one codec, watches it, and has ffprobe read the recording, which is of another one.
func publishCodec(t *testing.T, codec, recorded string) {
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	stream := s.CreateLive(t, "reduced", rig.Object{"reconnect_window": 0})
	page := b.Open(t, s.HTTP+"/publish/#"+stream.Text("stream_key"))
	page.Eval(t, flashing, nil)
	page.Eval(t, stamping, nil)
	page.Eval(t, onlyCodec(codec), nil)
	page.Click(t, "#quality-480")
	page.Click(t, "#start")
	page.Until(t, "live", patience, func(p browser.Probe) bool { return p.State == "live" })
	viewer := b.Open(t, s.WatchURL(stream.Text("playback_ids.0.id")))
	if v := viewer.Plays(t, 6, patience); v.AudioBytes == 0 || !slices.Contains(v.Levels, 360) {
		t.Errorf("plays wrongly: %+v", v)
	}
	asset := s.Live(t, stream.Text("id")).Text("active_asset_id")
	var sent string
	page.Eval(t, "document.getElementById('codec').textContent", &sent)
	if sent != codec {
		t.Errorf("published as %s", sent)
	}
	page.Click(t, "#stop")
	page.Until(t, "stopped", patience, func(p browser.Probe) bool { return p.State == "idle" })
	a := s.AwaitAsset(t, asset, "finished", patience, rig.Finished)
	url := s.PlayURL(a.Text("playback_ids.0.id"))
	sums := read(t, url, false)
	// a busy machine's browser gives no picture for a moment, also the last, and none is in the recording then
	var pause float64
	page.Eval(t, "window.pause()", &pause)
	for _, gone := range s.LogLines("encoder disconnected") {
		if damaged := gone.Number("damaged"); damaged > 0 { // they are missing, and those up to the next key frame
			t.Logf("%.0f damaged pictures", damaged)
			pause += keyFrameOnDemand
		}
	}
	v, long := sums["video"], a.Number("duration")
	// a pause is seen from one picture to the next, of which its encoder drops some
	picture := long / float64(max(v.count, 1))
	whole := math.Abs(v.last-v.first-long) <= pause+0.5 && v.gap <= pause+max(0.1, 3*picture)
	if long < 6 || !whole || v.count < 30 || sums["audio"].count < 250 {
		t.Errorf("ffprobe reads %+v of %.3f s, the browser paused for up to %.3f s", sums, long, pause)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(rig.FFmpeg(t)), "ffprobe"), "-v", "error",
		"-show_entries", "stream=codec_name", "-of", "csv=p=0", url).CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, recorded) || !strings.Contains(text, "opus") {
		t.Errorf("ffprobe names %q: %v", text, err)
	}
}

// TestPublishThroughAnotherNetwork takes the network away from a publisher: what it sends from its old address
// vanishes, and so does what is sent there. The page makes a new ICE session for the same publication, and the
// recording goes on.
func TestPublishThroughAnotherNetwork(t *testing.T) {
	rig.Paced(t)
	s := rig.Start(t, rig.Options{})
	var mu sync.Mutex
	gone, moved := map[string]bool{}, false
	address := ""
	for _, l := range s.LogLines("listening") {
		if l.Text("listener") == "webrtc-udp" {
			address = l.Text("address")
		}
	}
	_, port, err := net.SplitHostPort(rig.Weather{Deaf: func(caller string) bool {
		mu.Lock()
		defer mu.Unlock()
		if !moved {
			gone[caller] = true
		}
		return moved && gone[caller]
	}}.Through(t, address))
	if err != nil {
		t.Fatal(err)
	}
	b := browser.Start(t)
	stream := s.CreateLive(t, "reduced", rig.Object{"reconnect_window": 0})
	page := b.Open(t, s.HTTP+"/publish/#"+stream.Text("stream_key"))
	page.Eval(t, flashing, nil)
	page.Eval(t, `const set = RTCPeerConnection.prototype.setRemoteDescription;
RTCPeerConnection.prototype.setRemoteDescription = function (d) {
  const sdp = d.sdp.replace(/^a=candidate:.* tcp .*\r\n/gm, '').replace(/^(a=candidate:.* udp \d+ \S+) \d+/gm, '$1 `+
		port+`');
  return set.call(this, { type: d.type, sdp });
}`, nil)
	page.Click(t, "#quality-480")
	page.Click(t, "#start")
	page.Until(t, "live", patience, func(p browser.Probe) bool { return p.State == "live" })
	l := s.AwaitLive(t, stream.Text("id"), "active", patience, func(o rig.Object) bool {
		return o.Text("status") == "active"
	})
	before := ""
	page.Eval(t, "window.millrace.connection().localDescription.sdp.match(/a=ice-ufrag:(.*)/)[1]", &before)
	mu.Lock()
	moved = true
	mu.Unlock()
	page.Until(t, "the connection is gone", patience, func(p browser.Probe) bool { return p.State == "waiting" })
	page.Until(t, "live again", patience, func(p browser.Probe) bool { return p.State == "live" })
	after := ""
	page.Eval(t, "window.millrace.connection().localDescription.sdp.match(/a=ice-ufrag:(.*)/)[1]", &after)
	if before == after {
		t.Error("the page made no new ICE session")
	}
	viewer := b.Open(t, s.WatchURL(stream.Text("playback_ids.0.id")))
	viewer.Plays(t, 5, patience) // the recording has more
	page.Click(t, "#stop")
	page.Until(t, "stopped", patience, func(p browser.Probe) bool { return p.State == "idle" })
	a := s.AwaitAsset(t, l.Text("active_asset_id"), "finished", patience, rig.Finished)
	if n := len(s.LogLines("encoder connected")); n != 1 {
		t.Errorf("%d publications, want the first one alone", n)
	}
	// What could not be sent until the browser had noticed makes no hole: the recording goes on behind a discontinuity.
	sums := read(t, s.PlayURL(a.Text("playback_ids.0.id")), true)
	if v := sums["video"]; v.last-v.first < 4 || sums["audio"].count < 200 {
		t.Errorf("ffprobe reads %+v of %.3f s", sums, a.Number("duration"))
	}
	t.Logf("%.1f s with %+v", a.Number("duration"), sums)
}

// often wants a key frame about every two seconds, as the service asks for them. A busy machine's browser is late with
// one or the other.
func often(t *testing.T, keys []float64) {
	t.Helper()
	if len(keys) < 4 {
		t.Errorf("key frames at %.3f", keys)
		return
	}
	var steps []float64
	for i, k := range keys[1:] {
		steps = append(steps, k-keys[i])
	}
	slices.Sort(steps)
	if usual, longest := steps[len(steps)/2], steps[len(steps)-1]; usual > 2.6 || longest > 6 {
		t.Errorf("key frames at %.3f: usually %.3f s apart, at most %.3f", keys, usual, longest)
	}
	t.Logf("key frames at %.3f", keys)
}

// keyFrames are the times of a presentation's key frames, in seconds.
func keyFrames(t *testing.T, url string) (at []float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	probe := filepath.Join(filepath.Dir(rig.FFmpeg(t)), "ffprobe")
	out, err := exec.CommandContext(ctx, probe, "-v", "error", "-select_streams", "v", "-show_entries",
		"packet=pts_time,flags", "-of", "csv=p=0", url).Output()
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

// made is a picture of a flash as the page made it and the browser sent it. Times are seconds.
type made struct {
	At   float64 `json:"at"`   // the page's clock
	Late float64 `json:"late"` // behind its beep
	// the page's clock less the sound's: grows when the machine was too busy to make sound
	Behind float64 `json:"behind"`
	Stamp  float64 `json:"stamp"` // its RTP timestamp on the page's clock, at most 15 ms from At
}

// abreast fails the test when a flash is more than 40 ms from its beep, but for how late the page made it and the
// browser stamped it. Flashes that were made later than that are not judged, as the page's clock was behind too, nor
// are those that begin with no picture that was stamped in time, nor what comes after the page's own sound has stood
// still: then the browser keeps more sound waiting than before, and tells nobody.
func abreast(t *testing.T, url string, flashed []made) {
	t.Helper()
	white, beep := flashes(t, url)
	var begun []made // a busy browser leaves out a picture, and the flash begins with the next
	for i, m := range flashed {
		if i == 0 || m.At-flashed[i-1].At > 0.5 {
			begun = append(begun, m)
		}
	}
	if len(white) < 6 || len(beep) < 6 || len(begun) < 6 {
		t.Fatalf("%d flashes at %.3f and %d beeps at %.3f, %d were made", len(white), white, len(beep), beep,
			len(begun))
	}
	shift := aligned(white, begun)
	first := nearest(flashed, white[0]-shift)
	worst, judged := 0.0, 0
	for _, w := range white {
		m := nearest(flashed, w-shift)
		if w > beep[len(beep)-1]+0.5 || w < 10 || m.Late > 0.04 || math.Abs(m.Behind-first.Behind) > 0.025 {
			continue
		}
		if math.Abs(w-shift-m.Stamp) > 0.015 {
			continue
		}
		late := m.Late + m.Stamp - m.At
		near := math.Inf(1)
		for _, b := range beep {
			if math.Abs(w-b-late) < math.Abs(near) {
				near = w - b - late
			}
		}
		judged++
		if math.Abs(near) > math.Abs(worst) {
			worst = near
		}
	}
	t.Logf("a picture is at most %.1f ms behind the sound in %d of %d: flashes %.3f, beeps %.3f, made %.3f",
		worst*1000, judged, len(white), white, beep, begun)
	if math.Abs(worst) > 0.04 {
		t.Errorf("a picture is %.1f ms behind the sound", worst*1000)
	}
	if judged < 3 && math.Abs(flashed[len(flashed)-1].Behind-first.Behind) <= 0.025 {
		t.Errorf("only %d flashes could be judged", judged)
	}
}

// aligned is by how much the times of flashes in a recording are later than their RTP timestamps: that which fits most
// of them, whichever of them lack their first picture.
func aligned(white []float64, begun []made) (shift float64) {
	least := math.Inf(1)
	for _, from := range white {
		for _, m := range begun {
			sum := 0.0
			for _, w := range white {
				at := w - (from - m.Stamp)
				sum += math.Abs(nearest(begun, at).Stamp - at)
			}
			if sum < least {
				least, shift = sum, from-m.Stamp
			}
		}
	}
	return shift
}

// nearest is the picture whose stamp is nearest to a time.
func nearest(flashed []made, at float64) (best made) {
	for i, m := range flashed {
		if i == 0 || math.Abs(m.Stamp-at) < math.Abs(best.Stamp-at) {
			best = m
		}
	}
	return best
}
