package session

import (
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/frame"
)

const (
	audioSlack  = 20 * time.Millisecond // a smoothed error beyond this is corrected
	audioStray  = 25 * time.Millisecond // a frame further off than this waits for others that agree
	audioVerify = 80 * time.Millisecond // how much of them, at least two frames
	maxVerify   = 4                     // frames
)

// audioTrack counts samples: they are its clock, and the encoder's time is followed only when it is off for good.
type audioTrack struct {
	s       *Session
	config  *frame.Config // as told to the output; nil before
	next    *frame.Config // to be told
	clock   codec.Clock
	rate    int64 // Hz, of the core: what a frame's length is counted in
	length  int64 // samples of the last frame
	started bool
	pos     int64 // samples from the origin to the next frame
	end     time.Duration
	drift   time.Duration // smoothed: encoder's time - counted time
	waiting []item        // strays
	waits   int64         // samples of the strays
	rates   soundClock
	moved   time.Duration // added to the timestamps because the samples are right
}

func (a *audioTrack) time(pos int64) time.Duration {
	return time.Duration(pos/a.rate)*time.Second + time.Duration((pos%a.rate*int64(time.Second)+a.rate/2)/a.rate)
}

func (a *audioTrack) samples(d time.Duration) int64 {
	sec, rest := int64(d/time.Second), int64(d%time.Second)
	return sec*a.rate + (rest*a.rate+int64(time.Second)/2)/int64(time.Second)
}

func (a *audioTrack) step() time.Duration {
	return time.Duration(a.length * int64(time.Second) / a.rate)
}

// configure tells the output the waiting configuration and keeps the place on the clock.
func (a *audioTrack) configure() error {
	c := a.next
	a.next = nil
	a.clock, a.config = codec.ClockOf(*c), c
	a.rate, a.length = a.clock.Rate, a.clock.Length
	if a.started {
		now := a.end
		if a.pos = a.samples(now); a.time(a.pos) < now {
			a.pos++
		}
	}
	a.s.continuity.tracks[frame.Audio].setStep(a.step())
	return a.s.out.Configure(*c)
}

// write takes a frame that is due at t on the output's clock.
func (a *audioTrack) write(i item, t time.Duration) error {
	if !a.started {
		if t < -time.Millisecond/2 {
			a.s.stats.Dropped++
			return nil
		}
		a.started, a.pos = true, a.samples(max(t, 0))
	}
	i.at = t
	if n := a.clock.Samples(i.Data); n != a.length { // Opus and FLAC may change it at any frame
		a.length = n
		a.s.continuity.tracks[frame.Audio].setStep(a.step())
	}
	a.rates.frame(t-a.moved, a.step(), i.Received)
	a.s.stats.AudioSkew, a.s.stats.AudioByCount = a.rates.skew, a.rates.byCount
	off := t - a.time(a.pos+a.waits)
	if off > audioStray || off < -audioStray {
		a.waiting = append(a.waiting, i)
		a.waits += a.length
		n := len(a.waiting)
		if n >= maxVerify || n >= 2 && a.time(a.waits) >= audioVerify {
			return a.placeStrays()
		}
		return nil
	}
	if len(a.waiting) > 0 { // it was jitter
		if err := a.flush(); err != nil {
			return err
		}
	}
	a.drift += (t - a.time(a.pos) - a.drift) / max(1, time.Duration(a.rate/a.length/2))
	if a.rates.byCount && abs(a.drift) > clockFollow { // the timestamps are wrong, not the samples
		a.moved -= a.drift
		a.s.continuity.move(frame.Audio, -a.drift)
		a.drift = 0
		return a.emit(i)
	}
	if a.drift > audioSlack {
		a.hole(a.drift)
	} else if a.drift < -audioSlack {
		// a frame less, and what that is too much as a hole
		a.s.stats.Dropped++
		keep := max(0, a.length+a.samplesSigned(a.drift))
		a.drift += time.Duration((a.length - keep) * int64(time.Second) / a.rate)
		a.pos += keep
		return nil
	}
	return a.emit(i)
}

func (a *audioTrack) samplesSigned(d time.Duration) int64 {
	if d < 0 {
		return -a.samples(-d)
	}
	return a.samples(d)
}

// hole leaves a place of silence.
func (a *audioTrack) hole(d time.Duration) {
	n := a.samples(d)
	a.pos += n
	a.drift = 0
	a.s.stats.Holes++
}

func (a *audioTrack) emit(i item) error {
	f := i.Frame
	f.DTS = a.time(a.pos)
	f.PTS = f.DTS
	a.pos += a.clock.Samples(f.Data)
	a.end = a.time(a.pos)
	f.Duration = a.end - f.DTS
	f.Key = true
	a.s.stats.AudioFrames++
	return a.s.out.Write(f)
}

// flush writes the strays one after the other.
func (a *audioTrack) flush() error {
	for _, i := range a.waiting {
		if err := a.emit(i); err != nil {
			return err
		}
	}
	a.forget()
	return nil
}

// placeStrays decides about the strays: when all are off to the same side they are placed where they say, with a hole
// before or without the frames that come too late for it.
func (a *audioTrack) placeStrays() error {
	late, early := 0, 0
	due := a.pos
	for _, i := range a.waiting {
		if i.at > a.time(due) {
			late++
		} else {
			early++
		}
		due += a.clock.Samples(i.Data)
	}
	if late > 0 && early > 0 {
		return a.flush()
	}
	for _, i := range a.waiting {
		switch off := i.at - a.time(a.pos); {
		case off > audioSlack:
			a.hole(off)
		case off < -audioSlack:
			a.s.stats.Dropped++
			continue
		}
		if err := a.emit(i); err != nil {
			return err
		}
	}
	a.drift = 0
	a.forget()
	return nil
}

func (a *audioTrack) forget() {
	clear(a.waiting)
	a.waiting, a.waits = a.waiting[:0], 0
}
