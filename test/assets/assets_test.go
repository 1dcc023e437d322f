// Package assets makes assets and tracks by URL on the real server.
package assets

import (
	"strings"
	"testing"
	"time"

	"millrace/test/conform"
	"millrace/test/hlscheck"
	"millrace/test/rig"
)

const subtitles = "1\r\n00:00:01,000 --> 00:00:03,000\r\nfirst line\r\n\r\n2\r\n00:00:04,000 --> 00:00:09,000\r\nsecond <i>line</i>\r\n"

// TestAssets makes assets from files of each container by URL and adds tracks to one.
func TestAssets(t *testing.T) {
	rig.Pairs(t, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		for _, name := range []string{"a.mp4", "a.mov", "a.ts", "a.mkv"} {
			t.Run(name, func(t *testing.T) {
				files := rig.Files(t, map[string]string{name: rig.File(t, name, rig.Clip{Seconds: 13})})
				asset := s.CreateAsset(t, files+"/"+name)
				asset = s.AwaitAsset(t, asset.Text("id"), "ready", 60*time.Second, rig.Ready)
				if d := asset.Number("duration"); d < 12.9 || d > 13.1 {
					t.Errorf("duration %.3f s, want 13", d)
				}
				conform.Finished(t, s.PlayURL(conform.PlaybackID(t, asset)), asset.Number("duration"))
			})
		}
		t.Run("tracks", func(t *testing.T) { addTracks(t, s) })
	})
}

func addTracks(t *testing.T, s *rig.Server) {
	files := rig.Files(t, map[string]string{
		"a.mp4": rig.File(t, "a.mp4", rig.Clip{Seconds: 12}), "de.m4a": rig.File(t, "de.m4a", rig.Clip{Seconds: 12, NoVideo: true}), "en.srt": subtitles, "broken.srt": "nothing\n",
	})
	asset := s.CreateAsset(t, files+"/a.mp4")
	id := asset.Text("id")
	asset = s.AwaitAsset(t, id, "ready", 60*time.Second, rig.Ready)
	text := s.AddTrack(t, id, rig.Object{"url": files + "/en.srt", "type": "text", "text_type": "subtitles", "language_code": "en", "closed_captions": true})
	s.AddTrack(t, id, rig.Object{"url": files + "/de.m4a", "type": "audio", "language_code": "de"})
	ready := func(want int) func(rig.Object) bool {
		return func(o rig.Object) bool {
			n := 0
			for _, track := range o.List("tracks") {
				if track.Text("status") == "ready" && (track.Text("id") == text.Text("id") || track.Text("language_code") == "de") {
					n++
				}
			}
			return n == want
		}
	}
	s.AwaitAsset(t, id, "with tracks", 60*time.Second, ready(2))
	url := s.PlayURL(conform.PlaybackID(t, asset))
	r := conform.Check(t, hlscheck.Options{URL: url})
	conform.Applied(t, r, "webvtt", "language")
	_, _, master := s.Get(t, url)
	for _, want := range []string{`LANGUAGE="de"`, `NAME="German"`, `TYPE=SUBTITLES`, `NAME="English"`, "public.accessibility.describes-music-and-sound"} {
		if !strings.Contains(string(master), want) {
			t.Errorf("the multivariant playlist lacks %s:\n%s", want, master)
		}
	}
	code, _, vtt := s.Get(t, s.HTTP+"/"+conform.PlaybackID(t, asset)+"/text/"+text.Text("id")+".vtt")
	if code != 200 || !strings.HasPrefix(string(vtt), "WEBVTT") || !strings.Contains(string(vtt), "second <i>line</i>") {
		t.Errorf("the text file: status %d: %s", code, vtt)
	}
	broken := s.AddTrack(t, id, rig.Object{"url": files + "/broken.srt", "type": "text", "text_type": "subtitles", "language_code": "fr"})
	after := s.AwaitAsset(t, id, "with a broken track", 60*time.Second, func(o rig.Object) bool {
		for _, track := range o.List("tracks") {
			if track.Text("id") == broken.Text("id") {
				return track.Text("status") == "errored"
			}
		}
		return false
	})
	if !rig.Ready(after) {
		t.Errorf("a broken track harmed the asset: %v", after)
	}
}
