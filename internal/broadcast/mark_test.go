package broadcast

import (
	"context"
	"image"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/media/overlay"
)

// TestWhoseMark: pictures carry the service's mark on test streams and where the recording is a test asset, and nowhere
// else.
func TestWhoseMark(t *testing.T) {
	t.Parallel()
	mark := overlay.Layer{
		Load: func(context.Context) (image.Image, error) { return image.NewRGBA(image.Rect(0, 0, 1, 1)), nil },
	}
	for name, tt := range map[string]struct{ stream, asset, marked bool }{
		"neither":                            {},
		"a test stream":                      {stream: true, asset: true, marked: true},
		"a test asset of an ordinary stream": {asset: true, marked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := Options{Mark: mark}
			b := &broadcast{
				owner: &Service{root: t.Context()}, opt: &opt,
				identity: identity{asset: asset.Asset{Options: assetopt.Options{Test: tt.asset}}},
				state:    state{stream: live.Stream{Settings: live.Settings{Test: tt.stream}}},
			}
			layers := b.layers()
			if (layers != nil) != tt.marked || layers != nil && len(layers(t.Context())) != 1 {
				t.Errorf("marked: %t", layers != nil)
			}
			b.owner.wg.Wait()
		})
	}
}
