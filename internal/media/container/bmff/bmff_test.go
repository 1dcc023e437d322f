package bmff_test

import (
	"bytes"
	"errors"
	"testing"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

func TestParseHeader(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		b    string
		size uint64
		len  int
		want error
	}{
		"short":         {"\x00\x00\x00\x10moov", 16, 8, nil},
		"long":          {"\x00\x00\x00\x01mdat\x00\x00\x00\x01\x00\x00\x00\x00", 1 << 32, 16, nil},
		"to the end":    {"\x00\x00\x00\x00mdat", 0, 8, nil},
		"too small":     {"\x00\x00\x00\x07moov", 7, 8, bmff.ErrMalformed},
		"long, small":   {"\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\x00\x0f", 15, 16, bmff.ErrMalformed},
		"long, nothing": {"\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\x00\x00", 0, 16, bmff.ErrMalformed},
		"cut":           {"\x00\x00\x00", 0, 0, bmff.ErrTruncated},
		"long, cut":     {"\x00\x00\x00\x01mdat\x00\x00", 1, 8, bmff.ErrTruncated},
	} {
		h, err := bmff.ParseHeader([]byte(tt.b))
		if !errors.Is(err, tt.want) || h.Size != tt.size || h.Len != tt.len {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

func TestWalkAndFind(t *testing.T) {
	t.Parallel()
	b := bmff.Make("moov", bmff.Make("mvhd", []byte("x")), bmff.Make("trak",
		bmff.Make("tkhd", []byte("one"))), bmff.Make("trak", bmff.Make("tkhd", []byte("two"))), []byte{0, 0, 0, 0})
	if got := bmff.Find(b, "moov", "trak", "tkhd"); string(got) != "one" {
		t.Errorf("found %q", got)
	}
	if got := bmff.Find(b, "moov", "udta"); got != nil {
		t.Errorf("found %q", got)
	}
	n := 0
	if err := bmff.Walk(bmff.Find(b, "moov"), func(bmff.Box) error { n++; return nil }); err != nil || n != 3 {
		t.Errorf("%d boxes, %v", n, err)
	}
	if err := bmff.Walk(b[:len(b)-1], func(bmff.Box) error { return nil }); !errors.Is(err, bmff.ErrTruncated) {
		t.Errorf("cut: %v", err)
	}
	stop := errors.New("stop")
	if err := bmff.Walk(b, func(bmff.Box) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	if got := (bmff.FourCC{0xa9, 'n', 0, '\n'}).String(); got != ".n.." {
		t.Errorf("shown as %q", got)
	}
}

// esds has an AudioSpecificConfig of AAC-LC, 44.1 kHz, stereo, with object type indication object.
func esds(object byte) []byte {
	return bmff.Full("esds", 0, 0, []byte{
		3, 22, 0, 1, 0, 4, 17, object, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 2, 0x12, 0x10,
	})
}

func TestParseSoundEntry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		head int
		rest []byte
		qt   bool
		want error
	}{
		"ISO":         {28, esds(0x40), false, nil},
		"MPEG-2 AAC":  {28, esds(0x67), false, nil},
		"QuickTime 1": {28 + 16, esds(0x40), true, nil},
		"QuickTime wave": {
			28 + 16, bmff.Make("wave", bmff.Make("frma", []byte("mp4a")), esds(0x40), []byte{0, 0, 0, 8, 0, 0, 0, 0}),
			true, nil,
		},
		"QuickTime 2": {28 + 36, esds(0x40), true, nil},
		"MP3":         {28, esds(0x6b), false, bmff.ErrUnknownCodec},
		"no esds":     {28, nil, false, bmff.ErrMalformed},
		"too short":   {10, nil, false, bmff.ErrMalformed},
		"empty esds":  {28, bmff.Full("esds", 0, 0), false, bmff.ErrMalformed},
		"size that lies": {
			28, bmff.Full("esds", 0, 0, []byte{3, 0xff, 0xff, 0xff, 0x7f, 0, 1, 0, 4, 17, 0x40}), false,
			bmff.ErrMalformed,
		},
		"no decoder info": {
			28, bmff.Full("esds", 0, 0, []byte{3, 18, 0, 1, 0, 4, 13, 0x40, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
			false, bmff.ErrMalformed,
		},
	} {
		raw := bmff.Make("mp4a", make([]byte, tt.head), tt.rest)
		c, err := bmff.ParseEntry(bmff.SampleEntry{Type: bmff.FourCC([]byte("mp4a")), Raw: raw})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.want == nil &&
			(c.Config.Codec != frame.AAC || c.Config.SampleRate != 44100 || c.Config.Channels != 2 ||
				c.QuickTime != tt.qt || !bytes.Equal(c.Config.ASC, []byte{0x12, 0x10})) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if _, err := bmff.ParseEntry(bmff.SampleEntry{Type: bmff.FourCC([]byte("hvc1"))}); !errors.Is(err,
		bmff.ErrUnknownCodec) {
		t.Errorf("hvc1: %v", err)
	}
}

func TestParseTrackNames(t *testing.T) {
	t.Parallel()
	make1 := func(language uint16, handler string) []byte {
		return bmff.Make("trak",
			bmff.Full("tkhd", 1, 7, make([]byte, 16), bmff.U32(5), make([]byte, 28), make([]byte, 36),
				bmff.U32(1<<16, 2<<16)),
			bmff.Make("mdia",
				bmff.Full("mdhd", 1, 0, make([]byte, 16), bmff.U32(600, 0, 0), bmff.U16(language, 0)),
				bmff.Full("hdlr", 0, 0, bmff.U32(0), []byte("vide"), bmff.U32(0, 0, 0), []byte(handler)),
				bmff.Make("minf", bmff.Make("stbl", bmff.Full("stsd", 0, 0, bmff.U32(1), bmff.Make("abcd"))))))
	}
	for _, tt := range []struct {
		language uint16
		handler  string
		wantLang string
		wantName string
	}{
		{0x55c4, "Camera\x00", "", "Camera"},
		{0x15c7, "\x06Camera", "eng", "Camera"},
		{0, "Camera", "", "Camera"},
		{0x7fff, "", "", ""},
		{0xffff, "a\xffb\x00", "", "ab"},
	} {
		tr, err := bmff.ParseTrack(bmff.Find(make1(tt.language, tt.handler), "trak"))
		if err != nil {
			t.Fatal(err)
		}
		if tr.ID != 5 || tr.Timescale != 600 || tr.Language != tt.wantLang || tr.Name != tt.wantName ||
			tr.Width != 1<<16 || tr.Entries[0].Type.String() != "abcd" {
			t.Errorf("%+v", tr)
		}
	}
	whole := bmff.Find(make1(0, ""), "trak")
	for n := range whole { // never a panic, whatever is missing
		_, _ = bmff.ParseTrack(whole[:n])
	}
}

// A picture that is turned by a quarter changes its sides, mirrored or not.
func TestSideways(t *testing.T) {
	t.Parallel()
	const one, less = 0x10000, 0xffff0000 // -1 in 16.16
	for name, tt := range map[string]struct {
		a, b, c, d uint32
		want       bool
	}{
		"upright":             {a: one, d: one},
		"upside down":         {a: less, d: less},
		"mirrored":            {a: less, d: one},
		"left out":            {},
		"clockwise":           {b: one, c: less, want: true},
		"against the clock":   {b: less, c: one, want: true},
		"turned and mirrored": {b: one, c: one, want: true},
	} {
		if got := bmff.Sideways([9]uint32{tt.a, tt.b, 0, tt.c, tt.d}); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
