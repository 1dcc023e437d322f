package packager_test

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/session"
	"millrace/internal/media/timeline"
)

const ms = time.Millisecond

// behindSession is a packager of a session whose pictures are of any bytes.
type behindSession struct{ *packager.Packager }

func (b behindSession) Configure(c frame.Config) error {
	if c.Kind == frame.Video {
		c = video()
	}
	return b.Packager.Configure(c)
}

// slowly writes pictures behind their sound, as an encoder gives them that encodes them again.
type slowly struct {
	behindSession

	by      time.Duration
	waiting []frame.Frame
}

func (s *slowly) Write(f frame.Frame) error {
	if f.Kind == frame.Video {
		s.waiting = append(s.waiting, f)
		return nil
	}
	if err := s.behindSession.Write(f); err != nil {
		return err
	}
	return s.release(f.PTS - s.by)
}

func (s *slowly) release(until time.Duration) error {
	for len(s.waiting) > 0 && s.waiting[0].PTS <= until {
		if err := s.behindSession.Write(s.waiting[0]); err != nil {
			return err
		}
		s.waiting = s.waiting[1:]
	}
	return nil
}

func (s *slowly) Close(cause error) error {
	return errors.Join(s.release(time.Hour), s.behindSession.Close(cause))
}

// prompt notes which parts of the video go out while their last picture is the newest one.
type prompt struct {
	packager.Edge
	sent, taken  int // pictures
	parts, ready int
	waited       []int // pictures that had been sent at the parts that went out late
}

func (p *prompt) Sample(rendition string, at int64, s cmaf.Sample) {
	if rendition == timeline.MainVideo {
		p.taken++
	}
	p.Edge.Sample(rendition, at, s)
}

func (p *prompt) Part(rendition string, buf []byte, ticks int64, independent bool) bool {
	if rendition == timeline.MainVideo && p.taken > 100 {
		p.parts++
		if p.taken == p.sent {
			p.ready++
		} else {
			p.waited = append(p.waited, p.sent)
		}
	}
	return p.Edge.Part(rendition, buf, ticks, independent)
}

// unevenEncoder sends pictures at a variable rate.
type unevenEncoder struct {
	step    func(i int) time.Duration // from picture i to the next
	key     func(i int, since time.Duration) bool
	later   func(i int) time.Duration // of presentation
	seconds int
	sound   bool
	behind  time.Duration // pictures come so long behind their sound

	prompt float64       // the least share of parts that go out with their last picture
	late   time.Duration // by how much a picture may be presented late
	stands bool          // pictures last longer than parts may, so that what is decoded early has a hole behind it
	breaks bool          // its clock is not believed at times
}

func each(n int) func(int, time.Duration) bool {
	return func(i int, _ time.Duration) bool { return i%n == 0 }
}

func every(d time.Duration) func(int, time.Duration) bool {
	return func(i int, since time.Duration) bool { return i == 0 || since >= d }
}

func steps(all ...time.Duration) func(int) time.Duration {
	return func(i int) time.Duration { return all[i%len(all)] }
}

func between(least, most time.Duration) func(int) time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	return func(int) time.Duration { return (least + time.Duration(random.Int64N(int64(most-least)))).Truncate(ms) }
}

func unevenEncoders() map[string]unevenEncoder {
	phone := steps(39*ms, 22*ms, 46*ms, 28*ms, 25*ms, 43*ms, 27*ms, 43*ms, 22*ms, 38*ms)
	bursts := func(i int) time.Duration { // a screen on which something moves now and then
		switch {
		case i%400 == 399:
			return 1800 * ms
		case i%150 == 149:
			return 1400 * ms
		case i%50 == 49:
			return 450 * ms
		}
		return time.Duration(14+i%5) * ms
	}
	dim := func(i int) time.Duration { return time.Duration(28+30*(i/100%2)+i*7%11) * ms } // in low light
	slow := steps(800*ms, 1200*ms, 950*ms)
	hour := func(i int) time.Duration { return phone(i) + time.Duration(i%170/169)*time.Hour }
	odd := func(i int, _ time.Duration) bool { return i*i%97 == 0 }
	twoSeconds := every(2 * time.Second)
	return map[string]unevenEncoder{
		"30 fps, key frames by number": {step: phone, key: each(60), seconds: 30, sound: true, prompt: 0.97},
		"30 fps, no sound":             {step: phone, key: each(60), seconds: 30, prompt: 0.97},
		"30 fps, key frames by time":   {step: phone, key: twoSeconds, seconds: 30, sound: true, prompt: 0.97},
		"30 fps, short GOPs":           {step: phone, key: each(20), seconds: 30, sound: true, prompt: 0.97},
		"any distances": {
			step: between(20*ms, 47*ms), key: each(60), seconds: 60, sound: true, prompt: 0.85,
		},
		"any distances, any GOPs": {
			step: between(20*ms, 47*ms), key: odd, seconds: 60, sound: true, prompt: 0.85,
		},
		"24 fps": {
			step: steps(50*ms, 33*ms, 42*ms), key: each(48), seconds: 30, sound: true, prompt: 0.97,
		},
		"B-frames": {
			step: phone, key: each(60), later: steps(66*ms, 133*ms, 33*ms, 0), seconds: 30, sound: true, prompt: 0.97,
		},
		"240 fps": {
			step: steps(3*ms, 5*ms, 4*ms, 2*ms, 7*ms), key: each(480), seconds: 20, sound: true, prompt: 0.9,
		},
		"low light": {step: dim, key: each(60), seconds: 60, sound: true, prompt: 0.8, late: 20 * ms},
		"a screen": {
			step: bursts, key: twoSeconds, seconds: 60, sound: true, prompt: 0.8, late: 20 * ms, stands: true,
		},
		"4 fps": {
			step: steps(300*ms, 210*ms, 240*ms), key: each(8), seconds: 40, sound: true, prompt: 0.97,
		},
		"1 fps":           {step: slow, key: each(2), seconds: 60, sound: true, stands: true},
		"1 fps, no sound": {step: slow, key: each(2), seconds: 60, stands: true},
		"one in ten seconds": {
			step: steps(9800*ms, 10*time.Second, 10300*ms), key: each(1), seconds: 150, sound: true, stands: true,
		},
		"one in ten seconds, no sound": {
			step: steps(9800*ms, 10*time.Second, 10300*ms), key: each(1), seconds: 150, stands: true,
		},
		"0.5 fps, no sound": {step: steps(2*time.Second, 1900*ms, 2200*ms), key: each(2), seconds: 60, stands: true},
		"stands still": {
			step: steps(50*ms, 0, 0, 41*ms, 30*ms), key: each(60), seconds: 30, sound: true, late: 22 * ms,
		},
		"goes back": {
			step: steps(50*ms, 40*ms, -12*ms, 37*ms, 55*ms), key: each(60), seconds: 30, sound: true, late: 33 * ms,
		},
		"encoded again": {
			step: phone, key: each(60), seconds: 30, sound: true, behind: 500 * ms,
		},
		"encoded again, late": {
			step: phone, key: each(60), seconds: 30, sound: true, behind: 1500 * ms,
		},
		"jumps": {step: hour, key: each(60), seconds: 30, breaks: true},
	}
}

// TestUnevenPictures has each encoder's pictures go through a session and a packager: what is published breaks no rule,
// every picture is presented when it is to be, and parts do not wait for the end of their last picture.
func TestUnevenPictures(t *testing.T) {
	t.Parallel()
	for name, e := range unevenEncoders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			spy := &prompt{Edge: b.edge}
			frames := e.send(t, spy)
			tl := b.finish()
			pictures := tl.Rendition(timeline.MainVideo)
			if !e.stands {
				b.whole(tl)
			}
			b.unevenParts(pictures)
			if e.sound {
				b.sums(tl)
			}
			if !e.breaks {
				b.inTime(pictures, only(frames, frame.Video), e.late)
			}
			t.Logf("%d of %d parts go out with their last picture", spy.ready, spy.parts)
			if float64(spy.ready) < e.prompt*float64(spy.parts) {
				t.Errorf("too few; those that don't, after pictures %v", spy.waited)
			}
		})
	}
}

func only(frames []frame.Frame, k frame.Kind) (out []frame.Frame) {
	for _, f := range frames {
		if f.Kind == k {
			out = append(out, f)
		}
	}
	return out
}

// send sends what the encoder does, and returns it.
func (u unevenEncoder) send(t *testing.T, spy *prompt) (sent []frame.Frame) {
	t.Helper()
	p := packager.New(packager.Options{Edge: spy, Segment: 2 * time.Second, Part: part})
	var out session.Output = behindSession{p}
	if u.behind > 0 {
		out = &slowly{behindSession: behindSession{p}, by: u.behind}
	}
	s := session.New(session.Options{Output: out, Logger: slog.New(slog.DiscardHandler)})
	configs := []frame.Config{{Kind: frame.Video, Codec: frame.VP8, Width: 320, Height: 180}}
	if u.sound {
		configs = append(configs, audio())
	}
	for _, c := range configs {
		if err := s.Configure(c); err != nil {
			t.Fatal(err)
		}
	}
	var numbers [2]uint32
	write := func(f frame.Frame) {
		f.Data = binary.BigEndian.AppendUint32([]byte{0, 0, 0, 5, 0x65}, numbers[f.Kind])
		numbers[f.Kind]++
		sent = append(sent, f)
		if err := s.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end := time.Duration(u.seconds) * time.Second
	now, stamped, sound, key := time.Duration(0), time.Duration(0), 0, time.Duration(0)
	for i := 0; now < end; i++ {
		for u.sound && at(sound*1024, 48000) <= now {
			d := at(sound*1024, 48000)
			stamp := d.Truncate(ms)
			write(frame.Frame{Kind: frame.Audio, DTS: stamp, PTS: stamp, Key: true, Received: wall.Add(d)})
			sound++
		}
		f := frame.Frame{Kind: frame.Video, DTS: stamped, PTS: stamped, Key: u.key(i, now-key), Received: wall.Add(now)}
		if f.Key {
			key = now
		}
		if u.later != nil {
			f.PTS += u.later(i)
		}
		spy.sent++
		write(f)
		d := u.step(i)
		stamped += d
		now += max(min(d, 11*time.Second), 0)
	}
	s.Close(nil)
	return sent
}

// inTime checks that all pictures are there and presented when they are to be, or late by so much at most. While a
// session looks at the first ones they may be moved, and one left out.
func (b *bench) inTime(l *timeline.Rendition, sent []frame.Frame, late time.Duration) {
	b.t.Helper()
	n, least, most := 0, time.Hour, -time.Hour
	for i, c := range l.Chunks {
		if c.Gap {
			continue
		}
		frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
		if err != nil {
			b.t.Fatal(err)
		}
		for _, f := range frags {
			at := int64(f.BaseMediaDecodeTime)
			for _, s := range f.Samples {
				src := sent[binary.BigEndian.Uint32(s.Data[len(s.Data)-4:])]
				shown := time.Duration(at+int64(s.CompositionOffset)) * time.Second / time.Duration(l.Timescale)
				if src.PTS > 3*time.Second {
					least, most = min(least, shown-src.PTS), max(most, shown-src.PTS)
				}
				if s.CompositionOffset < 0 {
					b.t.Errorf("segment %d: a picture of %v is presented before it is decoded", i, src.PTS)
				}
				at += int64(s.Duration)
				n++
			}
		}
	}
	if n < len(sent)-1 || most-least > late+ms/10 {
		b.t.Errorf("%d of %d pictures, moved by %v to %v", n, len(sent), least, most)
	}
}

// unevenParts checks that no part is longer than the playlist says, or shorter than it lets it be: but for a segment's
// last, and for the first one if it begins with a key frame.
func (b *bench) unevenParts(l *timeline.Rendition) {
	b.t.Helper()
	target := float64(l.PartTarget) / 1e6
	for i, c := range l.Chunks {
		if c.Gap {
			continue
		}
		frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
		if err != nil {
			b.t.Fatal(err)
		}
		for k, f := range frags {
			long := float64(f.Duration) / float64(l.Timescale)
			free := k == len(frags)-1 || k == 0 && f.Samples[0].Sync
			if long > target+1e-5 || long < 0.85*target && !free {
				b.t.Errorf("%s %d part %d of %d lasts %.5f s, target %.5f", l.ID, i, k, len(frags), long, target)
			}
		}
	}
}
