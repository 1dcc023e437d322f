package aac_test

import (
	"encoding/hex"
	"testing"

	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"

	"millrace/internal/media/codec/aac"
)

// TestLibrary compares with an independent parser, and shows what that one lacks, for which it is not used (decision
// 33).
func TestLibrary(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		asc   string
		lacks bool
	}{
		"LC stereo":             {"1190", false},
		"LC mono":               {"1188", false},
		"LC 7.1":                {"11b8", false},
		"LC of 960":             {"1194", false},
		"HE explicit":           {"2b11880000", false},
		"HE v2":                 {"eb098800", false},
		"explicit rate":         {"17805dc010", false},
		"reserved rate":         {"1690", false},
		"reserved channels":     {"11d0", false},
		"main profile":          {"0a10", false},
		"HE by sync extension":  {"131056e598", true}, // taken for plain AAC-LC, and named so to players
		"program config 2.1":    {"118004c4010020000d4c61766335392e33372e31303056e500", true},
		"6.1 of the second set": {"11d8", true},
		"7.1 of the second set": {"11e0", true},
		"explicit rate of 0":    {"1780000010", true}, // taken
	} {
		b, err := hex.DecodeString(tt.asc)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := aac.Parse(b)
		var theirs mpeg4audio.AudioSpecificConfig
		failed := theirs.Unmarshal(b)
		same := (err == nil) == (failed == nil)
		if same && err == nil {
			object, channels := max(theirs.Type, theirs.ExtensionType), int(theirs.ChannelConfig)
			if channels == 7 {
				channels = 8
			}
			same = int(object) == ours.ObjectType && theirs.SampleRate == ours.SampleRate &&
				channels == ours.Channels &&
				theirs.FrameLengthFlag == (ours.SamplesPerFrame == 960)
		}
		if same == tt.lacks {
			t.Errorf("%s: the library reads %+v (%v), we %+v (%v)", name, theirs, failed, ours, err)
		}
	}
}
