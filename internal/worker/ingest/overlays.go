package ingest

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/overlay"
	"millrace/internal/worker/attempt"
)

// imagePatience bounds the download of one image, with all its attempts.
const imagePatience = 2 * time.Minute

// overlays are the images that lie over an asset's picture. They lie beside its download.
type overlays struct {
	client *fetch.Client
	engine *encode.Engine
	mark   overlay.Layer // over test assets
	files  attempt.Scratch
}

// fetch gets the images that are to lie over the picture and has a look at each, before anything else is done: what
// can't be used is the asset's end.
func (o *overlays) fetch(ctx context.Context, a asset.Asset) error {
	for i, in := range a.Options.Inputs {
		if in.Overlay == nil {
			continue
		}
		path := o.path(a, i)
		if _, err := os.Stat(path); err != nil { // not there from an earlier attempt
			if _, err = o.client.Download(ctx, in.URL, path, fetch.Limits{
				MaxBytes: overlay.MaxBytes,
				Total:    imagePatience,
			}, nil); err != nil {
				return aboutImage(i, "the overlay image can't be fetched: "+strings.Join(fault.Messages(err), "; "),
					err)
			}
		}
		if err := o.try(ctx, path); errors.Is(err, overlay.ErrImage) {
			return aboutImage(i, err.Error(), fault.Wrap(fault.Invalid, err, "image"))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// canOverlay refuses overlays of a file that has sound and no picture.
func canOverlay(a asset.Asset, main asset.InputInfo) error {
	has := func(kind asset.TrackType) bool {
		return slices.ContainsFunc(main.File.Tracks, func(t asset.InputTrack) bool { return t.Type == string(kind) })
	}
	i := slices.IndexFunc(a.Options.Inputs, func(in assetopt.Input) bool { return in.Overlay != nil })
	if i < 0 || has(asset.VideoTrack) || !has(asset.AudioTrack) {
		return nil
	}
	return fault.New(fault.Invalid,
		"inputs[%d].overlay_settings: the file has no picture that an image can be laid over, only sound", i)
}

// aboutImage says which input's image is at fault; what kind of an error it is stays.
func aboutImage(i int, message string, err error) error {
	if fault.Is(err, fault.Internal) {
		return err
	}
	return fault.Wrap(fault.KindOf(err), err, "inputs[%d]: %s", i, message)
}

func (o *overlays) path(a asset.Asset, input int) string {
	return fmt.Sprintf("%s.overlay-%d", o.files.File(string(a.ID)), input)
}

// try finds out whether an image can be used.
func (o *overlays) try(ctx context.Context, path string) error {
	data, err := read(path)
	if err != nil {
		return err
	}
	return o.decoder().Try(ctx, data)
}

func (o *overlays) decoder() overlay.Decoder {
	return func(ctx context.Context, data []byte) (image.Image, error) { return o.engine.Image(ctx, data) }
}

func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path) //nolint:gosec // our own scratch file
	if err != nil {
		return nil, fmt.Errorf("read overlay image: %w", err)
	}
	return data, nil
}

// decode reads an image.
func (o *overlays) decode(ctx context.Context, path string) (image.Image, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return o.decoder().Load(ctx, data)
}

// over reports whether an asset has something laid over its picture.
func over(a asset.Asset) bool {
	if a.Options.Test {
		return true
	}
	for _, in := range a.Options.Inputs {
		if in.Overlay != nil {
			return true
		}
	}
	return false
}

// draw draws what lies over a picture of this size, the service's own mark on top; nil when nothing of it is to be
// seen.
func (o *overlays) draw(
	ctx context.Context, a asset.Asset, v *encode.Track, width, height int,
) (*encode.Overlay, error) {
	var layers []overlay.Layer
	for i, in := range a.Options.Inputs {
		if in.Overlay != nil {
			layers = append(layers, overlay.Layer{
				Settings: overlay.Settings(*in.Overlay),
				Load:     func(ctx context.Context) (image.Image, error) { return o.decode(ctx, o.path(a, i)) },
			})
		}
	}
	if a.Options.Test {
		layers = append(layers, o.mark)
	}
	sheet, err := overlay.Draw(ctx, layers, width, height)
	if err != nil {
		return nil, fmt.Errorf("draw overlays: %w", err)
	}
	if sheet == nil {
		return nil, nil //nolint:nilnil // nothing to be seen is no error
	}
	return &encode.Overlay{Image: sheet.Image, X: sheet.At.X, Y: sheet.At.Y, HD: v.HD || v.Range != frame.SDR}, nil
}

// discardImages removes what the images of the download at path have left.
func discardImages(path string) error {
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("discard overlay images: %w", err)
	}
	var errs []error
	for _, f := range files {
		if strings.HasPrefix(f.Name(), filepath.Base(path)+".overlay-") {
			errs = append(errs, os.Remove(filepath.Join(filepath.Dir(path), f.Name())))
		}
	}
	return errors.Join(errs...)
}
