package browser_test

import (
	"slices"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/conform"
	"millrace/test/rig"
)

// latency is how far behind the encoder a viewer may be, in seconds, by latency mode.
var latency = map[string]float64{"low": 4, "reduced": 12, "standard": 25}

// TestService watches a stream of each latency mode in a real browser.
func TestService(t *testing.T) {
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	for _, mode := range []string{"low", "reduced", "standard"} {
		t.Run(mode, func(t *testing.T) {
			live := s.CreateLive(t, mode, rig.Object{"reconnect_window": 0})
			p := b.Open(t, s.WatchURL(conform.PlaybackID(t, live)))
			p.Until(t, "says that it waits", 10*time.Second, func(v browser.Probe) bool { return v.State == "waiting" })
			e := s.Publish(t, live.Text("stream_key"), rig.Clip{})
			p.Until(t, "first picture", 40*time.Second, func(v browser.Probe) bool { return v.Frames > 0 && v.Time > 0 })
			first := time.Since(e.Began)
			v := p.Plays(t, 6, 30*time.Second)
			behind := float64(v.Now-v.PlayingDate) / 1000
			t.Logf("first picture %v after the encoder's start, %.2f s behind, %d stalls, errors %v", first.Round(time.Millisecond), behind, v.Stalls, v.Errors)
			if !v.Live || v.AudioBytes == 0 || v.Width != 640 {
				t.Errorf("plays wrongly: %+v", v)
			}
			if behind < 0 || behind > latency[mode] {
				t.Errorf("%.2f s behind, want at most %.0f", behind, latency[mode])
			}
			p.StaysHome(t, s.HTTP)
			p.Screenshot(t, mode)
			e.Stop()
			p.Close(t)
		})
	}
}

// TestServiceReconnect keeps watching while the encoder drops and comes back, then rewinds the recording.
func TestServiceReconnect(t *testing.T) {
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	live := s.CreateLive(t, "low", rig.Object{"reconnect_window": 20})
	p := b.Open(t, s.WatchURL(conform.PlaybackID(t, live)))
	first := s.Publish(t, live.Text("stream_key"), rig.Clip{})
	p.Plays(t, 4, 40*time.Second)
	first.Kill()
	rig.Pause(3 * time.Second)
	second := s.Publish(t, live.Text("stream_key"), rig.Clip{Size: "480x270"})
	p.Until(t, "the new encoder's picture", 30*time.Second, func(v browser.Probe) bool { return v.Width == 480 })
	v := p.Plays(t, 4, 20*time.Second)
	t.Logf("after the reconnect: %d restarts, %d stalls, %.2f s behind", v.Restarts, v.Stalls, float64(v.Now-v.PlayingDate)/1000)
	if v.Restarts > 0 {
		t.Errorf("the player had to start anew %d times: %v", v.Restarts, v.Errors)
	}
	p.Close(t)

	asset := s.Asset(t, s.Live(t, live.Text("id")).Text("active_asset_id"))
	r := b.Open(t, s.WatchURL(conform.PlaybackID(t, asset)))
	r.Plays(t, 2, 30*time.Second)
	r.Seek(t, 1)
	v = r.Plays(t, 2, 20*time.Second)
	if v.Time > 10 || v.Width != 640 {
		t.Errorf("rewound to 1 s, it shows %.1f s of %d pixels, buffered %v, errors %v", v.Time, v.Width, v.Buffered, v.Errors)
	}
	second.Stop()
}

// TestServiceAsset plays a recording with its subtitles shown and its other sound.
func TestServiceAsset(t *testing.T) {
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	live := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
	e := s.Publish(t, live.Text("stream_key"), rig.Clip{})
	s.AwaitPlayable(t, s.PlayURL(conform.PlaybackID(t, live)), 30*time.Second)
	id := s.Live(t, live.Text("id")).Text("active_asset_id")
	rig.Pause(10 * time.Second)
	e.Stop()
	asset := s.AwaitAsset(t, id, "finished", 40*time.Second, rig.Finished)
	files := rig.Files(t, map[string]string{"de.m4a": rig.File(t, "de.m4a", rig.Clip{Seconds: 10, NoVideo: true}), "en.srt": subtitles})
	s.AddTrack(t, id, rig.Object{"url": files + "/en.srt", "type": "text", "text_type": "subtitles", "language_code": "en"})
	s.AddTrack(t, id, rig.Object{"url": files + "/de.m4a", "type": "audio", "language_code": "de"})
	s.AwaitAsset(t, id, "with tracks", 60*time.Second, func(o rig.Object) bool {
		return !slices.ContainsFunc(o.List("tracks"), func(track rig.Object) bool { return track.Text("status") != "ready" }) && len(o.List("tracks")) == 4
	})

	p := b.Open(t, s.WatchURL(conform.PlaybackID(t, asset)))
	v := p.Plays(t, 0.5, 30*time.Second)
	if v.Time > 5 || v.Live {
		t.Errorf("a finished asset starts at %.1f s, live %t", v.Time, v.Live)
	}
	p.Select(t, "#subtitles", "English")
	p.Until(t, "subtitle", 15*time.Second, func(v browser.Probe) bool {
		return slices.ContainsFunc(v.TextTracks, func(track browser.TextTrack) bool {
			return track.Mode == "showing" && len(track.Active) == 1
		})
	})
	p.Select(t, "#audio", "German")
	p.Until(t, "other sound", 10*time.Second, func(v browser.Probe) bool { return len(v.AudioTracks) == 2 && v.AudioTracks[v.AudioTrack] == "German" })
	before := p.Probe(t)
	v = p.Plays(t, 1, 15*time.Second)
	if v.AudioBytes <= before.AudioBytes {
		t.Error("no sound is decoded after the switch")
	}
	p.Screenshot(t, "tracks")
	p.StaysHome(t, s.HTTP)
}

const subtitles = "1\r\n00:00:01,000 --> 00:00:03,000\r\nfirst line\r\n\r\n2\r\n00:00:04,000 --> 00:00:09,000\r\nsecond line\r\n"
