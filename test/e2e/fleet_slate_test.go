package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestOwnerDiesSlate kills the node with the encoder of a stream that shows slate, and the encoder stays away for a
// while. The node with the copy takes the broadcast up without it: viewers at both others are shown slate, all that the
// dead node's viewers were given is still there, and nothing is shown otherwise than before. Then the encoder comes to
// the third node and goes on with the same asset. The log has the figures.
func TestOwnerDiesSlate(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	f := rig.StartFleet(t, 3, rig.Options{Args: []string{"--live-copies", "2", "--metrics-addr", "127.0.0.1:0"}})
	a, b, c := f.Nodes[0], f.Nodes[1], f.Nodes[2]
	l := a.CreateLive(t, "low", rig.Object{"reconnect_window": 60})
	a.Publish(t, l.Text("stream_key"), small())
	list := firstList(t, c, l)
	s := watchAt(t, list, b, c)
	viewer := newMemory(1)
	watched, leave := context.WithCancel(t.Context())
	var at address
	at.set(a)
	var watching sync.WaitGroup
	watching.Go(func() { viewer.follow(watched, &at, list, func() []time.Time { return nil }) })
	asset := c.Live(t, l.Text("id")).Text("active_asset_id")
	var followed sync.WaitGroup
	t.Cleanup(followed.Wait)
	followed.Go(func() { // numbers that the dead node had reserved are gaps, which have no parts to keep or to report
		checkBut(t, "at another node", []string{"part-kept", "report"}, hlscheck.Options{
			URL: c.PlayURL(l.Text("playback_ids.0.id")), Follow: 20 * time.Second, LowLatency: true, MaxSegments: 2,
			MayStall: true, OtherMedia: true,
		}, "discontinuity-map", "entry-immutable", "segment-duration")
	})
	s.await(c, "before", s.at(c)+5) // the others have to have run for 12 s until they take up anything
	a.Kill(t)
	killed := time.Now()
	leave()
	watching.Wait()
	for !strings.Contains(playlistAt(t, b, list), "/1-") || !strings.Contains(playlistAt(t, c, list), "/1-") {
		if time.Since(killed) > patience {
			t.Fatalf("no slate is listed:\n%s", playlistAt(t, b, list))
		}
		rig.Pause(20 * time.Millisecond)
	}
	t.Logf("slate was listed after %v", time.Since(killed).Round(10*time.Millisecond))
	const counted = `millrace_broadcasts_recovered_total{from="ended"} 1`
	next, third := b, c
	if !strings.Contains(metrics(t, b), counted) {
		next, third = c, b
	}
	if !strings.Contains(metrics(t, next), counted) {
		t.Error("the broadcast was not taken up as one whose process had ended")
	}
	listed, shown := viewer.last(), s.at(next)
	for _, n := range []*rig.Server{b, c} {
		viewer.recall(t, n.HTTP, "after the death of the owner", listed)
		s.await(n, "slate", shown+4)
	}
	third.Publish(t, l.Text("stream_key"), small())
	third.AwaitLog(t, patience, `"encoder connected"`, l.Text("id"))
	t.Logf("the encoder was let in %v after the death", time.Since(killed).Round(10*time.Millisecond))
	for _, n := range []*rig.Server{b, c} {
		s.await(n, "the encoder is back", s.at(third)+2)
		t.Logf("viewers had the statuses %v", s.statuses(n))
		for code := range s.statuses(n) {
			if code != http.StatusOK && code != http.StatusServiceUnavailable {
				t.Errorf("viewers had the status %d", code)
			}
		}
	}
	if codes := s.statuses(third); len(codes) != 1 {
		t.Errorf("viewers at a node that only followed had the statuses %v", codes)
	}
	if now := b.Live(t, l.Text("id")).Text("active_asset_id"); now != asset {
		t.Errorf("the asset is %s, and was %s", now, asset)
	}
	followed.Wait()
	s.stop()
	next.Complete(t, l.Text("id"))
	o := next.AwaitAsset(t, asset, "settled", patience, func(o rig.Object) bool {
		return rig.Ready(o) && !o.Flag("is_live") && o.Text("progress.state") == "completed"
	})
	var kinds []string
	for _, r := range o.List("recording_times") {
		kinds = append(kinds, r.Text("type"))
	}
	if !slices.Equal(kinds, []string{"content", "slate", "content"}) {
		t.Errorf("recorded are %v", o.List("recording_times"))
	}
	check(t, "the recording", hlscheck.Options{
		URL: next.PlayURL(o.Text("playback_ids.0.id")), Decoder: rig.FFmpeg(t),
	}, finishedRules...)
}
