// Package sources publishes what encoders differ in, and what must be refused.
package sources

import (
	"testing"
	"time"

	"millrace/test/conform"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

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
	s.AwaitPlayable(t, s.PlayURL(conform.PlaybackID(t, live)), 30*time.Second)
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
			url := s.PlayURL(conform.PlaybackID(t, live))
			e := s.Publish(t, live.Text("stream_key"), c)
			s.AwaitPlayable(t, url, 40*time.Second)
			assetID := s.Live(t, live.Text("id")).Text("active_asset_id")
			conform.Check(t, hlscheck.Options{URL: url, Follow: 9 * time.Second, LowLatency: true})
			e.Stop()
			asset := s.AwaitAsset(t, assetID, "finished", 40*time.Second, rig.Finished)
			conform.Finished(t, s.PlayURL(conform.PlaybackID(t, asset)), asset.Number("duration"))
		})
	}
}
