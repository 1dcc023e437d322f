package e2e

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// broadcast is one way to stream: what the first encoder sends, and the second, which comes in its place within the
// window.
type broadcast struct {
	mode          string
	first, second rig.Clip
	prefix        string // of the RTMP path
	pairs         bool   // on both pairs of database and storage; the others on one
}

// broadcasts are the ways that are tested: each latency mode, each combination of tracks, frame rates and sample rates
// that differ.
func broadcasts() map[string]broadcast {
	return map[string]broadcast{
		"low with B-frames": {
			mode: "low", pairs: true, first: rig.Clip{Size: "426x240", Kbit: 400, GOP: 2, Flash: true},
			second: rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Rate: 25, Flash: true},
		},
		"low at 29.97": {
			mode: "low", pairs: true,
			first: rig.Clip{
				Size: "320x180", Kbit: 300, GOP: 1, Drop: true, NoB: true, Hertz: 44100, Flash: true, Offset: 3600,
			}, second: rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Flash: true},
			prefix: "/live/",
		},
		"reduced": {
			mode: "reduced", first: rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Drop: true, Hertz: 44100, Flash: true},
			second: rig.Clip{Size: "426x240", Kbit: 300, GOP: 1, NoB: true, Flash: true},
		},
		"standard": {
			mode: "standard", first: rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Rate: 25, Flash: true},
			second: rig.Clip{Size: "426x240", Kbit: 300, GOP: 2, NoB: true, Flash: true},
		},
		"audio only": {
			mode: "low", first: rig.Clip{NoVideo: true, Hertz: 44100}, second: rig.Clip{NoVideo: true},
		},
		"video only": {
			mode: "low", first: rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, NoAudio: true},
			second: rig.Clip{Size: "426x240", Kbit: 300, GOP: 1, NoAudio: true, NoB: true},
		},
	}
}

// Rules that must have been applied, or the test has proved nothing.
var (
	liveRules = []string{
		"constants", "media-sequence", "entry-immutable", "append-only", "reload-grows", "tfdt", "segment-duration",
		"immutable-bytes",
		"codecs", "pdt", "target-duration", "bandwidth", "playlist-cache", "media-cache", "cors", "gzip", "unknown-404",
		"ranges",
	}
	lowLatencyRules = []string{
		"blocking-reload", "blocking-time", "far-future", "directive", "preload-hint", "delta", "part-bytes",
		"part-target",
		"part-short", "part-sum", "part-duration", "independent-part", "listed-parts", "low-latency-server",
		"part-hold-back", "skip-boundary",
	}
	bothTracksRules = []string{"align-start", "align-pdt", "align-discontinuity", "align-target"}
	breakRules      = []string{"tfdt-break", "discontinuity-map", "discontinuity-sequence"}
	finishedRules   = []string{
		"average-bandwidth", "bandwidth", "tfdt", "segment-duration", "decodes", "tfdt-break", "discontinuity-map",
	}
)

// The lengths of what both encoders send, in seconds.
const firstLength, secondLength = 20, 9

// TestLive streams in every way, with a reconnect, and holds everything that a player sees on the way against RFC
// 8216bis.
func TestLive(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		s := rig.Start(t, rig.Options{Pair: p})
		t.Cleanup(func() { cleanLog(t, s) })
		for name, b := range broadcasts() {
			if p != rig.Embedded && !b.pairs {
				continue
			}
			t.Run(name, func(t *testing.T) {
				rig.Parallel(t)
				b.run(t, s)
			})
		}
	})
}

func (b broadcast) tracks() (video, audio bool) { return !b.first.NoVideo, !b.first.NoAudio }

func (b broadcast) run(t *testing.T, s *rig.Server) {
	b.first.Seconds, b.second.Seconds = firstLength, secondLength
	l := s.CreateLive(t, b.mode, rig.Object{"reconnect_window": 30})
	id, url := l.Text("id"), s.PlayURL(l.Text("playback_ids.0.id"))
	for _, u := range []string{url, url[:len(url)-len(".m3u8")]} {
		if code, _, body := s.Get(t, u); code != http.StatusPreconditionFailed {
			t.Errorf("%s before the stream began: status %d, want 412: %.200s", u, code, body)
		}
	}
	began := time.Now()
	encoder := b.publish(t, s, l, b.first)
	s.AwaitPlayable(t, url, patience)
	l = s.AwaitLive(t, id, "active", patience, func(o rig.Object) bool { return o.Text("status") == "active" })
	a := s.AwaitAsset(t, l.Text("active_asset_id"), "playable", patience, rig.Ready)
	if !a.Flag("is_live") || a.Text("live_stream_id") != id || a.Text("progress.state") != "live" {
		t.Errorf("asset of a stream that is live: %v", a)
	}
	recording := s.PlayURL(a.Text("playback_ids.0.id"))

	end := began.Add((firstLength - 1) * time.Second)
	b.watch(t, url, recording, time.Until(end)-time.Second, end)
	var watched sync.WaitGroup
	watched.Go(func() { b.watch(t, url, recording, time.Until(end)+8*time.Second, time.Now()) })
	if said, err := encoder.Wait(t, patience); err != nil {
		t.Errorf("first encoder: %v: %s", err, said)
	}
	encoder = b.publish(t, s, l, b.second)
	if said, err := encoder.Wait(t, patience); err != nil {
		t.Errorf("second encoder: %v: %s", err, said)
	}
	watched.Wait()
	s.AwaitLive(t, id, "without encoder", patience, away) // what it sent last may still be on its way
	if b.pairs {
		rig.Pause(time.Second) // slate has begun, and is left out of the recording
	}
	s.Complete(t, id)
	b.finished(t, s, id, a.Text("id"))
}

// away is a condition: no encoder is connected.
func away(o rig.Object) bool { return o.Text("active_ingest_protocol") == "" }

func (b broadcast) publish(t *testing.T, s *rig.Server, l rig.Object, c rig.Clip) *rig.Encoder {
	t.Helper()
	prefix := b.prefix
	if prefix == "" {
		prefix = "/app/"
	}
	return rig.PublishTo(t, s.RTMP+prefix+l.Text("stream_key"), c)
}

// watch follows the live stream's presentation and the recording's side by side. The encoder may be away from the given
// time on.
func (b broadcast) watch(t *testing.T, url, recording string, follow time.Duration, stalls time.Time) {
	must := slices.Clone(liveRules)
	if b.mode == "low" {
		must = append(must, lowLatencyRules...)
	}
	if v, a := b.tracks(); v && a {
		must = append(must, bothTracksRules...)
	}
	broken := !time.Now().Before(stalls)
	var until []string
	if broken { // what comes behind the break comes when the second encoder does
		must, until = breakRules, breakRules
	}
	var g sync.WaitGroup
	for what, u := range map[string]string{"live": url, "recording while live": recording} {
		g.Go(func() {
			r := check(t, what, hlscheck.Options{
				URL: u, Follow: max(follow, 4*time.Second), Until: until, LowLatency: b.mode == "low",
				StallsFrom: stalls, MaxSegments: 4,
			})
			// else the machine is slow: the break came before everything was looked at
			if broken || time.Now().Before(stalls) {
				applied(t, what, r, must)
			}
			for _, v := range r.Renditions {
				if v.Ended {
					t.Errorf("%s: %s ended while the stream was live", what, v.URL)
				}
			}
		})
	}
	g.Wait()
}

// finished looks at the asset and at the stream after the end.
func (b broadcast) finished(t *testing.T, s *rig.Server, stream, asset string) {
	t.Helper()
	l := s.AwaitLive(t, stream, "idle", patience, func(o rig.Object) bool { return o.Text("status") == "idle" })
	if l.Text("active_asset_id") != "" || !slices.Equal(l.Texts("recent_asset_ids"), []string{asset}) {
		t.Errorf("stream after its end: %v", l)
	}
	a := s.AwaitAsset(t, asset, "finished", patience, rig.Finished)
	if a.Text("progress.state") != "completed" {
		t.Errorf("progress of a finished asset: %v", a["progress"])
	}
	video, audio := b.tracks()
	must := slices.Clone(finishedRules)
	if video && audio {
		must = append(must, bothTracksRules...)
	}
	url := s.PlayURL(a.Text("playback_ids.0.id"))
	r := check(t, "finished", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, must...)
	for _, v := range r.Renditions {
		// slate has one at either end
		if !v.Ended || b.mode == "standard" && v.Discontinuities != 1 || v.Discontinuities < 1 {
			t.Errorf("finished: %s has ended %t with %d discontinuities", v.URL, v.Ended, v.Discontinuities)
		}
	}
	b.whole(t, a, read(t, url, true))
	if b.first.Flash {
		_, one := b.first.FPS()
		_, two := b.second.FPS()
		inStepAround(t, url, int(firstLength/one)+int(secondLength/two)-1, b.mode != "standard")
	}
	want := []string{
		"video.live_stream.created", "video.live_stream.connected", "video.live_stream.recording",
		"video.live_stream.active",
		"video.live_stream.disconnected", "video.live_stream.connected", "video.live_stream.recording",
		"video.live_stream.disconnected", "video.live_stream.idle",
	}
	// of sound that is missing, and of a machine that is busy
	warning := func(e string) bool { return e == "video.live_stream.warning" }
	if got := slices.DeleteFunc(events(t, s, stream), warning); !slices.Equal(got, want) {
		t.Errorf("events of the stream: %v, want %v", got, want)
	}
	awaitEvents(t, s, asset, "video.asset.created", "video.asset.ready", "video.asset.live_stream_completed")
}

// whole holds what was sent against what is there: every frame, no hole, the right length, in the media and in the
// asset's fields.
func (b broadcast) whole(t *testing.T, a rig.Object, have map[string]packets) {
	t.Helper()
	slate := 0.0 // what stands in for the moment between the encoders
	for _, r := range a.List("recording_times") {
		if r.Text("type") == "slate" {
			slate += r.Number("duration")
		}
	}
	filled := slate > 0
	if filled && b.mode == "standard" { // in the other modes it depends on how soon the second encoder is there
		t.Errorf("%.1f s of slate with latency %s: %v", slate, b.mode, a.List("recording_times"))
	}
	sent := firstLength + secondLength + slate
	video, audio := b.tracks()
	slack := 0.1
	if video {
		one, _ := b.first.FPS()
		two, _ := b.second.FPS()
		slack = 2/one + 2/two
		v := have["video"]
		if want := int(math.Round(one*firstLength) + math.Round(two*secondLength)); !filled &&
			(v.count < want-1 || v.count > want+1) || v.count < want/2 {
			t.Errorf("%d frames, %d were sent", v.count, want)
		}
		if filled { // slate begins and ends at a frame
			slack += 0.5
		}
		if !filled && v.gap > 0.1 || math.Abs(v.last-v.first-sent) > slack {
			t.Errorf("picture from %.3f to %.3f s with a hole of %.3f s, sent were %.1f s", v.first, v.last, v.gap,
				sent)
		}
	}
	if audio {
		v := have["audio"]
		if v.gap > 0.1 || math.Abs(v.last-v.first-sent) > slack+0.1 {
			t.Errorf("sound from %.3f to %.3f s with a hole of %.3f s, sent were %.1f s", v.first, v.last, v.gap, sent)
		}
	}
	if len(have) != len(slices.Collect(maps.Keys(have))) || video != (have["video"].count > 0) ||
		audio != (have["audio"].count > 0) {
		t.Errorf("tracks %v, want video %t and audio %t", have, video, audio)
	}
	if d := a.Number("duration"); math.Abs(d-sent) > slack+0.1 {
		t.Errorf("duration %.3f s, sent were %.1f s", d, sent)
	}
	total, content, n := 0.0, 0.0, 0
	for i, r := range a.List("recording_times") {
		total += r.Number("duration")
		if r.Text("type") == "content" {
			content, n = content+r.Number("duration"), n+1
		}
		if _, err := time.Parse(time.RFC3339, r.Text("started_at")); err != nil {
			t.Errorf("recording time %d: %v (%v)", i, r, err)
		}
	}
	if math.Abs(total-a.Number("duration")) > 0.05 || math.Abs(content-firstLength-secondLength) > slack+0.1 || n < 2 ||
		slate == 0 && n > 2 {
		t.Errorf("recording times %v want the encoders' two, together with the slate as long as the asset",
			a.List("recording_times"))
	}
}

// TestEncoders publishes what encoders differ in otherwise.
func TestEncoders(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	for name, tt := range map[string]struct {
		clip   rig.Clip
		breaks int
		but    []string // rules that do not fit
	}{
		"key frames 7 s apart": {clip: rig.Clip{GOP: 7, Flash: true}},
		"50 pictures a second": {clip: rig.Clip{Rate: 50, GOP: 1, Flash: true}},
		"12 pictures a second": {clip: rig.Clip{Rate: 12, GOP: 2, Flash: true}},
		"odd key frames":       {clip: rig.Clip{GOP: 1.7, Flash: true}},
		// ffmpeg's clock has 31 bits only, so it jumps back by half of RTMP's.
		"clock that jumps back": {clip: rig.Clip{GOP: 1, Offset: 1<<31/1000.0 - 9.3, Flash: true}, breaks: 1},
		"mono at 22.05 kHz":     {clip: rig.Clip{GOP: 1, Hertz: 22050, Flash: true, More: []string{"-ac", "1"}}},
		"several slices":        {clip: rig.Clip{GOP: 1, Flash: true, More: []string{"-x264-params", "slices=4"}}},
		// FRAME-RATE is the highest one, the checker measures the average; dates follow presentation, lengths decoding.
		"rate varies": {
			clip: rig.Clip{GOP: 2, More: []string{"-vf", "select='not(eq(mod(n,5),3))'", "-vsync", "vfr"}},
			but:  []string{"frame-rate", "pdt"},
		},
		"sound ahead by 300 ms": {clip: rig.Clip{GOP: 1, More: []string{"-vf", "setpts=PTS+0.3/TB"}}},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			c := tt.clip
			c.Size, c.Kbit, c.Seconds = "320x180", 300, 18
			l := s.CreateLive(t, "low", nil)
			e := s.Publish(t, l.Text("stream_key"), c)
			live := s.PlayURL(l.Text("playback_ids.0.id"))
			s.AwaitPlayable(t, live, patience)
			checkBut(t, "live", tt.but, hlscheck.Options{ // at once, as the encoder does not send for long
				URL: live, Follow: 6 * time.Second, LowLatency: true, MayStall: tt.breaks > 0,
			}, "tfdt", "part-bytes")
			if said, err := e.Wait(t, patience); err != nil {
				t.Errorf("encoder: %v: %s", err, said)
			}
			l = s.AwaitLive(t, l.Text("id"), "over", patience, func(o rig.Object) bool {
				return idle(o) && len(o.Texts("recent_asset_ids")) == 1
			})
			a := s.AwaitAsset(t, l.Texts("recent_asset_ids")[0], "finished", patience, rig.Finished)
			url := s.PlayURL(a.Text("playback_ids.0.id"))
			r := checkBut(t, "finished", tt.but, hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes")
			for _, v := range r.Renditions {
				if v.Discontinuities != tt.breaks {
					t.Errorf("%s has %d discontinuities, want %d", v.URL, v.Discontinuities, tt.breaks)
				}
			}
			if d := a.Number("duration"); math.Abs(d-c.Seconds) > 0.5 {
				t.Errorf("duration %.3f s, sent were %.0f", d, c.Seconds)
			}
			if c.Flash {
				inStep(t, url, 10)
			}
		})
	}
}
