package slate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/codec/opus"
	"millrace/internal/media/frame"
)

var (
	picture = frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: []byte{0x67, 1}, PPS: []byte{0x68, 1}, Width: 320, Height: 180,
		FrameRate: 10,
	}
	sound = frame.Config{Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x11, 0x90}, SampleRate: 48000, Channels: 2}
	still = &Still{
		Config: frame.Config{
			Kind: frame.Video, Codec: frame.H264, SPS: []byte{0x67, 9}, PPS: []byte{0x68, 9}, Width: 320, Height: 180,
		}, FPS: 10,
		Samples: slices.Repeat([][]byte{{9}}, 20),
	}
)

// stretch is what one output was given.
type stretch struct {
	slate    bool
	started  time.Time
	configs  []frame.Config
	frames   [2][]frame.Frame
	breaks   int
	stands   int // pictures before the last one stands; 0: it does not
	closed   bool
	fps      float64
	constant bool
}

func (s *stretch) Configure(c frame.Config) error { s.configs = append(s.configs, c); return nil }
func (s *stretch) Discontinuity(string) error     { s.breaks++; return nil }
func (s *stretch) Rate(fps float64, fixed bool) error {
	s.fps, s.constant = fps, fixed
	return nil
}

func (s *stretch) Write(f frame.Frame) error {
	s.frames[f.Kind] = append(s.frames[f.Kind], f)
	return nil
}

func (s *stretch) Cut(slate bool) {
	if slate {
		s.stands = len(s.frames[frame.Video])
	}
}

func (s *stretch) Close(error) error { s.closed = true; return nil }

// long is how much of a kind there is.
func (s *stretch) long(k frame.Kind) time.Duration {
	n := len(s.frames[k])
	if n == 0 {
		return 0
	}
	last := s.frames[k][n-1]
	return last.DTS + last.Duration - s.frames[k][0].DTS
}

// bench drives a Writer on the bubble's clock.
type bench struct {
	*Writer
	t         *testing.T
	stretches []*stretch
	stood     []time.Duration // when the last picture began to stand
	began     time.Time
	wake      time.Time
	lasts     time.Duration // players can wait for so long
	pub       *Publication
	clock     time.Duration // the session's
	sounds    time.Duration
	pictures  int64
	held      bool  // nothing may be written
	taken     int64 // bytes of room
	most      int64 // that there is; 0: without bound
}

func run(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, began: time.Now()}
		b.Writer = New(Options{
			Open: func(slate bool, started time.Time) Output {
				if n := len(b.stretches); n > 0 && !b.stretches[n-1].closed {
					t.Error("two stretches are open")
				}
				b.stretches = append(b.stretches, &stretch{slate: slate, started: started})
				return b.stretches[len(b.stretches)-1]
			},
			Stands: func(started time.Time) { b.stood = append(b.stood, started.Sub(b.began)) },
			Limit:  func() time.Duration { return 330 * time.Millisecond }, Now: time.Now,
			Broken: func(err error) { t.Error(err) },
			Lasts:  func() time.Duration { return b.lasts }, Sooner: func() { b.wake = time.Now() },
			Held: func() bool { return b.held },
			Room: func(bytes int64) bool {
				if b.most > 0 && b.taken+bytes > b.most {
					return false
				}
				b.taken += bytes
				return true
			},
		})
		b.Allow(true)
		b.wake = time.Now()
		test(b)
		b.Stop()
		b.sane()
	})
}

// pass lets time pass, the owner's goroutine doing its duty.
func (b *bench) pass(d time.Duration) {
	end := time.Now().Add(d)
	for {
		if !b.wake.After(time.Now()) {
			b.wake = time.Now().Add(b.Tick())
		}
		if b.wake.After(end) {
			break
		}
		time.Sleep(time.Until(b.wake))
	}
	time.Sleep(time.Until(end))
}

func (b *bench) attach(kinds ...frame.Config) {
	b.pub = b.Attach()
	b.clock, b.sounds, b.pictures = 0, 0, 0
	b.pub.Began(time.Now())
	for _, c := range kinds {
		b.must(b.pub.Configure(c))
		if c.Kind == frame.Video {
			b.must(b.pub.Rate(10, true))
		}
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Error(err)
	}
}

// send is an encoder in real time: ten pictures a second, a key frame each second, and sound.
func (b *bench) send(d time.Duration, kinds ...frame.Kind) {
	for end := b.clock + d; b.clock < end; b.clock += 100 * time.Millisecond {
		b.write(kinds...)
		b.pass(100 * time.Millisecond)
	}
}

// begun is an encoder that has sent three seconds, and the still is there.
func (b *bench) begun() {
	b.attach(picture, sound)
	b.send(3*time.Second, frame.Video, frame.Audio)
	b.Use(still)
}

// write gives the frames of the next 100 ms.
func (b *bench) write(kinds ...frame.Kind) {
	const step = 100 * time.Millisecond
	if slices.Contains(kinds, frame.Video) {
		b.must(b.pub.Write(frame.Frame{
			Kind: frame.Video, DTS: b.clock, PTS: b.clock + step, Duration: step, Key: b.clock%time.Second == 0,
			Data: []byte{1}, Received: time.Now(),
		}))
	}
	for ; b.sounds < b.clock+step; b.sounds += 1024 * time.Second / 48000 {
		if slices.Contains(kinds, frame.Audio) {
			b.must(b.pub.Write(frame.Frame{
				Kind: frame.Audio, DTS: b.sounds, PTS: b.sounds, Duration: 1024 * time.Second / 48000, Key: true,
				Data: []byte{2}, Received: time.Now(),
			}))
		}
	}
}

func (b *bench) leave() { b.must(b.pub.Close(nil)) }

// stuck is an encoder whose clock goes on while nothing comes.
func (b *bench) skip(d time.Duration) {
	b.clock += d
	b.sounds += d
}

// sane holds of whatever happens: in each stretch the times of a kind only grow, nothing overlaps, and no hole is left
// in the sound.
func (b *bench) sane() {
	b.t.Helper()
	for i, s := range b.stretches {
		if !s.closed {
			b.t.Errorf("stretch %d was not closed", i)
		}
		for k, frames := range s.frames {
			for j := 1; j < len(frames); j++ {
				f, last := frames[j], frames[j-1]
				if f.DTS < last.DTS+last.Duration-time.Microsecond || f.PTS < f.DTS {
					b.t.Errorf("stretch %d, kind %d, frame %d: %v (shown %v) after one that ends at %v", i, k, j, f.DTS,
						f.PTS, last.DTS+last.Duration)
				}
				if k == int(frame.Audio) && f.DTS > last.DTS+last.Duration+22*time.Millisecond {
					b.t.Errorf("stretch %d: a hole of %v in the sound", i, f.DTS-last.DTS-last.Duration)
				}
				if s.slate && f.PTS <= last.PTS {
					b.t.Errorf("stretch %d: presented at %v after %v", i, f.PTS, last.PTS)
				}
			}
		}
	}
}

// summary is the stretches in short.
func (b *bench) summary() []string {
	var out []string
	for _, s := range b.stretches {
		kind := "content"
		if s.slate {
			kind = "slate"
		}
		out = append(out,
			fmt.Sprintf("%s at %.1f: %.1f/%.1f", kind, s.started.Sub(b.began).Seconds(), s.long(frame.Video).Seconds(),
				s.long(frame.Audio).Seconds()))
	}
	return out
}

func (b *bench) want(want ...string) {
	b.t.Helper()
	if got := b.summary(); !slices.Equal(got, want) {
		b.t.Errorf("stretches are\n\t%q\nwant\n\t%q", got, want)
	}
}

func TestWriterAway(t *testing.T) {
	t.Parallel()
	run(t, func(b *bench) {
		b.attach(picture, sound)
		b.send(3*time.Second, frame.Video, frame.Audio)
		if s, wants := b.Wants(); !wants || s != still.shape() {
			t.Errorf("wants %+v, %t", s, wants)
		}
		b.Use(still)
		b.leave()
		b.pass(400 * time.Millisecond)
		b.want("content at 0.0: 3.0/3.0") // for half a second nothing is decided
		b.pass(9600 * time.Millisecond)
		b.attach(picture, sound)
		b.pass(2 * time.Second) // connected, and sends nothing yet
		b.send(2*time.Second, frame.Video, frame.Audio)
		// at real time throughout
		b.want("content at 0.0: 3.5/3.6", "slate at 3.5: 11.5/11.5", "content at 15.0: 2.0/2.0")
		s := b.stretches[1]
		if c := s.configs; len(c) != 2 || !same(c[0], still.Config) || !same(c[1], sound) || s.fps != 10 ||
			!s.constant {
			t.Errorf("the slate is described as %+v, %v", c, s.fps)
		}
		v := s.frames[frame.Video]
		if v[0].PTS != 100*time.Millisecond || s.frames[frame.Audio][0].PTS != v[0].PTS ||
			!v[0].Received.Equal(s.started) || !v[20].Key || v[21].Key {
			t.Errorf("the slate's pictures begin %+v", v[:2])
		}
		if got := b.stretches[2].frames[frame.Video][0]; string(got.Data) !=
			"\x00\x00\x00\x02\x67\x01\x00\x00\x00\x02\x68\x01\x01" {
			t.Errorf("the first key frame after the slate is % x", got.Data)
		}
	})
}

// TestLastPictureIsSlate tells what an encoder sent from what stands in for it, but for sound that goes on alone.
func TestLastPictureIsSlate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sound  time.Duration // behind the last picture
		stands int
		stood  []time.Duration
	}{
		"both end":      {0, 30, []time.Duration{3 * time.Second}},
		"sound goes on": {500 * time.Millisecond, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				b.begun()
				b.send(tt.sound, frame.Audio)
				b.leave()
				b.pass(3 * time.Second)
				if s := b.stretches[0]; s.stands != tt.stands || len(s.frames[frame.Video]) <= 30 ||
					!slices.Equal(b.stood, tt.stood) {
					t.Errorf("the last picture stands behind %d of %d, since %v", s.stands, len(s.frames[frame.Video]),
						b.stood)
				}
			})
		})
	}
}

// TestWriterBack has a session look at the first frames of an encoder that is back: what has come already is shown
// where it came, and the slate is as long as the encoder was away.
func TestWriterBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away, looks time.Duration
		want        []string
	}{
		"looks for a second": {
			2500 * time.Millisecond, time.Second,
			[]string{"content at 0.0: 3.5/3.6", "slate at 3.5: 2.0/2.0", "content at 5.5: 2.0/2.0"},
		},
		"before there was slate": {
			300 * time.Millisecond, time.Second,
			[]string{"content at 0.0: 3.0/3.1", "content at 3.3: 2.0/2.0"},
		},
		"nothing follows for too long": {
			2500 * time.Millisecond, 5 * time.Second,
			[]string{"content at 0.0: 3.5/3.6", "slate at 3.5: 6.9/6.9", "content at 10.4: 2.0/2.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				b.begun()
				b.leave()
				b.pass(tt.away)
				b.attach(picture, sound)
				came := time.Now()
				b.pub.Back(came)
				b.pass(tt.looks)
				for i := range 20 {
					at := b.clock
					b.must(b.pub.Write(frame.Frame{
						Kind: frame.Video, DTS: at, PTS: at + 100*time.Millisecond, Duration: 100 * time.Millisecond,
						Key: i == 0, Data: []byte{1}, Received: came.Add(at),
					}))
					b.write(frame.Audio)
					b.clock += 100 * time.Millisecond
				}
				b.want(tt.want...)
			})
		})
	}
}

func TestWriterGaps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		play func(b *bench)
		want []string
	}{
		"a moment without anything leaves no trace": {func(b *bench) {
			b.pass(450 * time.Millisecond)
			b.send(time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 4.0/4.0"}},
		"a connection that is stuck, and delivers what has piled up": {func(b *bench) {
			b.send(300*time.Millisecond, frame.Video, frame.Audio)
			b.pass(2900 * time.Millisecond)
			for range 30 { // what was meant to come meanwhile comes at once
				b.write(frame.Video, frame.Audio)
				b.clock += 100 * time.Millisecond
				b.pass(time.Millisecond)
			}
			b.send(2*time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 3.8/3.9", "slate at 3.8: 2.4/2.4", "content at 6.2: 2.3/2.2"}},
		"an encoder that stops, its clock with it": {func(b *bench) {
			b.pass(2900 * time.Millisecond)
			b.send(2*time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 3.5/3.6", "slate at 3.5: 2.4/2.4", "content at 5.9: 2.0/1.9"}},
		"frames that were never sent": {func(b *bench) {
			b.pass(2900 * time.Millisecond)
			b.skip(3 * time.Second)
			b.send(2*time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 3.5/3.6", "slate at 3.5: 2.4/2.4", "content at 5.9: 2.0/1.9"}},
		"media comes back between key frames": {func(b *bench) {
			b.pass(2 * time.Second)
			b.skip(2500 * time.Millisecond)
			b.send(2500*time.Millisecond, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 3.5/3.6", "slate at 3.5: 2.0/2.0", "content at 5.5: 2.0/1.9"}},
		"only sound comes": {func(b *bench) {
			b.send(5*time.Second, frame.Audio)
			b.send(2*time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 10.0/10.0"}},
		"only pictures come": {func(b *bench) {
			b.send(5*time.Second, frame.Video)
			b.send(2*time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 10.0/10.0"}},
		"only pictures come, to the end": {func(b *bench) {
			b.send(5*time.Second, frame.Video)
			b.leave()
		}, []string{"content at 0.0: 8.0/8.0"}},
		"the next encoder sends no sound": {func(b *bench) {
			b.leave()
			b.attach(picture)
			b.send(5*time.Second, frame.Video)
		}, []string{"content at 0.0: 3.0/3.1", "content at 3.0: 5.0/4.9"}},
		"the next encoder sends sound alone": {func(b *bench) {
			b.leave()
			b.pass(2 * time.Second)
			b.attach(sound)
			b.send(5*time.Second, frame.Audio)
		}, []string{"content at 0.0: 3.5/3.6", "slate at 3.5: 1.5/1.5", "content at 5.0: 4.8/5.0"}},
		"an encoder that flaps": {func(b *bench) {
			for range 5 {
				b.leave()
				b.pass(100 * time.Millisecond)
				b.attach(picture, sound)
				b.send(200*time.Millisecond, frame.Video, frame.Audio)
			}
		}, []string{
			"content at 0.0: 3.0/3.1", "content at 3.1: 0.2/0.3", "content at 3.4: 0.2/0.3", "content at 3.7: 0.2/0.3",
			"content at 4.0: 0.2/0.3", "content at 4.3: 0.2/0.2",
		}},
		"slate is not wanted any more": {func(b *bench) {
			b.pass(3 * time.Second)
			b.Allow(false)
			b.pass(3 * time.Second)
		}, []string{"content at 0.0: 3.5/3.6", "slate at 3.5: 2.4/2.4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				b.begun()
				tt.play(b)
				b.want(tt.want...)
			})
		})
	}
}

// TestWriterWaits has slate wait for as long as players can while the encoder's connection is open: what comes until
// then goes on where it stopped. When the connection is gone half a second is enough.
func TestWriterWaits(t *testing.T) {
	t.Parallel()
	deliver := func(b *bench, long time.Duration) { // what has piled up, at once
		for end := b.clock + long; b.clock < end; b.clock += 100 * time.Millisecond {
			b.write(frame.Video, frame.Audio)
		}
	}
	for name, tt := range map[string]struct {
		play func(b *bench)
		want []string
	}{
		"what is late comes before it is missed": {func(b *bench) {
			b.send(300*time.Millisecond, frame.Video, frame.Audio)
			b.pass(1800 * time.Millisecond)
			deliver(b, 1800*time.Millisecond)
			b.send(time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 6.1/6.1"}},
		"it comes after that": {func(b *bench) {
			b.send(300*time.Millisecond, frame.Video, frame.Audio)
			b.pass(2100 * time.Millisecond)
			deliver(b, 2100*time.Millisecond)
			b.send(time.Second, frame.Video, frame.Audio)
		}, []string{"content at 0.0: 3.8/3.9", "slate at 3.8: 1.6/1.6", "content at 5.4: 1.4/1.3"}},
		"the connection is closed meanwhile": {func(b *bench) {
			b.pass(time.Second)
			b.want("content at 0.0: 3.0/3.0")
			b.leave()
			b.pass(lateness)
			b.want("content at 0.0: 3.5/3.6", "slate at 3.5: 0.6/0.6")
		}, []string{"content at 0.0: 3.5/3.6", "slate at 3.5: 0.6/0.6"}},
		"another one takes its place, and sends nothing": {func(b *bench) {
			b.attach(picture, sound)
			b.pass(time.Second)
		}, []string{"content at 0.0: 3.5/3.6", "slate at 3.5: 0.4/0.4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				b.lasts = 2 * time.Second
				b.begun()
				tt.play(b)
				b.want(tt.want...)
			})
		})
	}
}

// TestFillerWithoutStill shows the last key frame for as long as there is nothing better.
func TestWriterWithoutStill(t *testing.T) {
	t.Parallel()
	run(t, func(b *bench) {
		b.attach(picture, sound)
		b.send(3*time.Second, frame.Video, frame.Audio)
		b.leave()
		b.pass(5 * time.Second)
		b.Use(still)
		b.pass(5 * time.Second)
		if n := len(b.stretches); n != 3 || !b.stretches[1].slate || !b.stretches[2].slate {
			t.Fatalf("stretches: %q", b.summary())
		}
		for _, f := range b.stretches[1].frames[frame.Video] {
			if !f.Key || string(f.Data) != "\x01" || f.Duration > 330*time.Millisecond {
				t.Errorf("shown instead: %+v", f)
			}
		}
		total := b.stretches[1].long(frame.Video) + b.stretches[2].long(frame.Video)
		if d := total - 9500*time.Millisecond; d < -300*time.Millisecond || d > 300*time.Millisecond {
			t.Errorf("%v of slate in 10 s", total)
		}
	})
}

// TestFillerSlowPictures takes a picture every second for what it is.
func TestWriterSlowPictures(t *testing.T) {
	t.Parallel()
	run(t, func(b *bench) {
		b.attach(picture)
		b.Use(still)
		for i := range 10 {
			at := time.Duration(i) * time.Second
			b.must(b.pub.Write(frame.Frame{
				Kind: frame.Video, DTS: at, PTS: at, Duration: time.Second, Key: true, Data: []byte{1},
				Received: time.Now(),
			}))
			b.pass(time.Second)
		}
		b.want("content at 0.0: 10.0/0.0")
	})
}

// A process that stood still for a second, with all that encoders sent meanwhile, has not lost them; one that stood
// still while they went away shows the slate a moment later.
func TestWriterHeldUp(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		run(t, func(b *bench) {
			both := []frame.Kind{frame.Video, frame.Audio}
			b.attach(picture, sound)
			b.Use(still)
			b.send(2*time.Second, both...)
			for range 2 {
				time.Sleep(time.Second)
				b.pass(0)
				for end := b.clock + time.Second; !away && b.clock < end; b.clock += 100 * time.Millisecond {
					b.write(both...)
				}
				b.pass(200 * time.Millisecond)
			}
			if shown := b.slate != nil; shown != away {
				t.Errorf("away %v: slate is shown: %v", away, shown)
			}
			if n := len(b.stretches); !away && n != 1 {
				t.Errorf("%d stretches", n)
			}
		})
	}
}

// TestSoundLate has sound that was announced begin late, where no slate is wanted: there is silence from the first
// picture on. A stream whose encoder has announced none has none.
func TestSoundLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		announced []frame.Config
		want      string
	}{
		"announced": {[]frame.Config{picture, sound}, "content at 0.0: 4.0/4.0"},
		"not":       {[]frame.Config{picture}, "content at 0.0: 4.0/0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				b.Allow(false)
				b.attach(tt.announced...)
				b.send(4*time.Second, frame.Video)
				b.leave()
				b.want(tt.want)
			})
		})
	}
}

// TestWriterOff has no slate in a pause. Sound that stays away while pictures go on is filled in all the same.
func TestWriterOff(t *testing.T) {
	t.Parallel()
	run(t, func(b *bench) {
		b.Allow(false)
		b.attach(picture, sound)
		b.Use(still)
		b.send(2*time.Second, frame.Video, frame.Audio)
		b.pass(4 * time.Second)
		b.skip(500 * time.Millisecond)
		b.send(2*time.Second, frame.Video)
		b.leave()
		b.pass(time.Minute)
		b.want("content at 0.0: 4.5/4.6")
	})
}

// TestFillerResumes shows slate in what an earlier process has recorded.
func TestWriterResumes(t *testing.T) {
	t.Parallel()
	run(t, func(b *bench) {
		b.Resume(time.Now(), picture, sound)
		b.pass(2 * time.Second)
		b.want()
		b.Use(still)
		b.pass(2 * time.Second)
		b.want("slate at 0.0: 3.9/3.9")
	})
}

// TestFirstPictureBehindACrash carries its parameter sets, whatever was recorded last; those behind it do not.
func TestFirstPictureBehindACrash(t *testing.T) {
	t.Parallel()
	sets := string(withSets(&picture, nil))
	for name, crashed := range map[string]bool{"a crash": true, "nothing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				if crashed {
					b.Resume(time.Now(), picture, sound)
				}
				b.attach(picture, sound)
				b.send(3*time.Second, frame.Video, frame.Audio)
				first := true
				for _, f := range b.stretches[0].frames[frame.Video] {
					if got := strings.HasPrefix(string(f.Data), sets); got != (crashed && first) {
						t.Errorf("the picture at %v has parameter sets: %v", f.DTS, got)
					}
					first = false
				}
				if first {
					t.Error("nothing is written")
				}
			})
		})
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	stereo, err := opus.Header(2)
	if err != nil {
		t.Fatal(err)
	}
	flacInfo := append([]byte{0x12, 0, 0x12, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0xc4, 0x42, 0xf0}, make([]byte, 20)...)
	for name, tt := range map[string]struct {
		config frame.Config
		want   time.Duration // of a packet; 0: none
		rest   time.Duration // of the packet that fits a hole of 7 ms
	}{
		"AAC, stereo": {sound, 1024 * time.Second / 48000, 0},
		"AAC, 44.1 kHz mono": {
			frame.Config{Codec: frame.AAC, ASC: []byte{0x12, 0x08}}, 1024 * time.Second / 44100, 0,
		},
		"AAC, nonsense": {frame.Config{Codec: frame.AAC}, 0, 0},
		"Opus, stereo": {
			frame.Config{Codec: frame.Opus, Header: stereo}, 20 * time.Millisecond, 5 * time.Millisecond,
		},
		"Opus, nonsense": {frame.Config{Codec: frame.Opus}, 0, 0},
		"FLAC": {
			frame.Config{Codec: frame.FLAC, Header: flacInfo, SampleRate: 44100, Channels: 2},
			4608 * time.Second / 44100, 309 * time.Second / 44100,
		},
		"FLAC, nonsense": {frame.Config{Codec: frame.FLAC, SampleRate: 44100, Channels: 2}, 0, 0},
		"AC-3": {
			frame.Config{Codec: frame.AC3, Header: []byte{0x10, 0x3d, 0xe0}, SampleRate: 48000, Channels: 6},
			32 * time.Millisecond, 0,
		},
		"AC-3, nonsense": {
			frame.Config{Codec: frame.AC3, Header: []byte{0xff, 0xff, 0xff}, SampleRate: 48000}, 0, 0,
		},
		"AC-3, nothing": {frame.Config{Codec: frame.AC3, SampleRate: 48000}, 0, 0},
		"MP3": {
			frame.Config{Codec: frame.MP3, SampleRate: 48000, Channels: 2}, 24 * time.Millisecond, 0,
		},
		"MP3, nonsense":        {frame.Config{Codec: frame.MP3, SampleRate: 1234, Channels: 2}, 0, 0},
		"no sound":             {picture, 0, 0},
		"something else again": {frame.Config{Codec: "x"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ok := SilenceOf(tt.config)
			if ok != (tt.want > 0) || ok && (math.Abs(float64(s.at(1)-tt.want)) > 1 || len(s.Packet) == 0) {
				t.Errorf("%v: %v, want %v", ok, s.at(1), tt.want)
			}
			if !ok {
				return
			}
			if p, long := s.fill(7 * time.Millisecond); (p != nil) != (tt.rest > 0) ||
				math.Abs(float64(long-tt.rest)) > 1 {
				t.Errorf("for 7 ms there are %v, want %v", long, tt.rest)
			}
			if p, _ := s.fill(s.at(1)); p != nil {
				t.Error("a whole packet is no rest")
			}
		})
	}
}

// TestFillerLatePictures has pictures that come seconds behind their sound, as from a browser on a machine that is too
// busy, and stop again and again for more than is waited for: what is filled in does not take their place for good.
func TestWriterLatePictures(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, time.Second, 3 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			t.Parallel()
			run(t, func(b *bench) {
				const step = 100 * time.Millisecond
				b.attach(picture, sound)
				b.Use(still)
				next := time.Duration(0) // picture
				for ; b.clock < 24*time.Second; b.clock += step {
					b.write(frame.Audio)
					for stops := b.clock%(4*time.Second) >= 2500*time.Millisecond; !stops &&
						next <= b.clock-late; next += step {
						b.must(b.pub.Write(frame.Frame{
							Kind: frame.Video, DTS: next, PTS: next, Duration: step, Key: next%time.Second == 0,
							Data: []byte(next.String()), Received: time.Now(),
						}))
					}
					b.pass(step)
				}
				b.leave()
				shown := map[string]bool{}
				for _, s := range b.stretches {
					for _, f := range s.frames[frame.Video] {
						shown[string(f.Data)] = true
					}
				}
				if sent := int(next / step); len(shown) < sent/2 {
					t.Errorf("%d of %d pictures are there: %q", len(shown), sent, b.summary())
				}
			})
		})
	}
}

// TestFillerOtherSound: what is missing of a stretch's sound when the next encoder is there, with another codec, is
// filled in the stretch's.
func TestWriterOtherSound(t *testing.T) {
	t.Parallel()
	header, err := opus.Header(2)
	if err != nil {
		t.Fatal(err)
	}
	other, err := opus.TrackConfig(header)
	if err != nil {
		t.Fatal(err)
	}
	run(t, func(b *bench) {
		b.attach(picture, sound)
		b.Use(still)
		b.send(2*time.Second, frame.Video, frame.Audio)
		b.send(300*time.Millisecond, frame.Video)
		b.leave()
		b.attach(picture, other)
		b.send(2*time.Second, frame.Video, frame.Audio)
		b.leave()
		silence, _ := SilenceOf(sound)
		filled := 0
		for _, f := range b.stretches[0].frames[frame.Audio] {
			if string(f.Data) == string(silence.Packet) {
				filled++
			} else if string(f.Data) != "\x02" {
				t.Errorf("at %v: % x", f.PTS, f.Data)
			}
		}
		if filled == 0 {
			t.Error("nothing was filled in")
		}
	})
}
