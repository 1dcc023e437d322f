package e2e

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestLiveLadder plays live streams in every size they are offered in: what players get keeps RFC 8216bis, also when
// the encoder of the lower sizes is killed, a player that is told to switch goes on without a break, and the recording
// has the same pictures in every size.
func TestLiveLadder(t *testing.T) {
	rig.Paced(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		if p == rig.Embedded { // a player in real time: once is enough
			t.Run("low", func(t *testing.T) { liveLadder(t, s, "low") })
		}
		t.Run("standard", func(t *testing.T) { liveLadder(t, s, "standard") })
	})
}

func liveLadder(t *testing.T, s *rig.Server, mode string) {
	// at least: a slow machine looks for longer
	length := map[string]time.Duration{"low": 40 * time.Second, "standard": 26 * time.Second}[mode]
	stream := s.CreateLive(t, mode, nil)
	url := s.PlayURL(stream.Text("playback_ids.0.id"))
	encoder := s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "640x480", Kbit: 600, GOP: 2, NoB: mode == "low"})
	s.AwaitPlayable(t, url, patience)
	_, _, master := s.Get(t, url)
	if !strings.Contains(string(master), "RESOLUTION=640x480") ||
		!strings.Contains(string(master), "RESOLUTION=360x270") {
		t.Fatalf("not every rung in\n%s", master)
	}
	var watched sync.WaitGroup
	watched.Go(func() {
		must := liveRules
		if mode == "low" {
			must = append(slices.Clone(must), lowLatencyRules...)
		}
		check(t, mode, hlscheck.Options{
			URL: url, Follow: 14 * time.Second, LowLatency: mode == "low", MaxSegments: 4, Decoder: rig.FFmpeg(t),
		}, must...)
	})
	if mode == "low" {
		switches(t, s, stream.Text("playback_ids.0.id"), 1)
	}
	killEncoder(t, s)
	watched.Wait()
	wait(time.Until(encoder.Began.Add(length)))
	now := s.Live(t, stream.Text("id"))
	if away(now) {
		t.Errorf("the encoder was disconnected: %v", now)
	}
	id := now.Text("active_asset_id")
	encoder.Stop()
	s.AwaitLive(t, stream.Text("id"), "without encoder", patience, away)
	s.Complete(t, stream.Text("id"))
	a := s.AwaitAsset(t, id, "finished", patience, rig.Finished)
	sameFrames(t, s.PlayURL(a.Text("playback_ids.0.id")))
}

// killEncoder kills the server's encoder of rungs.
func killEncoder(t *testing.T, s *rig.Server) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); rig.Pause(100 * time.Millisecond) {
		if pid := child(s.PID(), "zerolatency"); pid > 0 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Error("no encoder runs")
}

// child finds a child of a process by a word of its command line; 0: there is none.
func child(parent int, word string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		stat, _ := os.ReadFile(file)
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if bytes.Contains(line, []byte(word)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// sameFrames decodes every size of an asset: each has the pictures of the first, at the same times.
func sameFrames(t *testing.T, url string) {
	t.Helper()
	var want []float64
	for _, m := range mediaPlaylists(t, url) {
		if m.audio {
			continue
		}
		have := frames(t, m.url)["video"]
		if want == nil {
			want = have
			continue
		}
		if len(have) != len(want) || len(want) == 0 {
			t.Errorf("%s: %d frames, the picture as it came has %d", m.url, len(have), len(want))
			continue
		}
		for i := range want {
			if math.Abs(have[i]-want[i]) > 0.0001 {
				t.Errorf("%s: frame %d is at %.4f s, not at %.4f s", m.url, i, have[i], want[i])
				break
			}
		}
	}
}
