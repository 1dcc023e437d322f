package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestTracksOfRecordings: a text track that each recording of a live stream gets, and one that is added while it runs,
// are in the recording's playlists by the rules, with their cues, while the broadcast goes on and when it is over.
func TestTracksOfRecordings(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		lines := rig.Files(t, map[string]string{"lines.srt": numbered(60)}) + "/lines.srt"
		stream := s.CreateLive(t, "low", rig.Object{"new_asset_settings": rig.Object{
			"playback_policies": []string{"public"}, "inputs": []rig.Object{
				{}, {"url": lines, "type": "text", "text_type": "subtitles", "language_code": "de", "name": "Wanted"},
			},
		}})
		encoder := s.Publish(t, stream.Text("stream_key"), small())
		asset := playing(t, s, stream).Text("id")
		s.AddTrack(t, asset, rig.Object{
			"url": lines, "type": "text", "text_type": "subtitles", "language_code": "fr", "name": "Added",
		})
		both := func(a rig.Object) bool {
			texts := textTracks(a)
			waits := func(o rig.Object) bool { return o.Text("status") != "ready" }
			return len(texts) == 2 && !slices.ContainsFunc(texts, waits)
		}
		live := s.AwaitAsset(t, asset, "with its tracks", patience, both)
		if live["is_live"] != true {
			t.Fatalf("the asset when its tracks are ready: %v", live)
		}
		url := s.PlayURL(live.Text("playback_ids.0.id"))
		shown := func(when string) {
			t.Helper()
			_, _, list := s.Get(t, url)
			for _, want := range []string{`NAME="Wanted",LANGUAGE="de"`, `NAME="Added",LANGUAGE="fr"`} {
				if !strings.Contains(string(list), want) {
					t.Errorf("%s: no %s in\n%s", when, want, list)
				}
			}
		}
		shown("live")
		check(t, "live", hlscheck.Options{URL: url, Follow: 6 * time.Second}, "tfdt")
		encoder.Stop()
		s.Complete(t, stream.Text("id"))
		s.AwaitAsset(t, asset, "finished", patience, rig.Finished)
		shown("finished")
		check(t, "finished", hlscheck.Options{URL: url}, "tfdt", "align-ends")
	})
}
