package packager_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/session"
)

// TestSchedulesWithOddClocks: nor is a rule broken behind a session, where clocks wrap, go back by a tick, or jump, key
// frames come twice with one time, and parameters change.
func TestSchedulesWithOddClocks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			keepsRulesByOddClock(t, seed)
		})
	}
}

// FuzzOddClocks is TestSchedulesWithOddClocks for any number.
func FuzzOddClocks(f *testing.F) {
	f.Add(uint64(0))
	f.Fuzz(keepsRulesByOddClock)
}

func keepsRulesByOddClock(t *testing.T, seed uint64) {
	t.Helper()
	const wrap = (1 << 33) * time.Second / 90000
	s, r := scheduleOf(seed), rand.New(rand.NewPCG(seed, 5))
	b := newBench(t, low)
	p := packager.New(packager.Options{Edge: b.edge, Segment: s.segment, Part: part})
	out := session.New(session.Options{Output: behindSession{p}, Logger: slog.New(slog.DiscardHandler)})
	pictures := frame.Config{Kind: frame.Video, Codec: frame.VP8, Width: 320, Height: 180}
	if !s.uneven {
		pictures.FrameRate = s.fps
	}
	if err := errors.Join(out.Configure(pictures), out.Configure(audio())); err != nil {
		t.Fatal(err)
	}
	jumps := []time.Duration{wrap, -wrap, 3 * time.Second, -3 * time.Second, -200 * ms, 700 * ms}
	at, by := time.Duration(r.Int64N(int64(20*time.Second))), jumps[r.IntN(len(jumps))]
	change := time.Duration(r.Int64N(int64(40 * time.Second)))
	odd := r.IntN(4)
	for i, f := range s.sent() {
		if f.Kind == frame.Video && f.DTS >= change {
			change = time.Hour
			pictures.Width = 640
			if err := out.Configure(pictures); err != nil {
				t.Fatal(err)
			}
		}
		if f.DTS >= at {
			f.DTS, f.PTS = f.DTS+by, f.PTS+by
		}
		if odd == 1 && i%37 == 0 { // back by a tick
			f.DTS, f.PTS = f.DTS-time.Second/90000, f.PTS-time.Second/90000
		}
		f.Duration = 0
		if err := out.Write(f); err != nil {
			t.Fatal(err)
		}
		if odd == 2 && f.Key && f.Kind == frame.Video {
			f.Data = append(f.Data, 1)
			if err := out.Write(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	out.Close(nil)
	b.lawful(b.finish())
	if t.Failed() {
		t.Log(s, at, by, change, odd)
	}
}
