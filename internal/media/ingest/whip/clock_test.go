package whip

import (
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// TestSoundThatWasNotRecorded has a sender whose clock of pictures is the wall clock and whose clock of sound counts
// samples, as browsers do it: where the machine is too busy to record some, or the network stands still, sound and
// picture come together again.
func TestSoundThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	const ms, second = time.Millisecond, time.Second
	for name, tt := range map[string]struct {
		recorded func(at time.Duration) bool          // whether the sound at that time is
		delay    func(at time.Duration) time.Duration // of the network
		silent   bool                                 // no reports come
		busy     [2]time.Duration                     // in between they may be apart
		during   time.Duration                        // by so much
	}{
		"nothing happens": {},
		"without reports": {silent: true},
		"three seconds are lost at once": {
			recorded: func(at time.Duration) bool { return at < 8*second || at >= 11*second },
			busy:     [2]time.Duration{11 * second, 13 * second}, during: 3100 * ms,
		},
		"three seconds are lost at once and nothing reports it": {
			recorded: func(at time.Duration) bool { return at < 8*second || at >= 11*second },
			busy:     [2]time.Duration{11 * second, 13 * second}, during: 3100 * ms, silent: true,
		},
		"most is lost for ten seconds": {
			recorded: func(at time.Duration) bool { return at < 8*second || at >= 18*second || at%(400*ms) < 100*ms },
			busy:     [2]time.Duration{8 * second, 21 * second}, during: 2 * second,
		},
		"a little is lost again and again": { // less at once than would be seen in how it arrives
			recorded: func(at time.Duration) bool { return at < 8*second || at >= 18*second || at%second < 940*ms },
			busy:     [2]time.Duration{8 * second, 25 * second}, during: 350 * ms,
		},
		"the network stands still": {
			delay: func(at time.Duration) time.Duration { return max(0, min(at-8*second, 11*second-at)) },
		},
		"the network gets slower": {
			delay: func(at time.Duration) time.Duration { return max(0, min(at-8*second, 1500*ms)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clocks{tracks: [2]rtpClock{frame.Video: {rate: 90000}, frame.Audio: {rate: 48000}}}
			delay := func(at time.Duration) time.Duration {
				if tt.delay == nil {
					return 0
				}
				return tt.delay(at)
			}
			samples, newest := uint32(1<<32-48000), time.Duration(0) // of what is recorded
			var off, worst time.Duration
			pictured, heard := time.Duration(0), time.Duration(0) // where the newest stands, less its true time
			for at := time.Duration(0); at < 40*second; at += 20 * ms {
				if tt.recorded == nil || tt.recorded(at) {
					ts := c.tracks[frame.Audio].unwrap(samples)
					c.arrived(frame.Audio, ts, at+delay(at)+25*ms)
					heard = c.time(frame.Audio, ts) - at
					samples, newest = samples+960, at+20*ms
				}
				if at%(40*ms) == 0 {
					ts := c.tracks[frame.Video].unwrap(uint32(1<<31 + at*90/ms))
					c.arrived(frame.Video, ts, at+delay(at)+45*ms)
					pictured = c.time(frame.Video, ts) - at
				}
				if !tt.silent && at%second == 500*ms {
					c.report(frame.Video, ntp(3900000000*second+at), uint32(1<<31+at*90/ms))
				}
				if !tt.silent && at%(6*second) == 2*second+60*ms {
					c.report(frame.Audio, ntp(3900000000*second+at+20*ms), samples+uint32((at+20*ms-newest)*48/ms))
				}
				if off = (heard - pictured).Abs(); at >= tt.busy[0] && at < tt.busy[1] {
					if off > tt.during {
						t.Fatalf("at %v sound and picture are %v apart", at, off)
					}
				} else if at > 3*second {
					worst = max(worst, off)
				}
			}
			if limit := 40 * ms; worst >= limit {
				t.Errorf("sound and picture are up to %v apart", worst)
			}
		})
	}
}
