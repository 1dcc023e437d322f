package rtmp

import (
	"cmp"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/media/codec"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/rtmpwire"
)

// TestCaptionInfo: captions that come beside the picture are in it, whatever of their header was left out, behind its
// delimiter.
func TestCaptionInfo(t *testing.T) {
	t.Parallel()
	e := &cea608test.Encoder{}
	e.PopOn(1, 0, 1, 2, 15, "hello")
	whole := e.Message(0)
	for name, tt := range map[string]struct {
		codec frame.Codec
		data  []byte
		first []byte // unit
		outer string
	}{
		"whole":               {frame.H264, whole, []byte{0x65, 1}, ""},
		"in a data frame":     {frame.H264, whole, []byte{0x65, 1}, "@setDataFrame"},
		"without the country": {frame.H264, whole[3:], []byte{9, 0xf0}, ""},
		"cc_data alone":       {frame.HEVC, whole[8:], []byte{0x46, 1, 0x50}, ""},
	} {
		var body []byte
		if tt.outer != "" {
			body = rtmpwire.AppendAMF0(body, tt.outer)
		}
		body = rtmpwire.AppendAMF0(body, captionInfo, rtmpwire.Object{
			{Name: "type", Value: "708"}, {Name: "data", Value: base64.StdEncoding.EncodeToString(tt.data)},
		})
		var c captions
		if !c.handle(rtmpwire.Packet{Kind: rtmpwire.TypeDataAMF0, Body: body}) {
			t.Errorf("%s: no captions", name)
		}
		slice := []byte{0x65, 2}
		if tt.codec == frame.HEVC {
			slice = []byte{0x26, 1, 2}
		}
		au := c.put(tt.codec, nal.Append(nil, tt.first, slice), 0, true)
		if unit, _, _ := nal.Next(au, 4); tt.first[0] != 0x65 && unit[0] != tt.first[0] {
			t.Errorf("%s: the delimiter does not come first", name)
		}
		n := 0
		codec.CaptionData(tt.codec, au, func(_, first, second byte) {
			if n++; n == 1 && (first != 0x94 || second != 0x20) {
				t.Errorf("%s: %x %x", name, first, second)
			}
		})
		if n != 2 || nal.Check(au) != nil {
			t.Errorf("%s: %d constructs", name, n)
		}
		if again := c.put(tt.codec, slice, 0, true); len(again) != len(slice) {
			t.Errorf("%s: they are put twice", name)
		}
	}
	var c captions
	if c.handle(rtmpwire.Packet{Kind: rtmpwire.TypeDataAMF0, Body: rtmpwire.AppendAMF0(nil, "onMetaData")}) {
		t.Error("metadata were taken for captions")
	}
}

// TestCaptionInfoIsReordered: captions that come in the order in which pictures are shown are read in it, whatever
// order the pictures come in, and each is in some picture at the latest with the next one that is shown behind all
// before it.
func TestCaptionInfoIsReordered(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{ // times of showing
		"no B-frames":      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"two":              {0, 3, 1, 2, 6, 4, 5, 9, 7, 8},
		"a pyramid":        {0, 4, 2, 1, 3, 8, 6, 5, 7, 9},
		"open groups":      {0, 2, 1, 5, 3, 4, 6, 8, 7, 9},
		"a clock set back": {900, 901, 0, 1, 2, 3, 4, 5, 6, 7},
	} {
		var c captions
		type picture struct {
			at    int
			pairs []byte
		}
		var pictures []picture
		before := 0
		for n, at := range order {
			data := []byte{0x41, 0xff, 0xfc, 0x80, byte(n), 0xff}
			body := rtmpwire.AppendAMF0(nil, captionInfo, rtmpwire.Object{
				{Name: "type", Value: "708"}, {Name: "data", Value: base64.StdEncoding.EncodeToString(data)},
			})
			c.handle(rtmpwire.Packet{Kind: rtmpwire.TypeDataAMF0, Body: body})
			key := n == 0 || at == 5 && name == "open groups" || at < before-800
			p := picture{at: at}
			if at < before-800 { // as a player sees it, behind a discontinuity
				for i := range pictures {
					pictures[i].at -= 1000
				}
			}
			before = at
			au := c.put(frame.H264, nal.Append(nil, []byte{0x65, 2}), time.Duration(at)*time.Second, key)
			codec.CaptionData(frame.H264, au, func(_, _, second byte) { p.pairs = append(p.pairs, second) })
			pictures = append(pictures, p)
		}
		slices.SortStableFunc(pictures, func(a, b picture) int { return cmp.Compare(a.at, b.at) })
		var got []byte
		for _, p := range pictures {
			got = append(got, p.pairs...)
		}
		if !slices.IsSorted(got) || len(got)+len(c.waiting) != len(order) || len(c.waiting) > 2 {
			t.Errorf("%s: read as %v, %d wait", name, got, len(c.waiting))
		}
	}
}
