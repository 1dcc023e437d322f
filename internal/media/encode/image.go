package encode

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"millrace/internal/media/frame"
)

// PAM is Netpbm's format of one raw picture, in which pictures go to ffmpeg that are to be written as WebP; nothing is
// ever stored in it.
const PAM Format = "pam_pipe"

// MaxSide bounds a decoded picture, in pixels of its longer side: a larger one is scaled down while it is decoded.
const MaxSide = 3840

// ShownFrom is the time, in seconds, from which on pictures that are fed to PictureArgs and AnimationArgs are shown;
// those before it are only there to be decoded from.
const ShownFrom = 1000

// imageInput are the arguments that read fragmented MP4 from standard input; decoding stand in front of it. What is
// said of the stream is enough: to look for more, ffmpeg would decode the first picture, and then once again.
func imageInput(decoding ...string) []string {
	return append(append(common(), decoding...),
		"-probesize", "32", "-nofind_stream_info", "-threads", "2", "-max_pixels", strconv.Itoa(maxPixels), "-copyts",
		"-protocol_whitelist", "pipe", "-format_whitelist", string(MOV), "-f", string(MOV), "-i", "pipe:0",
		"-map", "0:v:0", "-an", "-sn", "-dn", "-map_metadata", "-1")
}

// anything has a picture shown whose decoder has not recovered yet: one is better than none.
var anything = []string{"-flags", "+output_corrupt"} //nolint:gochecknoglobals // a constant

// upright turns a picture as its track says, gives it square pixels and bounds its size.
func upright() string {
	side := strconv.Itoa(MaxSide)
	small := "min(1\\," + side + "/max(iw*sar\\,ih))"
	return "scale=w=max(1\\,trunc(iw*sar*" + small + "+0.5)):h=max(1\\,trunc(ih*" + small +
		"+0.5)):flags=bilinear,setsar=1"
}

// PictureArgs returns the arguments that turn fragmented MP4 into its first picture from ShownFrom on, as PAM with four
// channels of 8 bits. They depend on the range of the picture alone, so that a child can be there before it is known.
func PictureArgs(r frame.VideoRange) []string {
	return append(imageInput(anything...), "-vf",
		fmt.Sprintf("select=gte(t\\,%d),", ShownFrom)+upright()+shown(r)+",format=rgba",
		"-frames:v", "1", "-fps_mode", "passthrough", "-c:v", "pam", "-f", "image2pipe", "pipe:1")
}

// WebPArgs returns the arguments that turn one PAM into a WebP.
func WebPArgs() []string {
	return append(common(),
		"-probesize", "32", "-analyzeduration", "0", "-threads", "1", "-max_pixels", strconv.Itoa(maxPixels),
		"-protocol_whitelist", "pipe", "-format_whitelist", string(PAM), "-f", string(PAM), "-i", "pipe:0",
		"-frames:v", "1", "-c:v", "libwebp", "-q:v", "80", "-compression_level", "2", "-f", "image2pipe", "pipe:1")
}

// TilesArgs describe pictures of one size from key frames: fragmented MP4 on standard input, of which picture n has the
// time n seconds; raw RGBA on standard output, one after the other. One that can't be decoded is replaced by its
// neighbour.
type TilesArgs struct {
	Width, Height int              // pixels, of each
	Range         frame.VideoRange // of what goes in: PQ and HLG are tone-mapped
	Count         int              // how many go in
}

// Build returns the arguments for ffmpeg.
func (t TilesArgs) Build() []string {
	return append(imageInput(),
		"-vf",
		fmt.Sprintf("fps=fps=1:start_time=0:eof_action=pass,scale=%d:%d:flags=bilinear,setsar=1%s,format=rgba", t.Width,
			t.Height, shown(t.Range)),
		"-frames:v", strconv.Itoa(t.Count), "-fps_mode", "passthrough", "-c:v", "rawvideo", "-f", "rawvideo", "pipe:1")
}

// AnimationArgs describe a short moving picture: fragmented MP4 on standard input, of which what is shown from
// ShownFrom on counts.
type AnimationArgs struct {
	WebP          bool             // otherwise GIF
	Width, Height int              // pixels
	Range         frame.VideoRange // of what goes in: PQ and HLG are tone-mapped
	FPS           float64
	Length        time.Duration
}

// Build returns the arguments for ffmpeg.
func (a AnimationArgs) Build() []string {
	args := imageInput(anything...)
	// Rounding up shows at each moment what was there; any other way what comes next.
	pictures := fmt.Sprintf(
		"trim=start=%d:duration=%s,setpts=PTS-STARTPTS,fps=fps=%s:round=up,scale=%d:%d:flags=bicubic,setsar=1%s",
		ShownFrom, seconds(a.Length), strconv.FormatFloat(a.FPS, 'f', -1, 64), a.Width, a.Height, shown(a.Range))
	if a.WebP {
		return append(args, "-vf", pictures, "-t", seconds(a.Length),
			"-c:v", "libwebp_anim", "-q:v", "65", "-compression_level", "2", "-loop", "0", "-f", "webp", "pipe:1")
	}
	// One palette for all, from what moves: a GIF has 256 colours.
	return append(args, "-vf",
		pictures+",split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer:bayer_scale=3",
		"-t", seconds(a.Length), "-loop", "0", "-f", "gif", "pipe:1")
}

// imageTime bounds the processor time of what makes pictures.
const imageTime = time.Minute

// ImageJob is what a child that makes pictures reads and writes.
type ImageJob struct {
	Input  func(context.Context, io.Writer) error
	Output func(io.Reader) error
}

// Picture decodes one picture as PictureArgs say, by a child that is started for it. The caller has a place of the
// Budget.
func (e *Engine) Picture(ctx context.Context, r frame.VideoRange, job ImageJob) error {
	return e.image(ctx, PictureArgs(r), job)
}

// Tiles decodes key frames into small pictures. The caller has a place of the Budget.
func (e *Engine) Tiles(ctx context.Context, args TilesArgs, job ImageJob) error {
	return e.image(ctx, args.Build(), job)
}

// Animation makes a short moving picture. The caller has a place of the Budget.
func (e *Engine) Animation(ctx context.Context, args AnimationArgs, job ImageJob) error {
	return e.image(ctx, args.Build(), job)
}

func (e *Engine) image(ctx context.Context, args []string, job ImageJob) error {
	opts := e.imageChild(args)
	opts.Input, opts.Output = job.Input, func(_ context.Context, r io.Reader) error { return job.Output(r) }
	return blame(NewProcess(opts).RunAs(ctx, "image"), "the picture can't be decoded")
}

func (e *Engine) imageChild(args []string) ProcessOptions {
	return ProcessOptions{
		Program: e.opts.FFmpeg, Args: args, Priority: Images, Stall: e.opts.Stall,
		Limits: Limits{AddressSpace: e.opts.Limits.AddressSpace, CPU: imageTime, FileSize: 1 << 20},
	}
}
