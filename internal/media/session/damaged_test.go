package session

import (
	"testing"
	"time"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// In place of a picture that is damaged, and of those behind it up to the next key frame, nothing is written, and the
// time stays: sound and what follows are where they were.
func TestDamagedPicturesAreLeftOut(t *testing.T) {
	t.Parallel()
	c := withRate(30)
	c.Codec, c.VPS = frame.HEVC, []byte{0x40, 1}
	s, out := start(t, c, audio48)
	x := newSource(t, s, time.Second/30, 1024*time.Second/48000)
	x.edit = func(f *frame.Frame) bool {
		if f.Kind == frame.Audio {
			return true
		}
		n := x.n[frame.Video] - 1
		f.Data = nal.Append(nil, []byte{2, 1, 0xd0, byte(n) | 1, 0xbf})
		if n == 40 || n == 100 || n == 103 {
			f.Data[2] = 1 // longer than all that is there
		}
		return true
	}
	x.run(6 * time.Second)
	s.Close(nil)
	written := out.frames[frame.Video]
	for i, f := range written {
		n := int((f.DTS + time.Second/60) * 30 / time.Second)
		if n >= 40 && n < 60 || n >= 100 && n < 120 {
			t.Errorf("picture %d at %v was to be left out", i, f.DTS)
		}
	}
	st := s.Stats()
	if len(written) != len(x.sent[frame.Video])-40 || st.Broken != 40 || st.Lost != 40 ||
		st.Discontinuities+st.Holes > 0 {
		t.Errorf("%d pictures; %+v", len(written), st)
	}
}
