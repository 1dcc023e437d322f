package images

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/draw"
)

// shape brings a picture into the form that is asked for: turned, flipped, then fitted.
func shape(src *image.RGBA, r *Request) *image.RGBA {
	src = flip(rotate(src, r.Rotate), r.FlipH, r.FlipV)
	from := src.Bounds()
	w, h := fitted(from.Dx(), from.Dy(), r.Width, r.Height, r.Fit)
	switch r.Fit {
	case Crop:
		from = window(from, w, h, 0.5, 0.5)
	case Smartcrop:
		x, y := interest(src, window(from, w, h, 0, 0).Size())
		from = window(from, w, h, x, y)
	case Pad:
		iw, ih := fitted(from.Dx(), from.Dy(), w, h, Preserve)
		out := image.NewRGBA(image.Rect(0, 0, w, h))
		draw.Draw(out, out.Bounds(), image.NewUniform(color.Black), image.Point{}, draw.Src)
		x, y := (w-iw)/2, (h-ih)/2
		scale(out, image.Rect(x, y, x+iw, y+ih), src, from)
		return out
	case Preserve, Stretch:
	}
	if from.Dx() == w && from.Dy() == h && from == src.Bounds() {
		return src
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	scale(out, out.Bounds(), src, from)
	return out
}

// onlyScales reports whether all of a picture is shown as it stands.
func (r *Request) onlyScales() bool {
	return r.Rotate == 0 && !r.FlipH && !r.FlipV && (r.Fit == Preserve || r.Fit == Stretch)
}

// scale draws a stretch of a picture. A kernel that looks far is worth it only where pixels have to be made up: one, by
// rounding.
func scale(dst *image.RGBA, to image.Rectangle, src *image.RGBA, from image.Rectangle) {
	if to.Dx() > from.Dx() || to.Dy() > from.Dy() {
		draw.ApproxBiLinear.Scale(dst, to, src, from, draw.Src, nil)
		return
	}
	y := from.Min.Y - 1
	_ = shrink(dst, to, from.Size(), func() ([]byte, error) { // every row is there
		y++
		at := src.PixOffset(from.Min.X, y)
		return src.Pix[at : at+4*from.Dx()], nil
	})
}

// cover says which entries of a longer row one of a shorter row covers, and by how much of one; shares add up to 1<<16.
type cover struct {
	first  int
	shares []uint32
}

// covers are those of `to` entries over `from`, of which there are as many or more.
func covers(from, to int) []cover {
	out := make([]cover, to)
	for i := range out {
		begin, end := i*from, (i+1)*from // in parts of which an entry has `to`
		c := cover{first: begin / to}
		for at := begin; at < end; {
			next := min((at/to+1)*to, end)
			c.shares = append(c.shares, uint32((next-begin)<<16/from-(at-begin)<<16/from))
			at = next
		}
		out[i] = c
	}
	return out
}

// shrink gives each pixel the mean of the opaque ones that it covers, of a picture of a size whose rows next gives from
// the top. (Kernels of x/image take several times as long as decoding the picture.)
func shrink(dst *image.RGBA, to image.Rectangle, size image.Point, next func() ([]byte, error)) error {
	columns, rows := covers(size.X, to.Dx()), covers(size.Y, to.Dy())
	sums := make([]uint32, 4*size.X)
	var pix []byte
	var err error
	at := -1 // which row pix is
	for y, row := range rows {
		clear(sums)
		for i, share := range row.shares {
			for ; at < row.first+i; at++ {
				if pix, err = next(); err != nil {
					return err
				}
			}
			add(sums, pix, share)
		}
		out := dst.Pix[dst.PixOffset(to.Min.X, to.Min.Y+y):]
		for x, column := range columns {
			const half = 1 << 23
			r, g, b := uint64(half), uint64(half), uint64(half)
			for i, share := range column.shares {
				s := sums[4*(column.first+i):]
				r, g, b = r+uint64(s[0]>>8)*uint64(share), g+uint64(s[1]>>8)*uint64(share),
					b+uint64(s[2]>>8)*uint64(share)
			}
			out[4*x], out[4*x+1], out[4*x+2], out[4*x+3] = uint8(r>>24), uint8(g>>24), uint8(b>>24), 255
		}
	}
	return nil
}

// add adds a share of a row's colours to their sums.
func add(sums []uint32, pix []byte, share uint32) {
	for k := 0; k+4 <= len(sums) && k+4 <= len(pix); k += 4 {
		s, p := sums[k:k+4:k+4], pix[k:k+4:k+4]
		s[0] += uint32(p[0]) * share
		s[1] += uint32(p[1]) * share
		s[2] += uint32(p[2]) * share
	}
}

// fitted is the size of what a picture of sw by sh becomes; 0 for a side that is not given. Nothing is enlarged: what
// is asked for in a larger size has the shape that was asked for, with the pixels that there are.
func fitted(sw, sh, w, h int, f Fit) (int, int) {
	across, down := float64(w)/float64(sw), float64(h)/float64(sh)
	s := 1.0
	switch {
	case w > 0 && h > 0 && f == Stretch:
		return scaled(w, h, 1/max(across, down))
	case w > 0 && h > 0 && f == Pad:
		return scaled(w, h, 1/min(across, down))
	case w > 0 && h > 0 && f != Preserve:
		cut := window(image.Rect(0, 0, sw, sh), w, h, 0, 0)
		return scaled(w, h, min(float64(cut.Dx())/float64(w), float64(cut.Dy())/float64(h)))
	case w > 0 && h > 0:
		s = min(across, down)
	case w > 0:
		s = across
	case h > 0:
		s = down
	}
	return scaled(sw, sh, s)
}

// scaled is w by h made smaller, so that no side is longer than maxSide either.
func scaled(w, h int, s float64) (int, int) {
	s = min(s, 1, float64(maxSide)/float64(max(w, h)))
	side := func(v int) int { return min(max(1, int(math.Round(float64(v)*s))), maxSide) }
	return side(w), side(h)
}

// window is the largest stretch of a picture that has the shape of w by h; x and y say where in the rest, from 0 to 1.
func window(from image.Rectangle, w, h int, x, y float64) image.Rectangle {
	cw, ch := from.Dx(), from.Dy()
	if cw*h > ch*w {
		cw = max(1, int(math.Round(float64(ch)*float64(w)/float64(h))))
	} else {
		ch = max(1, int(math.Round(float64(cw)*float64(h)/float64(w))))
	}
	left := from.Min.X + int(math.Round(x*float64(from.Dx()-cw)))
	top := from.Min.Y + int(math.Round(y*float64(from.Dy()-ch)))
	return image.Rect(left, top, left+cw, top+ch)
}

// coarse is how long the longer side of the picture is in which interest looks, in pixels.
const coarse = 160

// interest says where a window of a size is to be put so that it holds as much detail as it can; of equal places the
// one nearest to the middle. It is sought in a small copy of the picture: detail is what differs from its neighbours.
func interest(src *image.RGBA, size image.Point) (x, y float64) {
	b := src.Bounds()
	slack := b.Size().Sub(size)
	if slack.X <= 0 && slack.Y <= 0 {
		return 0.5, 0.5
	}
	k := min(1, coarse/float64(max(b.Dx(), b.Dy())))
	w, h := max(2, int(float64(b.Dx())*k)), max(2, int(float64(b.Dy())*k))
	small := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.BiLinear.Scale(small, small.Bounds(), src, b, draw.Src, nil)
	columns, rows := detail(small)
	if slack.X > 0 {
		x = best(columns, int(math.Round(float64(size.X)*k)))
	}
	if slack.Y > 0 {
		y = best(rows, int(math.Round(float64(size.Y)*k)))
	}
	return x, y
}

// detail sums up, for each column and each row, by how much pixels differ from the ones to their right and below.
func detail(p *image.RGBA) (columns, rows []float64) {
	w, h := p.Rect.Dx(), p.Rect.Dy()
	columns, rows = make([]float64, w), make([]float64, h)
	luma := func(x, y int) float64 {
		i := y*p.Stride + 4*x
		return 0.299*float64(p.Pix[i]) + 0.587*float64(p.Pix[i+1]) + 0.114*float64(p.Pix[i+2])
	}
	for y := range h - 1 {
		for x := range w - 1 {
			v := luma(x, y)
			d := math.Abs(luma(x+1, y)-v) + math.Abs(luma(x, y+1)-v)
			columns[x] += d
			rows[y] += d
		}
	}
	return columns, rows
}

// best is where in the rest the window of n entries with the largest sum lies, from 0 to 1.
func best(sums []float64, n int) float64 {
	slack := len(sums) - n
	if slack <= 0 {
		return 0.5
	}
	sum := 0.0
	for _, v := range sums[:n] {
		sum += v
	}
	at, most := 0, math.Inf(-1)
	for i := 0; ; i++ {
		// Noise alone must not pull the window away from the middle.
		off := math.Abs(float64(i)/float64(slack) - 0.5)
		if score := sum * (1.05 - 0.1*off); score > most {
			at, most = i, score
		}
		if i == slack {
			return float64(at) / float64(slack)
		}
		sum += sums[i+n] - sums[i]
	}
}

// turn rotates clockwise.
func rotate(src *image.RGBA, degrees int) *image.RGBA {
	w, h := src.Rect.Dx(), src.Rect.Dy()
	switch degrees {
	case 180:
		return flip(src, true, true)
	case 90, 270:
	default:
		return src
	}
	out := image.NewRGBA(image.Rect(0, 0, h, w))
	for y := range h {
		for x := range w {
			to := x*out.Stride + 4*(h-1-y)
			if degrees == 270 {
				to = (w-1-x)*out.Stride + 4*y
			}
			copy(out.Pix[to:to+4], src.Pix[y*src.Stride+4*x:])
		}
	}
	return out
}

// flip mirrors: sideways, upside down.
func flip(src *image.RGBA, sideways, over bool) *image.RGBA {
	if !sideways && !over {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		row := y
		if over {
			row = h - 1 - y
		}
		if !sideways {
			copy(out.Pix[row*out.Stride:], src.Pix[y*src.Stride:y*src.Stride+4*w])
			continue
		}
		for x := range w {
			to := row*out.Stride + 4*(w-1-x)
			copy(out.Pix[to:to+4], src.Pix[y*src.Stride+4*x:])
		}
	}
	return out
}
