package encode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/media/frame"
)

// RungArgs describe a stretch of a picture that is encoded again in another size: fragmented MP4 comes on standard
// input and goes to standard output, a fragment a frame. Every frame that goes in comes out with its time of
// presentation, in ticks of the input's time scale. Decoding begins some frames before the first of them: media time
// begins late enough for that not to be negative.
type RungArgs struct {
	Width, Height int              // pixels, even
	Range         frame.VideoRange // of the input: PQ and HLG are tone-mapped to BT.709
	Preset        string
	CRF           int
	Bitrate       int // the most over a second, bits per second
	Level         int // level_idc
	Timescale     uint32
	// NoReorder: pictures refer to none that comes later, and come out as they went in. Such a rung's parameter sets
	// are those of Ladder's.
	NoReorder bool
	FrameRate float64 // of a rung without reordering, frames per second; 0: unknown
	// Keys are where segments begin, in seconds of the input's presentation time: key frames stand there and nowhere
	// else. nil: the first picture is the only one.
	Keys []float64
	// FastPreset is for what a viewer waits for: it takes two thirds of the time, and a tenth more bits. Parameter sets
	// are the same.
	FastPreset bool
	// Part is for one of up to three runs that make a segment together.
	Part    bool
	Threads int // of the encoder and of the decoder; 0: as many as there are cores
	Encoder H264
}

// Build returns the arguments for ffmpeg. A run that ends is a full run: the encoder looks ahead, nothing is cut off.
// The parameter sets follow from the arguments alone, not from where the run begins: x264's stitchable leaves out what
// the content would say, and no frame rate is guessed from the input. The model of the player's buffer begins half
// full, as runs follow one another; a part's begins with less, as there is more than one in a segment.
func (r RungArgs) Build() []string {
	threads := strconv.Itoa(r.Threads)
	preset, scaler := r.Preset, "bicubic"
	if r.FastPreset {
		preset, scaler = "ultrafast", "bilinear"
	}
	args := append(append(common(), r.Encoder.device()...),
		// Pictures in front of what a decoder has recovered by are of the segments before, or all that there is. To
		// look for what the init segment does not say, ffmpeg would decode the first picture, and then once again.
		"-probesize", "32", "-nofind_stream_info", "-threads", threads, "-flags", "+output_corrupt", "-copyts",
		"-protocol_whitelist", "pipe", "-format_whitelist", string(MOV), "-f", string(MOV), "-i", "pipe:0",
		"-map", "0:v:0", "-an", "-sn", "-dn", "-map_metadata", "-1",
		"-vf", scaled(r.Range, r.Width, r.Height, scaler)+r.Encoder.upload())
	args = append(args, r.Encoder.args(coding{
		preset: preset, crf: r.CRF, bitrate: r.Bitrate, level: r.Level, threads: threads, params: r.x264(),
		live: r.NoReorder && r.Encoder.hardware(), // or it would write other parameter sets than Ladder
	})...)
	if len(r.Keys) > 0 {
		args = append(args, "-force_key_frames", times(r.Keys))
	}
	return append(args,
		"-fps_mode", "passthrough", "-enc_time_base", "-1", "-video_track_timescale",
		strconv.FormatUint(uint64(r.Timescale), 10),
		// Times are written as they are, where the muxer would begin each run at zero.
		"-avoid_negative_ts", "disabled", "-f", "mp4", "-use_editlist", "0",
		"-movflags", "+frag_every_frame+empty_moov+default_base_moof+skip_trailer+frag_discont", "-flush_packets", "1",
		"pipe:1")
}

// x264 gives the encoder's own parameters. One that is told the frame rate does not wait for the next frame to know how
// long one lasts.
func (r RungArgs) x264() string {
	full := "0.5"
	if r.Part {
		full = "0.35"
	}
	params := "keyint=infinite:scenecut=0:open-gop=0:stitchable=1:vbv-init=" + full
	if r.FastPreset {
		ref := 1
		if r.Preset != "veryfast" && r.Preset != "superfast" {
			ref = 2 // as "faster" and "fast" have
		}
		// What the parameter sets say of the slower preset, and what costs little and spares many bits.
		params += fmt.Sprintf(
			":cabac=1:8x8dct=1:ref=%d:bframes=3:b-pyramid=normal:weightb=1:weightp=1:b-adapt=1:deblock=0,0:aq-mode=1:mbtree=1:rc-lookahead=8", ref)
	}
	if !r.NoReorder {
		return params
	}
	fps := r.FrameRate
	if fps < 1 || fps > 240 {
		fps = 30
	}
	return fmt.Sprintf("%s:bframes=0:ref=1:weightp=0:force-cfr=1:fps=%d/1000", params, int(fps*1000+0.5))
}

// times are given a hair early, so that no rounding puts a key frame one frame late.
func times(seconds []float64) string {
	texts := make([]string, len(seconds))
	for i, s := range seconds {
		texts[i] = strconv.FormatFloat(max(s-0.0005, 0), 'f', 6, 64)
	}
	return strings.Join(texts, ",")
}

// rungTime bounds the processor time of a run, which encodes seconds of media.
const rungTime = 10 * time.Minute

// RungJob is one run for a stretch, of one encoder or of several side by side that have a part of it each.
type RungJob struct {
	Threads int // as in the arguments; 0 with several parts: those have the cores together
	// Hurry, once closed, says that somebody waits for what was begun ahead.
	Hurry <-chan struct{}
	// Prepare is called once the budget has room: what a run needs in memory is not held while it waits. It gives the
	// arguments of each part; cores is how many the run has.
	Prepare func(ctx context.Context, cores int) ([]RungArgs, error)
	// Input and Output are of a part; those of several parts are called at the same time.
	Input  func(ctx context.Context, part int, w io.Writer) error
	Output func(ctx context.Context, part int, r io.Reader) error
}

// Rung encodes a stretch of a picture in another size, once the budget has room. When one part fails, the others are
// ended.
func (e *Engine) Rung(ctx context.Context, p Priority, job RungJob) error {
	cores := job.Threads
	if cores == 0 {
		cores = e.opts.Budget.foreground.size
	}
	release, err := e.opts.Budget.Acquire(ctx, p, cores)
	if err != nil {
		return err
	}
	defer release()
	parts, err := job.Prepare(ctx, cores)
	if err != nil {
		return err
	}
	threads := job.Threads
	if len(parts) > 1 {
		threads = max(1, cores/len(parts))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i := range parts {
		parts[i].Threads, parts[i].Encoder = threads, e.opts.H264
		all.Go(func() {
			if errs[i] = e.part(ctx, p, parts, i, &job); errs[i] != nil {
				cancel(errPart)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errPart) {
			return blame(err, "the picture can't be decoded")
		}
	}
	return nil
}

// errPart ends the parts beside one that has failed.
var errPart = errors.New("another part of it has failed")

func (e *Engine) part(ctx context.Context, p Priority, parts []RungArgs, i int, job *RungJob) error {
	args := &parts[i]
	child := ProcessOptions{
		Program: e.opts.FFmpeg, Args: args.Build(), Stall: e.opts.Stall,
		Limits: Limits{AddressSpace: args.Encoder.addresses(e.opts.Limits.AddressSpace), CPU: rungTime},
	}
	if v := e.opts.Reserve; v != nil && args.FastPreset && args.Keys == nil {
		return v.do(ctx, child, len(parts)+1, ImageJob{ // the next segment may have one part more
			Input:  func(ctx context.Context, w io.Writer) error { return job.Input(ctx, i, w) },
			Output: func(r io.Reader) error { return job.Output(ctx, i, r) },
		})
	}
	child.Priority, child.Hurry = p, job.Hurry
	child.Input = func(ctx context.Context, w io.Writer) error { return job.Input(ctx, i, w) }
	child.Output = func(ctx context.Context, r io.Reader) error { return job.Output(ctx, i, r) }
	return NewProcess(child).RunAs(ctx, "rung")
}
