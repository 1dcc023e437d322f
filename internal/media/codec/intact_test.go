package codec_test

import (
	"testing"
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// What a decoder refuses is left out with all behind it up to a key frame; where none comes, for five seconds.
func TestFilter(t *testing.T) {
	t.Parallel()
	good, bad := nal.Append(nil, []byte{2, 1, 0xd0, 0x28, 0xbf}), []byte{0, 0, 1, 0, 2, 1}
	type picture struct {
		at   int // milliseconds
		data []byte
		key  bool
		want bool
	}
	for name, pictures := range map[string][]picture{
		"up to a key frame": {
			{0, good, true, true},
			{40, good, false, true},
			{80, bad, false, false},
			{120, good, false, false},
			{160, good, true, true},
			{200, good, false, true},
		},
		"a key frame":      {{0, bad, true, false}, {40, good, false, false}, {80, good, true, true}},
		"no key frame":     {{0, bad, false, false}, {4960, good, false, false}, {5000, good, false, true}},
		"the clock jumps":  {{9000, bad, false, false}, {9040, good, false, false}, {0, good, false, true}},
		"refused for long": {{0, bad, false, false}, {6000, bad, false, false}, {6040, good, false, false}},
	} {
		f := codec.NewFilter(frame.Config{Codec: frame.HEVC}, 4)
		for i, p := range pictures {
			if got := f.Passes(p.data, p.key, time.Duration(p.at)*time.Millisecond); got != p.want {
				t.Errorf("%s, picture %d: %v, want %v", name, i, got, p.want)
			}
		}
	}
	if !codec.NewFilter(frame.Config{Codec: frame.AV1}, 4).Passes(bad, false, 0) {
		t.Error("another codec has no such units")
	}
}
