package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// conform watches a playlist and fails the test for each finding.
func conform(t *testing.T, o hlscheck.Options) *hlscheck.Report {
	t.Helper()
	if o.Decoder == "" {
		o.Decoder = rig.FFmpeg(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), o.Follow+3*time.Minute)
	defer cancel()
	r, err := hlscheck.Check(ctx, o)
	if err != nil {
		t.Fatalf("check %s: %v\n%s", o.URL, err, r)
	}
	for _, f := range r.Findings {
		t.Errorf("%s", f)
	}
	if r.Left > 0 {
		t.Errorf("… and %d more of the same", r.Left)
	}
	for _, v := range r.Renditions {
		t.Logf("%s: %+v", o.URL, v)
	}
	return r
}

// mustApply fails the test when a rule that this case is about was never applied.
func mustApply(t *testing.T, r *hlscheck.Report, rules ...string) {
	t.Helper()
	if u := r.Unchecked(rules...); len(u) > 0 {
		t.Errorf("rules never applied: %v", u)
	}
}

func playbackID(t *testing.T, o rig.Object) string {
	t.Helper()
	id := o.Text("playback_ids.0.id")
	if id == "" {
		t.Fatalf("no playback ID: %v", o)
	}
	return id
}

// segmentSeconds is the target duration by latency mode with key frames each two seconds.
var segmentSeconds = map[string]int{"low": 2, "reduced": 2, "standard": 4}

// TestLive takes a stream of each latency mode from its creation to the finished recording and holds each playlist on the way
// against the specification.
func TestLive(t *testing.T) {
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		for _, mode := range []string{"low", "reduced", "standard"} {
			t.Run(mode, func(t *testing.T) { liveToAsset(t, s, mode) })
		}
	})
}

func liveToAsset(t *testing.T, s *rig.Server, mode string) {
	live := s.CreateLive(t, mode, rig.Object{"reconnect_window": 0})
	url := s.PlayURL(playbackID(t, live))
	if code, _, _ := s.Get(t, url); code != http.StatusPreconditionFailed {
		t.Errorf("status %d before anything was published, want 412", code)
	}
	e := s.Publish(t, live.Text("stream_key"), rig.Clip{})
	took := s.AwaitPlayable(t, url, 30*time.Second)
	t.Logf("playable %v after the encoder's start", took)

	live = s.AwaitLive(t, live.Text("id"), "active", 10*time.Second, func(o rig.Object) bool { return o.Text("status") == "active" })
	assetID := live.Text("active_asset_id")
	if assetID == "" {
		t.Fatalf("an active stream without active_asset_id: %v", live)
	}
	r := conform(t, hlscheck.Options{URL: url, Follow: 16 * time.Second, LowLatency: mode == "low"})
	mustApply(t, r, "segment-sync", "tfdt", "align-start", "pdt", "constants", "media-sequence", "decodes")
	if mode == "low" {
		mustApply(t, r, "part-bytes", "part-target", "preload-hint", "blocking-reload", "report", "delta", "far-future", "independent-part")
	}
	for _, v := range r.Renditions {
		if v.TargetDuration != segmentSeconds[mode] {
			t.Errorf("%s: target duration %d, want %d", v.URL, v.TargetDuration, segmentSeconds[mode])
		}
		if mode == "low" && (v.PartTarget <= 0 || v.PartTarget > 0.4) && v.Kind != "text" {
			t.Errorf("%s: PART-TARGET %.3f s", v.URL, v.PartTarget)
		}
	}

	asset := s.AwaitAsset(t, assetID, "playable while live", 20*time.Second, rig.Ready)
	if !asset.Flag("is_live") {
		t.Errorf("is_live is false during the broadcast: %v", asset)
	}
	assetURL := s.PlayURL(playbackID(t, asset))
	r = conform(t, hlscheck.Options{URL: assetURL, Follow: 6 * time.Second})
	for _, v := range r.Renditions {
		if v.First != 0 || v.Ended {
			t.Errorf("a recording in progress begins at segment %d, ended %t", v.First, v.Ended)
		}
	}

	published := time.Since(e.Began).Seconds()
	e.Stop()
	s.AwaitLive(t, live.Text("id"), "idle", 30*time.Second, func(o rig.Object) bool { return o.Text("status") == "idle" && o.Text("active_asset_id") == "" })
	asset = s.AwaitAsset(t, assetID, "finished", 30*time.Second, rig.Finished)
	if d := asset.Number("duration"); d < published-4 || d > published+1 {
		t.Errorf("the recording lasts %.2f s, the encoder ran %.2f s", d, published)
	}
	finished(t, s, assetURL, asset.Number("duration"))
	if code, _, _ := s.Get(t, url); code != http.StatusPreconditionFailed {
		t.Errorf("status %d after the end, want 412", code)
	}
	if live = s.Live(t, live.Text("id")); len(live.Texts("recent_asset_ids")) != 1 || live.Texts("recent_asset_ids")[0] != assetID {
		t.Errorf("recent_asset_ids %v, want %s", live.Texts("recent_asset_ids"), assetID)
	}
	if log := s.Log(); strings.Contains(log, live.Text("stream_key")) || strings.Contains(log, s.Secrets()[0]) {
		t.Error("the log shows a secret")
	}
}

// finished holds a finished asset against the specification and against its duration.
func finished(t *testing.T, s *rig.Server, url string, duration float64) {
	t.Helper()
	r := conform(t, hlscheck.Options{URL: url})
	mustApply(t, r, "average-bandwidth", "bandwidth", "align-ends", "segment-duration", "ranges")
	for _, v := range r.Renditions {
		if !v.Ended || v.First != 0 {
			t.Errorf("%s: begins at segment %d, ended %t", v.URL, v.First, v.Ended)
		}
		if v.Seconds < duration-0.5 || v.Seconds > duration+0.5 {
			t.Errorf("%s: segments last %.2f s, the asset %.2f s", v.URL, v.Seconds, duration)
		}
	}
	_, _, text := s.Get(t, url)
	if !strings.Contains(string(text), "#EXT-X-STREAM-INF") {
		t.Errorf("no variant in %s", text)
	}
	// The address without the ending answers as well.
	if code, _, other := s.Get(t, strings.TrimSuffix(url, ".m3u8")); code != http.StatusOK || string(other) != string(text) {
		t.Errorf("without .m3u8: status %d, another body", code)
	}
}

// TestReconnect drops the encoder inside and outside the reconnect window.
func TestReconnect(t *testing.T) {
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		live := s.CreateLive(t, "low", rig.Object{"reconnect_window": 8})
		id, url := live.Text("id"), s.PlayURL(playbackID(t, live))
		first := s.Publish(t, live.Text("stream_key"), rig.Clip{})
		s.AwaitPlayable(t, url, 30*time.Second)
		assetID := s.AwaitLive(t, id, "active", 10*time.Second, func(o rig.Object) bool { return o.Text("status") == "active" }).Text("active_asset_id")

		checked := make(chan *hlscheck.Report, 1)
		go func() {
			r, err := hlscheck.Check(t.Context(), hlscheck.Options{URL: url, Follow: 20 * time.Second, LowLatency: true, MayStall: true})
			if err != nil {
				t.Errorf("check over the break: %v", err)
			}
			checked <- r
		}()
		rig.Pause(5 * time.Second)
		first.Kill()
		rig.Pause(3 * time.Second)
		// Another picture size: other codec parameters, so another init segment.
		second := s.Publish(t, live.Text("stream_key"), rig.Clip{Size: "480x270", NoB: true, Offset: 1000})
		r := <-checked
		if r == nil {
			t.FailNow()
		}
		for _, f := range r.Findings {
			t.Errorf("%s", f)
		}
		mustApply(t, r, "tfdt-break", "discontinuity-map")
		for _, v := range r.Renditions {
			if v.Discontinuities != 1 {
				t.Errorf("%s: %d discontinuities, want 1", v.URL, v.Discontinuities)
			}
		}
		if now := s.Live(t, id); now.Text("active_asset_id") != assetID {
			t.Errorf("asset %s after a reconnect inside the window, want %s", now.Text("active_asset_id"), assetID)
		}
		second.Stop()
		asset := s.AwaitAsset(t, assetID, "finished", 40*time.Second, rig.Finished)
		finished(t, s, s.PlayURL(playbackID(t, asset)), asset.Number("duration"))
		if n := len(asset.List("recording_times")); n != 2 {
			t.Errorf("%d recording_times, want one for each connection: %v", n, asset["recording_times"])
		}

		third := s.Publish(t, live.Text("stream_key"), rig.Clip{})
		s.AwaitPlayable(t, url, 30*time.Second)
		if now := s.Live(t, id); now.Text("active_asset_id") == assetID || now.Text("active_asset_id") == "" {
			t.Errorf("asset %q after a reconnect outside the window, want a new one", now.Text("active_asset_id"))
		}
		third.Stop()
	})
}

// TestRefused shows an encoder why it may not publish.
func TestRefused(t *testing.T) {
	s := rig.Start(t, rig.Options{})
	live := s.CreateLive(t, "low", nil)
	refused := func(name, key string) {
		t.Helper()
		e := s.Publish(t, key, rig.Clip{Seconds: 20})
		if said, err := e.Wait(t, 10*time.Second); err == nil {
			t.Errorf("%s was taken: %s", name, said)
		}
	}
	refused("an unknown key", "no-such-key")
	if code, o := s.Do(t, "PUT", "/video/v1/live-streams/"+live.Text("id")+"/disable", nil); code/100 != 2 {
		t.Fatalf("disable: status %d: %v", code, o)
	}
	refused("a disabled stream", live.Text("stream_key"))
	if code, o := s.Do(t, "PUT", "/video/v1/live-streams/"+live.Text("id")+"/enable", nil); code/100 != 2 {
		t.Fatalf("enable: status %d: %v", code, o)
	}
	s.Publish(t, live.Text("stream_key"), rig.Clip{})
	s.AwaitPlayable(t, s.PlayURL(playbackID(t, live)), 30*time.Second)
	refused("a second encoder", live.Text("stream_key"))
}

// TestSources publishes what encoders differ in.
func TestSources(t *testing.T) {
	s := rig.Start(t, rig.Options{})
	for name, c := range map[string]rig.Clip{
		"no B-frames":   {NoB: true},
		"video only":    {NoAudio: true},
		"audio only":    {NoVideo: true},
		"long GOP":      {GOP: 7},
		"25 fps":        {Rate: 25},
		"late start":    {Offset: 3000},
		"50 fps, 1 s":   {Rate: 50, GOP: 1},
		"odd frame GOP": {Rate: 30, GOP: 1.7},
	} {
		t.Run(name, func(t *testing.T) {
			live := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
			url := s.PlayURL(playbackID(t, live))
			e := s.Publish(t, live.Text("stream_key"), c)
			s.AwaitPlayable(t, url, 40*time.Second)
			assetID := s.Live(t, live.Text("id")).Text("active_asset_id")
			conform(t, hlscheck.Options{URL: url, Follow: 9 * time.Second, LowLatency: true})
			e.Stop()
			asset := s.AwaitAsset(t, assetID, "finished", 40*time.Second, rig.Finished)
			finished(t, s, s.PlayURL(playbackID(t, asset)), asset.Number("duration"))
		})
	}
}
