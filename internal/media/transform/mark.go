package transform

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"golang.org/x/image/font/gofont/gobold"

	"millrace/internal/media/lettering"
)

// DrawMark draws what test streams carry: the service's name on a dark, see-through ground, as a PNG that is scaled to its picture.
func DrawMark() ([]byte, error) {
	const w, h = 640, 144
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			out.SetRGBA(x, y, color.RGBA{A: 0x90})
		}
	}
	if err := lettering.Centre(out, gobold.TTF, "millrace test", 88, 101, color.RGBA{0xee, 0xf1, 0xf6, 0xff}); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, out); err != nil {
		return nil, fmt.Errorf("write mark: %w", err)
	}
	return b.Bytes(), nil
}
