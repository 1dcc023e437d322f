package vp9_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"millrace/internal/media/codec/codectest"
	"millrace/internal/media/codec/vp9"
)

const (
	key    = "824983420014100b360638241c184a00" // libvpx, 322x180
	record = "000b820202020000"                 // as ffmpeg writes it beside that
)

func TestTrackConfig(t *testing.T) {
	t.Parallel()
	for name, rec := range map[string][]byte{"from the container": codectest.Unhex(t, record), "from the frame": nil} {
		c, err := vp9.TrackConfig(rec, codectest.Unhex(t, key))
		if err != nil || c.Width != 322 || c.Height != 180 || hex.EncodeToString(c.Header) != record {
			t.Errorf("%s: %+v %x, %v", name, c, c.Header, err)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "cut": codectest.Unhex(t, key)[:6], "inter": {0x86, 0, 0, 0}, "shown again": {0x88, 0, 0},
	} {
		if _, err := vp9.TrackConfig(nil, b); !errors.Is(err, vp9.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "cut" && vp9.IsKey(b) {
			t.Errorf("%s is a key frame", name)
		}
	}
	if !vp9.IsKey(codectest.Unhex(t, key)) {
		t.Error("key frame not found")
	}
}

func TestCodecString(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		record:                     "vp09.00.11.08",
		"01000000" + record:        "vp09.00.11.08",
		"0233a20910090000":         "vp09.02.51.10.01.09.16.09.00",
		"011f860101010000":         "vp09.01.31.08.03.01.01.01.00",
		"000b":                     "",
		"090b820202020000":         "",
		"01000000" + "000b8202020": "",
	} {
		if len(in)%2 == 1 {
			in = in[:len(in)-1]
		}
		b := codectest.Unhex(t, in)
		r, err := vp9.ParseConfig(b)
		if (err == nil) != (want != "") || vp9.CodecString(r) != want {
			t.Errorf("%s: %q, %v", in, vp9.CodecString(r), err)
		}
	}
}

func FuzzTrackConfig(f *testing.F) {
	f.Add(codectest.Unhex(f, "01000000"+record), codectest.Unhex(f, key))
	f.Add([]byte{}, codectest.Unhex(f, key))
	f.Fuzz(func(t *testing.T, rec, b []byte) {
		r, err := vp9.ParseConfig(rec)
		if err != nil {
			r = nil
		}
		c, err := vp9.TrackConfig(r, b)
		if err == nil && (c.Width <= 0 || c.Height <= 0 || !strings.HasPrefix(vp9.CodecString(c.Header), "vp09.")) {
			t.Fatalf("%+v %q", c, vp9.CodecString(c.Header))
		}
	})
}
