package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

var metricsAddress = regexp.MustCompile(`"listener":"metrics","address":"([^"]+)"`)

// TestHealth reads what the service measures of real encoders, over the API and as metrics.
func TestHealth(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := &stage{Server: rig.Start(t, rig.Options{Pair: p, Args: []string{"--metrics-addr", "127.0.0.1:0"}})}
		t.Cleanup(func() { cleanLog(t, s.Server, s.keys...) })
		for name, test := range map[string]func(*testing.T, *stage){
			"figures": figures, "no sound and rare key frames": unwell, "audio only": onlySound,
		} {
			t.Run(name, func(t *testing.T) {
				rig.Parallel(t)
				test(t, s)
			})
		}
	})
}

// health waits for a response of GET …/health that ok likes.
func health(t *testing.T, s *rig.Server, l rig.Object, what string, ok func(rig.Object) bool) rig.Object {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		code, o := s.Do(t, http.MethodGet, "/video/v1/live-streams/"+l.Text("id")+"/health", nil)
		h, _ := o["data"].(map[string]any)
		if code == http.StatusOK && ok(h) {
			return h
		}
		if time.Now().After(end) {
			t.Fatalf("%s: status %d: %v\nmetrics:\n%s", what, code, o, metrics(t, s))
		}
		rig.Pause(200 * time.Millisecond)
	}
}

func metrics(t *testing.T, s *rig.Server) string {
	t.Helper()
	found := metricsAddress.FindStringSubmatch(s.Log())
	if found == nil {
		t.Fatal("the metrics' address is not in the log")
	}
	code, _, body := s.Get(t, "http://"+found[1]+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("metrics: status %d", code)
	}
	return string(body)
}

func figures(t *testing.T, s *stage) {
	l := s.stream(t, "standard", rig.Object{"reconnect_window": 5})
	if h := health(t, s.Server, l, "before", func(h rig.Object) bool {
		return h.Text("status") == "idle"
	}); h["encoder"] != nil {
		t.Errorf("before: %v", h)
	}
	c := small()
	c.GOP = 2
	e := s.Publish(t, l.Text("stream_key"), c)
	within := func(n, from, to float64) bool { return n >= from && n <= to }
	// the first samples are not like that where an encoder begins slowly
	h := health(t, s.Server, l, "while it sends", func(h rig.Object) bool {
		return h.Text("status") == "live" && slices.ContainsFunc(h.List("samples"), func(x rig.Object) bool {
			return within(x.Number("video.frame_rate"), 20, 40) && within(x.Number("keyframe_interval"), 1.9, 2.1) &&
				x.Number("video.bitrate") >= 50e3 && x.Number("audio.bitrate") >= 10e3
		})
	})
	if h.Text("encoder.protocol") != "rtmp" ||
		!strings.HasPrefix(h.Text("encoder.remote_address"), "127.0.0.1:") ||
		!strings.HasPrefix(h.Text("encoder.name"), "Lavf") {
		t.Errorf("health: %v", h)
	}
	text := metrics(t, s.Server)
	for _, want := range []string{
		`millrace_ingest_bitrate{live_stream_id="` + l.Text("id") + `",track="video"}`, `millrace_ingest_frame_rate{`,
		"millrace_encoders{protocol=\"rtmp\"}",
		"millrace_broadcasts ", "go_goroutines ", "process_resident_memory_bytes ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no metric %s", want)
		}
	}
	for _, never := range append(s.Secrets(), l.Text("stream_key"), h.Text("encoder.remote_address")) {
		if strings.Contains(text, never) {
			t.Errorf("the metrics show %q", never)
		}
	}
	if code, _, _ := s.Get(t, s.HTTP+"/metrics"); code == http.StatusOK {
		t.Error("viewers may read the metrics")
	}
	e.Stop()
	h = health(t, s.Server, l, "afterwards", func(h rig.Object) bool { return h.Text("status") == "idle" })
	if len(h.List("samples")) != 0 || h.Text("encoder.disconnected_at") == "" ||
		h.Text("encoder.disconnect_reason") == "" {
		t.Errorf("afterwards: %v", h)
	}
	if code, _ := s.Do(t, http.MethodGet, "/video/v1/live-streams/absent/health", nil); code != http.StatusNotFound {
		t.Errorf("of an unknown stream: status %d", code)
	}
}

func unwell(t *testing.T, s *stage) {
	l := s.stream(t, "standard", nil)
	c := small()
	c.GOP, c.NoAudio = 8, true
	s.Publish(t, l.Text("stream_key"), c)
	has := func(h rig.Object, kind string) bool {
		for _, w := range h.List("warnings") {
			if w.Text("type") == kind && strings.HasSuffix(w.Text("message"), ".") {
				return true
			}
		}
		return false
	}
	health(t, s.Server, l, "warnings", func(h rig.Object) bool {
		return has(h, "audio_missing") && has(h, "keyframes_far_apart")
	})
	for _, kind := range []string{"audio_missing", "keyframes_far_apart"} {
		s.AwaitLog(t, patience, `"msg":"ingest warning"`, l.Text("id"), kind)
		if want := `millrace_ingest_warning{live_stream_id="` + l.Text("id") + `",type="` + kind +
			`"} 1`; !strings.Contains(metrics(t, s.Server), want) {
			t.Errorf("no metric %s", want)
		}
	}
}

// onlySound drops the video before anything sees it: playlists, tracks, facts and health.
func onlySound(t *testing.T, s *stage) {
	l := s.stream(t, "low", rig.Object{"audio_only": true})
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	url := s.PlayURL(l.Text("playback_ids.0.id"))
	_, _, body := s.Get(t, url)
	if text := string(body); !strings.Contains(text, `CODECS="mp4a.40.2"`) || strings.Contains(text, "RESOLUTION") ||
		strings.Contains(text, "avc1") {
		t.Errorf("multivariant playlist:\n%s", text)
	}
	h := health(t, s.Server, l, "sample", func(h rig.Object) bool { return len(h.List("samples")) >= 1 })
	if h.Number("encoder.video_frames") != 0 || h.Number("samples.0.video.bitrate") != 0 ||
		h.Number("encoder.audio_frames") == 0 {
		t.Errorf("health: %v", h)
	}
	e.Stop()
	a = s.AwaitAsset(t, a.Text("id"), "finished", patience, rig.Finished)
	if tracks := a.List("tracks"); len(tracks) != 1 || tracks[0].Text("type") != "audio" ||
		a.Text("aspect_ratio") != "" || a.Number("max_stored_frame_rate") > 0 {
		t.Errorf("recording: %v", a)
	}
	check(t, "recording", hlscheck.Options{URL: s.PlayURL(a.Text("playback_ids.0.id"))}, "tfdt")
}
