package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"millrace/test/rig"
)

// TestDownloadsOfRecordings asks a live stream for files of its recordings, over a reconnect of an encoder that sends
// the same as before, and of one that sends another size, rate and sample rate: when the broadcast is over, each file
// is of one piece, with every picture, in step.
func TestDownloadsOfRecordings(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		first := rig.Clip{Size: "426x240", Kbit: 300, GOP: 1, Flash: true, Seconds: 5}
		other := rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Flash: true, Seconds: 4, Rate: 25, Hertz: 44100}
		for name, second := range map[string]rig.Clip{"the same again": first, "other parameters": other} {
			t.Run(name, func(t *testing.T) {
				rig.Parallel(t)
				recordingFiles(t, s, first, second)
			})
		}
	})
}

func recordingFiles(t *testing.T, s *rig.Server, first, second rig.Clip) {
	l := s.CreateLive(t, "low", rig.Object{
		"reconnect_window": 60, "new_asset_settings": rig.Object{"playback_policies": []string{"public"}},
	})
	const settings = "/new-asset-settings/static-renditions"
	path := "/video/v1/live-streams/" + l.Text("id")
	if code, o := s.Do(t, http.MethodPut, path+settings, rig.Object{
		"static_renditions": []rig.Object{{"resolution": "highest"}, {"resolution": "audio-only"}},
	}); code != http.StatusOK {
		t.Fatalf("set files: %d %v", code, o)
	}
	if code, o := s.Do(t, http.MethodPatch, path, rig.Object{
		"new_asset_settings": rig.Object{"master_access": "temporary"},
	}); code != http.StatusOK {
		t.Fatalf("set master access: %d %v", code, o)
	}
	for i, c := range []rig.Clip{first, second} {
		encoder := s.Publish(t, l.Text("stream_key"), c)
		if said, err := encoder.Wait(t, patience); err != nil {
			t.Errorf("encoder %d: %v: %s", i, err, said)
		}
		l = s.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	}
	asset := l.Text("active_asset_id")
	a := s.Asset(t, asset)
	base := s.HTTP + "/" + a.Text("playback_ids.0.id") + "/"
	if code, _, _ := s.Get(t, base+"highest.mp4"); code != http.StatusPreconditionFailed {
		t.Errorf("a file before the end: status %d, want 412", code)
	}
	s.Complete(t, l.Text("id"))
	a = s.AwaitAsset(t, asset, "files", patience, func(o rig.Object) bool { return rig.Finished(o) && filesDone(o) })
	if a.Text("master.status") != "ready" {
		t.Errorf("master: %v", a["master"])
	}
	pictures, sounds := 0, 0
	for _, x := range stretches(t, s.PlayURL(a.Text("playback_ids.0.id"))) {
		have := frames(t, x.path)
		pictures, sounds = pictures+len(have["video"]), sounds+len(have["audio"])
	}
	for _, f := range a.List("static_renditions.files") {
		code, _, body := s.Get(t, base+f.Text("name"))
		if code != http.StatusOK || f.Text("status") != "ready" {
			t.Fatalf("%v: status %d", f, code)
		}
		fastStart(t, f.Text("name"), body)
		path := filepath.Join(t.TempDir(), f.Text("name"))
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		have := frames(t, path)
		long := span(have["audio"])
		if d := a.Number("duration"); absolute(int(1000*(long-d))) > 150 {
			t.Errorf("%s: %.3f s of sound, the recording has %.3f", f.Text("name"), long, d)
		}
		if same := first.Hertz == second.Hertz; same && absolute(len(have["audio"])-sounds) > 2 {
			t.Errorf("%s: %d frames of sound, the recording has %d", f.Text("name"), len(have["audio"]), sounds)
		}
		if f.Text("name") != "highest.mp4" {
			continue
		}
		if len(have["video"]) != pictures || int(f.Number("height")) != 240 {
			t.Errorf("%d pictures, the recording has %d: %v", len(have["video"]), pictures, f)
		}
		white, beep := flashesOf(t, []stretch{{path: path}, {path: path, audio: true}})
		apart(t, white, beep, 6, 0, true)
	}
	have := events(t, s, asset)
	if want := []string{
		"video.asset.created", "video.asset.live_stream_completed", "video.asset.master.preparing",
		"video.asset.master.ready",
	}; !inOrder(have, want) {
		t.Errorf("events %v, want %v", have, want)
	}
	file := a.List("static_renditions.files")[0].Text("id")
	if have := events(t, s, file); len(have) != 2 || have[0] != "video.asset.static_rendition.created" ||
		have[1] != "video.asset.static_rendition.ready" {
		t.Errorf("events of a file: %v", have)
	}
}
