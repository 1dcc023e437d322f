package encode

import (
	"strconv"
	"time"
)

// Format names one of ffmpeg's demuxers. Only these are ever used, and always by name: ffmpeg left to guess would take a
// playlist in disguise and read what it names.
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
)

// Formats lists every format that is read.
func Formats() []Format { return []Format{MOV, Matroska, MPEGTS, MP3, ADTS, WAV, FLAC, Ogg} }

// MaxDuration of what an encode writes: the longest asset.
const MaxDuration = 12 * time.Hour

// AudioArgs describe one audio file to be made from the first audio stream of another.
type AudioArgs struct {
	Input  string // path
	Format Format
	Output string // path; overwritten. An M4A file: AAC-LC in MP4 with its index in front

	Copy       bool // the input is AAC-LC: take its packets as they are
	SampleRate int  // of the input, in Hz: 44100 stays, all else becomes 48000
	Channels   int  // of the input: one stays one, all else becomes two
}

// Build returns the arguments for ffmpeg. Progress comes on descriptor 3.
func (a AudioArgs) Build() []string {
	args := append(common(), "-progress", "pipe:3")
	if a.Format == MOV {
		// A delay written in an edit list is meant; without this ffmpeg would take the first sample for time zero.
		args = append(args, "-copyts")
	}
	args = append(args, input(a.Format, a.Input)...)
	args = append(args, "-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1")
	if a.Copy {
		args = append(args, "-c:a", "copy")
	} else {
		args = append(args, a.encoder()...)
	}
	return append(args, "-t", seconds(MaxDuration), "-f", "mp4", "-movflags", "+faststart", "-y", "file:"+a.Output)
}

func (a AudioArgs) encoder() []string {
	rate, channels, bits := "48000", "2", "128k"
	if a.SampleRate == 44100 {
		rate = "44100"
	}
	if a.Channels == 1 {
		channels, bits = "1", "96k"
	}
	// aresample fills gaps and a late start with silence: packet n then stands for the samples from 1024n on.
	return []string{
		"-af", "aresample=async=1:first_pts=0",
		"-c:a", "aac", "-profile:a", "aac_low", "-b:a", bits, "-ar", rate, "-ac", channels, "-threads", "1",
	}
}

// RewriteArgs describe a file whose first video stream and one audio stream are written as fragmented MP4 to standard output,
// packet by packet as they are.
type RewriteArgs struct {
	Input  string // path
	Format Format // Matroska or MPEGTS
	Audio  int    // which of its audio streams, from 0
}

// Build returns the arguments for ffmpeg. Every time of every stream is the input's plus one constant, such that none is
// negative; composition offsets are not negative and there is no edit list. A jump of more than ten seconds in MPEG-TS is closed.
func (a RewriteArgs) Build() []string {
	flags := "+frag_keyframe+empty_moov+default_base_moof"
	// frag_discont writes decoding times as they are, where the muxer would let every track begin at zero.
	flags += "+frag_discont"
	args := append(common(), input(a.Format, a.Input)...)
	args = append(args,
		"-map", "0:V:0?", "-map", "0:a:"+strconv.Itoa(a.Audio)+"?", // V: no cover pictures
		"-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1",
		"-c", "copy")
	if a.Format == MPEGTS {
		// How AAC is to be decoded stands in its packets: the moov box has to wait for the first.
		args = append(args, "-bsf:a", "aac_adtstoasc")
		flags += "+delay_moov"
	}
	return append(args,
		"-avoid_negative_ts", "make_non_negative", // make_zero moves the first packet of each stream by itself
		"-max_muxing_queue_size", "4096",
		"-f", "mp4", "-use_editlist", "0", "-movflags", flags,
		// Within a long GOP too: what is not yet a fragment is held in memory.
		"-frag_duration", "1000000", "-frag_size", "8388608",
		"-flush_packets", "1", "pipe:1")
}

// ProbeArgs returns the arguments for ffprobe.
func ProbeArgs(path string, format Format) []string {
	return []string{
		"-hide_banner", "-loglevel", "error",
		"-probesize", "20000000", "-analyzeduration", "10000000", "-max_streams", strconv.Itoa(maxTracks),
		"-protocol_whitelist", "file", "-f", string(format), "-i", "file:" + path,
		"-show_entries", "format=duration,start_time:" +
			"stream=codec_type,codec_name,profile,level,pix_fmt,field_order,width,height,sample_aspect_ratio,avg_frame_rate,r_frame_rate," +
			"sample_rate,channels,bits_per_sample,bits_per_raw_sample,start_time,duration" +
			":stream_tags=language,DURATION:stream_disposition=attached_pic:stream_side_data=rotation",
		"-of", "json",
	}
}

func common() []string { return []string{"-hide_banner", "-nostdin", "-nostats", "-loglevel", "error"} }

// input opens a file with our demuxer and nothing else: neither the network nor another format can be reached from within it.
func input(format Format, path string) []string {
	return []string{"-protocol_whitelist", "file,pipe", "-format_whitelist", string(format), "-f", string(format), "-i", "file:" + path}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
