package presentation_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
)

// TestChangesOnThisNodeAreSeenAtOnce: anyone who reads in the API that something is so may ask playback for it in the
// next moment.
func TestChangesOnThisNodeAreSeenAtOnce(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(0))
		v := n.viewer()
		e := n.publish(s.StreamKey).send(10 * time.Second)
		a := w.row(s.ID).ActiveAsset
		e.stop()
		w.wait(0)
		w.finish(a)
		n.playback.AssetChanged(a)
		p := w.playbackID(a)
		track, err := w.assets.AddTrack(w.ctx, env, a, asset.TrackInput{
			URL: "https://example.com/en.vtt", Type: asset.TextTrack, TextType: "subtitles", LanguageCode: "en",
			Name: "English",
		}, time.Now())
		w.must(err)
		n.playback.AssetChanged(a)
		sidecar := "/" + string(p) + "/text/" + string(track.ID) + ".vtt"
		v.Expect("preparing", http.StatusNotFound, sidecar)
		track.Object = "media/tracks/en.vtt"
		w.must(w.objects.Put(w.ctx, track.Object, strings.NewReader("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n")))
		w.must(w.assets.TrackReady(w.ctx, a, track, time.Now()))
		n.playback.AssetChanged(a)
		v.Expect("ready", http.StatusOK, sidecar)
		if lists := v.Playlists(p); len(lists) != 3 {
			t.Errorf("playlists %v", lists)
		}
		w.must(w.assets.DeletePlaybackID(w.ctx, env, a, p, time.Now()))
		n.playback.AssetChanged(a)
		v.Expect("playback ID deleted", http.StatusNotFound, sidecar)

		live := s.PlaybackIDs[0].ID
		v.Expect("idle", http.StatusPreconditionFailed, "/"+string(live)+".m3u8")
		w.must(w.streams.Delete(w.ctx, env, s.ID, time.Now()))
		n.playback.StreamChanged(s.ID)
		v.Expect("stream deleted", http.StatusNotFound, "/"+string(live)+".m3u8")
	})
}
