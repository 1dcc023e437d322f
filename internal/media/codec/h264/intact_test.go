package h264_test

import (
	"bytes"
	"slices"
	"testing"

	"millrace/internal/media/codec/codectest"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/nal"
)

// What decoders make no picture of is told by the headers; what lies behind those is not looked at.
func TestIntact(t *testing.T) {
	t.Parallel()
	for name, s := range streams {
		sps, pps := codectest.Unhex(t, s.sps), codectest.Unhex(t, s.pps)
		sei := []byte{6, 5, 1, 0, 0x80}
		for i, slice := range s.slices {
			unit := codectest.Unhex(t, slice)
			hit := func(at int, b byte) []byte {
				out := bytes.Clone(unit)
				out[at] = b
				return out
			}
			other := hit(1, unit[1]^3) // pic_parameter_set_id
			if i == 0 {
				other = hit(2, unit[2]^0xc0)
			}
			long := nal.Append(nil, sei, unit)
			long[len(long)-len(unit)-4] = 1
			for what, tt := range map[string]struct {
				au   []byte
				want bool
			}{
				"whole":                     {nal.Append(nil, unit), true},
				"with others":               {nal.Append(nil, []byte{9, 0xf0}, sps, pps, sei, unit), true},
				"hit behind its header":     {nal.Append(nil, hit(len(unit)-1, 0xff)), true},
				"one of two slices is left": {nal.Append(nil, hit(0, 0xff), unit), true},
				"a length beyond the end":   {long, false},
				"a byte behind the last":    {append(nal.Append(nil, unit), 0), false},
				"of another type":           {nal.Append(nil, sei, hit(0, 0x1f)), false},
				"forbidden_zero_bit":        {nal.Append(nil, hit(0, unit[0]|0x80)), false},
				"without a slice":           {nal.Append(nil, sps, pps, sei), false},
				"zeros for a header":        {nal.Append(nil, append([]byte{unit[0]}, make([]byte, 30)...)), false},
				"a macroblock beyond the last": {
					nal.Append(nil, slices.Concat(unit[:1], []byte{0, 0, 0, 0, 0xff}, unit[5:])), false,
				},
				"PPS that nobody has":        {nal.Append(nil, other), false},
				"nothing":                    {nil, false},
				"an empty unit and a length": {[]byte{0, 0, 0, 0, 0, 0}, false},
			} {
				if got := h264.NewInspector(4, sps, pps).Intact(tt.au); got != tt.want {
					t.Errorf("%s, slice %d, %s: %v, want %v", name, i, what, got, tt.want)
				}
			}
		}
	}
}

// Units without a picture are none that is damaged.
func TestNoPicture(t *testing.T) {
	t.Parallel()
	sei, filler := []byte{6, 5, 1, 0, 0x80}, []byte{12, 0xff, 0x80}
	for name, tt := range map[string]struct {
		au   []byte
		want bool
	}{
		"SEI and filler":         {nal.Append(nil, []byte{9, 0xf0}, sei, filler), true},
		"an empty unit":          {nal.Append(nil, nil, sei), true},
		"nothing":                {nil, true},
		"with a slice":           {nal.Append(nil, sei, []byte{0x41, 0x9a}), false},
		"forbidden_zero_bit":     {nal.Append(nil, []byte{0x86, 5, 1}), false},
		"of no type":             {nal.Append(nil, sei, []byte{0x1f, 0x9a}), false},
		"a length that is wrong": {append(nal.Append(nil, sei), 1), false},
	} {
		if got := h264.NoPicture(tt.au, 4); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// Of a stream with several sets, or with others than its container has, slices are read as far as all have it in
// common.
func TestIntactOfOtherSets(t *testing.T) {
	t.Parallel()
	s := streams["CABAC, weighted"]
	sps, pps, slice := codectest.Unhex(t, s.sps), codectest.Unhex(t, s.pps), codectest.Unhex(t, s.slices[1])
	second := []byte{0x68, 0x5b, 0xe3, 0xcb} // pic_parameter_set_id 1
	refers := []byte{0x41, 0x99, 0x10, 0x40} // and a slice that refers to it
	i := h264.NewInspector(4, sps, pps)
	if i.Intact(nal.Append(nil, refers)) {
		t.Error("the second PPS has not come yet")
	}
	both := i.Intact(nal.Append(nil, second, refers)) && i.Intact(nal.Append(nil, refers))
	if !both || !i.Intact(nal.Append(nil, slice)) {
		t.Error("the second PPS is there now")
	}
	if none := h264.NewInspector(2); !none.Intact(append([]byte{0, byte(len(slice))}, slice...)) {
		t.Error("of sets nothing is known")
	}
}
