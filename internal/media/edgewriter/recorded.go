package edgewriter

import (
	"strings"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/frame"
	"millrace/internal/media/slate"
	"millrace/internal/media/timeline"
)

// recordedConfigs tells what an earlier process has recorded, as far as slate needs to know it: a picture's shape, and
// the parameters of the sound where a timeline says enough of them.
func recordedConfigs(t *timeline.Timeline) []frame.Config {
	var out []frame.Config
	if t == nil {
		return nil
	}
	for _, l := range t.Renditions {
		in, ok := newestInit(t, l)
		switch {
		case !ok:
		case l.ID == timeline.MainVideo:
			out = append(out, frame.Config{
				Kind: frame.Video, Codec: codecOf(in.Codec), Width: in.Width, Height: in.Height,
				FrameRate: in.FrameRate,
			})
		case l.ID == timeline.MainAudio:
			if c, ok := recordedSound(codecOf(in.Codec), in.SampleRate, in.Channels); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// recordedSound makes the parameters of silence of a codec: not those that were recorded, but such that say the same of
// it.
func recordedSound(codec frame.Codec, rate, channels int) (frame.Config, bool) {
	c, err := frame.Config{Kind: frame.Audio, Codec: codec, SampleRate: rate, Channels: channels}, error(nil)
	switch codec {
	case frame.AAC:
		c, err = aac.TrackConfig(aac.LC(rate, channels))
	case frame.Opus:
		if c.Header, err = opus.Header(channels); err == nil {
			c.Header[2], c.Header[3] = 0, 0 // nothing to be skipped: an encoder's delay is no part of silence
			c, err = opus.TrackConfig(c.Header)
		}
	case frame.FLAC:
		c, err = flac.TrackConfig(flac.Info(rate, channels))
	case frame.AC3:
		c.Header = ac3.Specific(rate, channels)
	case frame.MP3, frame.H264, frame.HEVC, frame.AV1, frame.VP9, frame.VP8:
	}
	_, ok := slate.SilenceOf(c)
	return c, ok && err == nil
}

// codecOf is the codec of an RFC 6381 name, as far as slate can stand in for it.
func codecOf(name string) frame.Codec {
	for prefix, c := range map[string]frame.Codec{
		"avc1.": frame.H264, "hvc1.": frame.HEVC, "hev1.": frame.HEVC, "av01.": frame.AV1, "vp09.": frame.VP9,
		"mp4a.40.2": frame.AAC, "mp4a.40.5": frame.AAC, "mp4a.40.29": frame.AAC, "opus": frame.Opus, "Opus": frame.Opus,
		"fLaC": frame.FLAC, "flac": frame.FLAC, "ac-3": frame.AC3, "mp4a.40.34": frame.MP3,
	} {
		if strings.HasPrefix(name, prefix) {
			return c
		}
	}
	return ""
}

// newestInit is the init segment of a rendition's last media that an encoder has sent.
func newestInit(t *timeline.Timeline, l *timeline.Rendition) (timeline.Init, bool) {
	for i := len(l.Chunks) - 1; i >= 0; i-- {
		if c := &l.Chunks[i]; !c.Gap && !t.Marks[i].Slate {
			return l.Inits[c.Init], true
		}
	}
	return timeline.Init{}, false
}
