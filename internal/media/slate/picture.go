package slate

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg" // its header is read
	_ "image/png"  // its header is read
	"math"

	"golang.org/x/image/draw"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"

	"millrace/internal/media/codec/jpeg"
	"millrace/internal/media/lettering"
)

const (
	// MaxBytes bounds an image that is used as slate.
	MaxBytes = 10 << 20
	// maxPixels bounds what is decoded of it: a little more than 3840x2160.
	maxPixels = 4096 * 2304
)

// ErrImage says that bytes are no image that can be shown.
var ErrImage = errors.New("the image can't be used")

// Check finds out from its header whether a PNG or a JPEG may be decoded at all; ErrImage says why not.
func Check(data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("%w: it has more than %d bytes", ErrImage, MaxBytes)
	}
	head, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || format != "png" && format != "jpeg" {
		return fmt.Errorf("%w: it is neither PNG nor JPEG", ErrImage)
	}
	if head.Width <= 0 || head.Height <= 0 || head.Width > maxPixels/head.Height {
		return fmt.Errorf("%w: %d x %d pixels are too many", ErrImage, head.Width, head.Height)
	}
	if n := jpeg.Scans(data); format == "jpeg" && n > jpeg.MaxScans {
		return fmt.Errorf("%w: it has %d scans, and %d are the most", ErrImage, n, jpeg.MaxScans)
	}
	return nil
}

// Fit scales an image into a picture of w x h pixels; what it does not cover is black.
func Fit(img image.Image, w, h int) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(out, out.Bounds(), image.Black, image.Point{}, draw.Src)
	from := img.Bounds()
	scale := min(float64(w)/float64(from.Dx()), float64(h)/float64(from.Dy()))
	fw, fh := max(int(math.Round(float64(from.Dx())*scale)), 1), max(int(math.Round(float64(from.Dy())*scale)), 1)
	to := image.Rect(0, 0, min(fw, w), min(fh, h)).Add(image.Pt(max(w-fw, 0)/2, max(h-fh, 0)/2))
	draw.CatmullRom.Scale(out, to, img, from, draw.Over, nil)
	return out
}

// What the default picture says.
const (
	mark     = "millrace"
	sentence = "The stream will be back in a moment"
)

var (
	ground = color.RGBA{0x0b, 0x0d, 0x12, 0xff} //nolint:gochecknoglobals // a table
	glow   = color.RGBA{0x1d, 0x2b, 0x45, 0xff} //nolint:gochecknoglobals // a table
	text   = color.RGBA{0xee, 0xf1, 0xf6, 0xff} //nolint:gochecknoglobals // a table
	soft   = color.RGBA{0xa7, 0xb0, 0xc0, 0xff} //nolint:gochecknoglobals // a table
)

// Default draws the picture that is shown when nobody gave one: the service's name and a sentence, laid out for the
// nearest of the aspect ratios 16:9, 4:3, 1:1 and 9:16 in the middle of whatever shape it is asked for.
func Default(w, h int) (*image.RGBA, error) {
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w { // a soft light behind the words
			dx, dy := (float64(x)-float64(w)/2)/float64(w), (float64(y)-float64(h)/2)/float64(h)
			out.SetRGBA(x, y, mix(glow, ground, min(math.Hypot(dx, dy)*1.6, 1)))
		}
	}
	if min(w, h) < 32 {
		return out, nil // nothing that anybody could read
	}
	lines := []string{sentence}
	big, small := float64(h)/9, float64(h)/22
	switch ratio := float64(w) / float64(h); {
	case ratio < 0.78: // 9:16: the sentence goes on two lines
		lines = []string{"The stream will be back", "in a moment"}
		big, small = float64(w)/7, float64(w)/16
	case ratio < 1.16: // 1:1
		big, small = float64(h)/9, float64(w)/23
	case ratio < 1.55: // 4:3
		big, small = float64(h)/9, float64(h)/20
	}
	middle := float64(h) / 2
	if err := lettering.Centre(out, gobold.TTF, mark, max(big, 8), middle-big*0.2, text); err != nil {
		return nil, err
	}
	for i, line := range lines {
		if err := lettering.Centre(out, goregular.TTF, line, max(small, 6), middle+big*0.55+small*1.4*float64(i),
			soft); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func mix(a, b color.RGBA, t float64) color.RGBA {
	of := func(x, y uint8) uint8 { return uint8(float64(x)*(1-t) + float64(y)*t) }
	return color.RGBA{of(a.R, b.R), of(a.G, b.G), of(a.B, b.B), 0xff}
}
