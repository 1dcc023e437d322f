package broadcast_test

import (
	"context"
	"image"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/media/encode"
	"millrace/internal/media/overlay"
)

// pictures takes what is to be encoded while it streams, and gives nothing.
type pictures struct {
	mu   sync.Mutex
	jobs []encode.LiveArgs
}

func (p *pictures) Live(
	ctx context.Context, job encode.LiveArgs, input func(context.Context, io.Writer) error,
	_ func(context.Context, io.Reader) error,
) error {
	p.mu.Lock()
	p.jobs = append(p.jobs, job)
	p.mu.Unlock()
	return input(ctx, io.Discard)
}

// TestOverlay fetches what lies over a stream's picture once per recording; what can't be had is told of, and the
// stream goes on.
func TestOverlay(t *testing.T) {
	t.Parallel()
	const first, second = "https://example.com/1.png?token=secret", "https://example.com/2.png"
	white := whiteSquare(t)
	for name, tt := range map[string]struct {
		images  images
		covered image.Rectangle // of all that is laid over the picture of 320 x 180
		warns   []string
	}{
		"both": {images{first: white, second: white}, image.Rect(0, 0, 320, 180), nil},
		"one is no": {
			images{first: []byte("GIF89a"), second: white},
			image.Rect(280, 140, 320, 180),
			[]string{
				"inputs[1]: the overlay image is not shown in this recording: the overlay image can't be used: it is " +
					"neither PNG nor JPEG",
			},
		},
		"none": {images{}, image.Rectangle{}, []string{
			"inputs[1]: the overlay image is not shown in this recording: https://example.com/slate.png returns 404",
			"inputs[2]: ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				encoder := &pictures{}
				n := w.start("a", slated(&stills{}, tt.images), func(o *broadcast.Options) { o.Encoder = encoder })
				s := w.stream(low(20), func(in *live.CreateInput) {
					in.NewAsset = &assetopt.Options{Inputs: []assetopt.Input{
						{},
						{URL: first, Overlay: &assetopt.Overlay{Width: "240px"}},
						{
							URL: second,
							Overlay: &assetopt.Overlay{
								Height: "240px", HorizontalAlign: "right", VerticalAlign: "bottom",
							},
						},
					}}
				})
				n.publish(s.StreamKey).send(5 * time.Second).stop()
				w.wait(21 * time.Second)
				encoder.mu.Lock()
				defer encoder.mu.Unlock()
				if len(encoder.jobs) != 1 {
					t.Fatalf("encoded %d times", len(encoder.jobs))
				}
				var covered image.Rectangle
				if o := encoder.jobs[0].Overlay; o != nil {
					covered = o.Image.Rect.Add(image.Pt(o.X, o.Y))
				}
				if covered != tt.covered {
					t.Errorf("laid over %v, want %v", covered, tt.covered)
				}
				warned := slices.DeleteFunc(w.events(), func(e string) bool { return !strings.HasSuffix(e, "warning") })
				if len(warned) != 2*len(tt.warns) {
					t.Fatalf("told: %v", warned)
				}
				if len(tt.warns) == 0 {
					return
				}
				a, b := last[live.Warned](w, "warning"), last[asset.Warned](w, "asset.warning")
				want := "new_asset_settings." + tt.warns[len(tt.warns)-1]
				if a.Warning.Type != "overlay_unavailable" || b.Warning != asset.Warning(a.Warning) ||
					!strings.HasPrefix(a.Warning.Message, want) || strings.Contains(a.Warning.Message, "secret") {
					t.Errorf("told %+v and %+v", a.Warning, b.Warning)
				}
			})
		})
	}
}

// TestMarkOfATest: the picture of an ordinary stream is encoded again, with the service's mark, where its recording is
// a test asset.
func TestMarkOfATest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options assetopt.Options
		encoded int
	}{"test": {assetopt.Options{Test: true}, 1}, "ordinary": {assetopt.Options{}, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				encoder := &pictures{}
				n := w.start("a", func(o *broadcast.Options) {
					o.Encoder = encoder
					o.Mark = overlay.Layer{
						Load: func(context.Context) (image.Image, error) {
							return image.NewGray(image.Rect(0, 0, 64, 32)), nil
						},
					}
				})
				s := w.stream(low(20), func(in *live.CreateInput) { in.NewAsset = &tt.options })
				n.publish(s.StreamKey).send(5 * time.Second).stop()
				w.wait(21 * time.Second)
				encoder.mu.Lock()
				defer encoder.mu.Unlock()
				if len(encoder.jobs) != tt.encoded {
					t.Fatalf("encoded %d times, want %d", len(encoder.jobs), tt.encoded)
				}
				for _, job := range encoder.jobs {
					if job.Overlay == nil || job.Overlay.Image.Rect.Empty() {
						t.Errorf("laid over it: %+v", job.Overlay)
					}
				}
			})
		})
	}
}
