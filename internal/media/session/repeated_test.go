package session

import (
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// TestPicturesSentTwice: what comes with the time of the picture before it makes a recording no longer. The same
// picture once more is left out; another one, as the second field of a picture or a slice that comes by itself, is
// kept.
func TestPicturesSentTwice(t *testing.T) {
	t.Parallel()
	each := func(int) bool { return true }
	for name, tt := range map[string]struct {
		said  float64 // frames per second that the parameter sets announce
		which func(n int) bool
		other bool // what comes has other bytes
	}{
		"each":               {30, each, false},
		"each, unsaid":       {0, each, false},
		"key frames":         {30, func(n int) bool { return n%30 == 0 }, false},
		"some":               {30, func(n int) bool { return n%7 == 3 }, false},
		"some, unsaid":       {0, func(n int) bool { return n%7 == 3 }, false},
		"fields":             {30, each, true},
		"fields, unsaid":     {0, each, true},
		"some in two pieces": {30, func(n int) bool { return n%7 == 3 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := start(t, withRate(tt.said), audio48)
			x := newSource(t, s, fps30, aac48)
			twice := 0
			x.edit = func(f *frame.Frame) bool {
				if f.Kind == frame.Audio || !tt.which(tag(*f)) {
					return true
				}
				twice++
				first := *f
				first.Data = append([]byte(nil), f.Data...)
				if tt.other {
					f.Data, f.Key = append(f.Data, 1), false
				}
				if err := s.Write(first); err != nil {
					t.Fatal(err)
				}
				return true
			}
			x.run(20 * time.Second)
			s.Close(nil)
			want := x.n[0]
			if tt.other {
				want += twice
			}
			if got := out.count[frame.Video]; got != want || len(out.breaks) > 0 {
				t.Errorf("%d pictures, want %d; discontinuities %q", got, want, out.breaks)
			}
			near(t, "video", length(out, frame.Video), 20*time.Second, 40*ms)
			near(t, "audio", length(out, frame.Audio), 20*time.Second, 40*ms)
			checkSync(t, x, out, 40*ms)
		})
	}
}
