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
	sei := nal.Append(nil, []byte{0x4e, 1, 5, 1, 0, 0x80})
	const kept, none, hurt = codec.Kept, codec.NoPicture, codec.Damaged
	type picture struct {
		at   int // milliseconds
		data []byte
		key  bool
		want codec.Verdict
	}
	for name, pictures := range map[string][]picture{
		"up to a key frame": {
			{0, good, true, kept},
			{40, good, false, kept},
			{80, bad, false, hurt},
			{120, good, false, hurt},
			{160, good, true, kept},
			{200, good, false, kept},
		},
		"a key frame":       {{0, bad, true, hurt}, {40, good, false, hurt}, {80, good, true, kept}},
		"SEI of its own":    {{0, good, true, kept}, {0, sei, false, none}, {40, good, false, kept}},
		"SEI while waiting": {{0, bad, true, hurt}, {40, sei, false, none}, {40, good, false, hurt}},
		"no key frame":      {{0, bad, false, hurt}, {4960, good, false, hurt}, {5000, good, false, kept}},
		"the clock jumps":   {{9000, bad, false, hurt}, {9040, good, false, hurt}, {0, good, false, kept}},
		"refused for long":  {{0, bad, false, hurt}, {6000, bad, false, hurt}, {6040, good, false, hurt}},
	} {
		f := codec.NewFilter(frame.Config{Codec: frame.HEVC}, 4)
		for i, p := range pictures {
			if got := f.Judge(p.data, p.key, time.Duration(p.at)*time.Millisecond); got != p.want {
				t.Errorf("%s, picture %d: %v, want %v", name, i, got, p.want)
			}
		}
	}
	if codec.NewFilter(frame.Config{Codec: frame.AV1}, 4).Judge(bad, false, 0) != kept {
		t.Error("another codec has no such units")
	}
}
