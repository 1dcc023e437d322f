package health

import (
	"math"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

var zero = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// send gives the meter 30 pictures and 50 frames of sound a second, with a key frame every gop pictures, from second
// from to second to. late says how much later than its timestamp a frame arrives.
func send(m *Meter, from, to, gop int, late func(i int) time.Duration) {
	for i := from * 30; i < to*30; i++ {
		at := time.Duration(i) * time.Second / 30
		m.Write(&frame.Frame{Kind: frame.Video, DTS: at, Key: i%gop == 0, Data: make([]byte, 5000)}, zero.Add(at+
			late(i)))
	}
	for i := from * 50; i < to*50; i++ {
		at := time.Duration(i) * time.Second / 50
		m.Write(&frame.Frame{Kind: frame.Audio, DTS: at, Key: true, Data: make([]byte, 400)}, zero.Add(at))
	}
}

func never(int) time.Duration { return 0 }

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestSample(t *testing.T) {
	t.Parallel()
	m := NewMeter(zero)
	m.Configure(frame.Config{Kind: frame.Video, FrameRate: 30})
	if v, a := m.Announced(); !v || a {
		t.Errorf("announced %v, %v", v, a)
	}
	m.Configure(frame.Config{Kind: frame.Audio})
	send(m, 0, 5, 60, never)
	s := m.Sample(zero.Add(5*time.Second), Counts{
		Dropped: 3, Variable: true, Link: Link{Packets: 100, PacketsLost: 2, RTT: time.Second},
	})
	near(t, "video bitrate", s.Video.Bitrate, 30*5000*8, 1)
	near(t, "audio bitrate", s.Audio.Bitrate, 50*400*8, 1)
	near(t, "frame rate", s.Video.Rate, 30, 0.01)
	near(t, "pace", s.Pace, 1, 0.01)
	near(t, "announced rate", s.Announced, 30, 0)
	near(t, "GOP", s.GOP.Seconds(), 2, 0.001)
	if s.Video.Jitter != 0 || s.Video.Drift != 0 || s.Counts.Dropped != 3 || !s.Counts.Variable {
		t.Errorf("sample %+v", s)
	}
	send(m, 5, 10, 60, never)
	s = m.Sample(zero.Add(10*time.Second), Counts{Dropped: 3, Link: Link{Packets: 150, PacketsLost: 4}})
	if s.Counts.Dropped != 0 || s.Counts.Packets != 50 || s.Counts.PacketsLost != 2 || s.Span != 5*time.Second ||
		s.Video.Frames != 150 {
		t.Errorf("the second sample %+v", s)
	}
	if got := m.Totals(); got.VideoFrames != 300 || got.AudioFrames != 500 || got.Bytes != 300*5000+500*400 ||
		got.Counts.Packets != 150 {
		t.Errorf("totals %+v", got)
	}
	s = m.Sample(zero.Add(15*time.Second), Counts{})
	if s.Video.Bitrate != 0 || s.Pace != 0 || s.GOP != 0 {
		t.Errorf("of nothing %+v", s)
	}
}

func TestGOP(t *testing.T) {
	t.Parallel()
	m := NewMeter(zero)
	send(m, 0, 20, 300, never)
	if got := m.Sample(zero.Add(20*time.Second), Counts{}).GOP; got != 10*time.Second {
		t.Errorf("GOP %v", got)
	}
	send(m, 20, 33, 1e6, never) // and none comes any more
	if got := m.Sample(zero.Add(33*time.Second), Counts{}).GOP; got < 22*time.Second || got > 23*time.Second {
		t.Errorf("open GOP %v", got)
	}
}

func TestJitterAndDrift(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		late          func(i int) time.Duration
		jitter, drift float64 // milliseconds
		by            float64
	}{
		"steady": {never, 0, 0, 0.1},
		"every other one late": {
			func(i int) time.Duration { return time.Duration(i%2) * 20 * time.Millisecond }, 20, -10, 2,
		},
		// 3 ms a second
		"a slow clock": {func(i int) time.Duration { return time.Duration(i) * time.Millisecond / 10 }, 0.1, -180, 5},
		"a fast clock": {func(i int) time.Duration { return -time.Duration(i) * time.Millisecond / 10 }, 0.1, 180, 5},
		"one long pause": {
			func(i int) time.Duration { return time.Duration(min(i/900, 1)) * 4 * time.Second }, 0, -4000, 100,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMeter(zero)
			send(m, 0, 64, 60, tt.late)
			s := m.Sample(zero.Add(64*time.Second), Counts{})
			near(t, "jitter", float64(s.Video.Jitter.Microseconds())/1000, tt.jitter, max(tt.by/4, 0.1))
			near(t, "drift", float64(s.Video.Drift.Microseconds())/1000, tt.drift, tt.by)
		})
	}
}

// TestClockJumps says that a jump is no drift, no jitter, no media and no distance of key frames.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{
		"ahead": 26 * time.Hour, "back": -26 * time.Hour, "by little": 1200 * time.Millisecond,
		"back by little": -600 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMeter(zero)
			for i := range 600 {
				at := time.Duration(i) * time.Second / 30
				f := frame.Frame{Kind: frame.Video, DTS: at, Key: i%60 == 0}
				if i >= 300 {
					f.DTS += jump
				}
				m.Write(&f, zero.Add(at))
			}
			s := m.Sample(zero.Add(20*time.Second), Counts{})
			if s.Video.Drift.Abs() > time.Millisecond || s.Video.Jitter > time.Millisecond || s.GOP > 2*time.Second {
				t.Errorf("sample %+v", s)
			}
			near(t, "pace", s.Pace, 1, 0.01)
		})
	}
}

// A frame costs no allocation.
func TestAllocations(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	m := NewMeter(zero)
	f := frame.Frame{Kind: frame.Video, Data: make([]byte, 100)}
	if n := testing.AllocsPerRun(1000, func() {
		f.DTS += 33 * time.Millisecond
		m.Write(&f, zero.Add(f.DTS))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkWrite(b *testing.B) {
	m := NewMeter(zero)
	f := frame.Frame{Kind: frame.Video, Data: make([]byte, 100)}
	for b.Loop() {
		f.DTS += 33 * time.Millisecond
		m.Write(&f, zero.Add(f.DTS))
	}
}
