package transform

import (
	"context"
	"image"
	"image/color"

	"golang.org/x/image/font/gofont/gobold"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/lettering"
	"millrace/internal/media/overlay"
)

// Mark draws what test streams carry in their upper right corner: the service's name on a dark, see-through ground.
func Mark() (overlay.Layer, error) {
	const w, h = 640, 144
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			out.SetRGBA(x, y, color.RGBA{A: 0x90})
		}
	}
	if err := lettering.Centre(out, gobold.TTF, "millrace test", 88, 101, color.RGBA{
		0xee, 0xf1, 0xf6, 0xff,
	}); err != nil {
		return overlay.Layer{}, err
	}
	return overlay.Layer{
		Settings: overlay.Settings{
			HorizontalAlign:  "right",
			HorizontalMargin: "30px",
			VerticalMargin:   "30px",
			Height:           "90px",
		},
		Load: func(context.Context) (image.Image, error) { return out, nil },
	}, nil
}

// overlay draws what lies over the pictures to come; nil when nothing does. A stream goes on without what can't be
// drawn.
func (w *worker) overlay(ctx context.Context) *encode.Overlay {
	if w.t.opt.Layers == nil || w.source.Width < 2 || w.source.Height < 2 {
		return nil
	}
	if !w.asked {
		w.layers, w.asked = w.t.opt.Layers(ctx), true
	}
	size := image.Pt(w.source.Width&^1, w.source.Height&^1)
	if w.drawnFor != size {
		sheet, err := overlay.Draw(ctx, w.layers, size.X, size.Y)
		if err != nil {
			w.log.WarnContext(ctx, "overlay can't be drawn", "error", err)
		}
		w.drawn, w.drawnFor = nil, size
		if err == nil && sheet != nil {
			w.drawn = &encode.Overlay{Image: sheet.Image, X: sheet.At.X, Y: sheet.At.Y}
		}
	}
	if w.drawn == nil {
		return nil
	}
	o := *w.drawn
	o.HD = highDefinition(w.source)
	return &o
}

// highDefinition reports whether a picture's colours are those of BT.709: as it says itself, or by its size, as players
// take it then.
func highDefinition(c frame.Config) bool {
	const unspecified, bt709 = 2, 1 // matrix_coefficients, ITU-T H.273
	if c.Codec == frame.H264 {
		if info, err := h264.Info(c.SPS); err == nil && info.Colour.Present && info.Colour.Matrix != unspecified {
			return info.Colour.Matrix == bt709
		}
	}
	return min(c.Width, c.Height) >= 720
}
