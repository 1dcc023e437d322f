package e2e

import (
	"math"
	"os/exec"
	"slices"
	"testing"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestTestStream records a stream whose picture gets the service's mark: encoded anew, but with every frame at its time, in step with its
// sound, and by all the rules of low latency while it runs.
func TestTestStream(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	l := s.CreateLive(t, "low", rig.Object{"test": true})
	c := small()
	c.Flash, c.Seconds = true, 14
	e := s.Publish(t, l.Text("stream_key"), c)
	a := playing(t, s, l)
	check(t, "test stream live", hlscheck.Options{URL: s.PlayURL(l.Text("playback_ids.0.id")), Follow: 5e9, LowLatency: true, MaxSegments: 4},
		slices.Concat(liveRules, lowLatencyRules, bothTracksRules)...)
	if said, err := e.Wait(t, patience); err != nil {
		t.Errorf("encoder: %v: %s", err, said)
	}
	s.Complete(t, l.Text("id"))
	a = s.AwaitAsset(t, a.Text("id"), "finished", patience, rig.Finished)
	if !a.Flag("test") {
		t.Error("the asset of a test stream is no test asset")
	}
	url := s.PlayURL(a.Text("playback_ids.0.id"))
	check(t, "test stream recorded", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes", "align-ends")
	have := read(t, url, false)
	if v := have["video"]; v.count < 14*30-1 || v.gap > 0.05 || math.Abs(v.last-v.first-14) > 0.1 {
		t.Errorf("picture: %+v, sent were %d frames", v, 14*30)
	}
	inStep(t, url, 12)

	// The first picture is white: where the mark is it is dark.
	pixels, err := exec.CommandContext(t.Context(), rig.FFmpeg(t), "-v", "error", "-i", url, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray", "pipe:1").Output()
	if err != nil || len(pixels) != 320*180 {
		t.Fatalf("first picture: %d bytes, %v", len(pixels), err)
	}
	if corner, other := pixels[7*320+320-8], pixels[7*320+8]; corner > 160 || other < 220 {
		t.Errorf("brightness %d in the mark's corner and %d in the other, want dark and white", corner, other)
	}
}
