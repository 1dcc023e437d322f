package overlay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // its header is read
	_ "image/png"  // its header is read
	"strings"

	"millrace/internal/fault"
	"millrace/internal/media/codec/jpeg"
)

const (
	// MaxBytes bounds the file of an image.
	MaxBytes = 16 << 20
	// MaxSide bounds both sides of an image, in pixels.
	MaxSide = 4096
)

// ErrImage says that bytes are no image that can be laid over a picture; the rest of its text says why, for the person
// who gave it.
var ErrImage = errors.New("the overlay image can't be used")

// memory has room for one: it is held for as long as there is an image, which takes a hundred megabytes at most, and so
// do all there are together.
//
//nolint:gochecknoglobals // so is the process's memory
var memory = make(chan struct{}, 1)

// alone waits until no other image is in memory; release is called when this one is not any more.
func alone(ctx context.Context) (release func(), err error) {
	select {
	case memory <- struct{}{}:
		return func() { <-memory }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to decode overlay image: %w", context.Cause(ctx))
	}
}

// Check finds out from its header whether a PNG or a JPEG may be decoded at all; ErrImage says why not.
func Check(data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("%w: its file is larger than %d MB", ErrImage, MaxBytes>>20)
	}
	head, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || format != "png" && format != "jpeg" {
		return fmt.Errorf("%w: it is neither PNG nor JPEG", ErrImage)
	}
	if head.Width <= 0 || head.Height <= 0 || head.Width > MaxSide || head.Height > MaxSide {
		return fmt.Errorf("%w: it has %d x %d pixels, and %d x %d are the most", ErrImage, head.Width, head.Height,
			MaxSide, MaxSide)
	}
	if n := jpeg.Scans(data); format == "jpeg" && n > jpeg.MaxScans {
		return fmt.Errorf("%w: it has %d scans, and %d are the most", ErrImage, n, jpeg.MaxScans)
	}
	return nil
}

// Decoder turns the bytes of a PNG or a JPEG into its pixels; fault.Invalid says why it can't. encode.Engine's fits.
type Decoder func(ctx context.Context, data []byte) (image.Image, error)

// Load is a Layer's, of the bytes of a PNG or a JPEG. ErrImage says why they can't be used.
func (d Decoder) Load(ctx context.Context, data []byte) (image.Image, error) {
	if err := Check(data); err != nil {
		return nil, err
	}
	img, err := d(ctx, data)
	if fault.Is(err, fault.Invalid) {
		return nil, fmt.Errorf("%w: %s", ErrImage, strings.Join(fault.Messages(err), "; "))
	}
	return img, err
}

// Try finds out whether an image can be used; ErrImage says why not.
func (d Decoder) Try(ctx context.Context, data []byte) error {
	release, err := alone(ctx)
	if err != nil {
		return err
	}
	defer release()
	_, err = d.Load(ctx, data)
	return err
}

// Layer is an image and how it is to lie over the picture.
type Layer struct {
	Settings Settings
	// Load gives the image when it is to be drawn: only one at a time is in memory, of all that are drawn in the
	// process.
	Load func(ctx context.Context) (image.Image, error)
}

// Sheet is all there is to lie over a picture: pixels, with their transparency, and where the upper left one goes. Its
// edges are at even numbers, as 4:2:0 sampling wants.
type Sheet struct {
	Image *image.NRGBA
	At    image.Point
}

// Draw lays the layers over one another, the first at the bottom, as they are to be seen over a picture of w x h
// pixels; nil when nothing of them is.
func Draw(ctx context.Context, layers []Layer, w, h int) (*Sheet, error) {
	picture := image.Pt(w, h)
	var sheet *Sheet
	for _, l := range layers {
		var err error
		if sheet, err = l.draw(ctx, sheet, picture); err != nil {
			return nil, err
		}
	}
	if sheet != nil {
		sheet.bleed()
	}
	return sheet, nil
}

// draw returns the sheet, which may be nil, with the layer on it.
func (l Layer) draw(ctx context.Context, sheet *Sheet, picture image.Point) (*Sheet, error) {
	share, err := l.Settings.opacity()
	if err != nil {
		return nil, err
	}
	release, err := alone(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	img, err := l.Load(ctx)
	if err != nil {
		return nil, err
	}
	at, err := l.Settings.Place(img.Bounds().Size(), picture)
	if err != nil {
		return nil, err
	}
	seen := at.Intersect(image.Rectangle{Max: picture})
	if seen.Empty() || share == 0 {
		return sheet, nil
	}
	sheet = sheet.grown(seen)
	sheet.draw(img, at, seen, share)
	return sheet, nil
}

// grown is a sheet that covers r too.
func (s *Sheet) grown(r image.Rectangle) *Sheet {
	if s != nil {
		r = r.Union(s.Image.Rect.Add(s.At))
	}
	r = image.Rect(r.Min.X&^1, r.Min.Y&^1, (r.Max.X+1)&^1, (r.Max.Y+1)&^1)
	if s != nil && s.Image.Rect.Add(s.At) == r {
		return s
	}
	out := &Sheet{Image: image.NewNRGBA(image.Rectangle{Max: r.Size()}), At: r.Min}
	if s != nil {
		d := s.At.Sub(out.At)
		for y := range s.Image.Rect.Dy() {
			copy(out.Image.Pix[out.Image.PixOffset(d.X, d.Y+y):],
				s.Image.Pix[s.Image.PixOffset(0, y):][:4*s.Image.Rect.Dx()])
		}
	}
	return out
}

// pixel is red, green, blue and alpha, the colours multiplied by alpha; 1 is the most.
type pixel [4]float32

// draw scales an image to the place at, of which seen is to be seen, and lays it over what is there.
func (s *Sheet) draw(img image.Image, at, seen image.Rectangle, share float64) {
	from := img.Bounds()
	across, down := taps(from.Dx(), at.Min.X, at.Max.X, seen.Min.X, seen.Max.X),
		taps(from.Dy(), at.Min.Y, at.Max.Y, seen.Min.Y, seen.Max.Y)
	left, right := across[0].from, across[len(across)-1].from+len(across[len(across)-1].weights)
	row := make([]pixel, right-left)
	for y, t := range down {
		clear(row)
		for i, weight := range t.weights {
			add(row, img, from.Min.X+left, from.Min.Y+t.from+i, weight)
		}
		line := s.Image.Pix[s.Image.PixOffset(seen.Min.X-s.At.X, seen.Min.Y-s.At.Y+y):]
		for x, t := range across {
			var p pixel
			for i, weight := range t.weights {
				for c, v := range row[t.from-left+i] {
					p[c] += weight * v
				}
			}
			p.over(line[4*x:4*x+4:4*x+4], float32(share))
		}
	}
}

// add adds the pixels of a row of an image, from x on, times weight.
func add(row []pixel, img image.Image, x, y int, weight float32) {
	wide, _ := img.(image.RGBA64Image) // all that are decoded are
	for i := range row {
		var c color.RGBA64
		if wide != nil {
			c = wide.RGBA64At(x+i, y)
		} else {
			r, g, b, a := img.At(x+i, y).RGBA()
			c = color.RGBA64{uint16(r), uint16(g), uint16(b), uint16(a)}
		}
		f := weight / 0xffff
		p := &row[i]
		p[0] += f * float32(c.R)
		p[1] += f * float32(c.G)
		p[2] += f * float32(c.B)
		p[3] += f * float32(c.A)
	}
}

// over lays a pixel over one whose colours are not multiplied.
func (p pixel) over(below []byte, share float32) {
	under := float32(below[3]) / 255 * (1 - p[3]*share)
	alpha := p[3]*share + under
	if alpha <= 0 {
		return
	}
	for c := range 3 {
		below[c] = eight((p[c]*share + float32(below[c])/255*under) / alpha)
	}
	below[3] = eight(alpha)
}

func eight(v float32) byte { return byte(min(max(v*255+0.5, 0), 255)) }

// tap is what a pixel of a scaled line is made of: so much of each pixel from one on.
type tap struct {
	from    int
	weights []float32
}

// taps are those of the pixels [first, last) when a line of n pixels is scaled to lie from begin to end: each is the
// mean of those it covers, and between two of them where it is smaller than one.
func taps(n, begin, end, first, last int) []tap {
	scale := float64(n) / float64(end-begin)
	reach := max(scale, 1)
	out := make([]tap, last-first)
	for i := range out {
		middle := (float64(first+i-begin)+0.5)*scale - 0.5
		lowest, highest := max(int(middle-reach)+1, 0), min(int(middle+reach), n-1)
		if highest < lowest {
			lowest = min(max(int(middle+0.5), 0), n-1)
			highest = lowest
		}
		t := tap{from: lowest, weights: make([]float32, highest-lowest+1)}
		sum := float32(0)
		for k := range t.weights {
			away := float64(lowest+k) - middle
			t.weights[k] = float32(max(1-max(away, -away)/reach, 0))
			sum += t.weights[k]
		}
		for k := range t.weights {
			if sum > 0 {
				t.weights[k] /= sum
			} else {
				t.weights[k] = 1 / float32(len(t.weights))
			}
		}
		out[i] = t
	}
	return out
}

// bleed gives pixels that are not seen the colour of those beside them: in 4:2:0 four have one colour, and what is not
// seen would darken the edge of what is.
func (s *Sheet) bleed() {
	for y := 0; y < s.Image.Rect.Dy(); y += 2 {
		for x := 0; x < s.Image.Rect.Dx(); x += 2 {
			var four [4][]byte
			for i := range four {
				four[i] = s.Image.Pix[s.Image.PixOffset(x+i%2, y+i/2):][:4]
			}
			var sum [3]int
			seen := 0
			for _, p := range four {
				if p[3] > 0 {
					seen++
					for c := range sum {
						sum[c] += int(p[c])
					}
				}
			}
			if seen == 0 || seen == len(four) {
				continue
			}
			for _, p := range four {
				if p[3] == 0 {
					for c := range sum {
						p[c] = byte(sum[c] / seen)
					}
				}
			}
		}
	}
}
