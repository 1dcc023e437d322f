package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// whatever an encoder does, the contract of Output holds (the checker sees to it), nothing gets longer than it was, and
// sound and picture come back together.
func TestRandomStreams(t *testing.T) {
	t.Parallel()
	rates := []interval{
		{1, 60}, {1001, 60000}, {1, 50}, {1, 30}, {1001, 30000}, {1, 25}, {1001, 24000}, {1, 15}, {1, 5},
	}
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			i := rates[r.IntN(len(rates))]
			said := i.fps()
			if r.IntN(2) == 0 {
				said = 0
			}
			a := audio48
			s, out := start(t, withRate(said), a)
			x := newSource(t, s, i.duration(), aac48)
			x.gop = 1 + r.IntN(90)
			base := time.Duration(r.Int64N(int64(2000 * time.Hour)))
			x.base = [2]time.Duration{base, base}
			jitter := r.Int64N(4)
			chance := r.IntN(3)
			x.edit = func(f *frame.Frame) bool {
				if jitter > 0 {
					d := time.Duration(r.Int64N(jitter)) * ms
					f.DTS, f.PTS = f.DTS+d, f.PTS+d
				}
				if chance > 0 && r.IntN(400) == 0 {
					return false
				}
				if chance > 1 && r.IntN(600) == 0 {
					d := time.Duration(r.Int64N(int64(20*time.Second))) - 10*time.Second
					f.DTS, f.PTS = f.DTS+d, f.PTS+d
				}
				return true
			}
			allowed := 150 * ms
			events := r.IntN(6)
			for range events {
				x.run(time.Duration(3+r.IntN(5)) * time.Second)
				d := time.Duration(r.Int64N(int64(40*time.Second))) - 20*time.Second
				if r.IntN(4) == 0 {
					d /= 40
				}
				x.base[0] += d
				x.base[1] += d
				allowed += x.interval
				if d < 0 && d > -jumpBackward-100*ms || d > 0 && d < jumpForward+100*ms {
					allowed += abs(d)
				}
				if r.IntN(3) == 0 {
					x.wall = x.wall.Add(time.Duration(r.Int64N(int64(20 * time.Second))))
				}
			}
			x.edit = nil
			x.run(8 * time.Second)
			s.Close(nil)
			if !out.rates[0].constant && chance > 1 {
				allowed += 3 * time.Second // a wild timestamp that is believed because frames come at any distance
			}
			checkEndsInStep(t, x, out, 40*ms)
			for k, end := range out.lastEnd {
				if end > x.clock[k]+allowed+50*ms {
					t.Errorf("%v is %v long, the stream had %v (%d events)", frame.Kind(k), end, x.clock[k], events)
				}
				if out.count[k] < x.n[k]*8/10 {
					t.Errorf("%d of %d %v frames are left", out.count[k], x.n[k], frame.Kind(k))
				}
			}
			if t.Failed() {
				t.Logf("interval %v said %v gop %d jitter %d chance %d: %+v %q %v", i, said, x.gop, jitter, chance,
					s.Stats(), out.breaks, out.rates)
			}
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	for name, tt := range map[string]struct { //nolint:paralleltest // the same
		said float64
		step time.Duration
	}{"constant": {30, 33 * ms}, "variable": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			out := &checker{t: t, quiet: true}
			s := New(Options{Output: out, Logger: slog.New(slog.DiscardHandler)})
			_ = s.Configure(withRate(tt.said))
			_ = s.Configure(audio48)
			n := 0
			var video, audio time.Duration
			data := make([]byte, 100)
			write := func() {
				for audio <= video {
					_ = s.Write(frame.Frame{
						Kind: frame.Audio, DTS: audio, PTS: audio, Key: true, Data: data, Received: epoch.Add(audio),
					})
					audio += 21 * ms
					if audio%3 == 0 {
						audio += ms
					}
				}
				_ = s.Write(frame.Frame{
					Kind: frame.Video, DTS: video, PTS: video, Key: n%30 == 0, Data: data, Received: epoch.Add(video),
				})
				n++
				if tt.step > 0 {
					video = (time.Duration(n) * time.Second / 30).Truncate(ms)
				} else {
					video += time.Duration(10+n*37%90) * ms
				}
			}
			for range 200 {
				write()
			}
			if allocs := testing.AllocsPerRun(500, write); allocs > 0 {
				t.Errorf("%v allocations per frame", allocs)
			}
			s.Close(nil)
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	out := &checker{t: b, quiet: true}
	s := New(Options{Output: out, Logger: slog.New(slog.DiscardHandler)})
	_ = s.Configure(withRate(30))
	n := 0
	for b.Loop() {
		at := (time.Duration(n) * time.Second / 30).Truncate(ms)
		_ = s.Write(frame.Frame{Kind: frame.Video, DTS: at, PTS: at, Key: n%30 == 0, Received: epoch.Add(at)})
		n++
	}
}

// FuzzSession feeds frames with any timestamps. Each record is a flag byte and a 4-byte step in milliseconds.
func FuzzSession(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x21\x00\x00\x00\x00\x21\x02\x00\x00\x00\x00\x00\x7f\xff\xff\xff"))
	f.Add(
		[]byte("\x11\xff\xff\x00\x00\x01\x80\x00\x00\x00\x02\x00\x00\x00\x17\x01\x00\x00\x00\x21\x05\xff\xff\xff\xf0"))
	f.Fuzz(fuzzBody)
}

func fuzzBody(t *testing.T, b []byte) {
	s, out := start(t, withRate(30), audio48)
	ends := func(err error) bool {
		if err != nil && !errors.As(err, new(UnsteadyError)) {
			t.Fatal(err)
		}
		return err != nil
	}
	var at [2]time.Duration
	wall := epoch
	for n := 0; len(b) >= 5 && n < 4096; n++ {
		flags, step := b[0], time.Duration(int32(binary.BigEndian.Uint32(b[1:])))*ms
		b = b[5:]
		if flags&0x80 != 0 {
			step /= 1 << 16
		}
		k := frame.Kind(flags >> 1 & 1)
		if flags&0x40 != 0 {
			at[0] += step
			at[1] += step
		} else {
			at[k] += step
		}
		wall = wall.Add(time.Duration(flags>>2&7) * 20 * ms)
		if flags&0x20 != 0 {
			c := []frame.Config{withRate(float64(flags)), audio48}[k]
			if k == frame.Video {
				c.SPS = []byte{0x67, flags}
			} else {
				c.SampleRate, c.ASC = 8000+int(flags)*300, []byte{0x12, flags}
			}
			if ends(s.Configure(c)) {
				break
			}
		}
		in := frame.Frame{
			Kind: k, DTS: at[k], PTS: at[k] + step/4, Key: flags&1 != 0 || k == frame.Audio, Data: b[:min(len(b), 3)],
			Received: wall,
		}
		if ends(s.Write(in)) {
			break
		}
	}
	s.Close(nil)
	if len(out.causes) != 1 {
		t.Errorf("closed %d times", len(out.causes))
	}
}
