package ingest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/rendition/ladder"
)

// unusual is a word of the API's for what is not as it should be, and says no more.
const unusual = "non-standard"

// conform is what has to be done to a file so that every player plays it.
type conform struct {
	video, audio *encode.Track // what is taken of the file; nil: none
	unsupported  *encode.Track // its audio, if none of it can be decoded; nil: there is other, or none
	args         encode.RewriteArgs
	reasons      asset.NonStandard
}

// conformed says how a file is brought into the form that every player plays: H.264 of 4:2:0 with eight bits, and AAC.
// What is in that form stays; picture says that its video does not, whatever ffprobe finds.
func (i *inspector) conformed(ctx context.Context, a asset.Asset, info encode.Info, picture bool) (conform, error) {
	c := conform{}
	if err := c.choose(info); err != nil {
		return c, err
	}
	if c.video == nil && c.audio == nil {
		return c, nothing()
	}
	if a.Options.Test {
		c.args.Length = asset.TestLength
	}
	if c.video != nil {
		if err := i.conformPicture(ctx, a, &c, picture); err != nil {
			return c, err
		}
	}
	if s := c.audio; s != nil {
		if s.Codec != "aac" || strings.HasPrefix(s.Profile, "HE") || s.Profile == "Main" || s.Profile == "SSR" ||
			s.Profile == "LTP" {
			c.reasons.AudioCodec = s.Codec
		}
		if c.reasons.AudioCodec != "" || s.Channels > 2 {
			c.args.Sound = &encode.Sound{SampleRate: s.SampleRate, Channels: s.Channels}
		}
	}
	return c, nil
}

// conformPicture says how the picture is encoded, if it has to be.
func (i *inspector) conformPicture(ctx context.Context, a asset.Asset, c *conform, always bool) (err error) {
	v := c.video
	if v.Width <= 0 || v.Height <= 0 {
		return fault.New(fault.Invalid, "the file's video (%s) can't be read", title(v.Codec))
	}
	if unlike := c.judge(v, boundsOf(ladder.Tier(a.Options.MaxResolution))); !unlike && !always && !over(a) {
		return nil
	}
	c.args.Picture = picture(a, v)
	if c.reasons.FrameRate != "" {
		c.args.Picture.FrameRate = usualRate
	}
	c.args.Picture.Overlay, err = i.overlays.draw(ctx, a, v, c.args.Picture.Width, c.args.Picture.Height)
	return err
}

// leading is the picture, or the sound where that is all, and which one of its kind it is in the file, from 0.
func (c *conform) leading() (encode.Kind, int) {
	if c.video == nil {
		return encode.Audio, c.args.Audio
	}
	return encode.Video, 0
}

// copies reports whether the picture, or the sound where that is all, stays as it is: nothing decodes it on the way.
func (c *conform) copies() bool {
	if c.video != nil {
		return c.args.Picture == nil
	}
	return c.args.Sound == nil
}

// choose takes the first video, and of the audio that can be decoded the first that is AAC, or else the first.
// fault.Invalid: there is no decoder for the video, or for any audio where that is all.
func (c *conform) choose(info encode.Info) error {
	audios := 0
	for i := range info.Tracks {
		t := &info.Tracks[i]
		switch t.Kind {
		case encode.Video:
			c.video = cmp.Or(c.video, t)
		case encode.Audio:
			if !t.Decoder {
				c.unsupported = cmp.Or(c.unsupported, t)
			} else if c.audio == nil || c.audio.Codec != "aac" && t.Codec == "aac" {
				c.audio, c.args.Audio = t, audios
			}
			audios++
		case encode.Text, encode.Data:
		}
	}
	switch {
	case c.video != nil && !c.video.Decoder:
		return unsupported(c.video)
	case c.audio != nil:
		c.unsupported = nil
	case c.unsupported != nil && c.video == nil:
		return unsupported(c.unsupported)
	case c.unsupported != nil:
		c.args.Audio = -1
	}
	return nil
}

// bounds are what a video may be and stay as it is.
type bounds struct {
	side    int     // pixels, of either side
	gop     float64 // seconds between key frames
	bitrate float64 // bits per second, on average
	fastest float64 // frames a second
}

// slowest is the fewest frames a second; usualRate is what others become that are outside of the bounds.
const slowest, usualRate = 5, 30

// boundsOf are those of a tier.
func boundsOf(tier int) bounds {
	if tier > 1080 {
		return bounds{side: 4096, gop: 10, bitrate: 20_000_000, fastest: 60}
	}
	return bounds{side: 2048, gop: 20, bitrate: 8_000_000, fastest: 120}
}

// standing is the rate, in frames per second, below which a picture is said to stand for minutes: files that lie say
// so, and thirty a second of that would be encoded for days.
const standing = 0.01

// rate says what is unusual about a frame rate; one that is measured is never quite what it is meant to be.
func (b bounds) rate(fps float64) string {
	if fps < standing || fps >= slowest*0.99 && fps <= b.fastest*1.01 {
		return ""
	}
	return fmt.Sprintf("%.3f", fps)
}

func (b bounds) size(width, height int) string {
	if max(width, height) <= b.side {
		return ""
	}
	return fmt.Sprintf("%dx%d", width, height)
}

// aspect says what is unusual about the shape of a pixel; there are encoders that mean a square and miss it by a hair.
func aspect(wide, high float64) string {
	if wide <= 0 || high <= 0 || math.Abs(wide/high-1) < 0.01 {
		return ""
	}
	return fmt.Sprintf("%g:%g", wide, high)
}

// judge reports whether a video has to be encoded, and notes why.
func (c *conform) judge(v *encode.Track, limits bounds) bool {
	if v.Codec != "h264" {
		c.reasons.VideoCodec = v.Codec
	}
	if f := v.PixelFormat; f != "" && f != "yuv420p" && f != "yuvj420p" {
		c.reasons.PixelFormat = f
	}
	if v.Interlaced || v.Range != frame.SDR || v.Unordered {
		c.reasons.FileParameters = unusual
	}
	if x, y, ok := strings.Cut(v.PixelAspect, ":"); ok {
		c.reasons.PixelAspect = aspect(ratio(x), ratio(y))
	}
	c.reasons.FrameRate = limits.rate(v.FrameRate)
	unlike := c.reasons != asset.NonStandard{}
	c.reasons.Resolution = limits.size(v.Width, v.Height) // the ladder makes it smaller
	return unlike
}

// picture is what a video becomes: the largest rung of its ladder.
func picture(a asset.Asset, v *encode.Track) *encode.Picture {
	width, height := shown(v)
	r := ladder.Instead(ladder.Source{Width: width, Height: height, FrameRate: v.FrameRate},
		ladder.Quality(a.Quality()), ladder.Tier(a.Options.MaxResolution))[0]
	return &encode.Picture{
		Width: r.Width, Height: r.Height, Preset: r.Preset, CRF: r.CRF, Bitrate: r.Bitrate, Level: r.Level,
		Interlaced: v.Interlaced, Range: v.Range,
	}
}

// shown is the size of a video with square pixels, upright.
func shown(v *encode.Track) (width, height int) {
	width, height = v.Width, v.Height
	if x, y, ok := strings.Cut(v.PixelAspect, ":"); ok {
		if n, d := ratio(x), ratio(y); n > 0 && d > 0 && n/d < 16 && d/n < 16 {
			width = max(int(math.Round(float64(width)*n/d)), 2)
		}
	}
	if v.Rotation == 90 || v.Rotation == 270 {
		width, height = height, width
	}
	return width, height
}

func ratio(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

// unfitPicture says what of an MP4's H.264 not every player plays, or can't be cut, and what is unusual and can stay.
func unfitPicture(t *mp4.Track, idrs []int, limits bounds) unfit {
	var n asset.NonStandard
	info, err := t.SPSInfo()
	if err == nil && (info.ChromaFormat != 1 || info.BitDepth != 8 || info.BitDepthChroma != 8) {
		n.PixelFormat = info.PixelFormat()
	}
	if err == nil && info.Interlaced {
		n.FileParameters = unusual
	}
	if err == nil {
		n.PixelAspect = aspect(float64(info.PARWidth), float64(info.PARHeight))
	}
	if gap(t, idrs) > limits.gop {
		n.GOP = high
	}
	if long := float64(t.Duration()) / float64(t.Timescale); long > 1 && t.Len() > 1 {
		n.FrameRate = limits.rate(float64(t.Len()) / long)
		if float64(size(t))*8/long > limits.bitrate {
			n.Bitrate = high
		}
	}
	if t.NonStandardEdit {
		n.VideoEditList = unusual
	}
	if n == (asset.NonStandard{}) {
		return unfit{reasons: asset.NonStandard{Resolution: limits.size(t.Width, t.Height)}}
	}
	return unfit{rewrite: true, picture: true, reasons: n}
}

// high is a word of the API's for what is more than it should be.
const high = "high"

// size is how many bytes a track has.
func size(t *mp4.Track) int64 {
	n := int64(0)
	for i := range t.Len() {
		n += int64(t.Sample(i).Size)
	}
	return n
}

// gap is the longest time between key frames that decoding can begin at, in seconds.
func gap(t *mp4.Track, idrs []int) float64 {
	if t.Len() == 0 {
		return 0
	}
	longest, last := int64(0), t.DTS(0)
	for _, i := range idrs {
		longest, last = max(longest, t.DTS(i)-last), t.DTS(i)
	}
	longest = max(longest, t.DTS(t.Len()-1)-last)
	return float64(longest) / float64(t.Timescale)
}
