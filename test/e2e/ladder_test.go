package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"millrace/test/browser"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestLadder plays an asset in every size it is offered in: each frame of each has the time of the file's, whichever
// run of the encoder made it, and a player that is told to switch goes on without a break.
func TestLadder(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		file := rig.File(t, "a.mp4", rig.Clip{Size: "640x480", Kbit: 600, GOP: 2, Flash: true, Seconds: 41})
		a := s.CreateAsset(t, rig.Files(t, map[string]string{"a.mp4": file})+"/a.mp4")
		a = s.AwaitAsset(t, a.Text("id"), "ready", patience, rig.Ready)
		id := a.Text("playback_ids.0.id")
		url := s.PlayURL(id)
		_, _, master := s.Get(t, url)
		var videos []mediaPlaylist
		for _, m := range mediaPlaylists(t, url) {
			if !m.audio {
				videos = append(videos, m)
			}
		}
		if len(videos) != 2 || !strings.Contains(string(master), "RESOLUTION=640x480") ||
			!strings.Contains(string(master), "RESOLUTION=360x270") {
			t.Fatalf("%d renditions of video in\n%s", len(videos), master)
		}
		switches(t, s, id, 0)
		check(t, "ladder", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes", "segment-duration",
			"align-start")
		want := frames(t, file)["video"]
		for _, m := range videos {
			have := frames(t, m.url)["video"]
			if len(have) != len(want) {
				t.Errorf("%s: %d frames, the file has %d", m.url, len(have), len(want))
				continue
			}
			for i := range want {
				if apart := have[i] - have[0] - (want[i] - want[0]); math.Abs(apart) > 0.002 {
					t.Errorf("%s: frame %d is %.4f s off", m.url, i, apart)
					break
				}
			}
		}
	})
}

// switches has a page play and tells its player which size to take; it plays on for so many seconds in each.
func switches(t *testing.T, s *rig.Server, playbackID string, play float64) {
	t.Helper()
	page := browser.Start(t).Open(t, s.WatchURL(playbackID))
	page.FirstPicture(t, patience)
	heights := page.Until(t, "two sizes", patience, func(p browser.Probe) bool { return len(p.Levels) == 2 }).Levels
	last := page.Probe(t)
	for _, height := range []int{270, 480, 270} {
		command := fmt.Sprintf("window.millrace.hls.nextLevel = %d", slices.Index(heights, height))
		// the player keeps the more of the other size the slower the server seems, up to the film's end; of one that
		// stands it does not
		if !last.Live {
			command = "const v = window.millrace.video; Object.defineProperty(v, 'paused', {configurable: true, get: " +
				"() => true}); try { " + command + " } finally { delete v.paused }"
		}
		page.Eval(t, command, nil)
		p := page.Until(t, fmt.Sprintf("a picture of %d lines", height), patience, func(p browser.Probe) bool {
			return p.Height == height
		})
		if p.Time < last.Time || p.Restarts > 0 || p.Error != "" {
			t.Errorf("after the switch to %d lines: %+v", height, p)
		}
		if last = p; play > 0 {
			last = page.Plays(t, play, patience)
		}
		t.Logf("%d lines: latency %.2f s, %d stalls", height, last.Latency, last.Stalls)
	}
}
