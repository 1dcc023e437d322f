package opus_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"millrace/internal/media/codec/opus"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		packet []byte
		want   int64
	}{
		"20 ms CELT":     {[]byte{0xfc, 1, 2}, 960},
		"2.5 ms":         {[]byte{0xe0, 1}, 120},
		"two of 20 ms":   {[]byte{0xfd, 1, 2}, 1920},
		"60 ms SILK":     {[]byte{0x18, 1}, 2880},
		"three of 40 ms": {[]byte{0x13, 3, 1}, 5760},
		"too long":       {[]byte{0x1b, 3, 1}, 0},
		"no frames":      {[]byte{0xff, 0}, 0},
		"cut":            {[]byte{0xff}, 0},
		"empty":          {nil, 0},
	} {
		if got := opus.Samples(tt.packet); got != tt.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	head := append([]byte("OpusHead\x01\x02"), 0x38, 0x01, 0x80, 0xbb, 0, 0, 0, 0, 0)
	got, err := opus.FromHead(head)
	if err != nil || hex.EncodeToString(got) != "000201380000bb80000000" { // as ffmpeg writes it
		t.Errorf("%x, %v", got, err)
	}
	if got, err := opus.FromHead(append([]byte("OpusHead\x01\x02"), 0x01, 0x38, 0, 0, 0xbb, 0x80, 0, 0,
		0)); err != nil || hex.EncodeToString(got) != "000201380000bb80000000" {
		t.Errorf("the other way round: %x, %v", got, err)
	}
	for n := range head {
		if _, err := opus.FromHead(head[:n]); !errors.Is(err, opus.ErrMalformed) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for n := 1; n <= 8; n++ {
		h, err := opus.Header(n)
		if err != nil {
			t.Fatal(err)
		}
		c, err := opus.TrackConfig(h)
		if err != nil || c.Channels != n || c.SampleRate != 48000 || len(c.Header) != len(h) {
			t.Errorf("%d channels: %+v, %v", n, c, err)
		}
		if n == 2 && hex.EncodeToString(h) != "000201380000bb80000000" {
			t.Errorf("%x", h)
		}
	}
	for _, n := range []int{-1, 0, 9} {
		if _, err := opus.Header(n); !errors.Is(err, opus.ErrMalformed) {
			t.Errorf("%d channels: %v", n, err)
		}
	}
	for name, b := range map[string][]byte{
		"three in family 0": {0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"no streams":        {0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0},
		"version":           {1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	} {
		if _, err := opus.TrackConfig(b); !errors.Is(err, opus.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(append([]byte("OpusHead\x01\x02"), 0x38, 0x01, 0x80, 0xbb, 0, 0, 0, 0, 0))
	f.Add([]byte{0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 2, 0, 4, 1, 2, 3, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := opus.FromHead(b); err == nil {
			if _, err := opus.TrackConfig(h); err != nil {
				t.Fatal(err)
			}
		}
		if c, err := opus.TrackConfig(b); err == nil && (c.Channels < 1 || len(c.Header) > len(b)) {
			t.Fatalf("%+v", c)
		}
		if n := opus.Samples(b); n < 0 || n > opus.MaxSamples {
			t.Fatal(n)
		}
	})
}
