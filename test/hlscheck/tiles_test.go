package hlscheck

import (
	"bytes"
	"image"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/test/origin"
)

// winding is an origin that offers pictures for winding: one image of four tiles, each 16 by 8 pixels, for 40 seconds.
func winding(change func(playlist string) string, width, height int) origin.Options {
	var sheet bytes.Buffer
	_ = jpeg.Encode(&sheet, image.NewGray(image.Rect(0, 0, width, height)), nil) // into memory
	playlist := "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:40\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-IMAGES-ONLY\n" +
		"#EXTINF:40.0,\n#EXT-X-TILES:RESOLUTION=16x8,LAYOUT=2x2,DURATION=10.0\nsheet.jpg\n#EXT-X-ENDLIST\n"
	o := text(in(master, func(s string) string {
		return s + "#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=10000,RESOLUTION=16x8,CODECS=\"jpeg\",URI=\"tiles.m3u8\"\n"
	}))
	o.Respond = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		switch {
		case strings.HasSuffix(r.URL.Path, "/tiles.m3u8"):
			w.Header().Set("Content-Type", "application/vnd.apple.mpegurl")
			_, _ = w.Write([]byte(change(playlist)))
		case strings.HasSuffix(r.URL.Path, "/sheet.jpg"):
			_, _ = w.Write(sheet.Bytes())
		default:
			w.Header().Del("Access-Control-Allow-Origin")
			return false
		}
		return true
	}
	return o
}

func same(s string) string { return s }

func TestTiles(t *testing.T) {
	t.Parallel()
	r := watch(t, winding(same, 32, 16), Options{Follow: 2 * time.Second, LowLatency: true})
	if found(r, "image-playlist") || found(r, "image-tiles") || found(r, "tag-known") || found(r, "tag-place") ||
		found(r, "bandwidth") || found(r, "attributes") {
		t.Errorf("%s", r)
	}
	if u := r.Unchecked("image-playlist", "image-tiles"); len(u) > 0 {
		t.Errorf("rules never applied: %v", u)
	}
}
