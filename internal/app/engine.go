package app

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"millrace/internal/media/encode"
)

// spareEncoders is how many encoders of rungs wait for the next request: each has some tens of megabytes.
const spareEncoders = 4

func (n *node) newEngine(ctx context.Context, h encode.H264) (*encode.Engine, error) {
	ffmpeg, err := encode.Find("ffmpeg", "")
	if err != nil {
		return nil, fmt.Errorf("%w (install it with: apt-get install -y ffmpeg; millrace doctor checks the rest)", err)
	}
	ffprobe, err := encode.Find("ffprobe", "")
	if err != nil {
		return nil, fmt.Errorf("%w (it comes with ffmpeg)", err)
	}
	if missing := encode.Confined().Missing(); len(missing) > 0 {
		n.log.WarnContext(ctx, "ffmpeg is less confined than it could be: the kernel does not offer all that it takes",
			"missing", strings.Join(missing, ", "))
	}
	if h != encode.X264 { // x264 comes with ffmpeg
		if err = encode.Try(ctx, ffmpeg, h); err != nil {
			return nil, fmt.Errorf("use --h264-encoder: %w (millrace doctor tries every encoder)", err)
		}
	}
	reserve := encode.NewReserve(spareEncoders)
	n.spares = append(n.spares, reserve)
	return encode.NewEngine(encode.Options{
		FFmpeg:  ffmpeg,
		FFprobe: ffprobe,
		H264:    h,
		Reserve: reserve,
		Budget:  encode.NewBudget(encode.BudgetOptions{Cores: runtime.NumCPU()}),
	})
}
