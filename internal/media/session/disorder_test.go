package session

import (
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// TestDisorderedTimesDoNotStretchMedia: an encoder whose times go back again and again, by little, has no longer
// recording for it.
func TestDisorderedTimesDoNotStretchMedia(t *testing.T) {
	t.Parallel()
	const seconds = 60
	for name, order := range map[string][]int{
		"decoding times that are those of presentation": {0, 3, 1, 2},
		"pictures in pairs":                             {1, 0},
		"a step back each second": {
			0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 12, 13, 14,
			15, 16,
		},
	} {
		for _, sound := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				configs := []frame.Config{withRate(30), audio48}
				if !sound {
					configs = configs[:1]
				}
				s, out := start(t, configs...)
				nextSound := time.Duration(0)
				for i := range seconds * 30 {
					now := time.Duration(i) * time.Second / 30
					for ; sound && nextSound <= now; nextSound += 1024 * time.Second / 48000 {
						if err := s.Write(frame.Frame{
							Kind: frame.Audio, DTS: nextSound, PTS: nextSound, Key: true, Data: []byte{1},
							Received: epoch.Add(nextSound),
						}); err != nil {
							t.Fatal(err)
						}
					}
					at := time.Duration(i-i%len(order)+order[i%len(order)]) * time.Second / 30
					f := frame.Frame{
						Kind: frame.Video, DTS: at, PTS: at, Key: i%60 == 0, Data: []byte{1}, Received: epoch.Add(now),
					}
					if err := s.Write(f); err != nil {
						t.Fatal(err)
					}
				}
				s.Close(nil)
				// At most a tenth faster than it came, and two seconds.
				if got := length(out, frame.Video); got > seconds*time.Second*11/10+2100*ms ||
					got < seconds*time.Second*9/10 {
					t.Errorf("%d seconds last %v; %+v", seconds, got, s.Stats())
				}
			})
		}
	}
}
