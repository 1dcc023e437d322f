package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
)

const (
	// maxHeld bounds the picture of a freeze, in bytes.
	maxHeld = 16 << 20
	// freezeTime bounds the work on it.
	freezeTime = time.Minute
)

// freeze has ffmpeg make the picture that stands where a file has none.
func freeze(ctx context.Context, engine *encode.Engine) ondemand.Freeze {
	return func(pictures []byte, at time.Duration) (held []byte, err error) {
		job := encode.LastArgs{Codec: frame.H264, At: at, Within: freezeTime}
		err = engine.Last(ctx, job, func(_ context.Context, in io.Writer) error {
			_, werr := in.Write(pictures)
			return werr
		}, func(made io.Reader) (rerr error) {
			if held, rerr = io.ReadAll(io.LimitReader(made, maxHeld+1)); rerr == nil && len(held) > maxHeld {
				rerr = errors.New("the held picture is too large")
			}
			return rerr
		})
		return held, err
	}
}

// freezeLast has the last picture of an MP4 stand where its sound goes on, and stores it.
func (i *inspector) freezeLast(
	ctx context.Context, a asset.Asset, t *timeline.Timeline, r io.ReaderAt, video *mp4.Track,
) error {
	if video == nil {
		return nil
	}
	objects, err := ondemand.FreezeLast(t, r, video, objectkey.Media(a.Media), freeze(ctx, i.engine))
	if err != nil {
		return refused(err)
	}
	for _, o := range objects {
		if err = i.store.Put(ctx, o.Key, bytes.NewReader(o.Data)); err != nil {
			return fmt.Errorf("store held picture: %w", err)
		}
	}
	return nil
}
