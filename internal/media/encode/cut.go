package encode

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/frame"
)

// PictureCut describes pictures that are encoded again in their own codec, size and colours because what they depend on
// is cut off in front of them: fragmented MP4 comes on standard input and goes to standard output, a fragment a
// picture, in the order in which they are shown.
type PictureCut struct {
	Codec frame.Codec
	// Spans are the times of the first and the last picture of each stretch, in ticks, ascending: what is shown in none
	// is left out, and each begins with a key frame. More than one only of H.264.
	Spans     [][2]int64
	Timescale uint32
	Bitrate   int // the most over a second, bits per second
	// Of H.264: the ID of its parameter sets, profile_idc and level_idc of the stream that it goes into, and whether
	// its pictures are fields.
	Set            int
	Profile, Level uint8
	Interlaced     bool
}

// Numbers of profiles, H.264 section A.2.
const baseline, main, high = 66, 77, 100

// h264Profiles are x264's names of profiles by profile_idc.
var h264Profiles = map[uint8]string{baseline: "baseline", main: "main", high: "high"} //nolint:gochecknoglobals // a table

// Build returns the arguments for ffmpeg. Nothing is reordered: each picture can be given any time that is later than
// the one before. The picture is not turned, as the init segment says how it is to be turned.
func (pc PictureCut) Build() []string {
	var shown []string
	var keys []float64
	for _, s := range pc.Spans {
		shown = append(shown, fmt.Sprintf(`between(pts\,%d\,%d)`, s[0], s[1]))
		keys = append(keys, float64(s[0])/float64(pc.Timescale))
	}
	args := append(common(),
		"-probesize", "32", "-analyzeduration", "0", "-noautorotate", "-copyts", "-max_pixels", strconv.Itoa(maxPixels),
		"-protocol_whitelist", "pipe", "-format_whitelist", string(MOV), "-f", string(MOV), "-i", "pipe:0",
		"-map", "0:v:0", "-an", "-sn", "-dn", "-map_metadata", "-1",
		"-vf", "select="+strings.Join(shown, "+"))
	args = append(args, pc.encoder()...)
	if len(keys) > 1 {
		args = append(args, "-force_key_frames", times(keys))
	}
	return append(args,
		"-fps_mode", "passthrough", "-enc_time_base", "-1", "-video_track_timescale",
		strconv.FormatUint(uint64(pc.Timescale), 10),
		// Times are written as they are, where the muxer would begin at zero.
		"-avoid_negative_ts", "disabled", "-f", "mp4", "-use_editlist", "0",
		"-movflags", "+frag_every_frame+empty_moov+default_base_moof+skip_trailer+frag_discont", "-flush_packets", "1",
		"pipe:1")
}

// encoder is about as good as what is replaced, which lasts for seconds at most.
func (pc PictureCut) encoder() []string {
	rate := strconv.Itoa(pc.Bitrate)
	switch pc.Codec { //nolint:exhaustive // of sound
	case frame.HEVC:
		return []string{
			"-c:v", "libx265", "-preset", "ultrafast", "-crf", "18", "-tag:v", "hvc1", "-bf", "0",
			"-x265-params", "log-level=none:keyint=-1:scenecut=0:open-gop=0:bframes=0",
		}
	case frame.AV1:
		return []string{
			"-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-row-mt", "1", "-crf", "20", "-b:v", rate,
			"-lag-in-frames", "0", "-g", "9999",
		}
	case frame.VP9:
		return []string{
			"-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "6", "-row-mt", "1", "-crf", "20", "-b:v", rate,
			"-lag-in-frames", "0", "-auto-alt-ref", "0", "-g", "9999",
		}
	}
	params := "keyint=infinite:scenecut=0:open-gop=0:stitchable=1:sps-id=" + strconv.Itoa(pc.Set)
	args := []string{
		"-c:v", "libx264", "-preset", "ultrafast", "-crf", "16", "-maxrate", rate, "-bufsize", rate, "-bf", "0",
	}
	if p := h264Profiles[pc.Profile]; p != "" {
		args = append(args, "-profile:v", p, "-level:v", fmt.Sprintf("%d.%d", pc.Level/10, pc.Level%10))
	}
	if pc.Profile != baseline { // what the preset leaves out of a profile would make it another one
		params += ":cabac=1:deblock=0,0:aq-mode=1"
	}
	if pc.Profile >= high {
		params += ":8x8dct=1"
	}
	if pc.Interlaced {
		args = append(args, "-flags", "+ilme+ildct")
	}
	return append(args, "-x264-params", params)
}

// SoundCut describes a stretch of AAC that is encoded again because part of it is silenced: fragmented MP4 comes on
// standard input, ADTS goes to standard output. The first packet that comes out is the encoder's priming; behind it
// each packet that went in has its own.
type SoundCut struct {
	Channels int
	Mute     int // samples at the beginning that are silenced
	End      int // samples in front of the end of what is heard; 0: all is
	Samples  int // that went in
}

// Build returns the arguments for ffmpeg.
func (s SoundCut) Build() []string {
	chain := "anull"
	if s.End > 0 {
		chain = fmt.Sprintf("atrim=end_sample=%d,apad=whole_len=%d", s.End, s.Samples)
	}
	if s.Mute > 0 {
		chain += fmt.Sprintf(",atrim=start_sample=%d,asetpts=PTS-STARTPTS,adelay=delays=%dS:all=1", s.Mute, s.Mute)
	}
	return append(common(),
		"-probesize", "32", "-analyzeduration", "0",
		"-protocol_whitelist", "pipe", "-format_whitelist", string(MOV), "-f", string(MOV), "-i", "pipe:0",
		"-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1", "-af", chain,
		"-c:a", "aac", "-profile:a", "aac_low", "-b:a", strconv.Itoa(128_000*max(s.Channels, 1)), "-threads", "1",
		"-f", "adts", "-flush_packets", "1", "pipe:1")
}

// cutTime bounds the processor time of a cut, which is of one segment.
const cutTime = 10 * time.Minute

// CutPicture runs a cut as soon as the budget has room: somebody waits for it. One core is left for the sound, which is
// cut beside it.
func (e *Engine) CutPicture(
	ctx context.Context, a PictureCut, input func(io.Writer) error, output func(io.Reader) error,
) error {
	return e.cut(ctx, a.Build(), e.opts.Budget.foreground.size-1, "the picture can't be decoded", input, output)
}

// CutSound is CutPicture of sound.
func (e *Engine) CutSound(
	ctx context.Context, a SoundCut, input func(io.Writer) error, output func(io.Reader) error,
) error {
	return e.cut(ctx, a.Build(), 1, "the sound can't be decoded", input, output)
}

func (e *Engine) cut(
	ctx context.Context, args []string, weight int, blamed string, input func(io.Writer) error,
	output func(io.Reader) error,
) error {
	release, err := e.opts.Budget.Acquire(ctx, OnDemand, weight)
	if err != nil {
		return err
	}
	defer release()
	err = NewProcess(ProcessOptions{
		Program:  e.opts.FFmpeg,
		Args:     args,
		Priority: OnDemand,
		Limits:   Limits{AddressSpace: e.opts.Limits.AddressSpace, CPU: cutTime},
		Input:    func(_ context.Context, w io.Writer) error { return input(w) },
		Output:   func(_ context.Context, r io.Reader) error { return output(r) },
		Stall:    e.opts.Stall,
	}).RunAs(ctx, "cut")
	return blame(err, blamed)
}
