package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

func standard(t testing.TB) (*Session, *checker, *source) {
	t.Helper()
	s, out := start(t, withRate(30), audio48)
	return s, out, newSource(t, s, fps30, aac48)
}

// length is the end of what was written of a kind.
func length(out *checker, k frame.Kind) time.Duration { return out.lastEnd[k] }

func near(t *testing.T, what string, got, want, slack time.Duration) {
	t.Helper()
	if abs(got-want) > slack {
		t.Errorf("%s is %v, want %v within %v", what, got, want, slack)
	}
}

func TestTimestampsStartAnywhere(t *testing.T) {
	t.Parallel()
	for _, base := range []time.Duration{0, 7 * ms, time.Hour, 1193 * time.Hour, -40 * time.Hour, (1<<32 - 2000) * ms} {
		t.Run(base.String(), func(t *testing.T) {
			t.Parallel()
			s, out, x := standard(t)
			x.base = [2]time.Duration{base, base}
			x.run(5 * time.Second)
			s.Close(nil)
			if f := out.frames[frame.Video][0]; f.DTS != 0 || tag(f) != 0 {
				t.Errorf("first frame %d at %v", tag(f), f.DTS)
			}
			near(t, "video", length(out, frame.Video), 5*time.Second, 40*ms)
			near(t, "audio", length(out, frame.Audio), 5*time.Second, 40*ms)
			checkSync(t, x, out, 2*ms)
		})
	}
}

// every jump that both tracks make is a discontinuity at a key frame, and no time passes on the output's clock.
func TestJumpOfAllTracks(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{
		2 * time.Second, 60 * time.Second, 100 * time.Hour, -600 * ms, -3 * time.Second, -time.Hour,
	} {
		for _, b := range []int{0, 2} {
			t.Run(fmt.Sprintf("%v with %d B-frames", jump, b), func(t *testing.T) {
				t.Parallel()
				s, out, x := standard(t)
				x.offset = time.Duration(b) * 33 * ms
				x.run(3*time.Second + 200*ms)
				x.base[0] += jump
				x.base[1] += jump
				x.run(4 * time.Second)
				s.Close(nil)
				if len(out.breaks) != 1 || !strings.Contains(out.breaks[0], "jumped") {
					t.Errorf("discontinuities %q", out.breaks)
				}
				near(t, "video", length(out, frame.Video), x.clock[0], 2*ms)
				near(t, "audio", length(out, frame.Audio), x.clock[1], 40*ms)
				if n := out.count[frame.Video]; n != x.n[0] {
					t.Errorf("%d of %d video frames", n, x.n[0])
				}
				checkSync(t, x, out, 40*ms)
			})
		}
	}
}

func TestJumpOfTheOnlyTrack(t *testing.T) {
	t.Parallel()
	for _, k := range []frame.Kind{frame.Video, frame.Audio} {
		for _, jump := range []time.Duration{3 * time.Second, -3 * time.Second} {
			t.Run(fmt.Sprint(k, jump), func(t *testing.T) {
				t.Parallel()
				s, out := start(t, withRate(30))
				x := newSource(t, s, fps30, 0)
				if k == frame.Audio {
					s, out = start(t, audio48)
					x = newSource(t, s, 0, aac48)
				}
				x.run(3 * time.Second)
				x.base[k] += jump
				x.run(3 * time.Second)
				s.Close(nil)
				if len(out.breaks) != 1 {
					t.Errorf("discontinuities %q", out.breaks)
				}
				near(t, "length", length(out, k), x.clock[k], 40*ms)
				if out.count[k] != x.n[k] {
					t.Errorf("%d of %d frames", out.count[k], x.n[k])
				}
			})
		}
	}
}

// a jump of one track while the other goes on is that track's: it stays where it is by arrival.
func TestJumpOfOneOfTwoTracks(t *testing.T) {
	t.Parallel()
	for _, k := range []frame.Kind{frame.Video, frame.Audio} {
		for _, jump := range []time.Duration{5 * time.Second, -5 * time.Second} {
			t.Run(fmt.Sprint(k, jump), func(t *testing.T) {
				t.Parallel()
				s, out, x := standard(t)
				x.run(3 * time.Second)
				x.base[k] += jump
				x.run(6 * time.Second)
				s.Close(nil)
				if len(out.breaks) != 1 {
					t.Errorf("discontinuities %q", out.breaks)
				}
				near(t, "video", length(out, frame.Video), x.clock[0], 60*ms)
				near(t, "audio", length(out, frame.Audio), x.clock[1], 60*ms)
				checkSync(t, x, out, 60*ms)
			})
		}
	}
}

// a single wild timestamp is put right and leaves no trace.
func TestGlitch(t *testing.T) {
	t.Parallel()
	for _, k := range []frame.Kind{frame.Video, frame.Audio} {
		for _, by := range []time.Duration{-time.Hour, -2 * time.Second, -100 * ms, 3 * time.Second, time.Hour} {
			t.Run(fmt.Sprint(k, by), func(t *testing.T) {
				t.Parallel()
				s, out, x := standard(t)
				x.edit = func(f *frame.Frame) bool {
					if f.Kind == k && tag(*f) == 70 {
						f.DTS, f.PTS = f.DTS+by, f.PTS+by
					}
					return true
				}
				x.run(6 * time.Second)
				s.Close(nil)
				if len(out.breaks) > 0 || out.count[k] != x.n[k] {
					t.Errorf("discontinuities %q, %d of %d frames", out.breaks, out.count[k], x.n[k])
				}
				checkSync(t, x, out, 3*ms)
			})
		}
	}
}

// lost frames leave a hole of whole intervals, at their place.
func TestLostFrames(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][2]int{
		"one": {40, 41}, "three": {40, 43}, "twenty": {40, 60}, "last of GOP": {59, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out, x := standard(t)
			x.edit = func(f *frame.Frame) bool {
				return f.Kind == frame.Audio || tag(*f) < lost[0] || tag(*f) >= lost[1]
			}
			x.run(4 * time.Second)
			s.Close(nil)
			for _, f := range out.frames[frame.Video] {
				if want := time.Duration(tag(f)) * time.Second / 30; abs(f.DTS-want) > 1 {
					t.Fatalf("frame %d at %v, want %v", tag(f), f.DTS, want)
				}
			}
			if n := s.Stats().Lost; n != int64(lost[1]-lost[0]) || len(out.breaks) > 0 {
				t.Errorf("%d lost, discontinuities %q", n, out.breaks)
			}
		})
	}
}

// pictures missing for long while sound goes on are a hole, and so is sound missing while the picture goes on.
func TestOneTrackPauses(t *testing.T) {
	t.Parallel()
	for _, k := range []frame.Kind{frame.Video, frame.Audio} {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			s, out, x := standard(t)
			x.edit = func(f *frame.Frame) bool { return f.Kind != k || f.DTS < 2*time.Second || f.DTS >= 7*time.Second }
			x.run(10 * time.Second)
			s.Close(nil)
			if len(out.breaks) > 0 {
				t.Errorf("discontinuities %q", out.breaks)
			}
			near(t, "hole", out.totalHoles[k], 5*time.Second, 50*ms)
			checkSync(t, x, out, 3*ms)
		})
	}
}

// an encoder that stops for 10 s: if its clock stood still nothing happened, if it ran on that is a jump.
func TestStall(t *testing.T) {
	t.Parallel()
	for _, runsOn := range []bool{false, true} {
		t.Run(fmt.Sprintf("clock runs on %v", runsOn), func(t *testing.T) {
			t.Parallel()
			s, out, x := standard(t)
			x.run(5 * time.Second)
			x.wall = x.wall.Add(10 * time.Second)
			want := 0
			if runsOn {
				x.base[0] += 10 * time.Second
				x.base[1] += 10 * time.Second
				want = 1
			}
			x.run(5 * time.Second)
			s.Close(nil)
			if len(out.breaks) != want {
				t.Errorf("discontinuities %q", out.breaks)
			}
			near(t, "video", length(out, frame.Video), 10*time.Second, 70*ms)
			checkSync(t, x, out, 70*ms)
		})
	}
}

// small steps back never stop the stream; the tracks stay together.
func TestSmallStepBack(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-40 * ms, -100 * ms, -300 * ms, -490 * ms} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			s, out, x := standard(t)
			x.run(3*time.Second + 10*ms)
			x.base[0] += by
			x.base[1] += by
			x.run(6 * time.Second)
			s.Close(nil)
			if len(out.breaks) > 0 {
				t.Errorf("discontinuities %q", out.breaks)
			}
			if got := length(out, frame.Video); got < 8400*ms || got > 9600*ms {
				t.Errorf("length %v", got)
			}
			checkEndsInStep(t, x, out, 40*ms)
		})
	}
}

// checkEndsInStep compares how far the last frames of both kinds are from where the encoder stamped them relative to
// each other.
func checkEndsInStep(t *testing.T, x *source, out *checker, limit time.Duration) {
	t.Helper()
	off := func(k frame.Kind) time.Duration {
		f := out.frames[k][len(out.frames[k])-1]
		for _, s := range x.sent[k] {
			if s.tag == tag(f) {
				return f.DTS - s.stamp
			}
		}
		return 0
	}
	if d := off(frame.Video) - off(frame.Audio); abs(d) > limit {
		t.Errorf("sound and picture end %v apart from how they came", d)
	}
}

func TestDriftOverDays(t *testing.T) {
	t.Parallel()
	// parts per million by which the encoder's clocks run slow
	for name, tt := range map[string]struct{ video, audio float64 }{
		"picture slow":    {80, 0},
		"picture fast":    {-80, 0},
		"sound slow":      {0, 120},
		"sound fast":      {0, -120},
		"apart":           {60, -90},
		"NTSC said as 30": {1000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, x := standard(t)
			out.quiet = true
			x.interval += time.Duration(float64(x.interval) * tt.video / 1e6)
			x.step += time.Duration(float64(x.step) * tt.audio / 1e6)
			hours := 1
			for range hours * 60 {
				x.run(time.Minute)
				x.sent = [2][]sent{}
				v, a := length(out, frame.Video)-x.clock[0], length(out, frame.Audio)-x.clock[1]
				if abs(v-a) > 40*ms || abs(v) > 20*ms || abs(a) > 40*ms {
					t.Fatalf("after %v the picture is off by %v, the sound by %v", x.clock[0], v, a)
				}
			}
			if len(out.breaks) > 0 || len(out.rates) != 1 {
				t.Errorf("discontinuities %q, rates %v", out.breaks, out.rates)
			}
		})
	}
}

func TestLongRunIsExact(t *testing.T) {
	t.Parallel()
	s, out := start(t, withRate(30000.0/1001), audio48)
	out.quiet = true
	x := newSource(t, s, 0, 0)
	// a day in steps of 20 frames would take as long as a day of 1.5 fps: send those
	frames := int64(30 * 3600 * 24 / 20)
	for n := range frames {
		at := time.Duration(n * 1001 * int64(time.Second) / 30000).Truncate(ms)
		f := frame.Frame{Kind: frame.Video, DTS: at, PTS: at, Key: n%30 == 0, Received: epoch.Add(at)}
		if err := x.s.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	s.Close(nil)
	if want := time.Duration((frames*1001*int64(time.Second) + 15000) / 30000); length(out, frame.Video) != want {
		t.Errorf("ends at %v, want %v", length(out, frame.Video), want)
	}
}

func TestVariableRate(t *testing.T) {
	t.Parallel()
	s, out := start(t, withRate(0), audio48)
	steps := []time.Duration{33 * ms, 70 * ms, 17 * ms, 120 * ms, 50 * ms, 410 * ms, 33 * ms}
	var at []time.Duration
	for n, now := 0, time.Duration(0); n < 200; n++ {
		at = append(at, now)
		f := frame.Frame{
			Kind: frame.Video, DTS: now, PTS: now, Key: n%20 == 0, Data: []byte{0, 0, byte(n)},
			Received: epoch.Add(now),
		}
		if err := s.Write(f); err != nil {
			t.Fatal(err)
		}
		now += steps[n%len(steps)]
	}
	if got := out.count[frame.Video]; got != 200 {
		t.Errorf("%d frames are written when they have come", got)
	}
	s.Close(nil)
	if out.rates[0].constant || out.count[frame.Video] != 200 {
		t.Errorf("rate %+v, %d frames", out.rates[0], out.count[frame.Video])
	}
	for n, f := range out.frames[frame.Video] {
		if f.DTS != at[n] || f.PTS != at[n] || f.Duration > 17*ms {
			t.Fatalf("frame %d at %v for %v, came at %v", n, f.DTS, f.Duration, at[n])
		}
	}
}

func TestRateChanges(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.run(5 * time.Second)
	// 60 frames a second from here, and nobody says so
	at := x.clock[0]
	for n := range 600 {
		d := at + (time.Duration(n) * time.Second / 60).Truncate(ms)
		f := frame.Frame{Kind: frame.Video, DTS: d, PTS: d, Key: n%60 == 0, Received: epoch.Add(d)}
		if err := s.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	s.Close(nil)
	if n := len(out.rates); n != 3 || out.rates[1].constant || !out.rates[2].constant || out.rates[2].fps != 60 {
		t.Errorf("rates %+v", out.rates)
	}
	near(t, "length", length(out, frame.Video), 15*time.Second, 40*ms)
}

func TestPTSBeforeDTS(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.offset = -50 * ms
	x.run(3 * time.Second)
	s.Close(nil)
	for n, f := range out.frames[frame.Video] {
		if f.PTS != f.DTS {
			t.Fatalf("frame %d: PTS %v, DTS %v", n, f.PTS, f.DTS)
		}
	}
	// what was shown with the sound at one time is still: the sound moved along
	a := out.frames[frame.Audio][10]
	near(t, "sound", a.DTS, time.Duration(tag(a))*aac48+50*ms, 2*ms)
}

func TestOffsetsOfBFramesStandOnTheGrid(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	offsets := []time.Duration{67 * ms, 133 * ms, 33 * ms, 0}
	x.edit = func(f *frame.Frame) bool {
		if f.Kind == frame.Video {
			f.PTS = f.DTS + offsets[tag(*f)%4]
		}
		return true
	}
	x.run(3 * time.Second)
	s.Close(nil)
	places := []int{2, 4, 1, 0} // in frames
	for n, f := range out.frames[frame.Video] {
		if want := time.Duration(n+places[n%4]) * time.Second / 30; abs(f.PTS-want) > 1 {
			t.Fatalf("frame %d shown at %v, want %v", n, f.PTS, want)
		}
	}
}
