package encode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"millrace/internal/fault"
)

// LadderArgs describe a picture that is encoded in several sizes at once while it streams: fragmented MP4 comes on
// standard input, a fragment a frame; each rung goes out as FLV, the first one on standard output, the others on
// descriptors 3, 4 and so on. There is one decoder. What is made of a frame is said by the remainder of its
// presentation time, in ticks of the input's time scale, by four: at 0 it comes out, at 1 it comes out as a key frame,
// and at 2 it is decoded only, for others that refer to it. Of those that come out, with their times in whole
// milliseconds, the first one has 0 and is a key frame all the same.
type LadderArgs struct {
	Rungs     []RungArgs // without reordering; Keys and Threads do not count
	Timescale uint32
	// Whole: all of the picture is at hand, and somebody waits for the last of it. It takes a fifth less time, and the
	// parameter sets are the same.
	Whole   bool
	Encoder H264
}

// small is a picture that one thread encodes in time, in pixels.
const small = 640 * 360

// Build returns the arguments for ffmpeg. As with LiveArgs nothing is held back on the way. Parameter sets are those
// that Rung writes for the same sizes and settings: what is faster here leaves no trace in them.
func (l LadderArgs) Build() []string {
	preset, scaler, more := "superfast", "bicubic", ""
	if l.Whole {
		preset, scaler, more = "ultrafast", "bilinear", ":cabac=1:8x8dct=1:deblock=0,0"
	}
	args := append(append(common(), l.Encoder.device()...),
		"-probesize", "32", "-analyzeduration", "0", "-thread_type", "slice", "-copyts",
		"-protocol_whitelist", "pipe", "-format_whitelist", string(MOV), "-f", string(MOV), "-i", "pipe:0")
	for i, r := range l.Rungs {
		threads := "1"
		if r.Width*r.Height > small {
			threads = "2"
		}
		pipe := 1
		if i > 0 {
			pipe = 2 + i
		}
		args = append(args,
			"-map", "0:v:0", "-an", "-sn", "-dn", "-map_metadata", "-1",
			"-vf", fmt.Sprintf("select='lt(mod(floor(t*%d+0.5),4),2)',", l.Timescale)+
				scaled(r.Range, r.Width, r.Height, scaler)+l.Encoder.upload())
		args = append(args, l.Encoder.args(coding{
			preset:  preset,
			crf:     r.CRF,
			bitrate: r.Bitrate,
			level:   r.Level,
			threads: threads,
			params:  r.x264() + more,
			live:    true,
		})...)
		args = append(args,
			"-force_key_frames", fmt.Sprintf("expr:mod(floor(t*%d+0.5),2)", l.Timescale),
			"-fps_mode", "passthrough", "-enc_time_base", "-1",
			"-f", "flv", "-flvflags", "no_duration_filesize+no_sequence_end", "-flush_packets", "1",
			"pipe:"+strconv.Itoa(pipe))
	}
	return args
}

// Ladder encodes a picture in several sizes while it streams, until input returns and what it has written is encoded;
// outputs are the rungs', in their order. It does not wait for a free processor: fault.Unavailable says that as many
// rungs are encoded as there may be. What publishers send goes first: it is less urgent than the service itself.
func (e *Engine) Ladder(
	ctx context.Context, job LadderArgs, input func(context.Context, io.Writer) error,
	outputs []func(context.Context, io.Reader) error,
) error {
	if len(outputs) == 0 || len(outputs) != len(job.Rungs) {
		return errors.New("encode ladder: every rung needs its output")
	}
	release, ok := e.opts.Budget.TryAcquire(Live, len(job.Rungs))
	if !ok {
		return fault.New(fault.Unavailable,
			"the service encodes as many live renditions as it can: ask again in a moment")
	}
	defer release()
	job.Encoder = e.opts.H264
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: job.Build(), Priority: FirstPlay,
		Limits: Limits{AddressSpace: job.Encoder.addresses(e.opts.Limits.AddressSpace), CPU: liveTime},
		Input:  input, Output: outputs[0], Further: outputs[1:],
	}).RunAs(ctx, "ladder")
	return blame(err, "the picture can't be decoded")
}
