package session

import (
	"errors"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

func TestSoundBeforeTheFirstPictureIsDropped(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.edit = func(f *frame.Frame) bool { return f.Kind == frame.Audio || tag(*f) >= 15 }
	x.gop = 15 // the first key frame to arrive is number 15, at 500 ms
	x.run(4 * time.Second)
	s.Close(nil)
	if f := out.frames[frame.Video][0]; tag(f) != 15 || f.DTS != 0 {
		t.Errorf("first picture is %d at %v", tag(f), f.DTS)
	}
	first := out.frames[frame.Audio][0]
	near(t, "first sound", first.DTS, time.Duration(tag(first))*aac48-499*ms, 2*ms)
	if first.DTS > 25*ms {
		t.Errorf("first sound at %v", first.DTS)
	}
}

func TestStartsInMidGOP(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.edit = func(f *frame.Frame) bool { return f.Kind == frame.Audio || tag(*f) >= 7 }
	x.run(4 * time.Second)
	s.Close(nil)
	if f := out.frames[frame.Video][0]; tag(f) != 30 || f.DTS != 0 {
		t.Errorf("first picture is %d at %v", tag(f), f.DTS)
	}
	near(t, "sound", length(out, frame.Audio), 3*time.Second, 40*ms)
}

func TestAudioOnlyStartsAfterItsWait(t *testing.T) {
	t.Parallel()
	s, out := start(t, audio48)
	x := newSource(t, s, 0, aac48)
	x.run(900 * ms)
	if out.count[frame.Audio] > 0 {
		t.Error("started before the wait was over")
	}
	x.run(4100 * ms)
	s.Close(nil)
	if out.count[frame.Audio] != x.n[1] || out.frames[frame.Audio][0].DTS != 0 {
		t.Errorf("%d of %d frames, the first at %v", out.count[frame.Audio], x.n[1], out.frames[frame.Audio][0].DTS)
	}
	for n, f := range out.frames[frame.Audio] {
		if want := time.Duration((int64(n)*1024*int64(time.Second) + 24000) / 48000); f.DTS != want {
			t.Fatalf("frame %d at %v, want %v", n, f.DTS, want)
		}
	}
}

// the wait also ends in real time, for encoders whose clock crawls.
func TestAudioOnlyStartsAfterItsWaitInRealTime(t *testing.T) {
	t.Parallel()
	s, out := start(t, audio48)
	for n := range 3 {
		at := time.Duration(n) * aac48
		if err := s.Write(frame.Frame{
			Kind: frame.Audio, DTS: at, PTS: at, Received: epoch.Add(time.Duration(n) * 1500 * ms),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if out.count[frame.Audio] != 3 {
		t.Errorf("%d frames written", out.count[frame.Audio])
	}
	s.Close(nil)
}

func TestShortPublicationIsWrittenAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, configs := range map[string][]frame.Config{
		"audio": {audio48}, "video": {withRate(30)}, "both": {withRate(30), audio48},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := start(t, configs...)
			x := newSource(t, s, 0, 0)
			for _, c := range configs {
				if c.Kind == frame.Video {
					x.interval = fps30
				} else {
					x.step = aac48
				}
			}
			x.run(200 * ms)
			s.Close(nil)
			if out.count[0] != x.n[0] || out.count[1] != x.n[1] || x.n[0]+x.n[1] == 0 {
				t.Errorf("wrote %v of %v", out.count, x.n)
			}
		})
	}
}

func TestVideoJoinsLater(t *testing.T) {
	t.Parallel()
	s, out := start(t, audio48)
	x := newSource(t, s, 0, aac48)
	x.run(5 * time.Second)
	if err := s.Configure(withRate(30)); err != nil {
		t.Fatal(err)
	}
	x.interval, x.n[0] = fps30, 150
	x.clock[0] = 5 * time.Second
	x.run(5 * time.Second)
	s.Close(nil)
	if len(out.breaks) > 0 {
		t.Errorf("discontinuities %q", out.breaks)
	}
	near(t, "first picture", out.frames[frame.Video][0].DTS, 5*time.Second, 2*ms)
	checkSync(t, x, out, 3*ms)
	if want := []string{"configure audio", "configure video", "rate 30.000 true"}; !slices.Equal(out.log, want) {
		t.Errorf("calls %q", out.log)
	}
}

func TestAudioJoinsLater(t *testing.T) {
	t.Parallel()
	s, out := start(t, withRate(30))
	x := newSource(t, s, fps30, 0)
	x.run(5 * time.Second)
	if err := s.Configure(audio48); err != nil {
		t.Fatal(err)
	}
	x.step, x.n[1] = aac48, 235
	x.clock[1] = 235 * aac48
	x.run(5 * time.Second)
	s.Close(nil)
	if len(out.breaks) > 0 {
		t.Errorf("discontinuities %q", out.breaks)
	}
	checkSync(t, x, out, 3*ms)
}

// tracks whose clocks have nothing in common are put together by arrival.
func TestUnrelatedClocks(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.base[1] = 77 * time.Hour
	x.run(5 * time.Second)
	s.Close(nil)
	if len(out.breaks) > 0 {
		t.Errorf("discontinuities %q", out.breaks)
	}
	checkSync(t, x, out, 40*ms)
}

func TestParametersChange(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.run(3 * time.Second)
	same := withRate(30)
	if err := s.Configure(same); err != nil {
		t.Fatal(err)
	}
	x.run(time.Second)
	if len(out.breaks) != 0 {
		t.Fatal("equal parameters made a discontinuity")
	}
	other := withRate(25)
	other.SPS = append(slices.Clone(sps30), 0)
	if err := s.Configure(other); err != nil {
		t.Fatal(err)
	}
	x.interval = time.Second / 25
	x.n[0], x.gop = int(x.clock[0]*25/time.Second)+1, 1<<30
	x.clock[0] = time.Duration(x.n[0]) * x.interval
	x.gop = x.n[0] // the next one is a key frame
	x.run(3 * time.Second)
	s.Close(nil)
	want := []string{
		"configure video", "rate 30.000 true", "configure audio", "discontinuity", "configure video",
		"rate 25.000 true",
	}
	if !slices.Equal(out.log, want) {
		t.Errorf("calls %q", out.log)
	}
	near(t, "length", length(out, frame.Video), x.clock[0], 60*ms)
}

// new sound parameters wait for the picture, so that both renditions break at one place.
func TestSoundParametersChange(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.run(3*time.Second + 300*ms)
	other := frame.Config{Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x12, 0x10}, SampleRate: 44100, Channels: 2}
	if err := s.Configure(other); err != nil {
		t.Fatal(err)
	}
	x.step = 1024 * time.Second / 44100
	x.n[1] = int(x.clock[1] / x.step)
	x.run(3 * time.Second)
	s.Close(nil)
	want := []string{"configure video", "rate 30.000 true", "configure audio", "discontinuity", "configure audio"}
	if !slices.Equal(out.log, want) {
		t.Errorf("calls %q", out.log)
	}
	near(t, "sound missing", out.totalHoles[frame.Audio], 700*ms, 60*ms)
	for _, f := range out.frames[frame.Audio][len(out.frames[frame.Audio])-50:] {
		near(t, "frame", f.Duration, 1024*time.Second/44100, 1)
	}
	checkEndsInStep(t, x, out, 40*ms)
}

func TestAudioJitterIsIgnored(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	jitter := []time.Duration{0, 15 * ms, -12 * ms, 40 * ms, -20 * ms, 3 * ms, 0, -15 * ms}
	x.edit = func(f *frame.Frame) bool {
		if n := tag(*f); f.Kind == frame.Audio && n > 10 {
			f.DTS += jitter[n%len(jitter)]
		}
		return true
	}
	x.run(20 * time.Second)
	s.Close(nil)
	if st := s.Stats(); st.Holes > 0 || st.Dropped > 0 || len(out.breaks) > 0 {
		t.Errorf("%+v", st)
	}
	checkSync(t, x, out, 12*ms)
}

func TestAudioFollowsItsSource(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{
		"ahead": 300 * ms, "back": -300 * ms, "a frame ahead": 22 * ms, "two back": -43 * ms,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out, x := standard(t)
			x.run(5 * time.Second)
			x.base[1] += by
			x.run(10 * time.Second)
			s.Close(nil)
			if len(out.breaks) > 0 {
				t.Errorf("discontinuities %q", out.breaks)
			}
			checkEndsInStep(t, x, out, 25*ms)
		})
	}
}

func TestOutputErrorsEndTheSession(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.run(2 * time.Second)
	out.fail = errors.New("disk full")
	f := frame.Frame{Kind: frame.Audio, DTS: x.clock[1], PTS: x.clock[1], Received: epoch}
	if err := s.Write(f); !errors.Is(err, out.fail) {
		t.Errorf("error %v", err)
	}
	n := out.count
	if err := s.Write(f); !errors.Is(err, out.fail) {
		t.Errorf("later error %v", err)
	}
	s.Close(out.fail)
	if out.count != n || len(out.causes) != 1 {
		t.Errorf("wrote on after the error")
	}
}

func TestFramesWithoutParametersAreDropped(t *testing.T) {
	t.Parallel()
	s, out := start(t)
	for _, k := range []frame.Kind{frame.Video, frame.Audio, frame.Text, 200} {
		if err := s.Write(frame.Frame{Kind: k}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Configure(frame.Config{Kind: frame.Text}); err == nil {
		t.Error("a text track was taken")
	}
	s.Close(nil)
	if out.count != [2]int{} || s.Stats().Dropped != 4 {
		t.Errorf("%+v", s.Stats())
	}
}

// some encoders stamp their very first frame with 0 and the next ones with the time of day.
func TestOddFirstFrame(t *testing.T) {
	t.Parallel()
	for _, k := range []frame.Kind{frame.Video, frame.Audio} {
		for _, odd := range []time.Duration{0, 30 * time.Hour} {
			s, out, x := standard(t)
			x.base = [2]time.Duration{20 * time.Hour, 20 * time.Hour}
			x.edit = func(f *frame.Frame) bool {
				if f.Kind == k && tag(*f) == 0 {
					f.DTS, f.PTS = odd, odd
				}
				return true
			}
			x.run(5 * time.Second)
			s.Close(nil)
			if len(out.breaks) > 0 || out.count[0] != x.n[0] || out.count[1] < x.n[1]-1 {
				t.Errorf("%v %v: discontinuities %q, %v of %v", k, odd, out.breaks, out.count, x.n)
			}
			checkSync(t, x, out, 3*ms)
		}
	}
}

// a picture that stands still at a variable rate does not hold the sound's segments back.
func TestStillPicture(t *testing.T) {
	t.Parallel()
	s, out := start(t, withRate(0), audio48)
	steps := []time.Duration{33 * ms, 71 * ms, 17 * ms, 113 * ms}
	at, n := time.Duration(0), 0
	sound := time.Duration(0)
	until := func(d time.Duration) {
		for ; sound < d; sound += aac48 {
			stamp := sound.Truncate(ms)
			if err := s.Write(frame.Frame{
				Kind: frame.Audio, DTS: stamp, PTS: stamp, Received: epoch.Add(sound),
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	picture := func() {
		until(at)
		if err := s.Write(frame.Frame{
			Kind: frame.Video, DTS: at, PTS: at, Key: n%50 == 0, Received: epoch.Add(at),
		}); err != nil {
			t.Fatal(err)
		}
		at += steps[n%len(steps)]
		n++
	}
	for range 100 {
		picture()
	}
	if got := out.count[frame.Video]; got != n {
		t.Errorf("%d of %d pictures are written while the last one stands", got, n)
	}
	until(at + 1500*ms)
	at += 4 * time.Second
	for range 100 {
		picture()
	}
	s.Close(nil)
	if len(out.breaks) > 0 || out.count[frame.Video] != n {
		t.Errorf("discontinuities %q, %d of %d", out.breaks, out.count[frame.Video], n)
	}
	near(t, "picture", length(out, frame.Video), at, 150*ms)
}
