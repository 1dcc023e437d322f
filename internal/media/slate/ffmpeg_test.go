package slate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/internal/media/codec"
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/flac"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/slate"
	"millrace/internal/programtest"
)

func engine(t *testing.T) *encode.Engine {
	t.Helper()
	ffmpeg, ffprobe := programtest.Path(t, "ffmpeg"), programtest.Path(t, "ffprobe")
	e, err := encode.NewEngine(encode.Options{
		FFmpeg: ffmpeg, FFprobe: ffprobe, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// decode returns what ffmpeg makes of samples with a configuration, as raw frames of `as`, and what it complains of.
func decode(t *testing.T, c frame.Config, timescale uint32, samples []cmaf.Sample, as ...string) []byte {
	t.Helper()
	head, err := cmaf.Init(c, timescale)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.mp4")
	if err = os.WriteFile(path, cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, samples), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ffmpeg",
		append(append([]string{"-nostdin", "-v", "warning", "-err_detect", "crccheck", "-i", path}, as...), "-")...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		t.Errorf("ffmpeg says: %v: %s", err, said.String())
	}
	return out.Bytes()
}

// TestStillPlays encodes a picture and has ffmpeg decode it, over and over: each frame is there, and all look the same.
func TestStillPlays(t *testing.T) {
	t.Parallel()
	for _, shape := range []slate.Shape{
		{Codec: frame.H264, Width: 320, Height: 180, FPS: 30000.0 / 1001},
		{Codec: frame.H264, Width: 180, Height: 320, FPS: 25},
	} {
		t.Run(fmt.Sprintf("%s %dx%d", shape.Codec, shape.Width, shape.Height), func(t *testing.T) {
			t.Parallel()
			picture, err := slate.Default(shape.Width, shape.Height)
			if err != nil {
				t.Fatal(err)
			}
			var still *slate.Still
			job := encode.StillArgs{Codec: shape.Codec, Picture: picture, FPS: shape.FPS, Frames: 60}
			if err = engine(t).Still(t.Context(), job, func(mp4 io.Reader) (err error) {
				still, err = slate.Read(mp4, shape)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if len(still.Samples) != 60 || still.FPS != shape.FPS || still.Config.Width != shape.Width {
				t.Fatalf("a still of %d pictures: %+v", len(still.Samples), still.Config)
			}
			var samples []cmaf.Sample
			size := 0
			for i := range 150 {
				data := still.Samples[i%60]
				size += len(data)
				samples = append(samples, cmaf.Sample{Duration: 3000, Sync: i%60 == 0, Data: data})
			}
			t.Logf("%d bytes for 5 s", size)
			if size > 200<<10 {
				t.Errorf("%d bytes for 5 s of nothing", size)
			}
			out := decode(t, still.Config, 90000, samples, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt",
				"gray")
			one := shape.Width * shape.Height
			if len(out) != 150*one {
				t.Fatalf("%d bytes decoded, want %d pictures", len(out), 150)
			}
			for i := range 150 {
				for p := 0; p < one; p += 7 {
					if d := int(out[i*one+p]) - int(out[p]); d < -12 || d > 12 {
						t.Fatalf("picture %d differs by %d", i, d)
					}
				}
			}
		})
	}
}

// TestStillRefused says why there is none.
func TestStillRefused(t *testing.T) {
	t.Parallel()
	picture, err := slate.Default(64, 64)
	if err != nil {
		t.Fatal(err)
	}
	job := encode.StillArgs{Codec: frame.VP8, Picture: picture, FPS: 25, Frames: 5}
	if err := engine(t).Still(t.Context(), job, func(io.Reader) error { return nil }); !errors.Is(err,
		encode.ErrNoEncoder) {
		t.Errorf("VP8: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	job.Codec = frame.H264
	if err := engine(t).Still(ended, job, func(io.Reader) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	for name, data := range map[string]string{"nothing": "", "text": strings.Repeat("no mp4 ", 100)} {
		if _, err := slate.Read(strings.NewReader(data), slate.Shape{Codec: frame.H264}); err == nil {
			t.Errorf("%s is read as a still", name)
		}
	}
}

// TestSilenceIsSilent has ffmpeg decode each packet of silence at every sample rate and number of channels that it
// stands for. Checksums are verified.
func TestSilenceIsSilent(t *testing.T) {
	t.Parallel()
	engine(t)
	for name, c := range quiet(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ok := slate.SilenceOf(c)
			if !ok {
				t.Fatal("no silence")
			}
			clock := codec.ClockOf(c)
			samples := make([]cmaf.Sample, 50)
			for i := range samples {
				samples[i] = cmaf.Sample{Duration: uint32(clock.Length), Sync: true, Data: s.Packet}
			}
			out := decode(t, c, uint32(clock.Rate), samples, "-f", "s16le")
			want := 50 * int(clock.Length) * c.Channels * 2
			if c.Codec == frame.Opus { // what is skipped at the beginning
				want -= 312 * c.Channels * 2
			}
			if c.Codec == frame.MP3 && len(out) == want-int(clock.Length)*c.Channels*2 {
				want = len(out) // ffmpeg keeps the last frame of a file to itself
			}
			if len(out) != want {
				t.Errorf("%d bytes decoded, want %d", len(out), want)
			}
			if bytes.Count(out, []byte{0}) != len(out) {
				t.Error("it is not silent")
			}
		})
	}
}

// quiet is a track of every codec with every layout of channels that there is a silence for.
func quiet(t *testing.T) map[string]frame.Config {
	t.Helper()
	all := map[string]frame.Config{}
	add := func(name string, c frame.Config, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[fmt.Sprintf("%s, %d Hz, %d channels", name, c.SampleRate, c.Channels)] = c
	}
	for _, rate := range []int{48000, 44100, 24000} {
		for channels := 1; channels <= 6; channels++ {
			c, err := aac.TrackConfig(aac.LC(rate, channels))
			add("AAC", c, err)
		}
	}
	for name, asc := range map[string][]byte{
		"AAC, 7.1":                {0x11, 0xb8},
		"AAC, program config 2.1": []byte("\x11\x80\x04\xc4\x01\x00\x20\x00\x0dLavc59.37.100\x56\xe5\x00"),
	} {
		c, err := aac.TrackConfig(asc)
		add(name, c, err)
	}
	for channels := 1; channels <= 8; channels++ {
		h, err := opus.Header(channels)
		if err != nil {
			t.Fatal(err)
		}
		c, err := opus.TrackConfig(h)
		add("Opus", c, err)
		for rate, bits := range map[int]byte{44100: 24, 48000: 16} {
			info := flac.Info(rate, channels)
			info[12], info[13] = info[12]&^1|(bits-1)>>4, info[13]&0x0f|(bits-1)<<4
			c, err := flac.TrackConfig(info)
			add(fmt.Sprintf("FLAC of %d bits", bits), c, err)
		}
	}
	for _, rate := range []int{48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000} {
		for channels := 1; channels <= 2; channels++ {
			all[fmt.Sprintf("MP3, %d Hz, %d channels", rate, channels)] = frame.Config{
				Kind: frame.Audio, Codec: frame.MP3, SampleRate: rate, Channels: channels,
			}
		}
	}
	for _, rate := range []int{48000, 44100, 32000} {
		for acmod := range 8 {
			for lfe := range 2 {
				codes := []int{0, 18} // the slowest and the fastest bit rate
				if rate != 48000 {
					codes = []int{4 + acmod}
				}
				for _, code := range codes {
					v := slices.Index([]int{48000, 44100, 32000}, rate)<<22 | 8<<17 | acmod<<11 | lfe<<10 | code<<5
					channels := []int{2, 1, 2, 3, 3, 4, 4, 5}[acmod] + lfe
					add(fmt.Sprintf("AC-3 of mode %d.%d at rate %d", acmod, lfe, code), frame.Config{
						Kind: frame.Audio, Codec: frame.AC3, Header: []byte{byte(v >> 16), byte(v >> 8), byte(v)},
						SampleRate: rate, Channels: channels,
					}, nil)
				}
			}
		}
		for channels := 1; channels <= 6 && rate == 48000; channels++ {
			add("AC-3", frame.Config{
				Kind: frame.Audio, Codec: frame.AC3, Header: ac3.Specific(rate, channels), SampleRate: rate,
				Channels: channels,
			}, nil)
		}
	}
	return all
}

func FuzzRead(f *testing.F) {
	head, err := cmaf.Init(frame.Config{
		Kind: frame.Video, Codec: frame.H264,
		SPS: []byte{
			0x67, 0x64, 0x00, 0x0d, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9e, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
			0x03, 0x03, 0xc0, 0xf1, 0x42, 0x99, 0x60,
		},
		PPS: []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}, Width: 320, Height: 180,
	}, 90000)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, []cmaf.Sample{
		{Duration: 3000, Sync: true, Data: []byte{0, 0, 0, 1, 0x65}}, {Duration: 3000, Data: []byte{0, 0, 0, 1, 0x41}},
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := slate.Read(bytes.NewReader(data), slate.Shape{Codec: frame.H264, Width: 320, Height: 180, FPS: 30})
		if err == nil && len(s.Samples) == 0 {
			t.Error("a still without a picture")
		}
	})
}
