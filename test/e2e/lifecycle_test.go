package e2e

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// stage is a server with the keys of its streams, which must not be in its log.
type stage struct {
	*rig.Server
	mu   sync.Mutex
	keys []string
}

func (s *stage) stream(t *testing.T, mode string, more rig.Object) rig.Object {
	t.Helper()
	l := s.CreateLive(t, mode, more)
	s.note(l.Text("stream_key"))
	return l
}

func (s *stage) note(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
}

// refused counts the refusals that the log tells of. Those of one reason within a second share a line.
func (s *stage) refused() (n int) {
	for _, line := range s.LogLines("publish refused") {
		n += 1 + int(line.Number("not_logged"))
	}
	return n
}

// TestLongestDuration lets the shortest max_continuous_duration that is allowed pass.
func TestLongestDuration(t *testing.T) {
	rig.Parallel(t, rig.Long)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := &stage{Server: rig.Start(t, rig.Options{Pair: p})}
		l := s.stream(t, "standard", rig.Object{"max_continuous_duration": 60})
		e := s.Publish(t, l.Text("stream_key"), small())
		a := playing(t, s.Server, l)
		l = s.AwaitLive(t, l.Text("id"), "idle", 60*time.Second+patience, idle)
		cut(t, "longest duration", e)
		if !slices.Contains(l.Texts("recent_asset_ids"), a.Text("id")) {
			t.Errorf("stream after its longest duration: %v", l)
		}
		if d := recorded(t, s, a.Text("id")).Number("duration"); math.Abs(d-60) > 5 {
			t.Errorf("%.3f s were recorded, want 60", d)
		}
		cleanLog(t, s.Server, s.keys...)
	})
}

// TestLifecycle ends and refuses broadcasts in every way that the API knows, while encoders publish.
func TestLifecycle(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := &stage{Server: rig.Start(t, rig.Options{Pair: p, Args: []string{"--max-connections-per-address", "100"}})}
		t.Cleanup(func() {
			// An encoder has gone before its refusal is logged: the last one's may be still to come.
			for end := time.Now().Add(patience); !t.Failed() && s.refused() < refusals && time.Now().Before(end); {
				rig.Pause(50 * time.Millisecond)
			}
			noSecrets(t, s.Server, s.keys...)
			for _, a := range alarms(s.Server) {
				if !strings.Contains(a, `"publish refused"`) {
					t.Errorf("log: %s", a)
				}
			}
			if n := s.refused(); !t.Failed() && n != refusals {
				t.Errorf("the log tells of %d refusals, want %d, each once", n, refusals)
			}
		})
		for name, test := range map[string]func(*testing.T, *stage){
			"disable and enable": disable, "complete": complete, "delete": remove, "reset of the key": resetKey,
			"second encoder": secondEncoder, "half-dead encoder": halfDead,
			"unknown key": unknownKey, "window that passes": outside, "clip while live": clipLive,
			"nothing sent": nothingSent,
		} {
			t.Run(name, func(t *testing.T) {
				rig.Parallel(t)
				test(t, s)
			})
		}
	})
}

// refusals is how many encoders are refused.
const refusals = 5

// refused runs an encoder that must be refused, and see so.
func refused(t *testing.T, s *stage, why, key string) {
	t.Helper()
	c := small()
	c.Seconds = 60
	said, err := s.Publish(t, key, c).Wait(t, patience)
	if err == nil || strings.TrimSpace(said) == "" {
		t.Errorf("%s: the encoder ended with %v and said %q", why, err, said)
	}
}

// cut wants an encoder to be disconnected by the server.
func cut(t *testing.T, why string, e *rig.Encoder) {
	t.Helper()
	if said, err := e.Wait(t, patience); err == nil {
		t.Errorf("%s: the encoder ended as if all were well: %s", why, said)
	}
}

// put sends a request that changes a stream's state.
func put(t *testing.T, s *stage, l rig.Object, what string) {
	t.Helper()
	if code, o := s.Do(t, "PUT", "/video/v1/live-streams/"+l.Text("id")+"/"+what, nil); code != http.StatusOK {
		t.Fatalf("%s: status %d: %v", what, code, o)
	}
}

// recorded waits until an asset is finished and holds it against the rules.
func recorded(t *testing.T, s *stage, asset string) rig.Object {
	t.Helper()
	a := s.AwaitAsset(t, asset, "finished", patience, rig.Finished)
	check(t, "recording", hlscheck.Options{URL: s.PlayURL(a.Text("playback_ids.0.id"))}, "tfdt", "align-ends")
	return a
}

func idle(o rig.Object) bool { return o.Text("status") == "idle" && o.Text("active_asset_id") == "" }

func disable(t *testing.T, s *stage) {
	l := s.stream(t, "standard", nil)
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	put(t, s, l, "disable")
	cut(t, "disable", e)
	now := s.AwaitLive(t, l.Text("id"), "disabled", patience, func(o rig.Object) bool {
		return o.Text("status") == "disabled" && o.Text("active_asset_id") == ""
	})
	if !slices.Equal(now.Texts("recent_asset_ids"), []string{a.Text("id")}) {
		t.Errorf("disabled stream: %v", now)
	}
	recorded(t, s, a.Text("id"))
	refused(t, s, "a disabled stream", l.Text("stream_key"))
	put(t, s, l, "enable")
	s.Publish(t, l.Text("stream_key"), small())
	if b := playing(t, s.Server, l); b.Text("id") == a.Text("id") {
		t.Error("after disable and enable the old recording goes on")
	}
}

func complete(t *testing.T, s *stage) {
	l := s.stream(t, "standard", nil)
	put(t, s, l, "complete") // of an idle stream: nothing to do
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	put(t, s, l, "complete")
	s.AwaitLive(t, l.Text("id"), "idle", patience, idle)
	recorded(t, s, a.Text("id"))
	if code, _, _ := s.Get(t, s.PlayURL(l.Text("playback_ids.0.id"))); code != http.StatusPreconditionFailed {
		t.Errorf("the live stream's playlist returns %d after complete, want 412", code)
	}
	e.Kill()
	s.Publish(t, l.Text("stream_key"), small())
	if b := playing(t, s.Server, l); b.Text("id") == a.Text("id") {
		t.Error("after complete the old recording goes on")
	}
	put(t, s, l, "complete")
	now := s.AwaitLive(t, l.Text("id"), "idle", patience, idle)
	if len(now.Texts("recent_asset_ids")) != 2 {
		t.Errorf("after two broadcasts: %v", now)
	}
}

func remove(t *testing.T, s *stage) {
	l := s.stream(t, "low", nil)
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	path := "/video/v1/live-streams/" + l.Text("id")
	if code, o := s.Do(t, "DELETE", path, nil); code != http.StatusNoContent {
		t.Fatalf("delete: status %d: %v", code, o)
	}
	if code, _ := s.Do(t, "GET", path, nil); code != http.StatusNotFound {
		t.Errorf("a deleted stream returns %d", code)
	}
	cut(t, "delete", e)
	recorded(t, s, a.Text("id"))
	refused(t, s, "a deleted stream", l.Text("stream_key"))
}

func resetKey(t *testing.T, s *stage) {
	l := s.stream(t, "standard", nil)
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	code, o := s.Do(t, "POST", "/video/v1/live-streams/"+l.Text("id")+"/reset-stream-key", nil)
	fresh := o.Text("data.stream_key")
	if code != http.StatusCreated || fresh == "" || fresh == l.Text("stream_key") {
		t.Fatalf("reset: status %d: %v", code, o)
	}
	s.note(fresh)
	refused(t, s, "the old key", l.Text("stream_key"))
	cut(t, "reset of the key", e)
	s.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	if now := s.Live(t, l.Text("id")); now.Text("status") != "active" || now.Text("active_asset_id") != a.Text("id") {
		t.Errorf("no window runs after a reset of the key: %v", now)
	}
	s.Publish(t, fresh, small())
	s.AwaitLive(t, l.Text("id"), "with encoder", patience, func(o rig.Object) bool { return !away(o) })
	if now := s.Live(t, l.Text("id")); now.Text("active_asset_id") != a.Text("id") {
		t.Errorf("with the new key another recording began: %v", now)
	}
}

func secondEncoder(t *testing.T, s *stage) {
	l := s.stream(t, "low", nil)
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	refused(t, s, "a second encoder", l.Text("stream_key"))
	if now := s.Live(t, l.Text("id")); now.Text("status") != "active" || now.Text("active_asset_id") != a.Text("id") {
		t.Errorf("a second encoder disturbed the first: %v", now)
	}
	e.Stop()
	recorded(t, s, a.Text("id"))
}

// halfDead freezes an encoder: its connection stays, and nothing comes. Without a window the same recording goes on
// with the next one.
func halfDead(t *testing.T, s *stage) {
	l := s.stream(t, "low", nil)
	first := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	first.Freeze()
	s.AwaitLog(t, patience, `"encoder is silent"`, l.Text("id")) // before that the second one would be refused
	second := s.Publish(t, l.Text("stream_key"), small())
	s.AwaitLog(t, patience, `"silent encoder is replaced"`, l.Text("id"))
	rig.Pause(3 * time.Second)
	if now := s.Live(t, l.Text("id")); now.Text("status") != "active" || now.Text("active_asset_id") != a.Text("id") ||
		away(now) {
		t.Errorf("with the second encoder: %v", now)
	}
	first.Kill()
	second.Stop()
	now := recorded(t, s, a.Text("id"))
	if n := len(now.List("recording_times")); n != 2 {
		t.Errorf("%d recording times, want 2: %v", n, now)
	}
}

func unknownKey(t *testing.T, s *stage) {
	const key = "5ce12a0f-0000-4000-8000-000000000000"
	s.note(key)
	refused(t, s, "an unknown key", key)
}

func outside(t *testing.T, s *stage) {
	l := s.stream(t, "standard", rig.Object{"reconnect_window": 1})
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s.Server, l)
	e.Kill()
	s.AwaitLive(t, l.Text("id"), "idle", patience, idle)
	recorded(t, s, a.Text("id"))
	s.Publish(t, l.Text("stream_key"), small())
	if b := playing(t, s.Server, l); b.Text("id") == a.Text("id") {
		t.Error("outside the window the old recording goes on")
	}
}

// clipLive makes a clip of a recording in progress, which plays on after its source is deleted.
func clipLive(t *testing.T, s *stage) {
	l := s.stream(t, "low", nil)
	clip := small()
	clip.Flash = true
	e := s.Publish(t, l.Text("stream_key"), clip)
	a := playing(t, s.Server, l)
	code, o := s.Do(t, "POST", "/video/v1/assets", rig.Object{
		"inputs":            []rig.Object{{"url": "mux://assets/" + a.Text("id"), "start_time": 2, "end_time": 9}},
		"playback_policies": []string{"public"},
	})
	if code != http.StatusCreated {
		t.Fatalf("clip: status %d: %v", code, o)
	}
	c := s.AwaitAsset(t, o.Text("data.id"), "clipped", patience, rig.Ready)
	if now := s.Live(t, l.Text("id")); now.Text("status") != "active" {
		t.Errorf("the stream is %v after a clip was made", now)
	}
	if d := c.Number("duration"); d < 7 || d > 12 || c.Flag("is_live") || c.Text("source_asset_id") != a.Text("id") {
		t.Errorf("clip of 7 s: %v", c)
	}
	e.Stop()
	inStep(t, s.PlayURL(recorded(t, s, a.Text("id")).Text("playback_ids.0.id")), 8)
	if code, o := s.Do(t, "DELETE", "/video/v1/assets/"+a.Text("id"), nil); code != http.StatusNoContent {
		t.Fatalf("delete the source: status %d: %v", code, o)
	}
	gone(t, s.Server, s.PlayURL(a.Text("playback_ids.0.id")))
	url := s.PlayURL(c.Text("playback_ids.0.id"))
	check(t, "clip", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes")
	inStep(t, url, 6)
}

// nothingSent connects with audio only for a moment: what becomes of it must not stay as it is for ever.
func nothingSent(t *testing.T, s *stage) {
	l := s.stream(t, "low", nil)
	c := small()
	c.Seconds = 0.1
	if said, err := s.Publish(t, l.Text("stream_key"), c).Wait(t, patience); err != nil {
		t.Errorf("encoder: %v: %s", err, said)
	}
	now := s.AwaitLive(t, l.Text("id"), "idle again", patience, func(o rig.Object) bool {
		return idle(o) && len(o.Texts("recent_asset_ids")) == 1
	})
	end := time.Now().Add(patience)
	for {
		a := s.Asset(t, now.Texts("recent_asset_ids")[0])
		if a.Text("status") != "preparing" && !a.Flag("is_live") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("asset of a broadcast of a tenth of a second: %v", a)
		}
		rig.Pause(100 * time.Millisecond)
	}
}

// gone waits until a playlist is unknown: a response may be kept for a second.
func gone(t *testing.T, s *rig.Server, url string) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		code, _, _ := s.Get(t, url)
		if code == http.StatusNotFound {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s still returns %d", url, code)
		}
		rig.Pause(100 * time.Millisecond)
	}
}
