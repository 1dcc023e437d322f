package edgewriter

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/media/slate"
)

// Stills encodes and decodes the slate's pictures; encode.Engine fits.
type Stills interface {
	Still(ctx context.Context, job encode.StillArgs, output func(mp4 io.Reader) error) error
	// Image decodes a PNG or a JPEG; fault.Invalid says why it can't.
	Image(ctx context.Context, data []byte) (*image.NRGBA, error)
	Last(ctx context.Context, job encode.LastArgs, input func(context.Context, io.Writer) error,
		output func(mp4 io.Reader) error) error
}

// Pictures makes the slate's pictures of all broadcasts, and keeps the default ones.
type Pictures struct {
	encoder  Stills        // nil: the last key frame is shown instead
	decoding chan struct{} // holds a token while an image is in memory

	mu   sync.Mutex
	made map[stillKind]*slate.Still // default ones
}

// stillKind is what a default slate is made for.
type stillKind struct {
	shape slate.Shape
	group time.Duration
}

const maxStills = 16

// NewPictures returns what makes pictures with encoder, which may be nil.
func NewPictures(encoder Stills) *Pictures {
	return &Pictures{encoder: encoder, decoding: make(chan struct{}, 1), made: map[stillKind]*slate.Still{}}
}

// still encodes a slate: of the image, or the default one, which is kept for the next stream of the same shape.
func (p *Pictures) still(
	ctx context.Context, shape slate.Shape, group time.Duration, data []byte,
) (*slate.Still, error) {
	kind := stillKind{shape, group}
	if data == nil {
		if s := p.kept(kind); s != nil {
			return s, nil
		}
	}
	picture, err := p.draw(ctx, data, max(shape.Width&^1, 2), max(shape.Height&^1, 2)) // 4:2:0 has no odd sizes
	if err != nil {
		return nil, err
	}
	job := encode.StillArgs{
		Codec: shape.Codec, Picture: picture, FPS: shape.FPS,
		Frames: max(int(math.Round(group.Seconds()*shape.FPS)), 1),
	}
	var made *slate.Still
	err = p.encoder.Still(ctx, job, func(mp4 io.Reader) error {
		made, err = slate.Read(mp4, shape)
		return err
	})
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, errors.New("encode slate: nothing came out")
	}
	if data == nil {
		p.keep(kind, made)
	}
	return made, nil
}

// draw gives the slate's picture.
func (p *Pictures) draw(ctx context.Context, data []byte, w, h int) (out *image.RGBA, err error) {
	if data == nil {
		return slate.Default(w, h)
	}
	err = p.decoded(ctx, data, func(img image.Image) { out = slate.Fit(img, w, h) })
	return out, err
}

// check finds out whether an image can be used.
func (p *Pictures) check(ctx context.Context, data []byte) error {
	return p.decoded(ctx, data, func(image.Image) {})
}

// decoded has an image used. Images are large: there is one at a time, for as long as it is in memory.
func (p *Pictures) decoded(ctx context.Context, data []byte, use func(image.Image)) error {
	if err := slate.Check(data); err != nil || p.encoder == nil {
		return err
	}
	select {
	case p.decoding <- struct{}{}:
		defer func() { <-p.decoding }()
	case <-ctx.Done():
		return fmt.Errorf("wait to decode slate image: %w", context.Cause(ctx))
	}
	img, err := p.encoder.Image(ctx, data)
	switch {
	case fault.Is(err, fault.Invalid):
		return fmt.Errorf("%w: %s", slate.ErrImage, strings.Join(fault.Messages(err), "; "))
	case err != nil:
		return err
	}
	use(img)
	return nil
}

func (p *Pictures) kept(k stillKind) *slate.Still {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made[k]
}

func (p *Pictures) keep(k stillKind, still *slate.Still) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.made) >= maxStills {
		p.made = map[stillKind]*slate.Still{}
	}
	p.made[k] = still
}
