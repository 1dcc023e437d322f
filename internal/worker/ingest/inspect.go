package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"strings"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/container/sniff"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

// refusal says why a file of this format can't be an asset.
func refusal(f sniff.Format) string {
	switch f { //nolint:exhaustive // what is read, and what is unknown
	case sniff.Playlist:
		return "the URL leads to a playlist (M3U8, MPD or the like), not to a media file: give the URL of the file " +
			"itself"
	case sniff.HTML:
		return "the URL leads to a web page or another document, not to a media file: give the URL from which the " +
			"file itself is downloaded"
	case sniff.Text:
		return "the file is text, not video or audio; subtitles are added as a text track"
	}
	return "the file is of no known media format: MP4, MOV, MPEG-TS, MPEG-PS, Matroska, WebM, AVI, FLV, WMV, MXF, " +
		"NUT, GIF, H.264 and HEVC, and " +
		"MP3, AAC, AC-3, WAV, W64, AIFF, CAF, WMA, FLAC and Ogg can be used"
}

// containerName is what the API calls a format: the names of ffprobe, which its users know.
func containerName(f sniff.Format) string {
	switch f { //nolint:exhaustive // the others have one name
	case sniff.MP4:
		return "mov,mp4,m4a,3gp,3g2,mj2"
	case sniff.Matroska:
		return "matroska,webm"
	}
	return f.Demuxer()
}

func nothing() error {
	return fault.New(fault.Invalid, "the file has neither video nor audio")
}

// codec is how ffmpeg, and so the API, calls a codec, and what people call it.
type codec struct{ name, title string }

// codecs by the sample entries of MP4 and MOV.
//
//nolint:gochecknoglobals // a table
var codecs = map[string]codec{
	"avc1": {"h264", "H.264"},
	"avc3": {"h264", "H.264"},
	"hvc1": {"hevc", "HEVC (H.265)"},
	"hev1": {"hevc", "HEVC (H.265)"},
	"dvh1": {"hevc", "HEVC (Dolby Vision)"},
	"dvhe": {"hevc", "HEVC (Dolby Vision)"},
	"av01": {"av1", "AV1"},
	"vp08": {"vp8", "VP8"},
	"vp09": {"vp9", "VP9"},
	"mp4v": {"mpeg4", "MPEG-4 Part 2"},
	"s263": {"h263", "H.263"},
	"jpeg": {"mjpeg", "Motion JPEG"},
	"mjpa": {"mjpeg", "Motion JPEG"},
	"apch": {"prores", "ProRes"},
	"apcn": {"prores", "ProRes"},
	"apcs": {"prores", "ProRes"},
	"apco": {"prores", "ProRes"},
	"ap4h": {"prores", "ProRes"},
	"ap4x": {"prores", "ProRes"},
	"mp4a": {"aac", "AAC that is not AAC-LC"},
	"ac-3": {"ac3", "Dolby AC-3"},
	"ec-3": {"eac3", "Dolby E-AC-3"},
	"Opus": {"opus", "Opus"},
	"fLaC": {"flac", "FLAC"},
	"alac": {"alac", "ALAC"},
	".mp3": {"mp3", "MP3"},
	"sowt": {"pcm_s16le", "PCM"},
	"twos": {"pcm_s16be", "PCM"},
	"lpcm": {"pcm", "PCM"},
	"ipcm": {"pcm", "PCM"},
	"in24": {"pcm_s24be", "PCM"},
	"raw ": {"pcm_u8", "PCM"},
	"samr": {"amr_nb", "AMR"},
	"sawb": {"amr_wb", "AMR"},
	"vvc1": {"vvc", "VVC (H.266)"},
	"vvi1": {"vvc", "VVC (H.266)"},
	"evc1": {"evc", "EVC"},
	"apv1": {"apv", "APV"},
	"lvc1": {"lcevc", "LCEVC"},
	"iamf": {"iamf", "IAMF"},
	"ac-4": {"ac4", "Dolby AC-4"},
	"mha1": {"mpegh_3d_audio", "MPEG-H 3D Audio"},
	"mhm1": {"mpegh_3d_audio", "MPEG-H 3D Audio"},
	"tx3g": {"mov_text", "text"},
	"wvtt": {"webvtt", "WebVTT"},
	"stpp": {"ttml", "TTML"},
	"c608": {"eia_608", "CEA-608"},
}

// titles of codecs by ffmpeg's names, where they differ by more than the case.
//
//nolint:gochecknoglobals // a table
var titles = map[string]string{
	"h264": "H.264", "hevc": "HEVC (H.265)", "mpeg4": "MPEG-4 Part 2", "mpeg2video": "MPEG-2", "mpeg1video": "MPEG-1",
	"vorbis": "Vorbis",
	"opus":   "Opus", "mp2": "MPEG layer 2", "ac3": "Dolby AC-3", "eac3": "Dolby E-AC-3", "prores": "ProRes",
	"wmv1": "Windows Media Video 7", "wmv2": "Windows Media Video 8", "wmv3": "Windows Media Video 9", "vc1": "VC-1",
	"wmav1": "Windows Media Audio",
	"vvc":   "VVC (H.266)", "ac4": "Dolby AC-4", "mpegh_3d_audio": "MPEG-H 3D Audio",
	"wmav2": "Windows Media Audio", "wmapro": "Windows Media Audio Pro", "dvvideo": "DV",
}

func title(name string) string {
	if t := titles[name]; t != "" {
		return t
	}
	if strings.HasPrefix(name, "pcm_") {
		return "PCM"
	}
	if name == "" {
		return "of an unknown codec"
	}
	return strings.ToUpper(name)
}

// titleOf is what people call the codec of a track that ffprobe has read.
func titleOf(t *encode.Track) string {
	if t.Codec != "" {
		return title(t.Codec)
	}
	if c, ok := codecs[t.Tag]; ok {
		return c.title
	}
	if t.Tag != "" {
		return "of the unknown codec " + t.Tag
	}
	return "of an unknown codec"
}

// codecOf tells what a track is: MPEG-4's own sample entries name the codec in their esds only.
func codecOf(t *mp4.Track) (codec, bool) {
	if c, ok := objects[objectType(t.SampleEntry)]; ok && t.Config.Codec == "" {
		return c, true
	}
	c, ok := codecs[t.FourCC]
	return c, ok
}

// objects are the codecs by objectTypeIndication, ISO 14496-1 section 7.2.6.6 and mp4ra.org.
//
//nolint:gochecknoglobals // a table
var objects = map[byte]codec{
	0x69: {"mp3", "MP3"}, 0x6b: {"mp3", "MP3"}, 0xa5: {"ac3", "Dolby AC-3"}, 0xa6: {"eac3", "Dolby E-AC-3"},
	0xa9: {"dts", "DTS"}, 0xad: {"opus", "Opus"},
	0xdd: {"vorbis", "Vorbis"}, 0x60: {"mpeg2video", "MPEG-2"}, 0x61: {"mpeg2video", "MPEG-2"},
	0x6a: {"mpeg1video", "MPEG-1"}, 0x6c: {"mjpeg", "Motion JPEG"},
}

// objectType reads the esds of a sample entry as far as objectTypeIndication, ISO 14496-1 sections 7.2.6.5 and 7.2.6.6;
// 0: there is none.
func objectType(entry []byte) byte {
	_, b, ok := bytes.Cut(entry, []byte("esds"))
	if !ok || len(b) < 4 {
		return 0
	}
	b = descriptor(b[4:], 3)
	if len(b) < 3 {
		return 0
	}
	flags := b[2]
	b = b[3:]
	for bit, skip := range map[byte]int{0x80: 2, 0x20: 2} { // dependsOn_ES_ID, OCR_ES_Id; a URL is not used in files
		if flags&bit != 0 {
			b = b[min(skip, len(b)):]
		}
	}
	if b = descriptor(b, 4); len(b) == 0 {
		return 0
	}
	return b[0]
}

// descriptor is the content of the descriptor with this tag at the begin of b.
func descriptor(b []byte, tag byte) []byte {
	if len(b) == 0 || b[0] != tag {
		return nil
	}
	for i := 1; i < min(len(b), 5); i++ { // the length has up to four bytes of seven bits
		if b[i]&0x80 == 0 {
			return b[i+1:]
		}
	}
	return nil
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s)
}

// describe is what the API shows of an input that ffprobe has read.
func describe(in assetopt.Input, f sniff.Format, info encode.Info) asset.InputInfo {
	out := asset.InputInfo{Settings: in}
	out.File.ContainerFormat = containerName(f)
	for _, t := range info.Tracks {
		if t.Kind == encode.Data {
			continue
		}
		long := t.Duration
		if long == 0 {
			long = info.Duration
		}
		x := asset.InputTrack{
			Type: string(t.Kind), Duration: rounded(long.Seconds()),
			Encoding: cmp.Or(t.Codec, codecs[t.Tag].name, t.Tag),
			Width:    t.Width, Height: t.Height, FrameRate: rounded(t.FrameRate),
			SampleRate: t.SampleRate, Channels: t.Channels,
		}
		if t.Kind == encode.Audio {
			x.SampleSize = t.BitSize
		}
		out.File.Tracks = append(out.File.Tracks, x)
	}
	return out
}

// describeMP4 is what the API shows of an MP4 by its own index.
func describeMP4(in assetopt.Input, f *mp4.File) asset.InputInfo {
	out := asset.InputInfo{Settings: in}
	out.File.ContainerFormat = containerName(sniff.MP4)
	for _, t := range f.Tracks {
		long := float64(t.Duration()) / float64(t.Timescale)
		x := asset.InputTrack{Type: t.Kind.String(), Duration: rounded(long), Encoding: printable(t.FourCC)}
		if c, ok := codecOf(t); ok {
			x.Encoding = c.name
		}
		switch t.Kind {
		case frame.Video:
			x.Width, x.Height = t.Width, t.Height
			if long > 0 {
				x.FrameRate = rounded(float64(t.Len()) / long)
			}
		case frame.Audio:
			x.SampleRate, x.Channels = t.Config.SampleRate, t.Config.Channels
			if t.Config.Codec == "" {
				x.SampleRate, x.Channels, x.SampleSize = soundEntry(t.SampleEntry)
			}
		case frame.Text:
		}
		out.File.Tracks = append(out.File.Tracks, x)
	}
	return out
}

// soundEntry reads an AudioSampleEntry, ISO 14496-12 section 12.2.3.
func soundEntry(b []byte) (rate, channels, bits int) {
	if len(b) < 36 {
		return 0, 0, 0
	}
	return int(binary.BigEndian.Uint32(b[32:]) >> 16), int(binary.BigEndian.Uint16(b[24:])),
		int(binary.BigEndian.Uint16(b[26:]))
}

func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }
