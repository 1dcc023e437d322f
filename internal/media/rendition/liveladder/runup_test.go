package liveladder

import (
	"testing"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/window"
)

// TestRunUpBegins finds what has to be decoded in front of a picture. Pictures are shown at the numbers that they have.
func TestRunUpBegins(t *testing.T) {
	t.Parallel()
	type pictures []window.Sample
	h264 := func(shown int64, units ...[]byte) window.Sample {
		return window.Sample{Shown: shown, Data: nal.Append(nil, units...)}
	}
	sei := func(frames byte) []byte { // recovery_frame_cnt is Exp-Golomb of 0, 1 or 2
		return []byte{0x06, 6, 1, [...]byte{0xc0, 0x50, 0x70}[frames], 0x80}
	}
	idr, p, b := []byte{0x65, 0x88}, []byte{0x41, 0x9a}, []byte{0x01, 0x9a}
	h265 := func(shown int64, kind byte) window.Sample {
		return window.Sample{Shown: shown, Key: kind >= 16, Data: nal.Append(nil, []byte{kind << 1, 1, 0xaa})}
	}
	const trail, rasl, idr265, cra = 1, 9, 20, 21
	for name, tt := range map[string]struct {
		codec    frame.Codec
		pictures pictures
		next     int64
		want     int
	}{
		"an IDR":                  {frame.H264, pictures{h264(0, idr), h264(1, p), h264(2, p)}, 3, 0},
		"the last of them":        {frame.H264, pictures{h264(0, idr), h264(1, p), h264(2, idr)}, 3, 2},
		"a recovery point":        {frame.H264, pictures{h264(0, idr), h264(1, sei(0), p), h264(2, p)}, 3, 1},
		"it recovers in time":     {frame.H264, pictures{h264(0, idr), h264(1, sei(2), p), h264(2, p)}, 3, 1},
		"it does not":             {frame.H264, pictures{h264(0, idr), h264(1, p), h264(2, sei(2), p)}, 3, 0},
		"others do not count":     {frame.H264, pictures{h264(0, idr), h264(2, sei(2), p), h264(1, b)}, 4, 0},
		"leading pictures follow": {frame.H264, pictures{h264(0, idr), h264(1, p), h264(4, sei(0), p)}, 2, 0},
		"and have been":           {frame.H264, pictures{h264(2, sei(0), p), h264(1, b), h264(5, p)}, 3, 0},
		"H.264 without either":    {frame.H264, pictures{h264(1, p), h264(2, p)}, 3, -1},
		"a CRA":                   {frame.HEVC, pictures{h265(3, cra), h265(2, rasl), h265(4, trail)}, 7, 0},
		"a CRA is last":           {frame.HEVC, pictures{h265(0, idr265), h265(3, cra)}, 2, 0},
		"nothing":                 {frame.HEVC, nil, 1, -1},
	} {
		if got := entry(tt.codec, tt.pictures, &window.Sample{Shown: tt.next}); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
