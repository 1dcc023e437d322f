package av1_test

import (
	"strings"
	"testing"

	library "github.com/bluenviron/mediacommon/v2/pkg/codecs/av1"

	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/codectest"
)

// sequenceHeader makes an OBU of bits; blanks only make them readable.
func sequenceHeader(text string) []byte {
	text = strings.ReplaceAll(text, " ", "") + "1" // trailing bit
	payload := make([]byte, (len(text)+7)/8)
	for i, c := range text {
		if c == '1' {
			payload[i/8] |= 0x80 >> (i % 8)
		}
	}
	return append([]byte{av1.TypeSequenceHeader<<3 | 2, byte(len(payload))}, payload...)
}

// TestLibrary compares with an independent parser, and shows what that one lacks, for which it is not used (decision
// 33).
func TestLibrary(t *testing.T) {
	t.Parallel()
	const (
		front  = "000 0 0" // profile 0, neither still nor reduced
		point  = "000000000000 00000"
		size   = "1111 1111 0000000100111111 0000000010110011" // 320x180
		tools  = "0 000 0000 0 1 1 000"
		colour = "0 0 0 0 00 0"
		timing = "00000000000000000000000000000001 00000000000000000000000000011110 1 1" // 30 a second
		model  = "00000 00000000000000000000000000000001 00000 00000"
	)
	for name, tt := range map[string]struct {
		header []byte
		lacks  bool
	}{
		"SVT-AV1":        {codectest.Unhex(t, header), false},
		"SVT-AV1 10 bit": {codectest.Unhex(t, header10), false},
		"plain":          {sequenceHeader(front + "0 0 00000" + point + size + tools + colour), false},
		"timing": {
			sequenceHeader(front + "1" + timing + "0 0 00000" + point + size + tools + colour), false,
		},
		"decoder model": {
			sequenceHeader(front + "1" + timing + "1" + model + "0 00000" + point + "1 0 0 0" + size + tools + colour),
			true,
		},
		"initial display delay": {sequenceHeader(front + "0 1 00000" + point + "1 1001" + size + tools + colour), true},
	} {
		ours, err := av1.Info(tt.header)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var theirs library.SequenceHeader
		failed := theirs.Unmarshal(tt.header)
		same := failed == nil && theirs.Width() == ours.Width && theirs.Height() == ours.Height &&
			theirs.ColorConfig.BitDepth == ours.BitDepth &&
			theirs.SeqProfile == ours.Profile && theirs.SeqLevelIdx[0] == ours.Level
		if same == tt.lacks || ours.Width < 320 || ours.Height != 180 {
			t.Errorf("%s: the library reads %+v (%v), we %+v", name, theirs, failed, ours)
		}
	}
}
