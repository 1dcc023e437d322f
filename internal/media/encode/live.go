package encode

import (
	"context"
	"io"
	"os"
	"time"

	"millrace/internal/media/frame"
)

// IVF is the format in which VP8 goes to ffmpeg's standard input; nothing is ever stored in it.
const IVF Format = "ivf"

// LiveArgs describe a picture that is encoded again while it streams: in come access units as fragmented MP4, or as IVF
// for VP8, on standard input; out goes H.264 as FLV on standard output, a frame for each frame with its time, key
// frames where the input has them.
type LiveArgs struct {
	Format        Format           // MOV or IVF
	Width, Height int              // of the picture, in pixels
	Range         frame.VideoRange // of the input: PQ and HLG are tone-mapped to BT.709
	FrameRate     float64
	Overlay       *Overlay
	Encoder       H264
}

// Build returns the arguments for ffmpeg. Nothing is held back on the way: the decoder works in slices, the encoder
// looks at no frame ahead, and FLV needs to know nothing of the next frame.
func (l LiveArgs) Build() []string {
	args := append(append(common(), l.Encoder.device()...),
		"-probesize", "32", "-analyzeduration", "0", "-thread_type", "slice", "-copyts",
		"-protocol_whitelist", "file,pipe", "-format_whitelist", string(l.Format), "-f", string(l.Format), "-i",
		"pipe:0")
	even := "scale=trunc(iw/2)*2:trunc(ih/2)*2,format=yuv420p"
	if l.Range != frame.SDR {
		even = scaled(l.Range, l.Width&^1, l.Height&^1, "")
	}
	args = append(args, l.Overlay.over("0:v:0", even, l.Encoder.upload())...)
	args = append(args,
		l.Encoder.args(coding{
			preset:  "superfast",
			bitrate: l.bitrate(),
			live:    true,
			params:  "keyint=infinite:scenecut=0:open-gop=0",
		})...)
	return append(args,
		"-an", "-sn", "-dn", "-map_metadata", "-1",
		"-force_key_frames", "source",
		"-fps_mode", "passthrough", "-enc_time_base", "-1",
		"-f", "flv", "-flvflags", "no_duration_filesize+no_sequence_end", "-flush_packets", "1", "pipe:1")
}

// bitrate is what the picture gets, in bits per second: a tenth of a bit for each of its pixels, within reason.
func (l LiveArgs) bitrate() int {
	fps := l.FrameRate
	if fps <= 0 || fps > 120 {
		fps = 30
	}
	return min(max(int(float64(l.Width*l.Height)*fps/10), 300_000), 16_000_000)
}

// liveTime is how much processor time a live encode may take: more than the longest broadcast needs on four cores.
const liveTime = 48 * time.Hour

// Live encodes a picture while it streams, until input returns and what it has written is encoded. It does not wait for
// a free processor: a broadcast can't.
func (e *Engine) Live(
	ctx context.Context, job LiveArgs, input func(context.Context, io.Writer) error,
	output func(context.Context, io.Reader) error,
) error {
	var files []*os.File
	if job.Overlay != nil {
		sheet, err := job.Overlay.file()
		if err != nil {
			return err
		}
		defer func() { _ = sheet.Close() }() // it is memory
		files = append(files, sheet)
	}
	job.Encoder = e.opts.H264
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: job.Build(), Priority: Live,
		Limits: Limits{AddressSpace: job.Encoder.addresses(e.opts.Limits.AddressSpace), CPU: liveTime},
		Input:  input, Output: output, Files: files,
	}).RunAs(ctx, "live")
	return blame(err, "the picture can't be decoded")
}
