package codec_test

import (
	"encoding/hex"
	"testing"

	"millrace/internal/media/codec"
	"millrace/internal/media/frame"
)

func TestClock(t *testing.T) {
	t.Parallel()
	info := make([]byte, 34)
	info[2], info[3] = 0x12, 0 // blocks of 4608
	for name, tt := range map[string]struct {
		config       frame.Config
		data         []byte
		rate, length int64
		samples      int64
	}{
		"AAC": {
			frame.Config{Codec: frame.AAC, ASC: []byte{0x11, 0x90}, SampleRate: 48000}, nil, 48000, 1024, 1024,
		},
		"AAC of 960": {
			frame.Config{Codec: frame.AAC, ASC: []byte{0x11, 0x94}, SampleRate: 48000}, nil, 48000, 960, 960,
		},
		"Opus 60 ms":  {frame.Config{Codec: frame.Opus, SampleRate: 48000}, []byte{0x18, 1}, 48000, 960, 2880},
		"Opus unread": {frame.Config{Codec: frame.Opus, SampleRate: 48000}, nil, 48000, 960, 960},
		"FLAC last": {
			frame.Config{Codec: frame.FLAC, Header: info, SampleRate: 44100},
			[]byte{0xff, 0xf8, 0x6a, 8, 0, 0xbf},
			44100, 4608, 192,
		},
		"FLAC unread": {
			frame.Config{Codec: frame.FLAC, Header: info, SampleRate: 44100}, []byte{1}, 44100, 4608, 4608,
		},
		"AC-3":           {frame.Config{Codec: frame.AC3, SampleRate: 48000}, nil, 48000, 1536, 1536},
		"MP3":            {frame.Config{Codec: frame.MP3, SampleRate: 44100}, nil, 44100, 1152, 1152},
		"MP3 lower rate": {frame.Config{Codec: frame.MP3, SampleRate: 22050}, nil, 22050, 576, 576},
		"nothing known":  {frame.Config{}, nil, 1, 1024, 1024},
	} {
		k := codec.ClockOf(tt.config)
		if k.Rate != tt.rate || k.Length != tt.length || k.Samples(tt.data) != tt.samples {
			t.Errorf("%s: %+v, %d samples", name, k, k.Samples(tt.data))
		}
	}
}

func TestSamplesAllocatesNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	k := codec.ClockOf(frame.Config{Codec: frame.Opus})
	packet, n := []byte{0xfc, 1, 2}, int64(0)
	if a := testing.AllocsPerRun(100, func() { n += k.Samples(packet) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	// Main 10, written by x265; they differ in the transfer characteristics.
	pq := unhex("42010102200000030090000003000003003ca00a080c1f3b6595952930bc05a84880482000000300200000030321")
	hlg := unhex("42010102200000030090000003000003003ca00a080c1f3b6595952930bc05a84890482000000300200000030321")
	vp9 := func(transfer byte) []byte { return []byte{2, 31, 0xa0, 9, transfer, 9, 0, 0} }
	for name, tt := range map[string]struct {
		config frame.Config
		want   frame.VideoRange
	}{
		"HEVC, PQ":       {frame.Config{Codec: frame.HEVC, SPS: pq}, frame.PQ},
		"HEVC, HLG":      {frame.Config{Codec: frame.HEVC, SPS: hlg}, frame.HLG},
		"HEVC, unread":   {frame.Config{Codec: frame.HEVC, SPS: pq[:20]}, frame.SDR},
		"VP9, PQ":        {frame.Config{Codec: frame.VP9, Header: vp9(16)}, frame.PQ},
		"VP9, HLG":       {frame.Config{Codec: frame.VP9, Header: vp9(18)}, frame.HLG},
		"VP9, BT.709":    {frame.Config{Codec: frame.VP9, Header: vp9(1)}, frame.SDR},
		"VP9, unread":    {frame.Config{Codec: frame.VP9}, frame.SDR},
		"VP8":            {frame.Config{Codec: frame.VP8}, frame.SDR},
		"H.264, nothing": {frame.Config{Codec: frame.H264}, frame.SDR},
	} {
		if got := codec.Range(tt.config); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
