package health

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// fine is a sample of a stream in good health.
func fine() Sample {
	return Sample{
		Span: 5 * time.Second, GOP: 2 * time.Second, Pace: 1,
		Video: Flow{Frames: 150, Bitrate: 3e6, Rate: 30}, Audio: Flow{Frames: 250, Bitrate: 128e3, Rate: 50},
		Counts: Counts{Link: Link{Packets: 2000}},
	}
}

// play lets the watch look at so many samples, from the given one on, and gives what changed with its number.
type player struct {
	w  Watch
	n  int
	at time.Time
}

func (p *player) look(times int, change func(s *Sample)) (changes []string, warned int) {
	for range times {
		s := fine()
		if change != nil {
			change(&s)
		}
		p.n++
		p.at = p.at.Add(5 * time.Second)
		s.At = p.at
		for _, c := range p.w.Look(s, true, true) {
			if c.Over {
				changes = append(changes, "-"+c.Kind)
				continue
			}
			changes = append(changes, "+"+c.Kind)
			if c.Tell {
				warned++
			}
		}
	}
	return changes, warned
}

func TestRules(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *Sample)
		kind   string // "": nothing is wrong
		after  int    // samples
		says   string
	}{
		"all is well":             {nil, "", 0, ""},
		"key frames far apart":    {func(s *Sample) { s.GOP = 10 * time.Second }, KeyFramesFarApart, 2, "10.0 s apart"},
		"key frames at the limit": {func(s *Sample) { s.GOP = 5 * time.Second }, "", 0, ""},
		"damaged pictures": {
			func(s *Sample) { s.Counts.Broken = 12 }, PicturesDamaged, 1, "12 were left out",
		},
		"a quarter of the bitrate": {
			func(s *Sample) { s.Video.Bitrate = 7e5 }, BitrateCollapsed, 3, "828 kbit/s from 3.1 Mbit/s",
		},
		"a black picture": {
			func(s *Sample) { s.Video.Bitrate = 1e4 }, BitrateCollapsed, 3,
			"pictures come in time: they may be black or still",
		},
		"half the bitrate":  {func(s *Sample) { s.Video.Bitrate = 1.5e6 }, "", 0, ""},
		"no sound any more": {func(s *Sample) { s.Audio = Flow{} }, AudioMissing, 3, "its sound has stopped"},
		"no picture any more": {
			func(s *Sample) { s.Video = Flow{Bitrate: 2e6} }, VideoMissing, 2, "its video has stopped",
		},
		"the clock jumps":           {func(s *Sample) { s.Counts.Jumps = 1 }, ClockJumped, 1, "clock jumped"},
		"twenty pictures of thirty": {func(s *Sample) { s.Video.Rate = 20 }, FrameRateLow, 3, "20.0 from 30.0"},
		"twenty-five of thirty":     {func(s *Sample) { s.Video.Rate = 25 }, "", 0, ""},
		"a variable rate":           {func(s *Sample) { s.Counts.Variable = true }, FrameRateVariable, 6, "constant"},
		"an encoder that is too slow": {
			func(s *Sample) { s.Pace = 0.7 }, EncoderTooSlow, 3, "0.70 seconds of media a second",
		},
		"packets that never came": {func(s *Sample) { s.Counts.PacketsDropped = 40 }, PacketsLost, 2, "2.0 %"},
		"packets that came again": {
			func(s *Sample) { s.Counts.PacketsLost, s.Counts.PacketsRetransmitted = 100, 100 }, "", 0, "",
		},
		"timestamps without sense": {
			func(s *Sample) { s.Counts.Repaired = 30 }, TimestampsBroken, 2, "30 of 400 frames",
		},
		"too much sound": {
			func(s *Sample) { s.Counts.AudioSkew = 0.01 }, AudioClockOff, 2,
			"1.0 % more samples than its timestamps have time for. Frames are left out",
		},
		"too little sound": {
			func(s *Sample) { s.Counts.AudioSkew = -0.02 }, AudioClockOff, 2, "2.0 % less samples",
		},
		"wrong timestamps of sound": {
			func(s *Sample) { s.Counts.AudioSkew, s.Counts.AudioByCount = 0.016, true }, AudioClockOff, 2,
			"its timestamps are not followed",
		},
		"subtitles that come too late": {
			func(s *Sample) { s.Counts.Unheard = 3 * time.Second }, SubtitlesBehind, 1,
			"no subtitles for 3 of the last 5 seconds",
		},
		"a few timestamps of no sense": {func(s *Sample) { s.Counts.Repaired = 3 }, "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &player{at: zero}
			if got, _ := p.look(20, nil); got != nil {
				t.Fatalf("of a stream in good health: %v", got)
			}
			if tt.kind == "" {
				if got, _ := p.look(20, tt.change); got != nil {
					t.Errorf("told %v", got)
				}
				return
			}
			if got, _ := p.look(tt.after-1, tt.change); got != nil {
				t.Errorf("told too early: %v", got)
			}
			if got, warned := p.look(1, tt.change); !slices.Equal(got, []string{"+" + tt.kind}) || warned != 1 {
				t.Fatalf("changes %v, told %d", got, warned)
			}
			is := p.w.Warnings()
			if len(is) != 1 || is[0].Kind != tt.kind || !strings.Contains(is[0].Message, tt.says) ||
				!strings.HasSuffix(is[0].Message, ".") || !is[0].Since.Equal(p.at) {
				t.Errorf("warnings %+v, want one that says %q", is, tt.says)
			}
			if got, _ := p.look(20, nil); !slices.Equal(got, []string{"-" + tt.kind}) || p.w.Warnings() != nil {
				t.Errorf("afterwards %v", got)
			}
		})
	}
}

// TestFirstSamples says that nothing has fallen that was never higher.
func TestFirstSamples(t *testing.T) {
	t.Parallel()
	p := &player{at: zero}
	n := 0
	got, _ := p.look(10, func(s *Sample) {
		if n++; n > 1 {
			s.Video.Bitrate, s.Video.Rate = 1e5, 5
		}
	})
	if got != nil {
		t.Errorf("told %v", got)
	}
}

// TestSlowConnection is told from a picture that needs few bits: what comes is late, or not all of it comes.
func TestSlowConnection(t *testing.T) {
	t.Parallel()
	p := &player{at: zero}
	p.look(20, nil)
	p.look(5, func(s *Sample) { s.Video.Bitrate, s.Pace = 7e5, 0.6 })
	if is := p.w.Warnings(); len(is) != 2 || !strings.Contains(is[0].Message, "connection may be too slow") {
		t.Errorf("warnings %+v", is)
	}
}

// TestMissingFromTheStart: what has always been missing is told by what the stream says of itself, or by its rhythm.
func TestMissingFromTheStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *Sample)
		says   string // "": nothing is wrong
	}{
		"half of the announced ones": {
			func(s *Sample) { s.Video.Frames, s.Video.Rate, s.Announced = 75, 15, 30 },
			"has 30.0 frames a second, and 15.0 come",
		},
		"half of those of a rhythm": {
			func(s *Sample) { s.Video.Frames, s.Video.Rate, s.Counts.Missing = 75, 15, 75 },
			"50 % of the frames are missing",
		},
		"as announced":      {func(s *Sample) { s.Announced = 30 }, ""},
		"a few are missing": {func(s *Sample) { s.Announced, s.Video.Rate, s.Counts.Missing = 30, 28, 10 }, ""},
		"a still picture each 2 s": {
			func(s *Sample) { s.Video.Frames, s.Video.Rate, s.Counts.Missing = 3, 0.5, 2 }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &player{at: zero}
			p.look(10, tt.change)
			is := p.w.Warnings()
			if tt.says == "" && is != nil ||
				tt.says != "" &&
					(len(is) != 1 || is[0].Kind != FrameRateLow || !strings.Contains(is[0].Message, tt.says)) {
				t.Errorf("warnings %+v, want one that says %q", is, tt.says)
			}
		})
	}
}

// TestNoSoundAtAll and no picture where none is wanted.
func TestNoSoundAtAll(t *testing.T) {
	t.Parallel()
	var w Watch
	s := fine()
	s.Audio = Flow{}
	var all []Change
	for range 10 {
		all = append(all, w.Look(s, true, false)...)
	}
	if len(all) != 1 || all[0].Message != "The encoder sends no sound." {
		t.Errorf("told %+v", all)
	}
	w = Watch{}
	w.Begin(true)
	s = fine()
	s.Video, s.GOP = Flow{}, 0
	for range 10 {
		if got := w.Look(s, true, true); got != nil {
			t.Fatalf("audio only: %+v", got)
		}
	}
}

// TestFlapping tells the same trouble once in ten minutes, and at most a dozen in an hour, whatever an encoder does.
func TestFlapping(t *testing.T) {
	t.Parallel()
	p := &player{at: zero}
	p.look(20, nil)
	jump := func(s *Sample) { s.Counts.Jumps = 1 }
	raised, warned := 0, 0
	for range 30 { // 65 s each
		c, n := p.look(1, jump)
		raised, warned = raised+len(c), warned+n
		p.look(12, nil)
		p.w.Begin(false) // it comes back
	}
	if raised != 30 || warned < 3 || warned > 4 {
		t.Errorf("raised %d times, told %d times in half an hour", raised, warned)
	}
	everything := func(s *Sample) {
		s.GOP, s.Pace = 20*time.Second, 0.5
		s.Counts = Counts{Jumps: 1, Variable: true, Repaired: 400, Link: Link{Packets: 10, PacketsDropped: 10}}
		s.Video.Rate, s.Audio = 3, Flow{}
	}
	warned = 0
	began := p.at
	for p.at.Sub(began) < time.Hour {
		_, n := p.look(12, everything)
		warned += n
		p.look(15, nil)
	}
	if warned > tellMost+4 || warned < 5 {
		t.Errorf("told %d times in an hour", warned)
	}
}

// TestEnd forgets what was wrong with a publication that is over, but not what was told.
func TestEnd(t *testing.T) {
	t.Parallel()
	p := &player{at: zero}
	jump := func(s *Sample) { s.Counts.Jumps = 1 }
	if _, warned := p.look(1, jump); warned != 1 {
		t.Fatal("not told")
	}
	p.w.End()
	if p.w.Warnings() != nil {
		t.Error("it is still wrong")
	}
	p.w.Begin(false)
	if c, warned := p.look(1, jump); len(c) != 1 || warned != 0 {
		t.Errorf("told again %d: %v", warned, c)
	}
}
