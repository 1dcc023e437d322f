package session

import (
	"math"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// TestSoundClock sends a minute of sound whose samples and timestamps are apart, beside a picture, over a network with
// some jitter.
func TestSoundClock(t *testing.T) {
	t.Parallel()
	const seconds = 120
	exact := 1024 * time.Second / 48000
	for name, tt := range map[string]struct {
		stamp, pace float64 // of the time between frames: as stamped, and as they come; by the samples it is 1
		lose        int     // each so manieth frame does not come; 0: all do
		alike       int     // so many frames have the same timestamp; 0: each has its own
		skew        float64
		dropped     bool // frames are left out
		byCount     bool
	}{
		"all is well":                       {stamp: 1, pace: 1},
		"a crystal's tolerance":             {stamp: 1.0002, pace: 1.0002},
		"lost frames":                       {stamp: 1, pace: 1, lose: 50},
		"three frames stamped alike":        {stamp: 1, pace: 1, alike: 3},
		"timestamps that are too slow":      {stamp: 0.99, pace: 1, skew: 0.01, byCount: true},
		"a step of 21 ms":                   {stamp: 21 / 21.3333, pace: 1, skew: 0.0159, byCount: true},
		"timestamps that are too fast":      {stamp: 1.01, pace: 1, skew: -0.01, byCount: true},
		"a device that has too many":        {stamp: 0.99, pace: 0.99, skew: 0.01, dropped: true},
		"a device that has too few samples": {stamp: 1.01, pace: 1.01, skew: -0.01},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := start(t, withRate(30), audio48)
			picture, sent := 0, 0
			for n := 0; ; n++ {
				come := time.Duration(float64(exact) * float64(n) * tt.pace)
				if come > seconds*time.Second {
					break
				}
				for at := time.Duration(picture) * time.Second / 30; at <=
					come; at = time.Duration(picture) * time.Second / 30 {
					f := frame.Frame{
						Kind: frame.Video, DTS: at, PTS: at, Key: picture%60 == 0, Data: []byte{1},
						Received: epoch.Add(at),
					}
					if err := s.Write(f); err != nil {
						t.Fatal(err)
					}
					picture++
				}
				if tt.lose > 0 && n%tt.lose == 7 {
					continue
				}
				at := time.Duration(float64(exact) * float64(n-n%max(tt.alike, 1)) * tt.stamp).Truncate(ms)
				f := frame.Frame{
					Kind: frame.Audio, DTS: at, PTS: at, Key: true, Data: []byte{1},
					Received: epoch.Add(come + time.Duration(n*7%13)*ms),
				}
				if err := s.Write(f); err != nil {
					t.Fatal(err)
				}
				sent++
			}
			s.Close(nil)
			got := s.Stats()
			if math.Abs(got.AudioSkew-tt.skew) > 0.001 || got.AudioByCount != tt.byCount {
				t.Errorf("off by %.4f, by count: %t", got.AudioSkew, got.AudioByCount)
			}
			if len(out.breaks) > 0 {
				t.Errorf("breaks %q", out.breaks)
			}
			if tt.byCount { // but for the first 20 s
				if left := sent - out.count[frame.Audio]; left > 25 || got.Holes > 25 {
					t.Errorf("%d of %d frames were left out, %d holes", left, sent, got.Holes)
				}
			}
			if left := sent - out.count[frame.Audio]; (left > 30) != tt.dropped {
				t.Errorf("%d of %d frames were left out", left, sent)
			}
			// It stays with the picture: on the clock by which it came.
			if end := length(out, frame.Audio); abs(end-seconds*time.Second) > 600*ms {
				t.Errorf("the sound lasts %v", end)
			}
		})
	}
}
