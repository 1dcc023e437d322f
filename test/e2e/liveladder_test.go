package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestLiveLadder plays a live stream in every size it is offered in: a player that is told to switch goes on without a break.
func TestLiveLadder(t *testing.T) {
	t.Parallel()
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		t.Parallel()
		s := rig.Start(t, rig.Options{Pair: p})
		stream := s.CreateLive(t, "low", nil)
		id := stream.Text("playback_ids.0.id")
		s.Publish(t, stream.Text("stream_key"), rig.Clip{Size: "640x480", Kbit: 600, GOP: 2, NoB: true})
		page := browser.Start(t).Open(t, s.WatchURL(id))
		page.FirstPicture(t, patience)
		_, _, master := s.Get(t, s.PlayURL(id))
		if !strings.Contains(string(master), "RESOLUTION=640x480") || !strings.Contains(string(master), "RESOLUTION=360x270") {
			t.Fatalf("not every rung in\n%s", master)
		}
		heights := page.Until(t, "two sizes", patience, func(p browser.Probe) bool { return len(p.Levels) == 2 }).Levels
		last := page.Probe(t)
		for _, height := range []int{270, 480, 270} {
			page.Eval(t, fmt.Sprintf("window.millrace.hls.nextLevel = %d", slices.Index(heights, height)), nil)
			p := page.Until(t, fmt.Sprintf("a picture of %d lines", height), patience, func(p browser.Probe) bool { return p.Height == height })
			if p.Time < last.Time || p.Restarts > 0 || p.Error != "" {
				t.Errorf("after the switch to %d lines: %+v", height, p)
			}
			last = page.Plays(t, 3, patience)
			t.Logf("%d lines: latency %.2f s, %d stalls", height, last.Latency, last.Stalls)
		}
	})
}
