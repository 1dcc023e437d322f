package images

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"millrace/internal/fault"
)

// Layout is where the pictures of a storyboard are, as its JSON says.
type Layout struct {
	URL        string  `json:"url"`
	TileWidth  int     `json:"tile_width"`  // pixels
	TileHeight int     `json:"tile_height"` // pixels
	Duration   float64 `json:"duration"`    // seconds
	Tiles      []Tile  `json:"tiles"`
}

// Tile is one picture of a storyboard.
type Tile struct {
	Start float64 `json:"start"` // seconds from the storyboard's start
	X     int     `json:"x"`     // pixels
	Y     int     `json:"y"`
}

const (
	// perRow is how many tiles stand side by side.
	perRow = 5
	// fewTiles stand for what is shorter than long, in seconds; else many do.
	fewTiles, manyTiles, long = 50, 100, 15 * 60
	// tileSide is the longer side of a tile, in pixels.
	tileSide = 256
)

// layout places the tiles for so many seconds of pictures that are w by h.
func layout(seconds float64, w, h int) Layout {
	n := fewTiles
	if seconds >= long {
		n = manyTiles
	}
	k := tileSide / float64(max(w, h, 1))
	side := func(v int) int { return max(2, int(math.Round(float64(v)*k/2))*2) }
	l := Layout{TileWidth: side(w), TileHeight: side(h), Duration: seconds}
	for i := range n {
		l.Tiles = append(l.Tiles, Tile{
			Start: milliseconds(seconds * float64(i) / float64(n)),
			X:     i % perRow * l.TileWidth, Y: i / perRow * l.TileHeight,
		})
	}
	return l
}

// end is when tile i's time is over.
func (l *Layout) end(i int) float64 {
	if i+1 < len(l.Tiles) {
		return l.Tiles[i+1].Start
	}
	return l.Duration
}

// size of the whole, in pixels.
func (l *Layout) size() (w, h int) {
	return perRow * l.TileWidth, (len(l.Tiles) + perRow - 1) / perRow * l.TileHeight
}

// Words writes the text of a storyboard from what was kept of it; base is the address of its video, without a slash at
// the end.
func (p *Plan) Words(kept []byte, base string) ([]byte, error) {
	var l Layout
	if err := json.Unmarshal(kept, &l); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the storyboard's layout can't be read")
	}
	l.URL = base + "/storyboard." + p.Format + p.rangeOf()
	if p.Ext == "json" {
		return json.Marshal(l)
	}
	var b strings.Builder
	b.WriteString("WEBVTT\n")
	for i, t := range l.Tiles {
		fmt.Fprintf(&b, "\n%s --> %s\n%s#xywh=%d,%d,%d,%d\n", clock(t.Start), clock(l.end(i)), l.URL, t.X, t.Y,
			l.TileWidth, l.TileHeight)
	}
	return []byte(b.String()), nil
}

// rangeOf is the query of the pictures that belong to a text; empty where it is about the whole.
func (p *Plan) rangeOf() string {
	v := url.Values{}
	for name, t := range map[string]float64{
		"asset_start_time": p.asked[0], "asset_end_time": p.asked[1], "program_start_time": p.asked[2],
		"program_end_time": p.asked[3],
	} {
		if !math.IsNaN(t) {
			v.Set(name, decimal(t))
		}
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

// clock is a time as WebVTT writes it.
func clock(s float64) string {
	ms := span(s).Round(time.Millisecond).Milliseconds()
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3600000, ms/60000%60, ms/1000%60, ms%1000)
}
