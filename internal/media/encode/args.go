package encode

import (
	"strconv"
	"time"
)

// Format names one of ffmpeg's demuxers. Only these are ever used, and always by name: ffmpeg left to guess would take
// a playlist in disguise and read what it names.
type Format string

// The formats that are read.
const (
	MOV      Format = "mov" // MP4, M4A, 3GP too
	Matroska Format = "matroska"
	MPEGTS   Format = "mpegts"
	MP3      Format = "mp3"
	ADTS     Format = "aac"
	WAV      Format = "wav"
	FLAC     Format = "flac"
	Ogg      Format = "ogg"
	AVI      Format = "avi"
	FLV      Format = "flv"
	MPEGPS   Format = "mpeg"
	ASF      Format = "asf" // WMV and WMA
	MXF      Format = "mxf"
	AIFF     Format = "aiff"
	CAF      Format = "caf"
	W64      Format = "w64"
	AC3      Format = "ac3"
	EAC3     Format = "eac3"
	GIF      Format = "gif"
	NUT      Format = "nut"
	RawH264  Format = "h264" // byte streams without a container: no picture has a time
	RawHEVC  Format = "hevc"
)

// Formats lists every format that is read.
func Formats() []Format {
	return []Format{
		MOV, Matroska, MPEGTS, MP3, ADTS, WAV, FLAC, Ogg, AVI, FLV, MPEGPS, ASF, MXF, AIFF, CAF, W64, AC3, EAC3, GIF,
		NUT, RawH264, RawHEVC,
	}
}

// Timed reports whether every picture in a file of this format has a presentation time of its own. Where none has, or
// only when the picture is decoded, the decoder has to put them in order.
func (f Format) Timed() bool {
	switch f { //nolint:exhaustive // the others have them
	case MPEGPS, ASF, RawH264, RawHEVC:
		return false
	}
	return true
}

// MaxDuration of what an encode writes: the longest asset.
const MaxDuration = 12 * time.Hour

// AudioArgs describe one audio file to be made from the first audio stream of another.
type AudioArgs struct {
	Input  string // path
	Format Format
	Output string // path; overwritten. An M4A file: AAC-LC in MP4 with its index in front

	Copy  bool // the input is AAC-LC: take its packets as they are
	Sound Sound
	// FromStart has times count from where the input's sound and pictures begin, not from its clock's 0, as with an MP4
	// that is fragmented.
	FromStart bool
}

// Build returns the arguments for ffmpeg. Progress comes on descriptor 3.
func (a AudioArgs) Build() []string {
	args := append(common(), "-progress", "pipe:3")
	if a.Format == MOV && !a.FromStart {
		// A delay written in an edit list is meant; without this ffmpeg would take the first sample for time zero.
		args = append(args, "-copyts")
	}
	args = append(args, input(a.Format, a.Input)...)
	args = append(args, "-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1")
	if a.Copy {
		args = append(args, "-c:a", "copy")
	} else {
		args = append(args, a.Sound.encoder()...)
	}
	return append(args, "-t", seconds(MaxDuration), "-f", "mp4", "-movflags", "+faststart", "-y", "file:"+a.Output)
}

// probeBytes is how much of a file ffprobe reads at most to find its tracks.
const probeBytes = 20_000_000

// ProbeArgs returns the arguments for ffprobe.
func ProbeArgs(path string, format Format) []string {
	return []string{
		"-hide_banner", "-loglevel", "error",
		"-probesize", strconv.Itoa(probeBytes), "-analyzeduration", "10000000", "-max_streams", strconv.Itoa(maxTracks),
		"-protocol_whitelist", "file", "-f", string(format), "-i", "file:" + path,
		"-show_entries", "format=duration,start_time:" +
			"stream=codec_type,codec_name,codec_tag_string,profile,level,pix_fmt," +
			"has_b_frames,field_order,width,height,color_space,color_transfer,sample_aspect_ratio," +
			"avg_frame_rate,r_frame_rate," +
			"sample_rate,channels,bits_per_sample,bits_per_raw_sample,start_time,duration" +
			":stream_tags=language,DURATION:stream_disposition=attached_pic,forced:stream_side_data=rotation",
		"-of", "json",
	}
}

func common() []string { return []string{"-hide_banner", "-nostdin", "-nostats", "-loglevel", "error"} }

// input opens a file with our demuxer and nothing else: neither the network nor another format can be reached from
// within it.
func input(format Format, path string) []string {
	return []string{
		"-protocol_whitelist", "file,pipe", "-format_whitelist", string(format), "-f", string(format), "-i",
		"file:" + path,
	}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
