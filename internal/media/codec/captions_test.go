package codec_test

import (
	"slices"
	"testing"

	"millrace/internal/media/codec"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// a53 is a message of ITU-T T.35 with these triples of cc_data.
func a53(triples ...byte) []byte {
	b := append([]byte("\xb5\x00\x31GA94\x03"), 0x40|byte(len(triples)/3), 0xff)
	return append(append(b, triples...), 0xff)
}

// sei is the payload of an SEI unit with one message, behind the unit's header.
func sei(header []byte, message []byte) []byte {
	return append(nal.Escape(slices.Concat(header, []byte{5, 2, 9, 9, 4, byte(len(message))}, message)), 0x80)
}

func TestCaptionsOf(t *testing.T) {
	t.Parallel()
	slice, idr := []byte{0x41, 0x9a}, []byte{0x02, 0x01, 0x80}
	in := func(message []byte) []byte {
		return nal.Append(nil, []byte{0x09, 0xf0}, sei([]byte{6}, message), slice)
	}
	padding, rollUp := a53(0xfc, 0x80, 0x80, 0xf9, 0, 0), a53(0xfc, 0x94, 0x25)
	for name, tt := range map[string]struct {
		codec frame.Codec
		au    []byte
		want  codec.Captions
	}{
		"no SEI":                   {frame.H264, nal.Append(nil, slice), codec.NoCaptions},
		"padding":                  {frame.H264, in(padding), codec.CaptionsPadding},
		"a command":                {frame.H264, in(rollUp), codec.CaptionsText},
		"a command on field 2":     {frame.H264, in(a53(0xfd, 0x15, 0x2c)), codec.CaptionsText},
		"a command without parity": {frame.H264, in(a53(0xfc, 0x14, 0x25)), codec.CaptionsPadding},
		"a service of CEA-708":     {frame.H264, in(a53(0xff, 0x02, 0x22, 0xfe, 0x41, 0)), codec.CaptionsText},
		"a packet of no service":   {frame.H264, in(a53(0xff, 0x02, 0x00)), codec.CaptionsPadding},
		"nothing valid":            {frame.H264, in(a53(0xf8, 0x94, 0x25)), codec.NoCaptions},
		"another kind of user data": {
			frame.H264, in([]byte("\xb5\x00\x31GA94\x06\x41\xff\xfc\x94\x25")), codec.NoCaptions,
		},
		"of another provider": {
			frame.H264, in([]byte("\xb5\x00\x2fGA94\x03\x41\xff\xfc\x94\x25")), codec.NoCaptions,
		},
		"fewer triples than said": {frame.H264, in(a53(0xfc, 0x94, 0x25)[:11]), codec.NoCaptions},
		"behind the slice":        {frame.H264, nal.Append(nil, slice, sei([]byte{6}, rollUp)), codec.CaptionsText},
		"HEVC, a suffix": {
			frame.HEVC, nal.Append(nil, idr, sei([]byte{0x50, 1}, rollUp)), codec.CaptionsText,
		},
		"HEVC": {
			frame.HEVC, nal.Append(nil, []byte{0x46, 1, 0x50}, sei([]byte{0x4e, 1}, rollUp), idr), codec.CaptionsText,
		},
		"HEVC without":               {frame.HEVC, nal.Append(nil, idr), codec.NoCaptions},
		"HEVC, SEI that is a header": {frame.HEVC, nal.Append(nil, []byte{0x4e, 1}, idr), codec.NoCaptions},
		"AV1": {
			frame.AV1, slices.Concat([]byte{0x2a, byte(1 + len(rollUp)), 4}, rollUp), codec.CaptionsText,
		},
		"AV1, other metadata":         {frame.AV1, []byte{0x2a, 3, 1, 0, 0, 0x32, 1, 0}, codec.NoCaptions},
		"VP9":                         {frame.VP9, in(rollUp), codec.NoCaptions},
		"bytes that are no NAL units": {frame.H264, []byte{0xff, 0xff, 0xff}, codec.NoCaptions},
	} {
		if got := codec.CaptionsOf(tt.codec, tt.au); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func FuzzCaptionsOf(f *testing.F) {
	f.Add(nal.Append(nil, sei([]byte{6}, a53(0xfc, 0x94, 0x25)), []byte{0x41, 0x9a}))
	f.Add(nal.Append(nil, sei([]byte{0x4e, 1}, a53(0xff, 2, 0x22)), []byte{2, 1}))
	f.Fuzz(func(t *testing.T, au []byte) {
		for _, c := range []frame.Codec{frame.H264, frame.HEVC, frame.AV1} {
			if codec.CaptionsOf(c, au) > codec.CaptionsText {
				t.Error("there is no such thing")
			}
		}
	})
}
