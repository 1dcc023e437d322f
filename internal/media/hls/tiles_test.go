package hls_test

import (
	"testing"
	"time"

	"millrace/internal/media/hls"
)

func TestTiles(t *testing.T) {
	t.Parallel()
	tiles := hls.Tiles{Width: 256, Height: 144, Columns: 5, Rows: 10, Images: []hls.Tiled{
		{URI: "../storyboard.jpg?asset_end_time=400&asset_start_time=0", Duration: 400 * time.Second},
		{URI: "../storyboard.jpg?asset_end_time=800.5&asset_start_time=400", Duration: 400500 * time.Millisecond},
	}}
	want := `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:401
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-IMAGES-ONLY
#EXTINF:400.000000,
#EXT-X-TILES:RESOLUTION=256x144,LAYOUT=5x10,DURATION=8.000000
../storyboard.jpg?asset_end_time=400&asset_start_time=0
#EXTINF:400.500000,
#EXT-X-TILES:RESOLUTION=256x144,LAYOUT=5x10,DURATION=8.010000
../storyboard.jpg?asset_end_time=800.5&asset_start_time=400
#EXT-X-ENDLIST
`
	if got := string(tiles.Append(nil)); got != want {
		t.Errorf("got\n%s", got)
	}
	m := hls.Multivariant{
		Variants: []hls.Variant{{Bandwidth: 1, URI: "v.m3u8"}}, Tiles: &tiles, TilesURI: "x/tiles.m3u8",
	}
	want = `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-STREAM-INF:BANDWIDTH=1
v.m3u8
#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=13824,RESOLUTION=256x144,CODECS="jpeg",URI="x/tiles.m3u8"
`
	if got := string(m.Append(nil)); got != want {
		t.Errorf("got\n%s", got)
	}
}
