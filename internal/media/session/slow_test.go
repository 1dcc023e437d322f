package session

import (
	"fmt"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// slowSteps are encoders that send few pictures: from each one to the next.
var slowSteps = map[string][]time.Duration{
	"2 fps":              {500 * ms},
	"1.25 fps":           {800 * ms},
	"1 fps":              {time.Second},
	"1 fps, with jitter": {1003 * ms, 990 * ms, 1010 * ms, 996 * ms},
	"0.5 fps":            {2 * time.Second},
	"0.1 fps":            {10 * time.Second},
	"a talk":             {7 * time.Second, 12 * time.Second, 5 * time.Second, 9 * time.Second},
}

// slideShow sends pictures with these steps, each a key frame, and sound.
type slideShow struct {
	t     *testing.T
	s     *Session
	steps []time.Duration
	sound bool
	now   time.Duration // what time it is
	stamp time.Duration // what the encoder's clock is ahead of that
	n     [2]int
	sent  []time.Duration // when the picture that has a number was due
}

// send sends pictures and what sound there is up to the last of them. lost: none of them comes.
func (s *slideShow) send(pictures int, lost bool) {
	s.t.Helper()
	for range pictures {
		for sound := s.soundAt(); s.sound && sound < s.now; sound = s.soundAt() {
			s.write(frame.Audio, sound)
		}
		if !lost {
			s.write(frame.Video, s.now)
			s.sent = append(s.sent, s.now)
		}
		s.now += s.steps[s.n[frame.Video]%len(s.steps)]
		s.n[frame.Video]++
	}
}

func (s *slideShow) soundAt() time.Duration { return time.Duration(s.n[frame.Audio]) * aac48 }

func (s *slideShow) write(k frame.Kind, at time.Duration) {
	s.t.Helper()
	n := len(s.sent)
	if k == frame.Audio {
		n = s.n[k]
		s.n[k]++
	}
	stamp := (at + s.stamp).Truncate(ms)
	data := []byte{byte(n >> 16), byte(n >> 8), byte(n)}
	f := frame.Frame{Kind: k, DTS: stamp, PTS: stamp, Key: true, Data: data, Received: epoch.Add(at)}
	if err := s.s.Write(f); err != nil {
		s.t.Fatal(err)
	}
}

// kept checks that each picture is there, at its time.
func (s *slideShow) kept(out *checker) {
	s.t.Helper()
	if got := out.count[frame.Video]; got != len(s.sent) {
		s.t.Errorf("%d of %d pictures", got, len(s.sent))
	}
	for _, f := range out.frames[frame.Video] {
		near(s.t, fmt.Sprintf("picture %d", tag(f)), f.DTS, s.sent[tag(f)], 12*ms)
	}
}

// TestSlideShows: few pictures are a stream like any other, each of which keeps its time.
func TestSlideShows(t *testing.T) {
	t.Parallel()
	for name, steps := range slowSteps {
		for _, sound := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sound %v", name, sound), func(t *testing.T) {
				t.Parallel()
				s, out, x := newSlideShow(t, steps, sound)
				x.send(12, false)
				x.send(1, true) // lost
				x.send(6, false)
				s.Close(nil)
				x.kept(out)
				if len(out.breaks) > 0 {
					t.Errorf("discontinuities %q", out.breaks)
				}
			})
		}
	}
}

func newSlideShow(t *testing.T, steps []time.Duration, sound bool) (*Session, *checker, *slideShow) {
	t.Helper()
	configs := []frame.Config{videoC}
	if sound {
		configs = append(configs, audio48)
	}
	s, out := start(t, configs...)
	return s, out, &slideShow{t: t, s: s, steps: steps, sound: sound}
}

// TestSlideShowsInBursts: what a slow line brings late, and all at once, keeps its times where pictures come evenly.
func TestSlideShowsInBursts(t *testing.T) {
	t.Parallel()
	for name, steps := range slowSteps {
		if name == "a talk" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out, x := newSlideShow(t, steps, false)
			x.send(4, false)
			x.send(1, false)
			late := epoch.Add(x.now)
			for range 3 {
				stamp := x.now.Truncate(ms)
				f := frame.Frame{Kind: frame.Video, DTS: stamp, PTS: stamp, Key: true, Received: late}
				f.Data = []byte{0, 0, byte(len(x.sent))}
				if err := s.Write(f); err != nil {
					t.Fatal(err)
				}
				x.sent = append(x.sent, x.now)
				x.now += steps[x.n[frame.Video]%len(steps)]
				x.n[frame.Video]++
			}
			x.send(4, false)
			s.Close(nil)
			x.kept(out)
			if len(out.breaks) > 0 {
				t.Errorf("discontinuities %q", out.breaks)
			}
		})
	}
}

// TestSlideShowsThatJump: a clock that goes on elsewhere is no picture that lasts long.
func TestSlideShowsThatJump(t *testing.T) {
	t.Parallel()
	for name, steps := range slowSteps {
		for _, jump := range []time.Duration{time.Hour, 100 * time.Second, -time.Minute, -time.Hour} {
			for _, sound := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s by %v, sound %v", name, jump, sound), func(t *testing.T) {
					t.Parallel()
					s, out, x := newSlideShow(t, steps, sound)
					x.send(6, false)
					x.stamp = jump
					x.send(6, false)
					s.Close(nil)
					if len(out.breaks) != 1 {
						t.Errorf("discontinuities %q", out.breaks)
					}
					if got := out.count[frame.Video]; got != len(x.sent) {
						t.Errorf("%d of %d pictures", got, len(x.sent))
					}
					long := steps[0] // of the picture before, at most
					for _, d := range steps {
						long = max(long, d)
					}
					last := out.frames[frame.Video][len(out.frames[frame.Video])-1]
					near(t, "the last picture", last.DTS, x.sent[len(x.sent)-1], long+100*ms)
				})
			}
		}
	}
}
