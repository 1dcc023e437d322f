package hevc_test

import (
	"testing"

	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
)

// What decoders make no picture of is told by the headers.
func TestIntact(t *testing.T) {
	t.Parallel()
	idr, trail := []byte{0x28, 1, 0xaf, 0x78, 0x40}, []byte{2, 1, 0xd0, 0x28, 0xbf}
	for name, tt := range map[string]struct {
		au   []byte
		want bool
	}{
		"IDR":                     {nal.Append(nil, idr), true},
		"trailing":                {nal.Append(nil, trail), true},
		"one of two":              {nal.Append(nil, []byte{0x82, 1, 0xd0}, trail), true},
		"forbidden_zero_bit":      {nal.Append(nil, []byte{0x82, 1, 0xd0, 0x28, 0xbf}), false},
		"no temporal ID":          {nal.Append(nil, []byte{2, 0, 0xd0, 0x28, 0xbf}), false},
		"zeros for a header":      {nal.Append(nil, append([]byte{2, 1}, make([]byte, 30)...)), false},
		"SEI alone":               {nal.Append(nil, []byte{0x4e, 1, 5, 0}), false},
		"a length beyond the end": {append([]byte{0, 0, 1, 0}, trail...), false},
		"nothing":                 {nil, false},
	} {
		if got := hevc.Intact(tt.au, 4); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// Units without a picture are none that is damaged.
func TestNoPicture(t *testing.T) {
	t.Parallel()
	sei := []byte{0x4e, 1, 5, 0}
	for name, tt := range map[string]struct {
		au   []byte
		want bool
	}{
		"SEI and a delimiter":    {nal.Append(nil, []byte{0x46, 1, 0x50}, sei), true},
		"an empty unit":          {nal.Append(nil, nil, sei), true},
		"with a slice":           {nal.Append(nil, sei, []byte{2, 1, 0xd0}), false},
		"forbidden_zero_bit":     {nal.Append(nil, []byte{0xce, 1, 5, 0}), false},
		"of no type":             {nal.Append(nil, []byte{0x7e, 1, 5, 0}), false},
		"a length that is wrong": {append(nal.Append(nil, sei), 1), false},
	} {
		if got := hevc.NoPicture(tt.au, 4); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
