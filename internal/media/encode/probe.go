package encode

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/frame"
)

const (
	maxTracks = 64
	maxProbe  = 1 << 20 // bytes of ffprobe's response
)

// Info is what a file holds.
type Info struct {
	Container Format
	Duration  time.Duration // zero when unknown
	Start     time.Duration // earliest presentation time of any stream
	Tracks    []Track
}

// Kind is the kind of a track.
type Kind string

// The kinds. Covers and other attached pictures are not listed as tracks.
const (
	Video Kind = "video"
	Audio Kind = "audio"
	Text  Kind = "text"
	Data  Kind = "data" // anything else
)

// Track is one stream of a file. Fields that don't belong to its kind, or that are unknown, are zero.
type Track struct {
	Kind     Kind
	Codec    string // ffmpeg's name, such as h264, aac, opus; empty: it knows none
	Tag      string // the container's name of the codec, four printable characters such as avc1; empty: it has none
	Decoder  bool   // of video and audio: ffmpeg has a decoder for the codec
	Profile  string // such as High, LC
	Duration time.Duration
	Start    time.Duration
	Language string // as the file says, often ISO 639-2
	Forced   bool   // subtitles of what is said in another language than the rest

	Width, Height     int     // pixels as stored, before rotation
	PixelAspect       string  // such as 1:1
	FrameRate         float64 // average, per second
	PixelFormat       string  // such as yuv420p
	Interlaced        bool
	Unordered         bool // H.264 with B-frames in AVI, which has no times of presentation
	Range             frame.VideoRange
	HD                bool // its colours are those of BT.709: it says so, or is of a size that is taken for it
	Rotation          int  // degrees clockwise to be turned for display: 0, 90, 180, 270
	SampleRate        int  // Hz
	Channels, BitSize int  // BitSize is of one sample or one colour, where the codec has a fixed one
}

// probed is ffprobe's JSON.
type probed struct {
	Streams []probedStream `json:"streams"`
	Format  struct {
		Duration  string `json:"duration"`
		StartTime string `json:"start_time"`
	} `json:"format"`
}

type probedStream struct {
	CodecType        string `json:"codec_type"`
	CodecName        string `json:"codec_name"`
	CodecTag         string `json:"codec_tag_string"`
	Profile          string `json:"profile"`
	PixelFormat      string `json:"pix_fmt"`
	FieldOrder       string `json:"field_order"`
	BFrames          int    `json:"has_b_frames"`
	Transfer         string `json:"color_transfer"`
	Matrix           string `json:"color_space"`
	Width            int    `json:"width"`
	Height           int    `json:"height"`
	PixelAspect      string `json:"sample_aspect_ratio"`
	AverageRate      string `json:"avg_frame_rate"`
	RealRate         string `json:"r_frame_rate"`
	SampleRate       string `json:"sample_rate"`
	Channels         int    `json:"channels"`
	BitsPerSample    int    `json:"bits_per_sample"`
	BitsPerRawSample string `json:"bits_per_raw_sample"`
	StartTime        string `json:"start_time"`
	Duration         string `json:"duration"`
	Tags             struct {
		Language string `json:"language"`
		Duration string `json:"DURATION"`
	} `json:"tags"`
	Disposition struct {
		AttachedPic int `json:"attached_pic"`
		Forced      int `json:"forced"`
	} `json:"disposition"`
	SideData []struct {
		Rotation json.Number `json:"rotation"`
	} `json:"side_data_list"`
}

// parseProbe reads ffprobe's response about a file of the given format.
func parseProbe(output []byte, format Format) (Info, error) {
	var p probed
	if err := json.Unmarshal(output, &p); err != nil {
		return Info{}, fmt.Errorf("parse response of ffprobe: %w", err)
	}
	info := Info{Container: format, Duration: parseSeconds(p.Format.Duration), Start: parseSeconds(p.Format.StartTime)}
	for _, s := range p.Streams {
		if s.Disposition.AttachedPic != 0 {
			continue
		}
		if len(info.Tracks) == maxTracks {
			break
		}
		t := s.track()
		t.Unordered = format == AVI && t.Codec == "h264" && s.BFrames > 0
		info.Tracks = append(info.Tracks, t)
	}
	return info, nil
}

func (p probedStream) track() Track {
	t := Track{
		Kind: Data, Codec: p.CodecName, Profile: p.Profile, Language: clip(p.Tags.Language, 64),
		Duration: parseSeconds(p.Duration), Start: parseSeconds(p.StartTime), BitSize: p.BitsPerSample,
	}
	if len(p.CodecTag) == 4 { // numbers are in brackets
		t.Tag = p.CodecTag
	}
	if t.Duration == 0 {
		t.Duration = parseClock(p.Tags.Duration) // Matroska has it in a tag only
	}
	if bits, err := strconv.Atoi(p.BitsPerRawSample); err == nil && bits > 0 {
		t.BitSize = bits
	}
	switch p.CodecType {
	case "video":
		t.Kind = Video
		t.Width, t.Height, t.PixelFormat, t.PixelAspect = p.Width, p.Height, p.PixelFormat, p.PixelAspect
		t.Range = ranges[p.Transfer]
		t.HD = p.Matrix == "bt709" || (p.Matrix == "" || p.Matrix == "unknown") && min(p.Width, p.Height) >= 720
		t.Interlaced = p.FieldOrder != "" && p.FieldOrder != "progressive" && p.FieldOrder != "unknown"
		if t.FrameRate = parseRate(p.AverageRate); t.FrameRate == 0 {
			t.FrameRate = parseRate(p.RealRate)
		}
		for _, side := range p.SideData {
			if turn, err := side.Rotation.Float64(); err == nil {
				t.Rotation = ((-int(turn)%360 + 360) % 360) / 90 * 90 // ffprobe counts against the clock
			}
		}
	case "audio":
		t.Kind = Audio
		t.Channels = p.Channels
		t.SampleRate, _ = strconv.Atoi(p.SampleRate)
	case "subtitle":
		t.Kind, t.Forced = Text, p.Disposition.Forced != 0
	}
	return t
}

// parseSeconds reads a decimal number of seconds; "N/A" and nonsense are zero.
func parseSeconds(s string) time.Duration {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > -1e9 && v < 1e9) {
		return 0
	}
	return time.Duration(v*1e6) * time.Microsecond
}

// parseClock reads hh:mm:ss.fraction.
func parseClock(s string) time.Duration {
	fields := strings.Split(s, ":")
	if len(fields) != 3 {
		return 0
	}
	hours, err := strconv.Atoi(fields[0])
	minutes, err2 := strconv.Atoi(fields[1])
	if err != nil || err2 != nil || hours < 0 || hours > 100_000 || minutes < 0 || minutes > 59 {
		return 0
	}
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + parseSeconds(fields[2])
}

// parseRate reads a fraction such as 30000/1001.
func parseRate(s string) float64 {
	above, below, found := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(above, 64)
	d, err2 := strconv.ParseFloat(below, 64)
	if !found || err != nil || err2 != nil || !(d > 0) || !(n >= 0) || n/d > 1e6 {
		return 0
	}
	return n / d
}

func clip(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// ranges are ffprobe's names of transfer functions of high dynamic range.
var ranges = map[string]frame.VideoRange{ //nolint:gochecknoglobals // a table
	"smpte2084": frame.PQ, "arib-std-b67": frame.HLG,
}
