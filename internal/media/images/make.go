package images

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/draw"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

// thumbnail is one picture.
func (m *Maker) thumbnail(ctx context.Context, f *Video, p *Plan) ([]byte, error) {
	var out *image.RGBA
	if err := m.still(ctx, f, p, func(r io.Reader) (err error) {
		out, err = readShaped(r, &p.Request)
		return err
	}); err != nil {
		return nil, err
	}
	return m.write(ctx, out, p.Ext)
}

// still decodes the picture that a thumbnail shows.
func (m *Maker) still(ctx context.Context, f *Video, p *Plan, output func(io.Reader) error) error {
	find := f.exact
	switch {
	case math.IsNaN(p.at):
		find = f.newest
	case p.key:
		find = f.near
	}
	c, err := find(ctx, p.at)
	if err != nil {
		return err
	}
	job := encode.ImageJob{Input: c.write, Output: output}
	if of := videoRange(c.init); of != frame.SDR {
		return m.opt.Encoder.Picture(ctx, of, job)
	}
	return m.opt.Pictures.Do(ctx, job)
}

// newest is the newest key frame of what is live, whatever the time.
func (v *Video) newest(ctx context.Context, _ float64) (clip, error) {
	if v.Newest == nil {
		return clip{}, notLive()
	}
	n, segment, err := v.Newest(ctx)
	if err != nil {
		return clip{}, err
	}
	head, err := v.Source.Init(ctx, n)
	if err != nil {
		return clip{}, fmt.Errorf("read init segment: %w", err)
	}
	s, err := firstSample(bytes.NewReader(segment))
	if err != nil {
		return clip{}, err
	}
	return single(head, s, v.video().Timescale), nil
}

// quality of JPEG, from 1 to 100.
const quality = 85

// write gives a picture its form.
func (m *Maker) write(ctx context.Context, p *image.RGBA, ext string) ([]byte, error) {
	var b bytes.Buffer
	switch ext {
	case "jpg":
		err := jpeg.Encode(&b, p, &jpeg.Options{Quality: quality})
		return b.Bytes(), err
	case "png":
		err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, p)
		return b.Bytes(), err
	}
	err := m.opt.WebPs.Do(ctx, encode.ImageJob{
		Input: func(_ context.Context, w io.Writer) error { return writePAM(w, p) },
		Output: func(r io.Reader) error {
			return collect(&b, r)
		},
	})
	return b.Bytes(), err
}

// maxImage bounds what an encoder may give, in bytes.
const maxImage = 64 << 20

func collect(b *bytes.Buffer, r io.Reader) error {
	n, err := b.ReadFrom(io.LimitReader(r, maxImage+1))
	switch {
	case err != nil:
		return fmt.Errorf("read image: %w", err)
	case n > maxImage:
		return fault.New(fault.TooLarge, "the image has more than %d bytes", maxImage)
	case n == 0:
		return errors.New("the encoder gave nothing")
	}
	return nil
}

// proportions decodes one picture for its size: what the parameters of a stream say is not yet turned, and pixels may
// not be square.
func (m *Maker) proportions(ctx context.Context, f *Video, t float64) (w, h int, err error) {
	err = m.still(ctx, f, &Plan{at: t, key: true}, func(r io.Reader) (err error) {
		w, h, err = readHead(bufio.NewReader(r))
		return err
	})
	return w, h, err
}

func (m *Maker) animation(ctx context.Context, f *Video, p *Plan) ([]byte, error) {
	sw, sh, err := m.proportions(ctx, f, p.Start)
	if err != nil {
		return nil, err
	}
	width := p.Width
	if width == 0 && p.Height == 0 {
		width = defaultWidth
	}
	w, h := fitted(sw, sh, width, p.Height, Preserve)
	if most := max(w, h); most > maxAnimatedSide {
		w, h = max(1, w*maxAnimatedSide/most), max(1, h*maxAnimatedSide/most)
	}
	c, err := f.clip(ctx, p.Start, p.length)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	args := encode.AnimationArgs{
		WebP: p.Ext == "webp", Width: w, Height: h, FPS: p.FPS, Length: span(p.length),
		Range: videoRange(c.init),
	}
	err = m.opt.Encoder.Animation(ctx, args, encode.ImageJob{
		Input:  c.write,
		Output: func(r io.Reader) error { return collect(&b, r) },
	})
	return b.Bytes(), err
}

// storyboard is the picture of all tiles, or the layout of its text.
func (m *Maker) storyboard(ctx context.Context, f *Video, p *Plan) ([]byte, error) {
	w, h, err := m.proportions(ctx, f, p.Start+p.length/2)
	if err != nil {
		return nil, err
	}
	l := layout(p.length, w, h)
	if p.Text() {
		return json.Marshal(l)
	}
	w, h = l.size()
	board := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := 3; i < len(board.Pix); i += 4 {
		board.Pix[i] = 255
	}
	// A tile shows the key frame that its middle's segment begins with. Those of one init segment are decoded together.
	from := make([]int, len(l.Tiles))
	for i, t := range l.Tiles {
		from[i] = f.at(p.Start + (t.Start+l.end(i))/2)
	}
	for i := 0; i < len(from); {
		n := 1
		for i+n < len(from) && f.video().Chunks[from[i+n]].Init == f.video().Chunks[from[i]].Init {
			n++
		}
		if err := m.tiles(ctx, f, &l, board, i, from[i:i+n]); err != nil {
			return nil, err
		}
		i += n
	}
	return m.write(ctx, board, p.Ext)
}

// tiles decodes key frames of one init segment and draws them as tiles from the first one on.
func (m *Maker) tiles(ctx context.Context, f *Video, l *Layout, board *image.RGBA, first int, from []int) error {
	distinct := []int{from[0]}
	for _, i := range from[1:] {
		if i != distinct[len(distinct)-1] {
			distinct = append(distinct, i)
		}
	}
	rendition := f.video()
	head, err := f.Source.Init(ctx, rendition.Chunks[from[0]].Init)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	tile := image.NewRGBA(image.Rect(0, 0, l.TileWidth, l.TileHeight))
	args := encode.TilesArgs{
		Width: l.TileWidth, Height: l.TileHeight, Range: videoRange(head), Count: len(distinct),
	}
	return m.opt.Encoder.Tiles(ctx, args, encode.ImageJob{
		Input: func(ctx context.Context, w io.Writer) error { return f.feed(ctx, w, head, distinct) },
		Output: func(r io.Reader) error {
			drawn := 0
			for k, i := range distinct {
				// Pictures at the end that can't be decoded are missing: the last one that can stands for them.
				if _, err := io.ReadFull(r, tile.Pix); err != nil && (k == 0 || !errors.Is(err, io.EOF)) {
					return fmt.Errorf("read tile: %w", err)
				}
				for ; drawn < len(from) && from[drawn] == i; drawn++ {
					t := l.Tiles[first+drawn]
					draw.Draw(board, tile.Rect.Add(image.Pt(t.X, t.Y)), tile, image.Point{}, draw.Src)
				}
			}
			return nil
		},
	})
}

// feed writes the first pictures of segments, a second each.
func (v *Video) feed(ctx context.Context, w io.Writer, head []byte, segments []int) error {
	if _, err := w.Write(head); err != nil {
		return err // the engine says what was written
	}
	scale := v.video().Timescale
	for k, i := range segments {
		s, err := v.head(ctx, i)
		if err != nil {
			return err
		}
		s.Duration = scale
		if _, err := w.Write(cmaf.AppendFragment(nil, uint32(k+1), cmaf.TrackID, uint64(k)*uint64(scale),
			[]cmaf.Sample{s})); err != nil {
			return err
		}
	}
	return nil
}
