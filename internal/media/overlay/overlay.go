// Package overlay computes where images lie on a picture, and draws them into one image that can be laid over it
// unchanged. It is pure: the same images, settings and picture size always give the same pixels.
//
// It must never know where images come from, who asked for them, ffmpeg, files or the time of day. It starts no
// goroutine.
package overlay

import (
	"errors"
	"fmt"
	"image"
	"math"
	"strconv"
	"strings"
)

// Settings are `overlay_settings`, as the API has them. Lengths are "10%" or "100px"; empty is the default.
type Settings struct {
	VerticalAlign    string // top (default), middle, bottom
	VerticalMargin   string // from there to the image's nearest edge; in percent of the picture's height
	HorizontalAlign  string // left (default), center, right
	HorizontalMargin string // in percent of the picture's width
	Width, Height    string // in percent of the picture's; one alone gives the other
	Opacity          string // percent; default 100%
}

// What pixels of the settings are relative to: a picture that is scaled, in its shape, to fit into this.
const fitLong, fitShort = 1920, 1080

// fit is how many of the settings' pixels one of the picture's is.
func fit(picture image.Point) float64 {
	w, h := float64(picture.X), float64(picture.Y)
	if picture.X >= picture.Y {
		return min(fitLong/w, fitShort/h)
	}
	return min(fitShort/w, fitLong/h)
}

// Place is where an image of the given size lies over a picture, in the picture's pixels; some or all of it may be
// outside.
func (s Settings) Place(img, picture image.Point) (image.Rectangle, error) {
	var bad error
	read := func(v string, whole int) float64 {
		n, err := length(v, float64(whole), fit(picture))
		bad = errors.Join(bad, err)
		return n
	}
	wide, high := read(s.Width, picture.X), read(s.Height, picture.Y)
	right, down := read(s.HorizontalMargin, picture.X), read(s.VerticalMargin, picture.Y)
	if bad != nil {
		return image.Rectangle{}, bad
	}
	shape := float64(img.X) / float64(img.Y)
	switch {
	case s.Width == "" && s.Height == "":
		wide, high = float64(img.X)/fit(picture), float64(img.Y)/fit(picture)
	case s.Width == "":
		wide = high * shape
	case s.Height == "":
		high = wide / shape
	}
	left, err := start(s.HorizontalAlign, "left", "center", "right", wide, float64(picture.X), right)
	top, err2 := start(s.VerticalAlign, "top", "middle", "bottom", high, float64(picture.Y), down)
	if err = errors.Join(err, err2); err != nil {
		return image.Rectangle{}, err
	}
	x0, x1 := ends(left, wide)
	y0, y1 := ends(top, high)
	return image.Rect(x0, y0, x1, y1), nil
}

// start is where on an axis of the picture something begins that is aligned to its begin, its middle or its end: a
// margin goes away from there, and from the middle towards the end.
func start(align, begin, middle, end string, size, whole, margin float64) (float64, error) {
	switch align {
	case "", begin:
		return margin, nil
	case middle:
		return (whole-size)/2 + margin, nil
	case end:
		return whole - size - margin, nil
	}
	return 0, fmt.Errorf("overlay: alignment %q is none of %s, %s, %s", align, begin, middle, end)
}

// ends are the whole pixels of what begins at a place; what is to be seen at all has at least one.
func ends(at, size float64) (from, to int) {
	if size <= 0 {
		return 0, 0
	}
	from = int(math.Round(at))
	return from, max(int(math.Round(at+size)), from+1)
}

// length reads "10%" of a whole or "100px", of which there are scale to a pixel.
func length(v string, whole, scale float64) (float64, error) {
	if v == "" {
		return 0, nil
	}
	if n, ok := number(v, "%"); ok {
		return n / 100 * whole, nil
	}
	if n, ok := number(v, "px"); ok {
		return n / scale, nil
	}
	return 0, fmt.Errorf("overlay: length %q is neither percent nor pixels", v)
}

// mostLength is more than the API lets through; what is longer would be nothing but an overflow.
const mostLength = 100_000

func number(v, unit string) (float64, bool) {
	digits, ok := strings.CutSuffix(v, unit)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseFloat(digits, 64)
	return n, err == nil && math.Abs(n) <= mostLength
}

// opacity is a share from 0 to 1.
func (s Settings) opacity() (float64, error) {
	if s.Opacity == "" {
		return 1, nil
	}
	n, ok := number(s.Opacity, "%")
	if !ok || n < 0 || n > 100 {
		return 0, fmt.Errorf("overlay: opacity %q is no percentage from 0%% to 100%%", s.Opacity)
	}
	return n / 100, nil
}
