// Package lettering draws a line of text into a picture. It must never know what the picture is for, files, or time of
// day; it starts no goroutines.
package lettering

import (
	"fmt"
	"image"
	"image/color"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// Centre writes a line into the middle of a picture's width with the letters of a TrueType font: size is their height
// in pixels, y where they stand.
func Centre(out *image.RGBA, ttf []byte, line string, size, y float64, c color.Color) error {
	parsed, err := opentype.Parse(ttf)
	if err != nil {
		return fmt.Errorf("read font: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return fmt.Errorf("read font: %w", err)
	}
	defer func() { _ = face.Close() }() // it holds memory only
	d := font.Drawer{Dst: out, Src: image.NewUniform(c), Face: face}
	d.Dot = fixed.Point26_6{X: (fixed.I(out.Bounds().Dx()) - d.MeasureString(line)) / 2, Y: fixed.Int26_6(y * 64)}
	d.DrawString(line)
	return nil
}
