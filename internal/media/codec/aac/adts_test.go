package aac_test

import (
	"errors"
	"testing"

	"millrace/internal/media/codec/aac"
)

func TestParseADTS(t *testing.T) {
	t.Parallel()
	a, err := aac.ParseADTS([]byte{0xff, 0xf1, 0x4c, 0x40, 0x1b, 0x7f, 0xfc}) // ffmpeg: 48 kHz, mono
	if err != nil || a.Header != 7 || a.Size != 219 {
		t.Errorf("%+v, %v", a, err)
	}
	c, err := aac.TrackConfig(a.ASC[:])
	if err != nil || c.SampleRate != 48000 || c.Channels != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for name, tt := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing":       {nil, aac.ErrMalformed},
		"no sync":       {[]byte{0xff, 0xe1, 0x4c, 0x40, 0x1b, 0x7f, 0xfc}, aac.ErrMalformed},
		"main profile":  {[]byte{0xff, 0xf1, 0x0c, 0x40, 0x1b, 0x7f, 0xfc}, aac.ErrUnsupported},
		"no size":       {[]byte{0xff, 0xf1, 0x4c, 0x40, 0, 0x1f, 0xfc}, aac.ErrMalformed},
		"two blocks":    {[]byte{0xff, 0xf1, 0x4c, 0x40, 0x1b, 0x7f, 0xfd}, aac.ErrUnsupported},
		"reserved rate": {[]byte{0xff, 0xf1, 0x7c, 0x40, 0x1b, 0x7f, 0xfc}, aac.ErrMalformed},
	} {
		if _, err := aac.ParseADTS(tt.in); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseADTS(f *testing.F) {
	f.Add([]byte{0xff, 0xf1, 0x4c, 0x40, 0x1b, 0x7f, 0xfc})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := aac.ParseADTS(b)
		if err != nil {
			return
		}
		if _, err := aac.TrackConfig(a.ASC[:]); err != nil || a.Size <= a.Header {
			t.Fatalf("%+v %v", a, err)
		}
	})
}
