package hls

import (
	"math"
	"strconv"
	"time"
)

// Tiles is an image media playlist for trick play, several pictures in each image. It is no part of RFC 8216bis;
// players of Roku and others read it as the "HLS Image Media Playlist" specification has it.
type Tiles struct {
	Width, Height int // of a tile, in pixels
	Columns, Rows int
	Images        []Tiled
}

// Tiled is one image; its tiles share its time equally.
type Tiled struct {
	URI      string
	Duration time.Duration
}

// TilesURI names the image media playlist of a presentation, beside those of its renditions.
const TilesURI = "tiles.m3u8"

// bitsPerPixel is the most that a pixel of a JPEG takes that is still called a photograph.
const bitsPerPixel = 3

// Bandwidth is an upper bound of the bits per second that the images take.
func (t *Tiles) Bandwidth() int64 {
	shortest := time.Duration(math.MaxInt64)
	for _, i := range t.Images {
		shortest = min(shortest, i.Duration)
	}
	bits := float64(t.Width*t.Columns) * float64(t.Height*t.Rows) * bitsPerPixel
	return int64(math.Ceil(bits / max(shortest.Seconds(), 0.001)))
}

// Append appends the playlist's text to b.
func (t *Tiles) Append(b []byte) []byte {
	longest := time.Duration(0)
	for _, i := range t.Images {
		longest = max(longest, i.Duration)
	}
	b = append(b, "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:"...)
	b = strconv.AppendInt(b, max(int64(math.Round(longest.Seconds())), 1), 10)
	b = append(b, "\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-IMAGES-ONLY\n"...)
	for _, i := range t.Images {
		b = append(b, "#EXTINF:"...)
		b = appendSeconds(b, i.Duration)
		b = append(b, ",\n#EXT-X-TILES:RESOLUTION="...)
		b = t.appendSize(b)
		b = append(b, ",LAYOUT="...)
		b = strconv.AppendInt(b, int64(t.Columns), 10)
		b = append(b, 'x')
		b = strconv.AppendInt(b, int64(t.Rows), 10)
		b = append(b, ",DURATION="...)
		b = appendSeconds(b, i.Duration/time.Duration(max(t.Columns*t.Rows, 1)))
		b = append(b, '\n')
		b = append(b, i.URI...)
		b = append(b, '\n')
	}
	return append(b, "#EXT-X-ENDLIST\n"...)
}

func (t *Tiles) appendSize(b []byte) []byte {
	b = strconv.AppendInt(b, int64(t.Width), 10)
	b = append(b, 'x')
	return strconv.AppendInt(b, int64(t.Height), 10)
}

// appendStream writes EXT-X-IMAGE-STREAM-INF, which leads to the playlist at uri.
func (t *Tiles) appendStream(b []byte, uri string) []byte {
	b = append(b, "#EXT-X-IMAGE-STREAM-INF:BANDWIDTH="...)
	b = strconv.AppendInt(b, t.Bandwidth(), 10)
	b = append(b, ",RESOLUTION="...)
	b = t.appendSize(b)
	b = appendQuoted(b, "CODECS", "jpeg")
	b = appendQuoted(b, "URI", uri)
	return append(b, '\n')
}
