package aac_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"millrace/internal/media/codec/aac"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		asc   string
		want  aac.Config
		codec string
	}{
		"LC stereo 44.1": {
			"1210",
			aac.Config{ObjectType: 2, SampleRate: 44100, OutputSampleRate: 44100, Channels: 2, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"LC stereo 48": {
			"1190",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 2, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"LC mono 48": {
			"1188",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 1, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"LC 5.1": {
			"11b0",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 6, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"LC 7.1": {
			"11b8",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 8, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"LC of 960": {
			"1194",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 2, SamplesPerFrame: 960},
			"mp4a.40.2",
		},
		"ffmpeg, SBR said absent": {
			"121056e500",
			aac.Config{ObjectType: 2, SampleRate: 44100, OutputSampleRate: 44100, Channels: 2, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"HE explicit": {
			"2b11880000",
			aac.Config{ObjectType: 5, SampleRate: 24000, OutputSampleRate: 48000, Channels: 2, SamplesPerFrame: 1024},
			"mp4a.40.5",
		},
		"HE compatible": {
			"131056e598",
			aac.Config{ObjectType: 5, SampleRate: 24000, OutputSampleRate: 48000, Channels: 2, SamplesPerFrame: 1024},
			"mp4a.40.5",
		},
		"HE v2": {
			"eb098800",
			aac.Config{ObjectType: 29, SampleRate: 24000, OutputSampleRate: 48000, Channels: 1, SamplesPerFrame: 1024},
			"mp4a.40.29",
		},
		"explicit rate": {
			"17805dc010",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 2, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"program config 2.1": {
			"118004c4010020000d4c61766335392e33372e31303056e500",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 3, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"program config hexagon": {
			"118004c808002008840d4c61766335392e33372e31303056e500",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 6, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
		"program config 6.1": {
			"118004c848002000c4400d4c61766335392e33372e31303056e500",
			aac.Config{ObjectType: 2, SampleRate: 48000, OutputSampleRate: 48000, Channels: 7, SamplesPerFrame: 1024},
			"mp4a.40.2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := hex.DecodeString(tt.asc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := aac.Parse(b)
			if err != nil || got != tt.want {
				t.Errorf("got %+v, want %+v (%v)", got, tt.want, err)
			}
			if c := aac.CodecString(b); c != tt.codec {
				t.Errorf("codec %q, want %q", c, tt.codec)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		asc  []byte
		want error
	}{
		"empty":             {nil, aac.ErrMalformed},
		"one byte":          {[]byte{0x12}, aac.ErrMalformed},
		"long":              {make([]byte, 600), aac.ErrMalformed},
		"main profile":      {[]byte{0x0a, 0x10}, aac.ErrUnsupported},
		"ALS":               {[]byte{0xf8, 0x86, 0x20, 0x00}, aac.ErrUnsupported},
		"reserved rate":     {[]byte{0x16, 0x90}, aac.ErrMalformed},
		"reserved channels": {[]byte{0x11, 0xd0}, aac.ErrMalformed},
	} {
		if c, err := aac.Parse(tt.asc); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		asc  string
		want []aac.Element
	}{
		"stereo": {"1190", []aac.Element{{ID: aac.ChannelPair}}},
		"5.1": {
			"11b0", []aac.Element{{}, {ID: aac.ChannelPair}, {ID: aac.ChannelPair, Tag: 1}, {ID: aac.LowFrequencies}},
		},
		"HE explicit": {"2b11880000", []aac.Element{{ID: aac.ChannelPair}}},
		"program config 2.1": {
			"118004c4010020000d4c61766335392e33372e31303056e500",
			[]aac.Element{{ID: aac.ChannelPair}, {ID: aac.LowFrequencies}},
		},
	} {
		b, err := hex.DecodeString(tt.asc)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := aac.Elements(b); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tt.want)
		}
	}
	if _, err := aac.Elements([]byte{0x12}); !errors.Is(err, aac.ErrMalformed) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"1210", "2b11880000", "131056e598", "118004c4010020000d4c61766335392e33372e31303056e500",
	} {
		b, err := hex.DecodeString(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := aac.Parse(b)
		if err == nil &&
			(c.SampleRate < 7000 || c.SampleRate > 96000 || c.OutputSampleRate < c.SampleRate || c.Channels < 1 ||
				c.Channels > 100) {
			t.Fatalf("%+v", c)
		}
	})
}
