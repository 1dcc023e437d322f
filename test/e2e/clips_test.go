package e2e

import (
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// clipOf asks for a clip and waits until it is ready.
func clipOf(t *testing.T, s *rig.Server, source string, from, to float64) rig.Object {
	t.Helper()
	began := time.Now()
	code, body := s.Do(t, http.MethodPost, "/video/v1/assets", rig.Object{
		"inputs":            []rig.Object{{"url": "mux://assets/" + source, "start_time": from, "end_time": to}},
		"playback_policies": []string{"public"},
	})
	if code != http.StatusCreated {
		t.Fatalf("clip: %d %v", code, body)
	}
	a := s.AwaitAsset(t, body.Text("data.id"), "ready", patience, rig.Ready)
	s.AwaitPlayable(t, s.PlayURL(a.Text("playback_ids.0.id")), patience)
	t.Logf("a clip of %.1f s is playable after %v", to-from, time.Since(began).Round(10*time.Millisecond))
	if d := a.Number("duration"); math.Abs(d-(to-from)) > 0.034 {
		t.Errorf("the clip lasts %.4f s, want %.4f", d, to-from)
	}
	return a
}

// TestClips cuts clips of an upload, of a broadcast that goes on, and of a clip; each keeps every rule in all its
// renditions, rungs and trick play included, and outlives its source.
func TestClips(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		l := s.CreateLive(t, "low", nil)
		e := s.Publish(t, l.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 2})
		file := rig.File(t, "a.mp4", rig.Clip{Size: "640x480", Kbit: 500, GOP: 2, Seconds: 11})
		source := s.CreateAsset(t, rig.Files(t, map[string]string{"a.mp4": file})+"/a.mp4")
		s.AwaitAsset(t, source.Text("id"), "ready", patience, rig.Ready)
		a := clipOf(t, s, source.Text("id"), 1.5, 9.7)
		b := clipOf(t, s, a.Text("id"), 1.1, 6.4)
		live := s.AwaitLive(t, l.Text("id"), "an asset", patience, func(o rig.Object) bool {
			return o.Text("active_asset_id") != ""
		}).Text("active_asset_id")
		s.AwaitAsset(t, live, "seven seconds", patience, func(o rig.Object) bool { return o.Number("duration") > 7 })
		c := clipOf(t, s, live, 1.3, 5.6)
		e.Stop()
		for _, x := range []string{a.Text("id"), source.Text("id")} {
			if code, body := s.Do(t, http.MethodDelete, "/video/v1/assets/"+x, nil); code != http.StatusNoContent {
				t.Fatalf("delete: %d %v", code, body)
			}
		}
		decoder, _ := exec.LookPath("ffmpeg")
		check(t, "clip of a clip",
			hlscheck.Options{URL: s.PlayURL(b.Text("playback_ids.0.id")) + "?roku_trick_play=true", Decoder: decoder},
			"image-playlist", "image-tiles", "tfdt", "decodes")
		check(t, "clip of what is live",
			hlscheck.Options{URL: s.PlayURL(c.Text("playback_ids.0.id")), Decoder: decoder}, "tfdt", "decodes")
		picture(t, s.HTTP+"/"+b.Text("playback_ids.0.id")+"/thumbnail.jpg?time=0", "jpeg", 640, 480)
	})
}

// TestConversionIsTakenUpAgain kills the encoder of a file that is converted, then the whole server: the asset is whole
// in the end.
func TestConversionIsTakenUpAgain(t *testing.T) {
	rig.Parallel(t)
	ffmpeg, faster := slowly(t)
	s := rig.Start(t, rig.Options{Env: []string{"PATH=" + ffmpeg + string(os.PathListSeparator) + os.Getenv("PATH")}})
	file := rig.File(t, "a.mkv", rig.Clip{Size: "960x540", Kbit: 2000, GOP: 2, Seconds: 15, Video: "mpeg4"})
	a := s.CreateAsset(t, rig.Files(t, map[string]string{"a.mkv": file})+"/a.mkv")
	encoder := func(but int) (pid int) {
		deadline := time.Now().Add(patience)
		for time.Now().Before(deadline) {
			for pid, line := range s.Children(t) {
				if pid != but && strings.Contains(line, "libx264") && strings.Contains(line, "matroska") {
					return pid
				}
			}
			rig.Pause(20 * time.Millisecond)
		}
		t.Fatalf("nothing is encoded: %v", s.Asset(t, a.Text("id")))
		return 0
	}
	first := encoder(0)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	encoder(first) // it is tried again
	s.Kill(t)
	faster()
	s.Run(t)
	a = s.AwaitAsset(t, a.Text("id"), "an end", 2*patience, func(o rig.Object) bool {
		return o.Text("status") != "preparing" && o.Text("progress.state") != "transcoding"
	})
	if !rig.Ready(a) || math.Abs(a.Number("duration")-15) > 0.2 {
		t.Errorf("the asset is %s and lasts %.3f s: %v", a.Text("status"), a.Number("duration"), a["errors"])
	}
}

// slowly is a folder with an ffmpeg that converts no faster than a film plays, so that it is still at it when it is
// looked for; faster has those that begin from then on not wait.
func slowly(t *testing.T) (dir string, faster func()) {
	t.Helper()
	dir = t.TempDir()
	slow := filepath.Join(dir, "slow")
	script := "#!/bin/sh\ncase \"$*\" in *matroska*libx264*) [ -e '" + slow + "' ] && exec '" + rig.FFmpeg(t) +
		"' -re \"$@\";; esac\n" +
		"exec '" + rig.FFmpeg(t) + "' \"$@\"\n"
	for path, text := range map[string]string{slow: "", filepath.Join(dir, "ffmpeg"): script} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func() {
		if err := os.Remove(slow); err != nil {
			t.Fatal(err)
		}
	}
}
