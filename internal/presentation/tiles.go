package presentation

import (
	"context"
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/images"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// sheet is the most that an image with an image playlist for trick play is about, in seconds: one every ten seconds.
const sheet = 500

func errNoTiles() error {
	return fault.New(fault.NotFound, "there is no image playlist for trick play")
}

// Tiles implements playback.Presentation: of what is live there are none.
func (l *live) Tiles(context.Context, playback.Clip) (*hls.Tiles, error) { return nil, errNoTiles() }

// Tiles implements playback.Presentation: the images are storyboards of equally long pieces. Of what still grows there
// are none.
func (rec *recorded) Tiles(ctx context.Context, c playback.Clip) (*hls.Tiles, error) {
	from, to := rec.within(c)
	if !rec.whole || rec.p.opt.Images == nil || rec.timeline.Rendition(timeline.MainVideo) == nil || from >= to {
		return nil, errNoTiles()
	}
	begin, end := rec.spans[from], rec.spans[to]
	n := max(int(math.Ceil((end-begin)/sheet)), 1)
	border := func(i int) float64 { return math.Round((begin+(end-begin)*float64(i)/float64(n))*1000) / 1000 }
	query := func(i int) string {
		number := func(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) }
		return url.Values{"asset_start_time": {number(border(i))}, "asset_end_time": {number(border(i + 1))}}.Encode()
	}
	board, err := rec.Image(ctx, "storyboard.json", query(0), "")
	if err != nil {
		return nil, err
	}
	data, err := delivered.Bytes(board.Body, nil)
	if err != nil {
		return nil, err
	}
	var l images.Layout
	if err := json.Unmarshal(data, &l); err != nil || len(l.Tiles) == 0 {
		return nil, fault.Wrap(fault.Internal, err, "the storyboard's layout can't be read")
	}
	t := &hls.Tiles{Width: l.TileWidth, Height: l.TileHeight}
	for t.Columns < len(l.Tiles) && l.Tiles[t.Columns].Y == 0 {
		t.Columns++
	}
	t.Rows = len(l.Tiles) / t.Columns
	for i := range n {
		long := border(i+1) - border(i)
		t.Images = append(t.Images, hls.Tiled{
			URI:      "../storyboard.jpg?" + query(i),
			Duration: time.Duration(math.Round(long*1000)) * time.Millisecond,
		})
	}
	return t, nil
}
