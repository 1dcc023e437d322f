package session

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/media/frame"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	fps30 = time.Second / 30
	aac48 = 1024 * time.Second / 48000
)

func TestMillisecondsBecomeAGrid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		num, den int64
		said     float64
	}{
		"30":                {1, 30, 30},
		"29.97":             {1001, 30000, 30000.0 / 1001},
		"23.976":            {1001, 24000, 24000.0 / 1001},
		"59.94":             {1001, 60000, 60000.0 / 1001},
		"60":                {1, 60, 60},
		"50":                {1, 50, 50},
		"25":                {1, 25, 25},
		"24":                {1, 24, 24},
		"15":                {1, 15, 15},
		"1":                 {1, 1, 1},
		"5":                 {1, 5, 5},
		"120":               {1, 120, 120},
		"30 unsaid":         {1, 30, 0},
		"29.97 unsaid":      {1001, 30000, 0},
		"23.976 unsaid":     {1001, 24000, 0},
		"59.94 unsaid":      {1001, 60000, 0},
		"60 unsaid":         {1, 60, 0},
		"25 unsaid":         {1, 25, 0},
		"24 unsaid":         {1, 24, 0},
		"15 unsaid":         {1, 15, 0},
		"1 unsaid":          {1, 1, 0},
		"30 said as fields": {1, 30, 60},
		"25 said as 12.5":   {1, 25, 12.5},
		"17.3 unsaid":       {3, 52, 0},
		"28.5 said":         {2, 57, 28.5},
		"said wrongly":      {1, 25, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := start(t, withRate(tt.said), audio48)
			x := newSource(t, s, time.Duration(tt.num)*time.Second/time.Duration(tt.den), aac48)
			x.run(20 * time.Second)
			s.Close(nil)
			if len(out.rates) != 1 || !out.rates[0].constant {
				t.Fatalf("rates %+v", out.rates)
			}
			if len(out.breaks) > 0 || s.Stats().Dropped > 0 || s.Stats().Clamped > 0 || s.Stats().Lost > 0 ||
				s.Stats().Holes > 0 {
				t.Errorf("repaired what was whole: %v %+v", out.breaks, s.Stats())
			}
			exact := func(n int64) time.Duration {
				return time.Duration((n*tt.num*int64(time.Second) + tt.den/2) / tt.den)
			}
			if tt.den == 52 { // no grid in particular: within the tick and what is followed
				exact = func(n int64) time.Duration { return out.frames[frame.Video][n].DTS }
			}
			for n, f := range out.frames[frame.Video] {
				if f.DTS != exact(int64(n)) || (tt.den != 52 && f.DTS+f.Duration != exact(int64(n+1))) {
					t.Fatalf("frame %d at %v for %v, want %v", n, f.DTS, f.Duration, exact(int64(n)))
				}
			}
			checkSync(t, x, out, 20*ms)
		})
	}
}

// checkSync compares the written times with those that the stream had.
func checkSync(t *testing.T, x *source, out *checker, limit time.Duration) {
	t.Helper()
	worst := time.Duration(0)
	for k := range out.frames {
		exact := map[int]time.Duration{}
		for _, s := range x.sent[k] {
			exact[s.tag] = s.real
		}
		for _, f := range out.frames[k] {
			if d := abs(f.DTS - exact[tag(f)]); d > worst {
				worst = d
			}
		}
	}
	if worst > limit {
		t.Errorf("a frame is %v from where it was, at most %v is allowed", worst, limit)
	}
}

func TestClosesOnce(t *testing.T) {
	t.Parallel()
	s, out := start(t, withRate(30))
	cause := errors.New("gone")
	s.Close(cause)
	s.Close(nil)
	if len(out.causes) != 1 || !errors.Is(out.causes[0], cause) {
		t.Errorf("closed with %v", out.causes)
	}
	if err := s.Write(frame.Frame{}); !errors.Is(err, ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}
