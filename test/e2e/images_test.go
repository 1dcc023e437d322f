package e2e

import (
	"bytes"
	"image"
	_ "image/gif"  // what animations are
	_ "image/jpeg" // what thumbnails are
	_ "image/png"
	"net/http"
	"strings"
	"testing"

	"millrace/test/rig"
)

// TestImages asks for pictures of an asset and of what is live, as pages do.
func TestImages(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		l := s.CreateLive(t, "low", nil)
		e := s.Publish(t, l.Text("stream_key"), rig.Clip{Size: "640x360", Kbit: 500, GOP: 1})
		file := rig.File(t, "a.mp4", rig.Clip{Size: "640x360", Kbit: 500, GOP: 2, Seconds: 9})
		a := s.CreateAsset(t, rig.Files(t, map[string]string{"a.mp4": file})+"/a.mp4")
		a = s.AwaitAsset(t, a.Text("id"), "ready", patience, rig.Ready)
		base := s.HTTP + "/" + a.Text("playback_ids.0.id") + "/"
		for name, want := range map[string]struct {
			format        string
			width, height int
		}{
			"thumbnail.jpg?time=4.1&width=320":                      {"jpeg", 320, 180},
			"thumbnail.png?width=200&height=200&fit_mode=smartcrop": {"png", 200, 200},
			"animated.gif?start=1&end=3&width=160&fps=5":            {"gif", 160, 90},
			"storyboard.jpg": {"jpeg", 0, 0},
		} {
			picture(t, base+name, want.format, want.width, want.height)
		}
		code, head, body := s.Get(t, base+"thumbnail.webp?width=320")
		if code != http.StatusOK || head.Get("Content-Type") != "image/webp" || !bytes.HasPrefix(body, []byte("RIFF")) {
			t.Errorf("thumbnail.webp: %d, %v, %d bytes", code, head, len(body))
		}
		if code, _, body = s.Get(t, base+"storyboard.vtt"); code != http.StatusOK ||
			!strings.HasPrefix(string(body), "WEBVTT") || !strings.Contains(string(body), "#xywh=0,0,") {
			t.Errorf("storyboard.vtt: %d\n%s", code, body)
		}
		if code, _, _ = s.Get(t, base+"thumbnail.jpg?width=-5"); code != http.StatusBadRequest {
			t.Errorf("a width below nothing: %d", code)
		}
		linked(t, s, a.Text("playback_ids.0.id"), 640, 360)
		live := l.Text("playback_ids.0.id")
		s.AwaitPlayable(t, s.PlayURL(live), patience)
		picture(t, s.HTTP+"/"+live+"/thumbnail.jpg?latest=true", "jpeg", 640, 360)
		// How large it is, is known a moment after it can be played.
		recording := s.Live(t, l.Text("id")).Text("active_asset_id")
		s.AwaitAsset(t, recording, "measured", patience, func(a rig.Object) bool {
			return a.Text("resolution_tier") != ""
		})
		linked(t, s, live, 640, 360)
		e.Stop()
	})
}

// picture fetches an image and holds its format, and its size unless that is 0.
func picture(t *testing.T, url, format string, width, height int) {
	t.Helper()
	body := get(t, url)
	c, is, err := image.DecodeConfig(bytes.NewReader(body))
	if err != nil || is != format || width > 0 && (c.Width != width || c.Height != height) {
		t.Errorf("%s: %s of %dx%d, %v; want %s of %dx%d", url, is, c.Width, c.Height, err, format, width, height)
	}
}
