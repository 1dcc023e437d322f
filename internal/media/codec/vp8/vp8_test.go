package vp8_test

import (
	"errors"
	"testing"

	"millrace/internal/media/codec/vp8"
)

var key = []byte{0xd0, 0x67, 0, 0x9d, 1, 0x2a, 0x42, 1, 0xb4, 0} // libvpx, 322x180

func TestTrackConfig(t *testing.T) {
	t.Parallel()
	c, err := vp8.TrackConfig(key)
	if err != nil || c.Width != 322 || c.Height != 180 || !vp8.IsKey(key) {
		t.Errorf("%+v, %v", c, err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "cut": key[:9], "inter": {0xd1, 0, 0, 0x9d, 1, 0x2a, 1, 1, 1, 1},
		"no size": {0xd0, 0, 0, 0x9d, 1, 0x2a, 0, 0, 0, 0},
	} {
		if _, err := vp8.TrackConfig(b); !errors.Is(err, vp8.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzTrackConfig(f *testing.F) {
	f.Add(key)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := vp8.TrackConfig(b)
		if err == nil && (c.Width <= 0 || c.Height <= 0 || c.Width > 16383 || c.Height > 16383) {
			t.Fatalf("%+v", c)
		}
	})
}
