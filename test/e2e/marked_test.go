package e2e

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestTestStream records a stream whose picture gets the service's mark: encoded again, but with every frame at its
// time, in step with its sound, and by all the rules of low latency while it runs.
func TestTestStream(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	l := s.CreateLive(t, "low", rig.Object{"test": true})
	c := small()
	counted := filepath.Join(t.TempDir(), "progress")
	c.Flash, c.Progress = true, counted
	e := s.Publish(t, l.Text("stream_key"), c)
	a := playing(t, s, l)
	check(t, "test stream live",
		hlscheck.Options{URL: s.PlayURL(l.Text("playback_ids.0.id")), Follow: 5e9, LowLatency: true, MaxSegments: 4},
		slices.Concat(liveRules, lowLatencyRules, bothTracksRules)...)
	wait(time.Until(e.Began.Add(14 * time.Second)))
	if now := s.Live(t, l.Text("id")); away(now) {
		t.Errorf("the encoder was disconnected: %v", now)
	}
	e.Stop() // not before all was looked at, however long that took
	s.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	s.Complete(t, l.Text("id"))
	a = s.AwaitAsset(t, a.Text("id"), "finished", patience, rig.Finished)
	if !a.Flag("test") {
		t.Error("the asset of a test stream is no test asset")
	}
	url := s.PlayURL(a.Text("playback_ids.0.id"))
	check(t, "test stream recorded", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes",
		"align-ends")
	have := read(t, url, false)
	sent := pictures(t, counted)
	seconds := float64(sent) / 30
	// The encoder may have left between a picture and the two that are shown before it: these are no loss.
	if v := have["video"]; v.count < sent-1 || v.gap > 0.11 || math.Abs(v.last-v.first-seconds) > 0.15 {
		t.Errorf("picture: %+v, sent were %d frames", v, sent)
	}
	inStep(t, url, int(seconds)-2)

	// The first picture is white: where the mark is it is dark.
	pixels, err := exec.CommandContext(t.Context(), rig.FFmpeg(t), "-v", "error", "-i", url, "-frames:v", "1", "-f",
		"rawvideo", "-pix_fmt", "gray", "pipe:1").Output()
	if err != nil || len(pixels) != 320*180 {
		t.Fatalf("first picture: %d bytes, %v", len(pixels), err)
	}
	if corner, other := pixels[7*320+320-8], pixels[7*320+8]; corner > 160 || other < 220 {
		t.Errorf("brightness %d in the mark's corner and %d in the other, want dark and white", corner, other)
	}
}

// pictures is how many an encoder has sent that has ended and was told to write its progress into a file.
func pictures(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	last := text[strings.LastIndex(text, "frame=")+len("frame="):]
	count, _, _ := strings.Cut(last, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil || !strings.Contains(last, "progress=end") {
		t.Fatalf("the encoder's progress: %.300s", last)
	}
	return n
}
