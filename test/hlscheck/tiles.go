package hlscheck

import (
	"bytes"
	"context"
	"image/jpeg"
	"math"
	"net/http"
	"strings"
)

// tileStream is EXT-X-IMAGE-STREAM-INF.
type tileStream struct {
	uri, resolution string
	bandwidth       int
}

// checkTiles follows the image media playlists: every image is there, has the tiles that are announced, and takes no
// more than is said.
func (c *checker) checkTiles(ctx context.Context) error {
	for _, s := range c.master.tiles {
		u := c.resolve(c.o.URL, s.uri)
		a, err := c.fetchPlaylist(ctx, u)
		if err != nil {
			return err
		}
		if !c.check("status", a.status == http.StatusOK, u, "status %d", a.status) {
			continue
		}
		if err := c.checkSheets(ctx, u, s, string(a.body)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkSheets(ctx context.Context, u string, s tileStream, text string) error {
	say := func(rule string, ok bool, format string, args ...any) { c.check(rule, ok, u, format, args...) }
	list := lines(text, say)
	tags(list, false, say)
	c.check("image-playlist", strings.Contains(text, "\n#EXT-X-IMAGES-ONLY\n"), u, "it has no EXT-X-IMAGES-ONLY")
	var long, tile, target float64
	var size, layout string
	for _, l := range list {
		name, value, _ := strings.Cut(l, ":")
		switch {
		case name == "#EXT-X-TARGETDURATION":
			target = seconds(value)
		case name == "#EXTINF":
			long = seconds(strings.TrimSuffix(value, ","))
			c.check("target-duration", math.Round(long) <= target, u, "EXTINF %v, target duration %v", long, target)
		case name == "#EXT-X-TILES":
			a := parseAttributes("EXT-X-TILES", value, say)
			a.require(say, "EXT-X-TILES", "RESOLUTION", "LAYOUT", "DURATION")
			size, layout, tile = a.text("RESOLUTION"), a.text("LAYOUT"), a.number("DURATION")
			c.check("image-playlist", size == s.resolution, u, "RESOLUTION of tiles is %s, announced as %s", size,
				s.resolution)
		case l != "" && !strings.HasPrefix(l, "#"):
			if err := c.checkSheet(ctx, c.resolve(u, l), s, size, layout, tile, long); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) checkSheet(
	ctx context.Context, u string, s tileStream, size, layout string, tile, long float64,
) error {
	a, err := c.fetch(ctx, http.MethodGet, u, "")
	if err != nil {
		return err
	}
	if !c.check("status", a.status == http.StatusOK, u, "status %d", a.status) {
		return nil
	}
	picture, err := jpeg.Decode(bytes.NewReader(a.body))
	if !c.check("image-tiles", err == nil, u, "it is no JPEG: %v", err) {
		return nil
	}
	w, h := pair(size)
	columns, rows := pair(layout)
	b := picture.Bounds()
	c.check("image-tiles", b.Dx() == w*columns && b.Dy() == h*rows, u,
		"it has %dx%d pixels, %s tiles of %s were announced", b.Dx(), b.Dy(), layout, size)
	c.check("image-tiles", math.Abs(tile*float64(columns*rows)-long) < 0.01, u, "%d tiles of %v s are not %v s",
		columns*rows, tile, long)
	c.check("bandwidth", float64(len(a.body)*8) <= float64(s.bandwidth)*long, u,
		"it has %d bytes for %v s, BANDWIDTH is %d", len(a.body), long, s.bandwidth)
	return nil
}

// pair reads two numbers with an x between; 0 for what is none.
func pair(s string) (a, b int) {
	x, y, _ := strings.Cut(s, "x")
	return int(seconds(x)), int(seconds(y))
}

func seconds(s string) float64 { return attributes{values: map[string]string{"X": s}}.number("X") }
