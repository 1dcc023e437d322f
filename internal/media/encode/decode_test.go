package encode

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"
	"time"

	"millrace/internal/fault"
)

func painted(img interface {
	image.Image
	Set(x, y int, c color.Color)
}, c color.Color,
) image.Image {
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			img.Set(x, y, c)
		}
	}
	return img
}

func asPNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestImage decodes each kind of PNG and JPEG to the colours that it has.
func TestImage(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	size := image.Rect(0, 0, 70, 50)
	orange := color.NRGBA{R: 240, G: 130, B: 20, A: 255}
	through := color.NRGBA{R: 240, G: 130, B: 20, A: 100}
	grey := color.NRGBA{R: 200, G: 200, B: 200, A: 255}
	for name, tt := range map[string]struct {
		data []byte
		want color.NRGBA
	}{
		"PNG":              {asPNG(t, painted(image.NewNRGBA(size), orange)), orange},
		"PNG, see-through": {asPNG(t, painted(image.NewNRGBA(size), through)), through},
		"PNG of 16 bits":   {asPNG(t, painted(image.NewNRGBA64(size), through)), through},
		"PNG with a palette": {
			asPNG(t, painted(image.NewPaletted(size, color.Palette{orange, through}), through)), through,
		},
		"PNG without colours": {asPNG(t, painted(image.NewGray(size), grey)), grey},
		"JPEG":                {asJPEG(t, painted(image.NewNRGBA(size), orange)), orange},
		"JPEG, no colours":    {asJPEG(t, painted(image.NewGray(size), grey)), grey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			img, err := e.Image(t.Context(), tt.data)
			if err != nil || img.Rect != size {
				t.Fatalf("an image of %v, %v", img, err)
			}
			got := img.NRGBAAt(33, 21)
			for i, d := range [4]int{
				int(got.R) - int(tt.want.R), int(got.G) - int(tt.want.G), int(got.B) - int(tt.want.B),
				int(got.A) - int(tt.want.A),
			} {
				if d < -3 || d > 3 {
					t.Errorf("it has %v, want %v (%d)", got, tt.want, i)
				}
			}
		})
	}
}

// emptyScans is a progressive JPEG of w x h pixels with n scans that hold nothing.
func emptyScans(w, h uint16, n int) []byte {
	segment := func(marker byte, body ...byte) []byte {
		return append(binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2)), body...)
	}
	size := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16([]byte{8}, h), w)
	out := append([]byte{0xff, 0xd8}, segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)...)
	out = append(out, segment(0xc2, append(size, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0)...)...)
	out = append(out, segment(0xc4, append(append([]byte{0x10, 1, 1}, make([]byte, 14)...), 0xe0, 0x00)...)...)
	for range n {
		out = append(append(out, segment(0xda, 1, 1, 0, 1, 63, 0)...), 0)
	}
	return append(out, 0xff, 0xd9)
}

// TestImageRefused: what is damaged is the owner's fault, and what is made to take for ever is ended with its child.
func TestImageRefused(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	whole := asPNG(t, painted(image.NewNRGBA(image.Rect(0, 0, 640, 480)), color.NRGBA{R: 9, A: 255}))
	photo := asJPEG(t, painted(image.NewNRGBA(image.Rect(0, 0, 640, 480)), color.NRGBA{R: 9, A: 255}))
	for name, data := range map[string][]byte{
		"nothing": nil, "a GIF": []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00"), "cut off": whole[:len(whole)/2],
		"JPEG cut off":     photo[:len(photo)/2],
		"scans of nothing": emptyScans(4000, 4000, 9000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := e.Image(t.Context(), data); !fault.Is(err, fault.Invalid) {
				t.Errorf("decoded: %v", err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	if _, err := e.Image(ctx, emptyScans(4000, 4000, 60_000)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up, it ends with %v", err)
	}
}
