package slate

import (
	"fmt"
	"time"

	"millrace/internal/media/frame"
)

// show is a stretch of slate: the picture over and over, and silence.
type show struct {
	f       *Writer
	started time.Time // wall clock of its beginning
	pace    time.Duration
	out     Output
	// Pictures are presented so much later than they are decoded, as the encoder's are: those join without a hole.
	lag time.Duration

	video   *frame.Config
	samples [][]byte
	fps     float64
	shown   int64 // pictures so far

	audio   *frame.Config
	silence Silence
	heard   int64 // frames of silence so far
}

func newShow(f *Writer, started time.Time) *show {
	s := &show{f: f, started: started, pace: max(f.opt.Limit()/2, 100*time.Millisecond)}
	if v := &f.known[frame.Video]; v.has {
		s.lag = v.lag
		if f.still != nil && f.still.shape() == v.shape() {
			s.video, s.samples, s.fps = &f.still.Config, f.still.Samples, f.still.FPS
		} else { // the picture that the encoder sent last, as often as a part may last
			config, data := f.lastPicture()
			s.video, s.samples = config, [][]byte{data}
			s.fps = v.rate() / float64(frames(v.rate(), f.opt.Limit()))
		}
	}
	if a := &f.known[frame.Audio]; a.has {
		if silence, ok := SilenceOf(a.config); ok {
			s.audio, s.silence = &a.config, silence
		}
	}
	return s
}

func (s *show) open() error {
	s.out = s.f.opt.Open(true, s.started)
	if s.video != nil {
		if err := s.out.Configure(*s.video); err != nil {
			return fmt.Errorf("show slate: %w", err)
		}
		if err := s.out.Rate(s.fps, true); err != nil {
			return fmt.Errorf("show slate: %w", err)
		}
	}
	if s.audio == nil {
		return nil
	}
	if err := s.out.Configure(*s.audio); err != nil {
		return fmt.Errorf("show slate: %w", err)
	}
	return nil
}

// advance writes everything that ends before `until` on the stretch's clock.
func (s *show) advance(until time.Duration) error {
	for {
		f, ok := s.next()
		if !ok || f.PTS+f.Duration > until+s.lag {
			return nil
		}
		if err := s.out.Write(f); err != nil {
			return fmt.Errorf("show slate: %w", err)
		}
		if f.Kind == frame.Video {
			s.shown++
		} else {
			s.heard++
		}
	}
}

// next is the frame that comes next.
func (s *show) next() (frame.Frame, bool) {
	video, audio := at(s.shown, s.fps), s.silence.at(s.heard)
	switch {
	case s.video != nil && (s.audio == nil || video <= audio):
		n := s.shown % int64(len(s.samples))
		return frame.Frame{
			Kind: frame.Video, DTS: video, PTS: video + s.lag, Duration: at(s.shown+1, s.fps) - video, Key: n == 0,
			Data:     s.samples[n],
			Received: s.started.Add(video),
		}, true
	case s.audio != nil:
		return frame.Frame{
			Kind: frame.Audio, DTS: audio + s.lag, PTS: audio + s.lag, Duration: s.silence.at(s.heard+1) - audio,
			Key: true, Data: s.silence.Packet,
			Received: s.started.Add(audio),
		}, true
	}
	return frame.Frame{}, false
}

// conclude fills the sound up to where the picture ends.
func (s *show) conclude() {
	if s.video == nil || s.audio == nil {
		return
	}
	from := s.silence.at(s.heard)
	if packet, long := s.silence.fill(s.length() - from); packet != nil {
		_ = s.out.Write(frame.Frame{ // closing says what is wrong with the output
			Kind: frame.Audio, DTS: from + s.lag, PTS: from + s.lag, Duration: long, Key: true, Data: packet,
			Received: s.started.Add(from),
		})
	}
}

// length is how much of the stretch is written.
func (s *show) length() time.Duration {
	if s.video != nil {
		return at(s.shown, s.fps)
	}
	return s.silence.at(s.heard)
}
