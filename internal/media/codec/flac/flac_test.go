package flac_test

import (
	"errors"
	"testing"

	"millrace/internal/media/codec/codectest"
	"millrace/internal/media/codec/flac"
)

// STREAMINFO as ffmpeg writes it: 48 kHz, mono, 16 bit, blocks of 4608.
const info = "120012000001600004ff0bb800f000005dc01964e7953bdf1b99cddc8a6487e0a0d0"

func TestStreamInfo(t *testing.T) {
	t.Parallel()
	want := codectest.Unhex(t, info)
	for name, in := range map[string][]byte{
		"bare": want, "with the block's header": codectest.Unhex(t, "80000022"+info),
		"as a file begins": append([]byte("fLaC"), codectest.Unhex(t, "00000022"+info+"84000000")...),
	} {
		got, err := flac.StreamInfo(in)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
	c, err := flac.TrackConfig(want)
	if err != nil || c.SampleRate != 48000 || c.Channels != 1 || flac.MaxSamples(c.Header) != 4608 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, b := range map[string][]byte{"nothing": nil, "cut": want[:33], "zeros": make([]byte, 34)} {
		if _, err := flac.TrackConfig(b); !errors.Is(err, flac.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"fff85a0800814e": 4608, "fff81a0800": 0, "fff81a080000": 192, "fff8ca080000": 4096, "fff86a0800bf": 192,
		"fff87a08001000": 4097, "fff87a08c28010": 0,
		"fff80a080000": 0, "fff85a08ff00": 0, "fff85a088000": 0, "fffb5a080000": 0, "": 0,
	} {
		if got := flac.Samples(codectest.Unhex(t, in)); got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	c, err := flac.TrackConfig(flac.Info(44100, 6))
	if err != nil || c.SampleRate != 44100 || c.Channels != 6 || flac.MaxSamples(c.Header) != 4096 {
		t.Errorf("%+v, %v", c, err)
	}
	if flac.Info(1<<20, 2) != nil || flac.Info(48000, 9) != nil {
		t.Error("made of what there is no place for")
	}
}

func FuzzFLAC(f *testing.F) {
	f.Add(codectest.Unhex(f, "664c614300000022"+info))
	f.Add(codectest.Unhex(f, "fff87a08001000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := flac.StreamInfo(b); err == nil {
			if c, err := flac.TrackConfig(i); err == nil && (c.SampleRate <= 0 || c.Channels < 1 || c.Channels > 8) {
				t.Fatalf("%+v", c)
			}
		}
		if n := flac.Samples(b); n < 0 || n > 65536 {
			t.Fatal(n)
		}
	})
}
