package ac3_test

import (
	"encoding/hex"
	"errors"
	"testing"

	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/codectest"
)

const syncframe = "0b77b50b1e40ebf8403eff99" // ffmpeg, 5.1, 48 kHz, 448 kbit/s

func TestParse(t *testing.T) {
	t.Parallel()
	h, err := ac3.Parse(codectest.Unhex(t, syncframe))
	if err != nil || h.Size != 1792 || h.SampleRate != 48000 || h.Channels != 6 ||
		hex.EncodeToString(h.Specific[:]) != "103de0" {
		t.Errorf("%+v %x, %v", h, h.Specific, err)
	}
	c, err := ac3.TrackConfig(codectest.Unhex(t, syncframe))
	if err != nil || c.SampleRate != 48000 || c.Channels != 6 || len(c.Header) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, s := range map[string]string{
		"nothing": "", "cut": "0b77b50b1e40", "no sync": "0b76b50b1e40eb", "reserved rate": "0b77b50bde40eb",
		"enhanced": "0b77b50b1e80eb", "size code": "0b77b50b3f40eb",
	} {
		if _, err := ac3.Parse(codectest.Unhex(t, s)); !errors.Is(err, ac3.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSpecific(t *testing.T) {
	t.Parallel()
	if got := hex.EncodeToString(ac3.Specific(48000, 6)); got != "103de0" { // as ffmpeg has it
		t.Error(got)
	}
	if ac3.Specific(22050, 2) != nil || ac3.Specific(48000, 7) != nil {
		t.Error("made of what there is none of")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(codectest.Unhex(f, syncframe))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ac3.Parse(b)
		if err == nil && (h.Size < 128 || h.Size > 3840 || h.SampleRate < 32000 || h.Channels < 1 || h.Channels > 6) {
			t.Fatalf("%+v", h)
		}
	})
}
