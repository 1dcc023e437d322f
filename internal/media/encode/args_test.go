package encode

import (
	"flag"
	"image"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestArgs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, c := range []struct {
		name string
		args []string
	}{
		{
			"audio from MP3, 44.1 kHz stereo",
			AudioArgs{
				Input: "/in/a:b", Format: MP3, Output: "/out/t.m4a", Sound: Sound{SampleRate: 44100, Channels: 2},
			}.Build(),
		},
		{
			"audio from WAV, 96 kHz 5.1",
			AudioArgs{
				Input: "/in/a", Format: WAV, Output: "/out/t.m4a", Sound: Sound{SampleRate: 96000, Channels: 6},
			}.Build(),
		},
		{
			"audio from Ogg, 48 kHz mono",
			AudioArgs{
				Input: "/in/a", Format: Ogg, Output: "/out/t.m4a", Sound: Sound{SampleRate: 48000, Channels: 1},
			}.Build(),
		},
		{
			"audio from M4A, HE-AAC 24 kHz",
			AudioArgs{
				Input: "/in/a", Format: MOV, Output: "/out/t.m4a", Sound: Sound{SampleRate: 24000, Channels: 2},
			}.Build(),
		},
		{
			"AAC-LC from ADTS as it is",
			AudioArgs{Input: "/in/a", Format: ADTS, Output: "/out/t.m4a", Copy: true}.Build(),
		},
		{"AAC-LC from M4A as it is", AudioArgs{Input: "/in/a", Format: MOV, Output: "/out/t.m4a", Copy: true}.Build()},
		{"rewrite Matroska", RewriteArgs{Input: "/in/a", Format: Matroska}.Build()},
		{"rewrite MPEG-TS", RewriteArgs{Input: "/in/a", Format: MPEGTS}.Build()},
		{
			"convert a picture beside its sound",
			RewriteArgs{
				Input: "/in/a", Format: MOV,
				Picture: &Picture{Width: 1280, Height: 720, Preset: "veryfast", CRF: 23, Bitrate: 2_800_000, Level: 31},
			}.Build(),
		},
		{
			"convert fields, light and sound, with a mark, ten seconds",
			RewriteArgs{
				Input: "/in/a", Format: AVI, Length: 10 * time.Second, Sound: &Sound{SampleRate: 48000, Channels: 6},
				Picture: &Picture{
					Width: 640, Height: 360, Preset: "veryfast", CRF: 23, Bitrate: 800_000, Level: 30, Interlaced: true,
					Range:   frame.PQ,
					Overlay: &Overlay{Image: image.NewNRGBA(image.Rect(0, 0, 60, 20)), X: 570, Y: 10, HD: true},
				},
			}.Build(),
		},
		{
			"loudness",
			LoudnessArgs{
				Input: "/in/a", Format: Matroska, Audio: 1,
				Sound: Sound{SampleRate: 44100, Channels: 8, Gain: -3.25, Limit: true},
			}.Build(),
		},
		{
			"a rung",
			RungArgs{
				Width: 854, Height: 480, Preset: "veryfast", CRF: 23, Bitrate: 1_400_000, Level: 31, Timescale: 15360,
				Keys: []float64{10, 14.5},
			}.Build(),
		},
		{
			"a rung by NVENC",
			RungArgs{
				Width: 854, Height: 480, Preset: "veryfast", CRF: 23, Bitrate: 1_400_000, Level: 31, Timescale: 15360,
				Keys: []float64{10}, Encoder: NVENC,
			}.Build(),
		},
		{"live by Quick Sync", LiveArgs{Format: MOV, Width: 1280, Height: 720, FrameRate: 30, Encoder: QSV}.Build()},
		{"convert by VA-API, with an overlay", RewriteArgs{Input: "/in/a", Format: MOV, Picture: &Picture{
			Width: 1280, Height: 720, CRF: 23, Bitrate: 2_800_000, Level: 31, Encoder: VAAPI,
			Overlay: &Overlay{Image: image.NewNRGBA(image.Rect(0, 0, 60, 20))},
		}}.Build()},
		{
			"live by VideoToolbox",
			LiveArgs{Format: IVF, Width: 1280, Height: 720, FrameRate: 30, Encoder: VideoToolbox}.Build(),
		},
		{"a trial of NVENC", NVENC.trial()},
		{"one picture", PictureArgs(frame.SDR)},
		{"one picture of PQ", PictureArgs(frame.PQ)},
		{"WebP", WebPArgs()},
		{"tiles", TilesArgs{Width: 256, Height: 144, Count: 50}.Build()},
		{"tiles of HLG", TilesArgs{Width: 256, Height: 144, Range: frame.HLG, Count: 50}.Build()},
		{"animation as GIF", AnimationArgs{Width: 320, Height: 180, FPS: 15, Length: 5 * time.Second}.Build()},
		{
			"animation as WebP",
			AnimationArgs{WebP: true, Width: 320, Height: 180, FPS: 12.5, Length: 250 * time.Millisecond}.Build(),
		},
		{"probe", ProbeArgs("/in/a", FLAC)},
	} {
		b.WriteString(c.name)
		for i, a := range c.args {
			if strings.HasPrefix(a, "-") && a != "-1" || i == len(c.args)-1 {
				b.WriteString("\n   ")
			}
			b.WriteString(" " + a)
		}
		b.WriteString("\n\n")
	}
	golden(t, "testdata/args.golden", b.String())
}
