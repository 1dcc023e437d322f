package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// red is an image that no encoder here sends, as a PNG.
func red(t *testing.T) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 64, 36))
	for i := range 64 * 36 {
		img.SetRGBA(i%64, i/64, color.RGBA{0xff, 0, 0, 0xff})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSlate drops encoders of every latency mode at once: what players are shown meanwhile goes on by the rules,
// Chromium plays through it where latency is low, and the recordings can be read from end to end. It is paced: an
// encoder that is late by a second because the machine has other things to do gets slate too, and rightly.
func TestSlate(t *testing.T) {
	rig.Paced(t, rig.Long)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		slate := rig.Files(t, map[string]string{"red.png": red(t)})
		t.Cleanup(func() { cleanLog(t, s) })
		for _, mode := range []string{"low", "reduced", "standard"} {
			t.Run(mode, func(t *testing.T) {
				rig.Paced(t)
				c := dropped{s: s, mode: mode, image: slate + "/red.png"}
				c.run(t)
			})
		}
	})
}

// dropped is a stream whose encoder goes away and comes back.
type dropped struct {
	s     *rig.Server
	mode  string
	image string
}

// How long, in seconds: each encoder sends, the encoder is away.
const sentLength, awayLength = 12, 8

// longestStand is how long a picture may stand: a player that has to begin another decoder on a busy machine, but not
// one that is given nothing while the encoder is away.
const longestStand = 4 * time.Second

func (d dropped) run(t *testing.T) {
	l := d.s.CreateLive(t, d.mode, rig.Object{
		"reconnect_window": 60, "use_slate_for_standard_latency": true, "reconnect_slate_url": d.image,
	})
	id, url := l.Text("id"), d.s.PlayURL(l.Text("playback_ids.0.id"))
	// cut off among B-frames, the last one is shown behind its successor
	clip := rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Flash: true, NoB: true}
	began := time.Now()
	first := d.s.Publish(t, l.Text("stream_key"), clip)
	d.s.AwaitPlayable(t, url, patience)
	l = d.s.AwaitLive(t, id, "active", patience, func(o rig.Object) bool { return o.Text("status") == "active" })
	a := d.s.AwaitAsset(t, l.Text("active_asset_id"), "playable", patience, rig.Ready)
	var watched sync.WaitGroup
	must := []string{
		"tfdt-break", "discontinuity-map", "reload-grows", "entry-immutable", "segment-duration", "align-start",
		"align-pdt", "align-discontinuity",
	}
	for what, u := range map[string]string{
		"live": url, "recording while live": d.s.PlayURL(a.Text("playback_ids.0.id")),
	} {
		watched.Go(func() {
			check(t, what, hlscheck.Options{
				URL: u, Follow: (2*sentLength + awayLength - 6) * time.Second, LowLatency: d.mode == "low",
				MaxSegments: 4,
				OtherMedia:  true,
			}, must...)
		})
	}
	if d.mode == "low" { // its players have the least in hand; the rules hold for all
		watched.Go(func() { d.watch(t, l.Text("playback_ids.0.id"), (2*sentLength+awayLength-8)*time.Second) })
	}

	wait(time.Until(began.Add(sentLength * time.Second)))
	first.Kill()
	wait(awayLength * time.Second)
	second := d.s.Publish(t, l.Text("stream_key"), clip)
	wait(sentLength * time.Second)
	watched.Wait()
	second.Stop()
	d.s.AwaitLive(t, id, "without encoder", patience, away)
	d.s.Complete(t, id)
	d.recorded(t, a.Text("id"))
}

// watch plays the stream in Chromium for a time: the picture runs on through everything, and nothing begins again.
func (d dropped) watch(t *testing.T, playback string, long time.Duration) {
	page := browser.Start(t).Open(t, d.s.WatchURL(playback))
	page.Eval(t, "window.notReloaded = true", nil)
	page.FirstPicture(t, patience)
	p := page.Plays(t, 1, patience)
	from, at, stood := p.Time, time.Now(), 0
	last, seen, stalls := p.Time, time.Now(), p.Stalls
	for time.Since(at) < long {
		wait(250 * time.Millisecond)
		p = page.Probe(t)
		if p.Time > last {
			last, seen = p.Time, time.Now()
		}
		if p.Stalls > stalls {
			stalls = p.Stalls
			t.Logf("%s: stall at %.2f s, there is %.2f: %v", d.mode, p.Time, p.Buffered, p.Errors)
		}
		if time.Since(seen) > longestStand {
			stood++
			seen = time.Now()
			trace := page.Log(t).Trace
			t.Errorf("the picture stands at %.2f s for %v, there is %.2f: %+v\n%s", p.Time, longestStand, p.Buffered, p,
				strings.Join(trace[max(0, len(trace)-40):], "\n"))
		}
	}
	var notReloaded bool
	page.Eval(t, "Boolean(window.notReloaded)", &notReloaded)
	t.Logf("%s: %.1f s played in %.1f s, %d stalls, %d restarts, %v", d.mode, p.Time-from, time.Since(at).Seconds(),
		p.Stalls, p.Restarts, p.Errors)
	if !notReloaded || p.Restarts > 0 || p.State != "playing" || p.Error != "" ||
		slices.ContainsFunc(p.Errors, func(e string) bool { return strings.Contains(e, "fatal") }) {
		t.Errorf("after drop, slate and return: %+v", p)
	}
	if ran, passed := p.Time-from, time.Since(at).Seconds(); math.Abs(ran-passed) > 6 {
		t.Errorf("%.1f s played in %.1f s", ran, passed)
	}
}

// recorded reads the asset.
func (d dropped) recorded(t *testing.T, id string) {
	a := d.s.AwaitAsset(t, id, "settled", patience, func(o rig.Object) bool {
		return rig.Ready(o) && !o.Flag("is_live") && o.Text("progress.state") == "completed"
	})
	times := a.List("recording_times")
	var kinds []string
	sum, longest := 0.0, 0.0
	for _, r := range times {
		kind, long := r.Text("type"), r.Number("duration")
		kinds, sum = append(kinds, kind), sum+long
		if kind == "slate" {
			longest = max(longest, long)
		}
	}
	if !slices.Equal(kinds[:min(3, len(kinds))], []string{"content", "slate", "content"}) ||
		math.Abs(sum-a.Number("duration")) > 0.5 {
		t.Errorf("recording times %v of an asset of %v s", times, a.Number("duration"))
	}
	// A machine that has much to do delays the encoder by longer than players wait: there may be shorter ones.
	if longest < awayLength-2 || longest > awayLength+6 {
		t.Errorf("slate for %.1f s, the encoder was away for %d s", longest, awayLength)
	}
	url := d.s.PlayURL(a.Text("playback_ids.0.id"))
	check(t, "asset", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, finishedRules...)
	for kind, p := range read(t, url, true) {
		if t.Logf("%s: %s from %.3f to %.3f s, longest hole %.3f s", d.mode, kind, p.first, p.last,
			p.gap); kind == "audio" && p.gap > 0.15 {
			t.Errorf("a hole of %.3f s in the %s", p.gap, kind)
		}
	}
	d.decodes(t, url, a.Number("duration"))
}

// decodes has ffmpeg read the whole asset as one stream: no picture is damaged, none is missing, and the owner's image
// is among them.
func (d dropped) decodes(t *testing.T, url string, long float64) {
	cmd := exec.CommandContext(t.Context(), rig.FFmpeg(t), "-nostdin", "-v", "error", "-i", url, "-map", "0:v:0",
		"-fps_mode", "passthrough",
		"-enc_time_base", "1:90000", "-vf", "scale=1:1:flags=area,format=rgb24", "-f", "rawvideo", "-")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		t.Errorf("ffmpeg says: %v: %.2000s", err, said.String())
	}
	reds := 0
	for i := 0; i+2 < out.Len(); i += 3 {
		if c := out.Bytes()[i : i+3]; c[0] > 0xe0 && c[1] < 0x20 && c[2] < 0x20 {
			reds++
		}
	}
	frames := float64(out.Len() / 3)
	t.Logf("%s: %.0f pictures in %.1f s, %d of them slate", d.mode, frames, long, reds)
	if math.Abs(frames-30*long) > 45 {
		t.Errorf("%.0f pictures in %.1f s", frames, long)
	}
	if reds < 30*(awayLength-2) {
		t.Errorf("%d pictures show the slate", reds)
	}
}

func wait(d time.Duration) { <-time.After(d) }
