package images

import (
	"slices"
	"testing"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// Of HEVC only what nothing refers to in the highest sub-layer is left out: pictures of a higher one may refer to what
// none of its own does. The last one is what all is for.
func TestNeeds(t *testing.T) {
	t.Parallel()
	const trailN, trailR, tsaN, tsaR = 0, 1, 2, 3 // ITU-T H.265 table 7-1
	hevc := func(kind, layer byte) []byte { return nal.Append(nil, []byte{kind << 1, layer + 1, 0x80}) }
	h264 := func(ref byte) []byte { return nal.Append(nil, []byte{ref<<5 | 1, 0x80}) }
	for name, tt := range map[string]struct {
		units
		pictures [][]byte
		want     []int
	}{
		"one layer": {
			units{frame.HEVC, 4},
			[][]byte{hevc(trailR, 0), hevc(trailN, 0), hevc(trailR, 0), hevc(trailN, 0)},
			[]int{0, 2, 3},
		},
		"layers": {
			units{frame.HEVC, 4},
			[][]byte{hevc(trailR, 0), hevc(trailN, 0), hevc(tsaR, 1), hevc(tsaN, 1), hevc(trailN, 0)},
			[]int{0, 1, 2, 4},
		},
		"not known of one": {
			units{frame.HEVC, 4},
			[][]byte{hevc(trailR, 0), hevc(trailN, 0), {0, 0, 0, 9}, hevc(trailR, 0)},
			[]int{0, 1, 2, 3},
		},
		"H.264": {units{frame.H264, 4}, [][]byte{h264(3), h264(0), h264(1), h264(0)}, []int{0, 2, 3}},
		"other": {units{}, [][]byte{h264(3), h264(0), h264(0)}, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in []sample
			for i, data := range tt.pictures {
				in = append(in, sample{dts: int64(i), Sample: cmaf.Sample{Data: data}})
			}
			var got []int
			for _, s := range tt.needs(in) {
				got = append(got, int(s.dts))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
