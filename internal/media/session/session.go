package session

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/frame"
)

const (
	maxEarly      = 2048 // frames of sound kept while the picture has not begun: 5 s of the shortest Opus packets
	maxEarlyBytes = 2 << 20
	keyFrameWait  = 25 * time.Second // for a first key frame when there is video: more than the longest GOP
	videoGone     = 2 * time.Second  // video this far behind sound is not waited for
	lengthSize    = 4                // bytes before each NAL unit, as frames have them
)

// ErrClosed is returned for frames after Close.
var ErrClosed = errors.New("session is closed")

// Options configures a Session. Output is required.
type Options struct {
	Output Output
	Logger *slog.Logger // slog.Default when nil; the opener of the session adds the stream's id
	Now    func() time.Time
	// WaitForTracks is how long, in stream time, sound waits for a first video key frame before the publication counts
	// as audio only; twice that in real time. 1 s when 0. Once video is announced the wait is for its key frame.
	WaitForTracks time.Duration
	// Breaks bounds the discontinuities; those of this publication alone when nil.
	Breaks *Breaks
}

// Session is one publication; it implements ingest.Sink. See the package comment for its goroutines.
type Session struct {
	out  Output
	log  *slog.Logger
	now  func() time.Time
	wait time.Duration

	continuity continuity
	video      videoTrack
	audio      audioTrack
	configs    [2]*frame.Config // last given, of each kind
	filter     *codec.Filter    // of the picture; nil before its parameters

	origin    time.Duration // continuous time that is 0 on the output's clock
	running   bool          // the origin is set and frames flow
	early     []item        // frames before that, in order of arrival
	bytes     int
	probing   bool // early has the first key frame and what follows it
	began     time.Time
	jumped    string // a discontinuity to be told at the next key frame
	needKey   bool   // one was told while the picture was away: it comes back with a key frame
	closed    bool
	failed    error
	breaks    *Breaks
	received  time.Time // the newest frame's arrival
	stats     Stats
	mu        sync.Mutex // guards published
	published Stats
}

// New makes a Session.
func New(o Options) *Session {
	s := &Session{out: o.Output, log: o.Logger, now: o.Now, wait: o.WaitForTracks, breaks: o.Breaks}
	if s.breaks == nil {
		s.breaks = NewBreaks()
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.wait <= 0 {
		s.wait = time.Second
	}
	s.video.s, s.audio.s = s, s
	s.audio.clock = codec.ClockOf(frame.Config{Codec: frame.AAC, SampleRate: 48000})
	s.audio.rate, s.audio.length = s.audio.clock.Rate, s.audio.clock.Length
	s.continuity.pass = s.pass
	s.continuity.glitch = func() { s.stats.Clamped++ }
	s.continuity.lose = func() { s.stats.Dropped++ }
	s.continuity.steady = func() bool { return s.video.rate.constant || !s.video.started }
	return s
}

// Configure takes a track's parameters. What equals the last ones is ignored; new ones take effect with the next key
// frame.
func (s *Session) Configure(c frame.Config) error {
	if s.closed {
		return ErrClosed
	}
	if c.Kind != frame.Video && c.Kind != frame.Audio {
		return fmt.Errorf("configure track: kind %d", c.Kind)
	}
	if last := s.configs[c.Kind]; last != nil && same(*last, c) {
		return nil
	}
	if s.configs[c.Kind] != nil { // what came before belongs to the old parameters
		if s.failed = s.flush(c.Kind); s.failed != nil {
			return s.failed
		}
	}
	s.configs[c.Kind] = &c
	if c.Kind == frame.Video {
		s.video.next, s.video.last = &c, frame.Frame{}
		s.filter = codec.NewFilter(c, lengthSize)
	} else {
		s.audio.next = &c
	}
	return nil
}

// flush lets go of what is held back before the parameters of a kind change.
func (s *Session) flush(k frame.Kind) error {
	if s.failed != nil {
		return s.failed
	}
	if err := s.continuity.finish(); err != nil {
		return err
	}
	if k == frame.Video && s.probing {
		return s.run()
	}
	if k == frame.Audio && !s.running {
		s.early = slices.DeleteFunc(s.early, func(i item) bool { return i.Kind == frame.Audio })
	}
	return nil
}

func same(a, b frame.Config) bool {
	return a.Codec == b.Codec && a.Width == b.Width && a.Height == b.Height && a.SampleRate == b.SampleRate &&
		a.Channels == b.Channels &&
		bytes.Equal(a.VPS, b.VPS) && bytes.Equal(a.SPS, b.SPS) && bytes.Equal(a.PPS, b.PPS) &&
		slices.EqualFunc(a.Sets, b.Sets, bytes.Equal) &&
		bytes.Equal(a.ASC, b.ASC) && bytes.Equal(a.Header, b.Header)
}

// Write takes the next frame as the encoder stamped it.
func (s *Session) Write(f frame.Frame) error {
	if s.closed {
		return ErrClosed
	}
	if s.failed != nil {
		return s.failed
	}
	if f.Kind > frame.Audio || s.configs[f.Kind] == nil {
		s.stats.Dropped++
		return nil
	}
	if f.Received.IsZero() {
		f.Received = s.now()
	}
	if s.began.IsZero() {
		s.began = f.Received
	}
	s.received = f.Received
	if f.Kind == frame.Video && s.video.repeated(f) {
		s.stats.Dropped++
		s.publishStats()
		return nil
	}
	if f.Kind == frame.Video {
		switch s.filter.Judge(f.Data, f.Key, f.DTS) {
		case codec.Kept:
		case codec.NoPicture:
			return nil
		case codec.Damaged:
			s.stats.Broken++
			s.publishStats()
			return nil
		}
	}
	s.failed = s.continuity.write(f)
	s.publishStats()
	return s.failed
}

// Close writes what was held back and closes the output. It is called once, also after an error or a panic.
func (s *Session) Close(cause error) {
	if s.closed {
		return
	}
	s.closed = true
	defer func() {
		if err := s.out.Close(cause); err != nil {
			s.log.Error("close output", "error", err)
		}
		s.publishStats()
	}()
	if s.failed != nil {
		return
	}
	if err := s.finish(); err != nil {
		s.log.Error("write last frames", "error", err)
	}
}

func (s *Session) finish() error {
	if err := s.continuity.finish(); err != nil {
		return err
	}
	if len(s.early) > 0 && !s.running {
		if !s.probing {
			s.origin = s.early[0].at
		}
		if err := s.run(); err != nil {
			return err
		}
	}
	if s.probing {
		if err := s.run(); err != nil {
			return err
		}
	}
	return s.audio.placeStrays()
}

// pass takes a frame from the continuous clock: it waits for the start, or goes to its track.
func (s *Session) pass(i item) error {
	switch {
	case s.running && (i.Kind == frame.Audio || s.video.started):
		return s.deliver(i)
	case s.probing && i.Kind == frame.Video, s.probing && !s.running:
		return s.probe(i)
	case i.Kind == frame.Video && i.Key:
		return s.firstKey(i)
	case i.Kind == frame.Video:
		s.stats.Dropped++
		return nil
	}
	return s.waitForVideo(i)
}

// waitForVideo keeps sound that comes before the first key frame, and starts without one when none comes.
func (s *Session) waitForVideo(i item) error {
	s.keep(i)
	for len(s.early) > maxEarly || s.bytes > maxEarlyBytes {
		s.bytes -= len(s.early[0].Data)
		s.early = slices.Delete(s.early, 0, 1)
		s.stats.Dropped++
	}
	wait := s.wait
	if s.configs[frame.Video] != nil {
		wait = keyFrameWait
	}
	if i.at-s.early[0].at < wait && i.Received.Sub(s.began) < 2*wait {
		return nil
	}
	s.origin = s.early[0].at
	return s.run()
}

func (s *Session) keep(i item) {
	s.early = append(s.early, i)
	s.bytes += len(i.Data)
}

// firstKey sets the clock's origin if nothing runs yet, and begins to look at the frame rate.
func (s *Session) firstKey(i item) error {
	if !s.running {
		s.origin = i.at
	}
	s.probing = true
	s.began = i.Received
	return s.probe(i)
}

// probe holds frames back until the rate is known. It costs no latency: a playlist waits for a whole segment anyway.
func (s *Session) probe(i item) error {
	s.keep(i)
	var buf [maxProbeFrames]time.Duration
	times := buf[:0]
	for _, e := range s.early {
		if e.Kind == frame.Video && len(times) < len(buf) && (len(times) == 0 || e.at > times[len(times)-1]) {
			times = append(times, e.at)
		}
	}
	span := times[len(times)-1] - times[0]
	enough := len(times) >= probeFrames && s.announcedFits(times) || len(times) >= leastProbed && span >= probeTime
	if !enough && len(s.early) < maxProbeFrames && s.bytes < maxProbeBytes && i.Received.Sub(s.began) < probeWall {
		return nil
	}
	return s.run()
}

// announcedFits reports whether the parameter sets announce a rate that the frames have.
func (s *Session) announcedFits(times []time.Duration) bool {
	said, ok := rational(s.configs[frame.Video].FrameRate)
	r := classify(times, s.configs[frame.Video].FrameRate)
	return ok && r.constant && r.interval == said
}

// run ends the waiting: the output gets the tracks that are known, then the frames that were kept.
func (s *Session) run() error {
	kept, probed := s.early, s.probing
	s.early, s.bytes, s.probing = nil, 0, false
	s.running = true
	if probed {
		if err := s.startVideo(kept); err != nil {
			return err
		}
	}
	if s.audio.next != nil && s.audio.config == nil {
		if err := s.audio.configure(); err != nil {
			return err
		}
	}
	for _, i := range kept {
		if err := s.deliver(i); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) startVideo(kept []item) error {
	var times []time.Duration
	for _, i := range kept {
		if i.Kind != frame.Video {
			continue
		}
		if len(times) == 0 || i.at > times[len(times)-1] {
			if len(times) > 0 {
				s.video.spacing.saw(i.at - times[len(times)-1])
			}
			times = append(times, i.at)
		}
		if o := i.offset(); o < -s.video.shift && o >= minOffset {
			s.video.shift = -o
		}
	}
	if err := s.video.configure(); err != nil {
		return err
	}
	start := max(0, times[0]-s.origin)
	s.video.end = start
	return s.video.begin(classify(times, s.video.config.FrameRate), start)
}

// deliver gives a frame to its track, after what has to be told before it.
func (s *Session) deliver(i item) error {
	if i.jumped != "" {
		s.jumped = i.jumped
	}
	t := i.at - s.origin
	if i.Kind == frame.Video {
		return s.deliverVideo(i, t)
	}
	t += s.video.shift
	if alone := !s.video.started || t > s.video.end+videoGone; alone && (s.jumped != "" || s.audio.next != nil) {
		if err := s.change(false); err != nil {
			return err
		}
	}
	if s.audio.next != nil {
		// new parameters wait for the picture's next key frame, so that both change at one place
		if s.audio.config != nil {
			s.stats.Dropped++
			return nil
		}
		if err := s.audio.configure(); err != nil {
			return err
		}
	}
	return s.audio.write(i, t)
}

func (s *Session) deliverVideo(i item, t time.Duration) error {
	if s.video.next != nil && !i.Key {
		s.stats.Dropped++ // belongs to parameters that are gone or are not told yet
		return nil
	}
	if s.needKey && !i.Key {
		s.stats.Dropped++
		return nil
	}
	s.needKey = false
	if i.Key && (s.jumped != "" || s.video.next != nil || s.audio.next != nil && s.audio.config != nil) {
		if err := s.change(true); err != nil {
			return err
		}
	}
	return s.video.write(i, t)
}

// change tells the output that a new stretch begins, and with which parameters. key: its first frame is a key frame.
func (s *Session) change(key bool) error {
	reason := s.jumped
	if reason != "" {
		s.stats.Jumps++
	}
	video := key && s.video.next != nil && s.video.started
	switch {
	case video:
		reason = "video parameters changed"
	case s.audio.next != nil && s.audio.config != nil && reason == "":
		reason = "audio parameters changed"
	}
	s.jumped = ""
	if s.audio.next != nil && s.audio.started { // what waits belongs to the old parameters
		if err := s.audio.placeStrays(); err != nil {
			return err
		}
	}
	if reason != "" && s.stats.VideoFrames+s.stats.AudioFrames > 0 {
		if err := s.breaks.add(s.received, reason); err != nil {
			return err
		}
		s.stats.Discontinuities++
		s.needKey = !key && s.video.started
		s.log.Info("discontinuity", "reason", reason, "at", max(s.video.end, s.audio.end))
		if err := s.out.Discontinuity(reason); err != nil {
			return err
		}
	}
	if video {
		if err := s.video.configure(); err != nil {
			return err
		}
	}
	if s.audio.next != nil {
		return s.audio.configure()
	}
	return nil
}
