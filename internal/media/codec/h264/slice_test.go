package h264_test

import (
	"bytes"
	"errors"
	"testing"

	"millrace/internal/media/codec/bits"
	"millrace/internal/media/codec/codectest"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/nal"
)

// streams are x264's, of 158 by 92 pixels: parameter sets and the first bytes of slices in decoding order.
var streams = map[string]struct {
	sps, pps string
	slices   []string
}{
	"CABAC, weighted": {
		"67640014acd9428deaf0110000030001000003003c0f142996", "68ebef2c",
		[]string{
			"658884004f5de795ebbeea112e357e", "419a246c4bffb366edf7f8b2769da5", "419e427893fffef62f8d80d476ad54",
			"019e6174447ffee4013568167da598", "019e636a447ffee423c89baaefe13d", "419a6834b44c046f56f2d5c9326ca7",
			"419e8645112ffffaa5496bcc40e9e3",
		},
	},
	"CAVLC, strict": {
		"67640014acd9028deaf0110000030001000003003c0f142996", "68caef2c",
		[]string{
			"658884004fa21115706042fc0114d8", "419a246c17f8d45c9816aec96044f1", "419e427837c34ed3410b6c0da00182",
			"019e617408f9e11224077c029d1153", "019e63408f9e714a9171c3fe2bf204", "419a6835930ac6ff8d4733cba5c388",
			"419e864512bc7ff0c29e9ed1a1865d",
		},
	},
}

func TestSlices(t *testing.T) {
	t.Parallel()
	for name, tt := range streams {
		x, err := h264.NewSlices(codectest.Unhex(t, tt.sps), codectest.Unhex(t, tt.pps))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, want := range []h264.Slice{
			{Intra: true, IDR: true, Reference: true},
			{Reference: true, FrameNum: 1},
			{Reference: true, FrameNum: 2, B: true},
			{FrameNum: 3, B: true},
			{FrameNum: 3, B: true},
			{Reference: true, FrameNum: 3, Adaptive: name == "CAVLC, strict"},
			{Reference: true, FrameNum: 4, B: true, Adaptive: true},
		} {
			unit := codectest.Unhex(t, tt.slices[i])
			got, err := x.Read(unit)
			if err != nil || !got.First || got.Intra != want.Intra || got.IDR != want.IDR ||
				got.Reference != want.Reference || got.FrameNum != want.FrameNum || got.B != want.B ||
				got.Adaptive != want.Adaptive {
				t.Errorf("%s, slice %d: %+v %v", name, i, got, err)
			}
			if _, err := x.Read(unit[:3]); err == nil && i > 0 {
				t.Errorf("%s, slice %d: half a header was read", name, i)
			}
			repeats(t, x, got)
		}
		if _, err := x.Missing(h264.Slice{FrameNum: 9}, 99); err == nil {
			t.Error("more pictures than are kept")
		}
	}
}

// repeats holds what is put in for a picture to what that one's header says.
func repeats(t *testing.T, x *h264.Slices, h h264.Slice) {
	t.Helper()
	again := func(unit []byte) h264.Slice {
		if bytes.Contains(unit, []byte{0, 0, 1}) || bytes.Contains(unit, []byte{0, 0, 0}) || len(unit) > 1<<16 {
			t.Errorf("%x is no NAL unit", unit)
		}
		got, err := x.Read(unit)
		if err != nil || !got.First || got.IDR || got.Intra {
			t.Errorf("%+v: %+v, %v", h, got, err)
		}
		return got
	}
	if unit, err := x.Repeat(h); err == nil {
		if got := again(unit); got.Reference != h.Reference || got.FrameNum != h.FrameNum || got.B != h.B ||
			got.Adaptive != h.Adaptive || got.Restarts != h.Restarts {
			t.Errorf("%+v instead of %+v", got, h)
		}
	} else if !h.IDR {
		t.Errorf("%+v: %v", h, err)
	}
	units, err := x.Missing(h, 2)
	if err != nil {
		return
	}
	for i, unit := range units {
		if got := again(unit); !got.Reference || got.B || (got.FrameNum+2-i)%x.FrameNums() != h.FrameNum {
			t.Errorf("missing %d before %+v: %+v", i, h, got)
		}
	}
}

// TestMarking takes out of pictures' headers what they ask of references that are not held, and leaves all else as it
// is, bit by bit.
func TestMarking(t *testing.T) {
	t.Parallel()
	for name, tt := range streams {
		x, err := h264.NewSlices(codectest.Unhex(t, tt.sps), codectest.Unhex(t, tt.pps))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var held, without h264.Held
		changed := 0
		for i, text := range tt.slices {
			unit := append(codectest.Unhex(t, text), 0x80) // as if it ended there
			h, err := x.Read(unit)
			if err != nil {
				t.Fatal(err)
			}
			if _, isOther := held.Possible(x, h); isOther {
				t.Errorf("%s, slice %d: every reference is there", name, i)
			}
			if same, err := x.Mark(unit, h); err != nil && h.Reference && !h.IDR ||
				err == nil && !bytes.Equal(same, unit) {
				t.Errorf("%s, slice %d: %x became %x, %v", name, i, unit, same, err)
			}
			possible, isOther := without.Possible(x, h)
			if isOther {
				changed++
				other, err := x.Mark(unit, possible)
				again, readErr := x.Read(other)
				if _, more := without.Possible(x, again); err != nil || readErr != nil || more ||
					again.FrameNum != h.FrameNum || !again.Adaptive {
					t.Errorf("%s, slice %d: %+v became %+v, %v %v", name, i, h, again, err, readErr)
				}
			}
			held.Follow(x, h)
			if i != 2 { // the reference that is forgotten later
				without.Follow(x, possible)
			}
		}
		if changed == 0 {
			t.Errorf("%s: no picture asked for the one that is missing", name)
		}
	}
}

// TestSlicesTooLarge: no level allows more than 139264 macroblocks.
func TestSlicesTooLarge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width, height int
		want          error
	}{{1024, 136, nil}, {1024, 137, h264.ErrUnsupported}, {1024, 1024, h264.ErrUnsupported}} {
		var w bits.Writer
		w.Bits(0x67<<8|66, 16)
		w.Bits(0<<8|62, 16)
		for _, v := range []int{0, 0, 2, 1} { // ID, frame numbers of 4 bits, no order counts, one reference
			w.Golomb(v)
		}
		w.Flag(false) // gaps
		w.Golomb(tt.width - 1)
		w.Golomb(tt.height - 1)
		w.Bits(0b1100, 4) // frames only, direct_8x8_inference_flag, no cropping, no VUI
		w.Trail()
		_, err := h264.NewSlices(nal.Escape(w.Bytes()), codectest.Unhex(t, streams["CAVLC, strict"].pps))
		if !errors.Is(err, tt.want) {
			t.Errorf("%d by %d: %v", tt.width, tt.height, err)
		}
	}
}

// Whatever parameter sets and slices say, what is put in can be read and does the same to references.
func FuzzSlices(f *testing.F) {
	for _, s := range streams {
		for _, slice := range s.slices {
			f.Add(codectest.Unhex(f, s.sps), codectest.Unhex(f, s.pps), codectest.Unhex(f, slice))
		}
	}
	f.Fuzz(func(t *testing.T, sps, pps, slice []byte) {
		x, err := h264.NewSlices(sps, pps)
		if err != nil {
			return
		}
		if h, err := x.Read(slice); err == nil {
			if _, err := x.Repeat(h); err == nil {
				repeats(t, x, h)
			}
			var held h264.Held
			held.Follow(x, h)
			h, _ = held.Possible(x, h)
			if unit, err := x.Mark(slice, h); err == nil {
				again, err := x.Read(unit)
				if err != nil || again.Adaptive != h.Adaptive || again.Restarts != h.Restarts ||
					again.FrameNum != h.FrameNum {
					t.Errorf("marked %+v, read %+v: %v", h, again, err)
				}
			}
		}
	})
}
