package e2e

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// content makes a media file and reads it.
func content(t *testing.T, name string, c rig.Clip) []byte {
	t.Helper()
	b, err := os.ReadFile(rig.File(t, name, c))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCrashOfJobs kills the server in the middle of downloads and in the middle of what comes after them: the work is
// taken up again and comes to its end.
func TestCrashOfJobs(t *testing.T) {
	rig.Parallel(t)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		random := dice(t)
		clip := small()
		clip.Seconds = 20
		files := map[string]*slowFile{}
		mux := http.NewServeMux()
		for _, name := range []string{"film.mp4", "film.ts", "film.mkv", "sound.mp3"} {
			c := clip
			if name == "sound.mp3" {
				c.NoVideo, c.Audio = true, "libmp3lame"
			}
			files[name] = newSlowFile(content(t, name, c))
			mux.Handle("/"+name, files[name])
		}
		files["lines.srt"] = newSlowFile([]byte(numbered(20)))
		mux.Handle("/lines.srt", files["lines.srt"])
		origin := httptest.NewServer(mux)
		t.Cleanup(origin.Close)
		plain := rig.Files(t, map[string]string{"film.mp4": string(files["film.mp4"].content)})

		s := rig.Start(t, rig.Options{Pair: p, Args: []string{"--worker-concurrency", "6"}})
		finished := s.CreateAsset(t, plain+"/film.mp4").Text("id")
		s.AwaitAsset(t, finished, "ready", patience, rig.Ready)
		held := []string{"film.mp4", "film.ts", "film.mkv"}
		var assets []string
		for _, name := range held {
			assets = append(assets, s.CreateAsset(t, origin.URL+"/"+name).Text("id"))
		}
		s.AddTrack(t, finished, rig.Object{"url": origin.URL + "/sound.mp3", "type": "audio", "language_code": "de"})
		s.AddTrack(t, finished, rig.Object{
			"url": origin.URL + "/lines.srt", "type": "text", "text_type": "subtitles", "language_code": "en",
		})
		for name, f := range files {
			asked(t, f, name)
		}
		s.Kill(t)
		s.Run(t)
		again := time.Now()
		for name, f := range files {
			asked(t, f, name)
			t.Logf("%s was asked for again after %v", name, time.Since(again).Round(time.Millisecond))
			close(f.release)
		}
		for range 3 { // what comes after a download is short: the moments are many
			for _, name := range held {
				assets = append(assets, s.CreateAsset(t, origin.URL+"/"+name).Text("id"))
			}
			s.AddTrack(t, finished, rig.Object{
				"url": origin.URL + "/sound.mp3", "type": "audio", "language_code": "de", "name": time.Now().String(),
			})
			rig.Pause(time.Duration(random.IntN(1500)) * time.Millisecond)
			s.Kill(t)
			s.Run(t)
		}
		awaitIdle(t, s)
		for _, id := range append(assets, finished) {
			a := s.Asset(t, id)
			for _, track := range a.List("tracks") {
				if track.Text("status") != "ready" {
					t.Errorf("track after the crashes: %v", track)
				}
			}
			if d := a.Number("duration"); !rig.Ready(a) || d < 19.9 || d > 20.2 {
				t.Errorf("asset after the crashes: %v", a)
				continue
			}
			check(t, "after the crashes", hlscheck.Options{URL: s.PlayURL(a.Text("playback_ids.0.id"))}, "tfdt")
		}
	})
}

func asked(t *testing.T, f *slowFile, name string) {
	t.Helper()
	select {
	case <-f.asked:
	case <-time.After(patience):
		t.Fatalf("nobody asked for %s within %v", name, patience)
	}
}

// TestDrain stops the server in the middle of a broadcast as a deployment does: nothing that was shown is lost, and the
// encoder that comes back within the window goes on with the same recording.
func TestDrain(t *testing.T) {
	rig.Parallel(t)
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		rig.Parallel(t)
		s := rig.Start(t, rig.Options{Pair: p})
		l := s.CreateLive(t, "standard", rig.Object{"reconnect_window": 120}) // without slate while its encoder is away
		brief := s.CreateLive(t, "low", rig.Object{"reconnect_window": 0})
		clip := small()
		clip.GOP = 2
		s.Publish(t, l.Text("stream_key"), clip)
		s.Publish(t, brief.Text("stream_key"), clip)
		a, b := playing(t, s, l), playing(t, s, brief)
		rig.Pause(time.Second) // into a segment
		shown := map[string]float64{a.Text("id"): listed(t, s, a), b.Text("id"): listed(t, s, b)}
		seen := &sightings{kept: map[string]sighting{}}
		for _, x := range []rig.Object{a, b} {
			for _, m := range mediaPlaylists(t, s.PlayURL(x.Text("playback_ids.0.id"))) {
				seen.read(t.Context(), m.url, m.text)
			}
		}
		s.Stop(t)
		s.Run(t)
		seen.still(t, s, "after the restart")
		for _, x := range []rig.Object{a, b} {
			if d := listed(t, s, x); d < shown[x.Text("id")]-0.001 {
				t.Errorf("%.3f s are listed after the restart, %.3f s had been", d, shown[x.Text("id")])
			}
		}
		s.AwaitAsset(t, b.Text("id"), "finished", patience, rig.Finished)
		second := s.Publish(t, l.Text("stream_key"), clip)
		s.AwaitPlayable(t, s.PlayURL(l.Text("playback_ids.0.id")), patience)
		for end := time.Now().Add(patience); listed(t, s, a) < shown[a.Text("id")]+
			4; rig.Pause(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the recording does not go on within %v", patience)
			}
		}
		second.Stop()
		s.Complete(t, l.Text("id"))
		s.AwaitAsset(t, a.Text("id"), "finished", patience, rig.Finished)
		r := check(t, "after the restart", hlscheck.Options{
			URL: s.PlayURL(a.Text("playback_ids.0.id")), Decoder: rig.FFmpeg(t),
		}, "tfdt", "decodes")
		for _, v := range r.Renditions {
			if v.Discontinuities != 1 {
				t.Errorf("%s has %d discontinuities, want 1", v.URL, v.Discontinuities)
			}
		}
		awaitIdle(t, s)
		if alarms := alarms(s); len(alarms) > 0 {
			t.Errorf("log: %s", strings.Join(alarms, "\n"))
		}
	})
}

// listed is how many seconds of its picture an asset's playlist shows, parts of the open segment included.
func listed(t *testing.T, s *rig.Server, a rig.Object) float64 {
	t.Helper()
	for _, m := range mediaPlaylists(t, s.PlayURL(a.Text("playback_ids.0.id"))) {
		if !m.audio {
			return m.seconds(t)
		}
	}
	t.Fatal("no video")
	return 0
}

// TestSecondSignal ends the server at once while it waits for a request that hangs.
func TestSecondSignal(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{Args: []string{"--shutdown-timeout", "10m"}})
	dial := func() (net.Conn, error) { return (&net.Dialer{}).DialContext(t.Context(), "tcp", host(t, s.HTTP)) }
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = c.Write([]byte("POST /video/v1/assets HTTP/1.1\r\nHost: x\r\nAuthorization: " + s.Authorization() +
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	// The body is asked for when the request's handler waits for it (RFC 9110 section 10.1.1).
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
		t.Fatalf("the server says %q, %v", line, err)
	}
	s.Signal(t, syscall.SIGTERM)
	// it has taken the first signal when nobody is let in any more
	for end := time.Now().Add(patience); ; rig.Pause(50 * time.Millisecond) {
		other, err := dial()
		if err != nil {
			break
		}
		_ = other.Close()
		if time.Now().After(end) {
			t.Fatal("the server goes on after a signal")
		}
	}
	if state := s.Ended(time.Second); state != nil {
		t.Fatalf("the server did not wait for the request: %v", state)
	}
	s.Signal(t, syscall.SIGTERM)
	state := s.Ended(time.Minute)
	if state == nil {
		t.Fatal("the server goes on after a second signal")
	}
	if w, ok := state.Sys().(syscall.WaitStatus); !ok || !w.Signaled() && state.ExitCode() == 0 {
		t.Errorf("ended by the second signal with %v", state)
	}
}
