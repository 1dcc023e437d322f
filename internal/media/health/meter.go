// Package health measures what an encoder sends (how much, how regularly, and by which clock) and describes problems in
// plain sentences. A Meter takes the frames of one publication as they arrive; a Watch examines its samples.
//
// It is pure: it must never know protocols, sessions, streams, who reads its figures, or the time of day but from its
// arguments. It owns no goroutine; each value is used by one at a time. A frame costs no allocation.
package health

import (
	"time"

	"millrace/internal/media/frame"
)

const (
	// a frame later than its arrival explains by more than this is a jump of the encoder's clock.
	jumpForward  = time.Second
	jumpBackward = 500 * time.Millisecond // a frame this much before the last one is
	farOff       = 2 * time.Second        // a difference larger than this is a pause of the connection, no jitter
)

// Counts is what others count of a publication since its start.
type Counts struct {
	Dropped         int64 // frames that were not recorded
	Broken          int64 // pictures that no decoder takes, and those behind them up to a key frame: they were left out
	Repaired        int64 // frames whose timestamp was changed because it went backwards or made no sense
	Jumps           int64 // of the encoder's clock
	Discontinuities int64 // jumps, and changes of codec or picture size
	Holes           int64 // places where sound is missing
	Missing         int64 // pictures that the frame rate asks for and that never came
	Variable        bool  // the frame rate is not constant; a state, no count
	// AudioSkew is by how much more samples of sound come than their timestamps have time for, as a part of it;
	// AudioByCount, that the samples are followed. States, no counts.
	AudioSkew    float64
	AudioByCount bool
	// Unheard is how much of what was said has no subtitles live, as recognition was behind.
	Unheard time.Duration
	Link
}

// Link is what the protocol counts of the way here, where it does.
type Link struct {
	Packets, PacketsLost, PacketsRetransmitted, PacketsDropped int64

	RTT time.Duration // a state, no count
}

func (c Counts) since(b Counts) Counts {
	c.Dropped, c.Repaired, c.Jumps, c.Discontinuities = c.Dropped-b.Dropped, c.Repaired-b.Repaired, c.Jumps-b.Jumps,
		c.Discontinuities-b.Discontinuities
	c.Broken, c.Holes, c.Missing = c.Broken-b.Broken, c.Holes-b.Holes, c.Missing-b.Missing
	c.Packets, c.PacketsLost = c.Packets-b.Packets, c.PacketsLost-b.PacketsLost
	c.PacketsRetransmitted, c.PacketsDropped = c.PacketsRetransmitted-b.PacketsRetransmitted,
		c.PacketsDropped-b.PacketsDropped
	c.Unheard -= b.Unheard
	return c
}

// Flow is what came of one kind in a sample.
type Flow struct {
	Frames  int64
	Bytes   int64
	Bitrate float64 // bit/s of media, without the protocol's share
	Rate    float64 // frames a second
	// Jitter is how unevenly frames arrive compared with their timestamps, smoothed as in RFC 3550 section 6.4.1.
	Jitter time.Duration
	// Drift is how far the encoder's clock has run ahead of this machine's since it connected, smoothed; negative:
	// behind.
	Drift time.Duration
}

// Sample is a few seconds of a publication. Its Counts are of that time.
type Sample struct {
	At           time.Time // its end
	Span         time.Duration
	Video, Audio Flow
	Announced    float64       // pictures a second that the stream says it has; 0: it does not say
	GOP          time.Duration // largest distance of key frames, that of the last one to now included
	Pace         float64       // seconds of media a second; 1 when the encoder keeps up
	Counts       Counts
}

// Totals are of a whole publication.
type Totals struct {
	VideoFrames, AudioFrames int64
	Bytes                    int64
	Counts                   Counts
}

// Meter measures one publication.
type Meter struct {
	flows   [2]flow
	since   time.Time // beginning of the sample
	counted Counts    // at the beginning of the sample
	totals  Totals

	announced float64 // pictures a second

	keyed bool          // there was a key frame
	key   time.Duration // time of the last one, on the flow's clock without jumps
	gop   time.Duration // largest distance in the sample
}

type flow struct {
	announced bool
	seen      bool
	dts       time.Duration // of the last frame
	received  time.Time
	clock     time.Duration // time since the first frame without jumps
	first     time.Time     // arrival of the first frame
	jitter    float64       // nanoseconds
	drift     float64       // nanoseconds

	frames, bytes int64 // of the sample
	went          time.Duration
}

// NewMeter begins to measure.
func NewMeter(now time.Time) *Meter { return &Meter{since: now} }

// Configure takes the parameters of a track.
func (m *Meter) Configure(c frame.Config) {
	if int(c.Kind) >= len(m.flows) {
		return
	}
	m.flows[c.Kind].announced = true
	if c.Kind == frame.Video {
		m.announced = c.FrameRate
	}
}

// Write takes a frame as the encoder sent it; received must be set.
func (m *Meter) Write(f *frame.Frame, received time.Time) {
	if int(f.Kind) >= len(m.flows) {
		return
	}
	w := &m.flows[f.Kind]
	w.add(f.DTS, received)
	w.frames++
	w.bytes += int64(len(f.Data))
	if f.Kind != frame.Video {
		return
	}
	if m.keyed {
		m.gop = max(m.gop, w.clock-m.key)
	}
	if f.Key {
		m.keyed, m.key = true, w.clock
	}
}

// smooth is the gain of RFC 3550's estimator; slow that of the drift, which is to follow no jitter.
const smooth, slow = 1.0 / 16, 1.0 / 128

func (fl *flow) add(dts time.Duration, received time.Time) {
	if !fl.seen {
		fl.seen, fl.dts, fl.received, fl.first = true, dts, received, received
		return
	}
	step, wait := dts-fl.dts, received.Sub(fl.received)
	fl.dts, fl.received = dts, received
	if step < -jumpBackward || step > wait+jumpForward {
		fl.first = fl.first.Add(wait) // the time of the jump counts on neither clock
		return
	}
	fl.clock += step
	fl.went += step
	if late := wait - step; late < farOff && late > -farOff {
		fl.jitter += (float64(late.Abs()) - fl.jitter) * smooth
	}
	fl.drift += (float64(fl.clock-received.Sub(fl.first)) - fl.drift) * slow
}

// Sample gives what came since the last sample and begins the next. counts are of the whole publication.
func (m *Meter) Sample(now time.Time, counts Counts) Sample {
	span := now.Sub(m.since)
	s := Sample{At: now, Span: span, Announced: m.announced, GOP: m.gop, Counts: counts.since(m.counted)}
	m.since, m.counted, m.gop = now, counts, 0
	s.Video, s.Audio = m.flows[frame.Video].sample(span), m.flows[frame.Audio].sample(span)
	lead := &m.flows[frame.Video]
	if s.Video.Frames == 0 {
		lead = &m.flows[frame.Audio]
	}
	if span > 0 {
		s.Pace = float64(lead.went) / float64(span)
	}
	m.totals.VideoFrames += s.Video.Frames
	m.totals.AudioFrames += s.Audio.Frames
	m.totals.Bytes += s.Video.Bytes + s.Audio.Bytes
	m.totals.Counts = counts
	for i := range m.flows {
		m.flows[i].frames, m.flows[i].bytes, m.flows[i].went = 0, 0, 0
	}
	return s
}

func (fl *flow) sample(span time.Duration) Flow {
	f := Flow{Frames: fl.frames, Bytes: fl.bytes, Jitter: time.Duration(fl.jitter), Drift: time.Duration(fl.drift)}
	if seconds := span.Seconds(); seconds > 0 {
		f.Bitrate, f.Rate = float64(fl.bytes)*8/seconds, float64(fl.frames)/seconds
	}
	return f
}

// Totals are those up to the last sample.
func (m *Meter) Totals() Totals { return m.totals }

// Announced says which tracks there are.
func (m *Meter) Announced() (video, audio bool) {
	return m.flows[frame.Video].announced, m.flows[frame.Audio].announced
}
