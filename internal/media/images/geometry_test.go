package images

import (
	"bytes"
	"image"
	"image/color"
	"testing"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
)

var (
	red   = color.RGBA{255, 0, 0, 255}
	green = color.RGBA{0, 255, 0, 255}
	blue  = color.RGBA{0, 0, 255, 255}
	white = color.RGBA{255, 255, 255, 255}
	black = color.RGBA{0, 0, 0, 255}
)

// quarters is a picture of w by h whose quarters are red, green, blue and white, clockwise from the upper left.
func quarters(w, h int) *image.RGBA {
	p := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := red
			switch {
			case x >= w/2 && y < h/2:
				c = green
			case x >= w/2:
				c = blue
			case y >= h/2:
				c = white
			}
			p.SetRGBA(x, y, c)
		}
	}
	return p
}

// corners are the colours near the four corners, clockwise from the upper left.
func corners(p *image.RGBA) [4]color.RGBA {
	w, h := p.Rect.Dx()-1, p.Rect.Dy()-1
	return [4]color.RGBA{p.RGBAAt(0, 0), p.RGBAAt(w, 0), p.RGBAAt(w, h), p.RGBAAt(0, h)}
}

func TestShape(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		r    Request
		w, h int
		want [4]color.RGBA
	}{
		"as it is":        {Request{}, 64, 32, [4]color.RGBA{red, green, blue, white}},
		"by 90":           {Request{Rotate: 90}, 32, 64, [4]color.RGBA{white, red, green, blue}},
		"by 180":          {Request{Rotate: 180}, 64, 32, [4]color.RGBA{blue, white, red, green}},
		"by 270":          {Request{Rotate: 270}, 32, 64, [4]color.RGBA{green, blue, white, red}},
		"sideways":        {Request{FlipH: true}, 64, 32, [4]color.RGBA{green, red, white, blue}},
		"over":            {Request{FlipV: true}, 64, 32, [4]color.RGBA{white, blue, green, red}},
		"turned, flipped": {Request{Rotate: 90, FlipH: true}, 32, 64, [4]color.RGBA{red, white, blue, green}},
		"by width":        {Request{Width: 16}, 16, 8, [4]color.RGBA{red, green, blue, white}},
		"by height":       {Request{Height: 8}, 16, 8, [4]color.RGBA{red, green, blue, white}},
		"larger":          {Request{Width: 128}, 64, 32, [4]color.RGBA{red, green, blue, white}},
		"larger, both":    {Request{Width: 3840, Height: 3840}, 64, 32, [4]color.RGBA{red, green, blue, white}},
		"stretched large": {
			Request{Width: 3840, Height: 3840, Fit: Stretch}, 32, 32, [4]color.RGBA{red, green, blue, white},
		},
		"cropped large": {
			Request{Width: 3840, Height: 3840, Fit: Crop}, 32, 32, [4]color.RGBA{red, green, blue, white},
		},
		"padded large": {
			Request{Width: 3840, Height: 3840, Fit: Pad}, 64, 64, [4]color.RGBA{black, black, black, black},
		},
		"within":          {Request{Width: 16, Height: 16}, 16, 8, [4]color.RGBA{red, green, blue, white}},
		"turned by width": {Request{Width: 16, Rotate: 90}, 16, 32, [4]color.RGBA{white, red, green, blue}},
		"stretched": {
			Request{Width: 16, Height: 16, Fit: Stretch}, 16, 16, [4]color.RGBA{red, green, blue, white},
		},
		"cropped": {Request{Width: 16, Height: 16, Fit: Crop}, 16, 16, [4]color.RGBA{red, green, blue, white}},
		"padded": {
			Request{Width: 16, Height: 16, Fit: Pad}, 16, 16, [4]color.RGBA{black, black, black, black},
		},
		"padded sideways":  {Request{Width: 64, Height: 8, Fit: Pad}, 64, 8, [4]color.RGBA{black, black, black, black}},
		"never of nothing": {Request{Width: 1}, 1, 1, [4]color.RGBA{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.r.Fit == "" {
				tt.r.Fit = Preserve
			}
			got := shape(quarters(64, 32), &tt.r)
			if got.Rect != image.Rect(0, 0, tt.w, tt.h) {
				t.Fatalf("%v, want %d by %d", got.Rect, tt.w, tt.h)
			}
			if c := corners(got); tt.want != [4]color.RGBA{} && c != tt.want {
				t.Errorf("corners %v, want %v", c, tt.want)
			}
		})
	}
	middle := shape(quarters(64, 32), &Request{Width: 16, Height: 16, Fit: Pad})
	if middle.RGBAAt(0, 5) != red || middle.RGBAAt(15, 10) != blue || middle.RGBAAt(0, 3) != black ||
		middle.RGBAAt(0, 12) != black {
		t.Error("the padded picture is not in the middle")
	}
}

// However a size is asked for, no picture grows beyond what is bounded.
func TestSizesAreBounded(t *testing.T) {
	t.Parallel()
	for _, src := range []image.Point{{1, 1}, {3840, 1}, {1, 3840}, {1920, 1080}, {1080, 1920}} {
		for _, ask := range []image.Point{{}, {1, 0}, {0, 1}, {3840, 0}, {0, 3840}, {3840, 3840}, {1, 3840}} {
			for _, f := range []Fit{Preserve, Stretch, Crop, Smartcrop, Pad} {
				w, h := fitted(src.X, src.Y, ask.X, ask.Y, f)
				if w < 1 || h < 1 || max(w, h) > maxSide {
					t.Errorf("%v as %v, %s: %d by %d", src, ask, f, w, h)
				}
				if f != Pad && (w > src.X || h > src.Y) {
					t.Errorf("%v as %v, %s: %d by %d is larger than the source", src, ask, f, w, h)
				}
			}
		}
	}
}

// smartcrop finds what there is to see, wherever it is; crop does not look for it.
func TestSmartcrop(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 100, 250} {
		p := image.NewRGBA(image.Rect(0, 0, 320, 60))
		for y := range 60 {
			for x := range 320 {
				c := color.RGBA{90, 90, 90, 255}
				if x >= at && x < at+60 && (x/4+y/4)%2 == 0 {
					c = white
				}
				p.SetRGBA(x, y, c)
			}
		}
		bright := func(f Fit) (n int) {
			got := shape(p, &Request{Width: 60, Height: 60, Fit: f})
			for i := 0; i < len(got.Pix); i += 4 {
				if got.Pix[i] > 180 {
					n++
				}
			}
			return n
		}
		if smart, plain := bright(Smartcrop), bright(Crop); smart < 1400 || plain > smart {
			t.Errorf("at %d: %d bright pixels by smartcrop, %d by crop", at, smart, plain)
		}
	}
}

func TestPAM(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	want := quarters(7, 3)
	if err := writePAM(&b, want); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	asIs := Request{Fit: Preserve}
	got, err := readShaped(bytes.NewReader(whole), &asIs)
	if err != nil || got.Rect != want.Rect || !bytes.Equal(got.Pix, want.Pix) {
		t.Errorf("%v, %v", got, err)
	}
	for n := range whole {
		for _, q := range []Request{asIs, {Fit: Preserve, Width: 3}} {
			if _, err := readShaped(bytes.NewReader(whole[:n]), &q); err == nil {
				t.Errorf("%d bytes of %d are a picture", n, len(whole))
			}
		}
	}
}

// TestReadShaped: a picture that is scaled while it is read is, to the last bit, as one that was read before.
func TestReadShaped(t *testing.T) {
	t.Parallel()
	src := image.NewRGBA(image.Rect(0, 0, 191, 107))
	for i := range src.Pix {
		src.Pix[i] = uint8(i*i>>3 + i/7)
		if i%4 == 3 {
			src.Pix[i] = 255
		}
	}
	var b bytes.Buffer
	if err := writePAM(&b, src); err != nil {
		t.Fatal(err)
	}
	for _, q := range []Request{
		{Fit: Preserve},
		{Fit: Preserve, Width: 64},
		{Fit: Preserve, Height: 106},
		{Fit: Preserve, Width: 190},
		{Fit: Preserve, Width: 1},
		{Fit: Preserve, Width: 400},
		{Fit: Stretch, Width: 50, Height: 100},
		{Fit: Stretch, Width: 191, Height: 3},
		{Fit: Stretch, Width: 3, Height: 500},
		{Fit: Crop, Width: 40, Height: 40},
		{Fit: Smartcrop, Width: 40, Height: 90},
		{Fit: Pad, Width: 40, Height: 40},
		{Fit: Preserve, Width: 64, Rotate: 90},
		{Fit: Preserve, Width: 64, Rotate: 180},
		{Fit: Preserve, Width: 64, FlipH: true},
		{Fit: Stretch, Width: 64, Height: 9, FlipV: true},
	} {
		want := shape(src, &q)
		got, err := readShaped(bytes.NewReader(b.Bytes()), &q)
		if err != nil || got.Rect != want.Rect || !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("%+v: %v (%v), not the same as %v", q, got.Rect, err, want.Rect)
		}
	}
}

// TestShrink: each pixel is the mean of what it covers, whatever the sizes; a plain picture stays plain to the last
// bit.
func TestShrink(t *testing.T) {
	t.Parallel()
	for _, size := range [][4]int{
		{2, 2, 1, 1}, {7, 5, 3, 2}, {1920, 1080, 640, 360}, {100, 3, 99, 3}, {3840, 2, 1, 1}, {5, 5, 5, 4},
	} {
		src := image.NewRGBA(image.Rect(0, 0, size[0]+2, size[1]+2))
		for i := range src.Pix {
			src.Pix[i] = []byte{255, 1, 77, 255}[i%4]
		}
		dst := image.NewRGBA(image.Rect(0, 0, size[2]+1, size[3]+1))
		scale(dst, image.Rect(1, 1, size[2]+1, size[3]+1), src, image.Rect(2, 2, size[0]+2, size[1]+2))
		for y := range size[3] + 1 {
			for x := range size[2] + 1 {
				want := color.RGBA{255, 1, 77, 255}
				if x == 0 || y == 0 { // outside
					want = color.RGBA{}
				}
				if got := dst.RGBAAt(x, y); got != want {
					t.Fatalf("%v: %v at %d, %d", size, got, x, y)
				}
			}
		}
	}
	src, dst := image.NewRGBA(image.Rect(0, 0, 3, 1)), image.NewRGBA(image.Rect(0, 0, 2, 1))
	for x, v := range []uint8{0, 90, 240} {
		src.SetRGBA(x, 0, color.RGBA{v, v, v, 255})
	}
	scale(dst, dst.Rect, src, src.Rect)
	if a, b := dst.RGBAAt(0, 0).R, dst.RGBAAt(1, 0).R; a != 30 || b != 190 {
		t.Errorf("%d and %d, want 30 and 190", a, b)
	}
}

func FuzzPAM(f *testing.F) {
	f.Add([]byte("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n1234"))
	f.Add([]byte("P7\nWIDTH 99999999\nHEIGHT 99999999\nDEPTH 4\nMAXVAL 255\nENDHDR\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, q := range []Request{{Fit: Preserve}, {Fit: Preserve, Width: 2}} {
			if p, err := readShaped(bytes.NewReader(data), &q); err == nil && len(p.Pix) > len(data) {
				t.Errorf("%v from %d bytes", p.Rect, len(data))
			}
		}
	})
}

func FuzzFirstSample(f *testing.F) {
	segment := cmaf.AppendFragment(nil, 1, cmaf.TrackID, 10, []cmaf.Sample{
		{Duration: 1, Sync: true, Data: []byte("one")}, {Duration: 1, Data: []byte("two")},
	})
	f.Add(segment)
	f.Add(append(bmff.Make("styp", []byte("abcd")), segment...))
	f.Add(segment[:len(segment)-4])
	f.Fuzz(func(t *testing.T, data []byte) {
		h264.Disposable(data, 4)
		if s, err := firstSample(bytes.NewReader(data)); err == nil &&
			(len(s.Data) == 0 || !bytes.Contains(data, s.Data)) {
			t.Errorf("%q of %q", s.Data, data)
		}
	})
}
