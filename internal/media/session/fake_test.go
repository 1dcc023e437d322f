package session

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

const ms = time.Millisecond

// checker is an Output that checks every sentence of the contract and keeps what it was told.
type checker struct {
	t       testing.TB
	frames  [2][]frame.Frame
	configs [2]int
	rates   []rate
	breaks  []string
	causes  []error
	log     []string // order of calls other than Write

	fail       error
	fresh      bool // a Discontinuity came and no Write since
	needKey    bool
	quiet      bool // keep only the last frames
	lastAt     [2]time.Duration
	lastEnd    [2]time.Duration
	count      [2]int
	totalHoles [2]time.Duration
}

func (c *checker) errorf(f string, args ...any) { c.t.Helper(); c.t.Errorf(f, args...) }

func (c *checker) Configure(f frame.Config) error {
	if c.configs[f.Kind]++; c.configs[f.Kind] > 1 && !c.fresh && c.count[0]+c.count[1] > 0 {
		c.errorf("%v configured again without a discontinuity", f.Kind)
	}
	c.log = append(c.log, "configure "+f.Kind.String())
	return c.fail
}

func (c *checker) Discontinuity(reason string) error {
	c.breaks = append(c.breaks, reason)
	c.fresh, c.needKey = true, true
	c.log = append(c.log, "discontinuity")
	if c.count[0]+c.count[1] == 0 {
		c.errorf("discontinuity before any frame")
	}
	return c.fail
}

func (c *checker) Rate(fps float64, constant bool) error {
	c.rates = append(c.rates, rate{fps: fps, constant: constant})
	c.log = append(c.log, fmt.Sprintf("rate %.3f %v", fps, constant))
	return c.fail
}

func (c *checker) Write(f frame.Frame) error {
	k := f.Kind
	if c.configs[k] == 0 {
		c.errorf("%v frame before its configuration", k)
	}
	if k == frame.Video {
		if len(c.rates) == 0 {
			c.errorf("video frame before its rate")
		}
		if (c.needKey || c.count[k] == 0) && !f.Key {
			c.errorf("video frame %d at %v is no key frame", c.count[k], f.DTS)
		}
		c.needKey = false
	}
	c.fresh = false
	if c.count[k] > 0 && f.DTS <= c.lastAt[k] || f.DTS < c.lastEnd[k] {
		c.errorf("%v frame %d at %v, the last was at %v and ended at %v", k, c.count[k], f.DTS, c.lastAt[k],
			c.lastEnd[k])
	}
	if f.PTS < f.DTS || f.Duration <= 0 || f.DTS < 0 {
		c.errorf("%v frame %d: DTS %v PTS %v duration %v", k, c.count[k], f.DTS, f.PTS, f.Duration)
	}
	if c.count[k] > 0 {
		c.totalHoles[k] += f.DTS - c.lastEnd[k]
	}
	c.lastAt[k], c.lastEnd[k] = f.DTS, f.DTS+f.Duration
	c.count[k]++
	if !c.quiet {
		c.frames[k] = append(c.frames[k], f)
	}
	return c.fail
}

func (c *checker) Close(cause error) error { c.causes = append(c.causes, cause); return nil }

var (
	sps30 = []byte{
		0x67, 0x42, 0xc0, 0x28, 0xd9, 0x00, 0x78, 0x02, 0x27, 0xe5, 0x84, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00, 0x00,
		0x03, 0x00, 0xf0, 0x3c, 0x60, 0xc9, 0x20,
	}
	pps = []byte{0x68, 0xce, 0x38, 0x80}
	// videoC is of a codec that the session does not look into: pictures may be of any bytes.
	videoC  = frame.Config{Kind: frame.Video, Codec: frame.VP8, SPS: sps30, PPS: pps, Width: 1920, Height: 1080}
	audio48 = frame.Config{Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x11, 0x90}, SampleRate: 48000, Channels: 2}
	epoch   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func withRate(fps float64) frame.Config { c := videoC; c.FrameRate = fps; return c }

// start makes a session with its checker and tells it the tracks.
func start(t testing.TB, configs ...frame.Config) (*Session, *checker) {
	t.Helper()
	out := &checker{t: t}
	s := New(Options{Output: out, Logger: slog.New(slog.DiscardHandler)})
	for _, c := range configs {
		if err := s.Configure(c); err != nil {
			t.Fatal(err)
		}
	}
	return s, out
}

// source stamps frames like an RTMP encoder: whole milliseconds, interleaved by time.
type source struct {
	t        testing.TB
	s        *Session
	interval time.Duration // exact, of video; 0: no video
	step     time.Duration // exact, of audio; 0: no audio
	gop      int
	clock    [2]time.Duration // stream time of the next frame
	n        [2]int
	base     [2]time.Duration // where the encoder's timestamps start
	offset   time.Duration    // PTS - DTS of video
	wall     time.Time
	sent     [2][]sent
	edit     func(f *frame.Frame) bool // false: the frame is lost
}

type sent struct {
	real  time.Duration // exact time in the stream
	stamp time.Duration
	tag   int
}

func newSource(t testing.TB, s *Session, video, audio time.Duration) *source {
	t.Helper()
	return &source{t: t, s: s, interval: video, step: audio, gop: 30, wall: epoch}
}

func (s *source) one(k frame.Kind) {
	s.t.Helper()
	exact := s.clock[k]
	at := s.base[k] + exact.Truncate(ms)
	f := frame.Frame{
		Kind: k, DTS: at, PTS: at, Key: true, Data: []byte{byte(s.n[k] >> 16), byte(s.n[k] >> 8), byte(s.n[k])},
		Received: s.wall.Add(exact),
	}
	if k == frame.Video {
		f.Key = s.n[k]%s.gop == 0
		f.PTS += s.offset
	}
	s.n[k]++
	ok := s.edit == nil || s.edit(&f)
	if ok {
		s.sent[k] = append(s.sent[k], sent{exact, f.DTS, s.n[k] - 1})
		if err := s.s.Write(f); err != nil {
			s.t.Fatal(err)
		}
	}
}

// run sends d of stream.
func (s *source) run(d time.Duration) {
	s.t.Helper()
	v, a := s.interval > 0, s.step > 0
	until := max(s.clock[0], s.clock[1]) + d
	for {
		k := frame.Video
		if !v || a && s.clock[1] < s.clock[0] {
			k = frame.Audio
		}
		if s.clock[k] >= until {
			return
		}
		s.one(k)
		if k == frame.Video {
			s.clock[k] = time.Duration(int64(s.n[k])) * s.interval
		} else {
			s.clock[k] = time.Duration(int64(s.n[k])) * s.step
		}
	}
}

func tag(f frame.Frame) int { return int(f.Data[0])<<16 | int(f.Data[1])<<8 | int(f.Data[2]) }
