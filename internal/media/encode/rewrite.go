package encode

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"millrace/internal/media/frame"
)

// RewriteArgs describe a file whose first video stream and one audio stream are written as fragmented MP4 to standard
// output: packet by packet as they are, or encoded again.
type RewriteArgs struct {
	Input   string // path
	Format  Format
	Audio   int           // which of its audio streams, from 0; -1: none
	Picture *Picture      // how the video is encoded again; nil: it stays
	Sound   *Sound        // how the audio is; nil: it stays
	Length  time.Duration // how much of it; 0: all
}

// Picture is H.264 that is made of any video, key frames KeyInterval apart, but one at 1 second for viewers who wait
// for the first segment.
type Picture struct {
	Width, Height int // pixels, even
	Preset        string
	CRF           int
	Bitrate       int              // the most over a second, bits per second
	Level         int              // level_idc
	Interlaced    bool             // fields are put together first
	Range         frame.VideoRange // of the input: PQ and HLG are tone-mapped to BT.709
	FrameRate     int              // that it is brought to, frames a second; 0: every picture stays
	Overlay       *Overlay
	Encoder       H264
}

// KeyInterval is how far apart key frames are where a video is encoded again, in seconds: the length of its segments.
const KeyInterval = 2

// maxPixels of a picture, 8192 by 6480: what is larger is not decoded.
const maxPixels = 8192 * 6480

// maxHeldBack is how many bytes of packets are held back at most until all tracks have begun: four minutes at 8 Mbit/s.
// Beyond that a file is refused, if there are 4096 of them.
const maxHeldBack = 256 << 20

// Build returns the arguments for ffmpeg. Every time of every stream is the input's plus one constant, such that none
// is negative; composition offsets are not negative and there is no edit list. A jump of more than ten seconds in
// MPEG-TS is closed.
func (r RewriteArgs) Build() []string {
	flags := "+frag_keyframe+empty_moov+default_base_moof"
	// frag_discont writes decoding times as they are, where the muxer would let every track begin at zero.
	flags += "+frag_discont"
	args := append(common(), "-max_pixels", strconv.Itoa(maxPixels))
	if r.Picture != nil {
		args = append(args, r.Picture.Encoder.device()...)
	}
	if reading := r.reading(); reading != "" {
		args = append(args, "-fflags", reading)
	}
	args = append(args, input(r.Format, r.Input)...)
	args = append(args, r.video()...)
	if r.Audio >= 0 {
		args = append(args, "-map", "0:a:"+strconv.Itoa(r.Audio)+"?")
	}
	args = append(args, "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1")
	switch {
	case r.Sound != nil:
		args = append(args, r.Sound.encoder()...)
		// What the encoder primes itself with comes before everything, and is not heard: without it sound and picture
		// begin together.
		args = append(args, "-bsf:a", "noise=amount=0:drop=lt(pts\\,0)")
	case r.Format == MOV:
		// An edit list leaves out an encoder's priming: as a packet in front it would show the first picture that much
		// later.
		args = append(args, "-c:a", "copy", "-bsf:a", "noise=amount=0:drop=lte(pts+d\\,0)")
	default:
		args = append(args, "-c:a", "copy")
	}
	if (r.Format == MPEGTS || r.Format == MPEGPS || r.Format == ADTS) && r.Sound == nil {
		// How AAC is to be decoded stands in its packets: the moov box has to wait for the first.
		args = append(args, "-bsf:a", "aac_adtstoasc")
		flags += "+delay_moov"
	}
	if r.Length > 0 {
		args = append(args, "-t", seconds(r.Length))
	}
	return append(args,
		"-avoid_negative_ts", "make_non_negative", // make_zero moves the first packet of each stream by itself
		// A track that is encoded and begins late holds back the other one, as nothing is known of it before.
		"-max_muxing_queue_size", "4096", "-muxing_queue_data_threshold", strconv.Itoa(maxHeldBack),
		"-f", "mp4", "-use_editlist", "0", "-movflags", flags,
		// Within a long GOP too: what is not yet a fragment is held in memory, and who waits for it waits longer.
		"-frag_duration", "200000", "-frag_size", "8388608",
		"-flush_packets", "1", "pipe:1")
}

// reading is how packets are read.
func (r RewriteArgs) reading() string {
	switch {
	case r.Format == AVI && r.Picture == nil:
		// AVI has no times of presentation. What stays as it is has no B-frames and gets those of decoding; a decoder
		// that was given such would take them for the pictures' own, and bring those into the order of decoding.
		return "+genpts+discardcorrupt"
	case r.Format == AVI, r.Format == MOV, r.Format == FLV:
		// Corrupt is the last packet of a recording that was cut off: half a picture, at which players stop.
		return "+discardcorrupt"
	}
	return ""
}

// video maps the first video stream that is no cover picture.
func (r RewriteArgs) video() []string {
	p := r.Picture
	if p == nil {
		return []string{"-map", "0:V:0?", "-c:v", "copy"}
	}
	args := append(p.Overlay.over("0:V:0", p.filters(), p.Encoder.upload()), p.Encoder.args(coding{
		preset:  p.Preset,
		crf:     p.CRF,
		bitrate: p.Bitrate,
		level:   p.Level,
		params:  "keyint=infinite:open-gop=0:scenecut=0",
		// With a number of threads of its own an encode gives the same bytes on any machine: a second run goes on where
		// the first ended.
		threads: "4",
	})...)
	return append(args, "-force_key_frames",
		fmt.Sprintf("expr:gte(t,if(lt(n_forced,2),n_forced,(n_forced-1)*%d))", KeyInterval), "-fps_mode", "vfr",
		"-enc_time_base", "-1")
}

// filters bring a picture into its size and form. It comes upright: ffmpeg turns what is to be turned.
func (p *Picture) filters() string {
	chain := ""
	if p.Interlaced {
		chain = "yadif=deint=interlaced,"
	}
	if p.FrameRate > 0 {
		chain += fmt.Sprintf("fps=%d,", p.FrameRate)
	}
	if p.Range != frame.SDR {
		return chain + scaled(p.Range, p.Width, p.Height, "")
	}
	return chain + fmt.Sprintf("scale=%d:%d:flags=bicubic:out_range=tv,setsar=1,format=yuv420p", p.Width, p.Height)
}

// convertTime is how much processor time an encode may take: of the longest asset, the largest picture, on many cores.
const convertTime = 10 * 24 * time.Hour

// Rewrite gives output a file's first video track and one audio track as fragmented MP4, from the first fragment on as
// they come. When output returns an error, that is the error. Where something is encoded again it waits for a share of
// the processor of its own, and goes behind whatever a viewer waits for.
func (e *Engine) Rewrite(
	ctx context.Context, job RewriteArgs, output func(ctx context.Context, mp4 io.Reader) error,
) error {
	priority, limits := OnDemand, e.opts.Limits
	if job.Picture != nil || job.Sound != nil {
		priority, limits.CPU = Ingest, convertTime
	}
	var files []*os.File
	if job.Picture != nil {
		as := *job.Picture
		as.Encoder = e.opts.H264
		job.Picture, limits.AddressSpace = &as, as.Encoder.addresses(limits.AddressSpace)
	}
	if job.Picture != nil && job.Picture.Overlay != nil {
		sheet, err := job.Picture.Overlay.file()
		if err != nil {
			return err
		}
		defer func() { _ = sheet.Close() }() // it is memory
		files = append(files, sheet)
	}
	release, err := e.opts.Budget.Acquire(ctx, priority, 1)
	if err != nil {
		return err
	}
	defer release()
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: job.Build(), Limits: limits, Priority: priority,
		Output: output, Stall: e.opts.Stall, Files: files,
	}).RunAs(ctx, "rewrite")
	return blame(err, "the file can't be read as "+job.Format.Name())
}
