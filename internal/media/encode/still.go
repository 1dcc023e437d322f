package encode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"strconv"

	"millrace/internal/media/frame"
)

// StillArgs describe one picture that is encoded as a closed group of pictures which all look the same.
type StillArgs struct {
	Codec   frame.Codec
	Picture *image.RGBA
	FPS     float64 // frames per second
	Frames  int     // in the group
}

// ErrNoEncoder says that ffmpeg has no encoder for a codec, or that none is used here.
var ErrNoEncoder = errors.New("no encoder for this codec")

// encoders are how a still is encoded: quickly, without B-frames, one key frame. Nothing of it moves, so that any speed
// looks the same.
var stillEncoders = map[frame.Codec][]string{ //nolint:gochecknoglobals // a table
	frame.H264: {
		"libx264", "-preset", "veryfast", "-tune", "stillimage", "-profile:v", "main", "-crf", "22", "-bf", "0",
		"-refs", "1", "-sc_threshold", "0",
	},
	frame.HEVC: {
		"libx265", "-preset", "ultrafast", "-crf", "24", "-tag:v", "hvc1", "-x265-params",
		"log-level=error:bframes=0:scenecut=0:open-gop=0:pools=none:frame-threads=1",
	},
	frame.VP9: {
		"libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-crf", "30", "-b:v", "0", "-lag-in-frames", "0",
		"-auto-alt-ref", "0",
	},
	frame.AV1: {"libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-crf", "30", "-b:v", "0", "-lag-in-frames", "0"},
}

// Build returns the arguments for ffmpeg: one raw picture on standard input, fragmented MP4 on standard output.
func (s StillArgs) Build() ([]string, error) {
	encoder, ok := stillEncoders[s.Codec]
	if !ok {
		return nil, fmt.Errorf("encode still as %s: %w", s.Codec, ErrNoEncoder)
	}
	size, rate := s.Picture.Bounds(), strconv.FormatFloat(s.FPS, 'f', -1, 64)
	gop := strconv.Itoa(s.Frames)
	args := append(common(),
		"-protocol_whitelist", "pipe", "-f", "rawvideo", "-pixel_format", "rgba", "-video_size",
		fmt.Sprintf("%dx%d", size.Dx(), size.Dy()),
		"-framerate", rate, "-i", "pipe:0",
		"-vf", "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p,loop=loop=-1:size=1,setpts=N/("+rate+"*TB)",
		"-frames:v", gop, "-an", "-sn", "-dn", "-r", rate,
		"-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709", "-color_range", "tv",
		"-threads", "1", "-g", gop, "-keyint_min", gop, "-c:v")
	args = append(args, encoder...)
	return append(args, "-f", "mp4", "-use_editlist", "0", "-movflags", "+frag_keyframe+empty_moov+default_base_moof",
		"pipe:1"), nil
}

// Still encodes a picture; output reads the fragmented MP4. When output returns an error, that is the error.
func (e *Engine) Still(ctx context.Context, job StillArgs, output func(mp4 io.Reader) error) error {
	args, err := job.Build()
	if err != nil {
		return err
	}
	release, err := e.opts.Budget.Acquire(ctx, OnDemand, 1)
	if err != nil {
		return err
	}
	defer release()
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: args, Priority: OnDemand,
		Limits: e.opts.Bounds.Still.limits(e.opts.Limits.AddressSpace),
		Input: func(_ context.Context, w io.Writer) error {
			_, werr := io.Copy(w, bytes.NewReader(job.Picture.Pix))
			return werr
		},
		Output: func(_ context.Context, r io.Reader) error { return output(r) }, Stall: e.opts.Stall,
	}).RunAs(ctx, "still")
	return blame(err, fmt.Sprintf("the picture can't be encoded as %s", job.Codec))
}
