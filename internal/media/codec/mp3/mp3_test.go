package mp3_test

import (
	"errors"
	"testing"

	"millrace/internal/media/codec/codectest"
	"millrace/internal/media/codec/mp3"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]mp3.Header{ // the first two are LAME's
		"fffb9464": {Size: 384, SampleRate: 48000, Channels: 2, Samples: 1152},
		"fff340c4": {Size: 104, SampleRate: 22050, Channels: 1, Samples: 576},
		"fffb9264": {Size: 418, SampleRate: 44100, Channels: 2, Samples: 1152},
		"ffe31864": {Size: 72, SampleRate: 8000, Channels: 2, Samples: 576},
	} {
		if got, err := mp3.Parse(codectest.Unhex(t, in)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for name, s := range map[string]string{
		"nothing": "", "no sync": "fe000000", "layer II": "fffd9464", "free": "fffb0464", "bad rate": "fffb9c64",
		"bad bits": "fffbf464", "reserved": "ffeb9464",
	} {
		if _, err := mp3.Parse(codectest.Unhex(t, s)); !errors.Is(err, mp3.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := mp3.TrackConfig(codectest.Unhex(t, "fffb9464"))
	if err != nil || c.SampleRate != 48000 || c.Channels != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(codectest.Unhex(f, "fffb9464"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := mp3.Parse(b)
		if err == nil && (h.Size < 24 || h.Size > 2881 || h.SampleRate < 8000 || h.Channels < 1) {
			t.Fatalf("%+v", h)
		}
	})
}
