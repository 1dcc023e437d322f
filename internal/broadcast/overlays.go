package broadcast

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/media/overlay"
)

const (
	// overlayPatience bounds how long a broadcast waits for the images that lie over its picture, all together: it
	// begins without those that have not come.
	overlayPatience = 10 * time.Second
	// overlayBytes bounds what their files take of memory, all together.
	overlayBytes = 2 * overlay.MaxBytes
)

// overlayFiles are the images that lie over a broadcast's picture.
type overlayFiles struct {
	asked chan struct{} // closed when all that can be had are there; nil before the first encoder came
	files map[int][]byte
}

// layers gives what lies over the pictures of a publication: the owner's images, and the mark of test streams and test
// assets above them; nil when there is nothing. The images are fetched when the first encoder comes; anyone who encodes
// waits for them.
func (b *broadcast) layers() func(context.Context) []overlay.Layer {
	inputs, test := b.asset.Options.Inputs, b.stream.Settings.Test || b.asset.Options.Test
	wanted := false
	for _, in := range inputs {
		wanted = wanted || in.Overlay != nil
	}
	if !wanted && !test {
		return nil
	}
	if b.overlays.asked == nil {
		b.overlays.asked = make(chan struct{})
		of := b.asset
		b.spawn("fetch overlays", func() { b.fetchOverlays(b.owner.root, of) })
	}
	return func(ctx context.Context) []overlay.Layer {
		select {
		case <-b.overlays.asked: // fetchOverlays always ends
		case <-ctx.Done():
			return nil
		}
		var layers []overlay.Layer
		for i, in := range inputs {
			if data := b.overlays.files[i]; data != nil {
				layers = append(layers, overlay.Layer{
					Settings: overlay.Settings(*in.Overlay),
					Load:     func(ctx context.Context) (image.Image, error) { return b.decoder().Load(ctx, data) },
				})
			}
		}
		if test {
			layers = append(layers, b.opt.Mark)
		}
		return layers
	}
}

// fetchOverlays gets the images. A broadcast goes on without one that can't be used, and both stream and asset are
// told.
func (b *broadcast) fetchOverlays(ctx context.Context, a asset.Asset) {
	defer close(b.overlays.asked)
	b.overlays.files = map[int][]byte{}
	try, cancel := context.WithTimeout(ctx, overlayPatience)
	defer cancel()
	left := int64(overlayBytes)
	for i, in := range a.Options.Inputs {
		if in.Overlay == nil {
			continue
		}
		data, err := b.opt.Images.Image(try, in.URL, min(left, overlay.MaxBytes))
		if err == nil {
			err = b.decoder().Try(try, data)
		}
		switch {
		case err == nil:
			left -= int64(len(data))
			b.overlays.files[i] = data
		case ctx.Err() != nil:
			return
		default:
			b.log.WarnContext(ctx, "overlay image can't be used, the picture goes without it", "input", i, "error", err)
			b.warnAtFirst(live.OverlayUnavailable,
				fmt.Sprintf("new_asset_settings.inputs[%d]: the overlay image is not shown in this recording: %s", i,
					explain(err)))
		}
	}
}

// decoder decodes overlays.
func (b *broadcast) decoder() overlay.Decoder {
	return func(ctx context.Context, data []byte) (image.Image, error) {
		if b.opt.Stills == nil {
			return nil, errors.New("no ffmpeg decodes images")
		}
		return b.opt.Stills.Image(ctx, data)
	}
}
