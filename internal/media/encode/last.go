package encode

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"millrace/internal/media/frame"
)

// LastArgs describe the last picture of some that are decoded, encoded again as a single key frame: in come access
// units as fragmented MP4 on standard input, out goes fragmented MP4 on standard output.
type LastArgs struct {
	Codec frame.Codec
	At    time.Duration // the picture that is presented then, or the next one
	// Within bounds the work: in processor time, and by ten times as much on the clock. 0: what a broadcast waits for.
	Within time.Duration
}

// Build returns the arguments for ffmpeg.
func (l LastArgs) Build() ([]string, error) {
	encoder, ok := stillEncoders[l.Codec]
	if !ok {
		return nil, fmt.Errorf("encode last picture as %s: %w", l.Codec, ErrNoEncoder)
	}
	args := append(common(),
		"-probesize", "32", "-analyzeduration", "0", "-copyts",
		"-protocol_whitelist", "pipe", "-format_whitelist", string(MOV), "-f", string(MOV), "-i", "pipe:0", "-map",
		"0:v:0",
		"-vf",
		"select=gte(t\\,"+strconv.FormatFloat(l.At.Seconds(), 'f', 6, 64)+
			"),scale=trunc(iw/2)*2:trunc(ih/2)*2,format=yuv420p",
		"-frames:v", "1", "-fps_mode", "passthrough", "-an", "-sn", "-dn", "-map_metadata", "-1", "-threads", "1",
		"-c:v")
	args = append(args, encoder...)
	return append(args, "-f", "mp4", "-use_editlist", "0", "-movflags", "+frag_keyframe+empty_moov+default_base_moof",
		"pipe:1"), nil
}

// lastTime bounds the work on a last picture: one that comes later is of no use.
const lastTime = 5 * time.Second

// Last decodes pictures and encodes the last one of them. It does not wait for a free processor: a broadcast can't.
func (e *Engine) Last(
	ctx context.Context, job LastArgs, input func(context.Context, io.Writer) error, output func(mp4 io.Reader) error,
) error {
	args, err := job.Build()
	if err != nil {
		return err
	}
	bound, priority := Bound{CPU: 2 * lastTime, Wall: lastTime}, Live
	if job.Within > 0 {
		bound, priority = Bound{CPU: job.Within, Wall: 10 * job.Within}, OnDemand
	}
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: args, Priority: priority,
		Limits: bound.limits(e.opts.Limits.AddressSpace),
		Input:  input,
		Output: func(_ context.Context, r io.Reader) error { return output(r) },
	}).RunAs(ctx, "last")
	return blame(err, fmt.Sprintf("the last picture can't be encoded as %s", job.Codec))
}
