package liveladder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/window"
)

// write is the encoder's input: the source's pictures from the first segment on.
func (x *encoderRun) write(ctx context.Context, in io.Writer) (err error) {
	close(x.fed)
	defer x.c.poke()
	defer func() { x.endFeed(err) }()
	input, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(x.input, cancel)()
	f, err := x.c.opt.Edge.Follow(x.c.opt.Source, x.job.from)
	if err != nil {
		return fmt.Errorf("follow the live edge: %w", err)
	}
	defer func() { f.Close() }()
	var buf []byte
	for n := uint32(1); ; {
		step, err := f.Next(input)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, window.ErrBehind):
			if err = x.jump(&f); err != nil {
				return err
			}
			continue
		case err != nil && input.Err() != nil && ctx.Err() == nil: // it is told to end
			x.pause()
			return nil
		case err != nil:
			return err
		}
		switch do := x.enter(&step); do {
		case goOn:
		case begin:
			var init []byte
			if init, err = x.c.opt.Init(ctx, step.Init); err != nil {
				return fmt.Errorf("read init segment: %w", err)
			}
			if x.misjudged(init) {
				return nil
			}
			if n, err = x.begin(ctx, in, &step, init); err != nil {
				return err
			}
		case catchUp:
			if err = x.jump(&f); err != nil {
				return err
			}
			continue
		case end:
			return nil
		}
		for _, part := range x.turns(step) {
			buf, n = x.take(buf, n, &part), n+uint32(len(part.Samples))
			if _, err := in.Write(buf); err != nil {
				return err // the engine says what was written
			}
			x.written()
			buf = buf[:0]
			x.waitTurn(input)
		}
	}
}

// turns are what may go in at once: the first part of what is at hand when another encoder has its turn, and the rest
// behind it.
func (x *encoderRun) turns(step window.Step) []window.Step {
	if x.job.turn == nil || len(step.Parts) == 0 || step.Parts[0].Samples >= len(step.Samples) {
		x.job.turn = nil
		return []window.Step{step}
	}
	first, rest, n := step, step, step.Parts[0].Samples
	first.Samples, first.Parts, first.Done = step.Samples[:n], step.Parts[:1], false
	rest.Samples, rest.Parts = step.Samples[n:], step.Parts[1:]
	return []window.Step{first, rest}
}

// longTurn is how long another encoder's turn may take: a quarter of that will do.
const longTurn = 2 * time.Second

// waitTurn waits until it is this encoder's turn.
func (x *encoderRun) waitTurn(ctx context.Context) {
	if x.job.turn == nil {
		return
	}
	enough := time.NewTimer(longTurn)
	defer enough.Stop()
	select {
	case <-x.job.turn:
	case <-enough.C:
	case <-ctx.Done():
	}
	x.job.turn = nil
}

// pause says what another encoder has to do: begin with the next segment, or, behind what this one makes of the open
// one, go on there.
func (x *encoderRun) pause() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.went); n == 0 || x.went[n-1].done {
		x.next = &job{rungs: x.job.rungs, from: x.in.at + 1, after: []*encoderRun{x}}
	}
	x.paused = true
}

// endFeed ends an encoder that got no picture, as there was none for it: of an empty input it would say that it is
// broken.
func (x *encoderRun) endFeed(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.in.ended, x.writing = true, false
	if err == nil && !x.in.based {
		x.cancel(errNothing)
	}
}

func (x *encoderRun) written() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writing = false
}

// jump has f go on with the newest segment: those before it are given up.
func (x *encoderRun) jump(f **window.Follower) error {
	msn := x.c.opt.Edge.Newest(x.c.opt.Source)
	x.c.opt.Logger.Warn("encoder of rungs does not keep up: segments are left out", "media_sequence", msn)
	x.mu.Lock()
	for _, o := range x.outs {
		o.skip(msn, "the encoder is behind")
	}
	x.mu.Unlock()
	next, err := x.c.opt.Edge.Follow(x.c.opt.Source, msn)
	if err != nil {
		return fmt.Errorf("follow the live edge: %w", err)
	}
	(*f).Close()
	*f = next
	return nil
}

// what to do with a step.
const (
	goOn    = iota
	begin   // it is the first one
	catchUp // it is too late for it
	end     // it is not this encoder's any more
)

// enter says what to do with a step, which may begin another segment.
func (x *encoderRun) enter(step *window.Step) int {
	newest := x.c.opt.Edge.Newest(x.c.opt.Source)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.in.any && step.MSN == x.in.at:
		return goOn
	case x.to != 0 && step.MSN >= x.to:
		return end
	case step.MSN < newest-1 && (x.in.any || len(x.job.stood) == 0):
		return catchUp
	case x.in.any && step.Init != x.in.init: // an encoder for each picture size and codec
		x.next = &job{rungs: x.job.rungs, from: step.MSN, after: []*encoderRun{x}}
		return end
	}
	x.in.at = step.MSN
	s := &fedSegment{msn: step.MSN}
	if x.in.based { // the first picture of all is a key frame by itself, and what the parity of times is measured by
		s.keys = append(s.keys, border{math.MinInt64, math.MaxInt64})
	}
	for _, o := range x.outs {
		if m, ok := x.job.stood[o.rung.ID]; ok && m.msn == s.msn && m.parts > 0 {
			s.keys = append(s.keys, border{m.shown, math.MaxInt64})
		}
	}
	x.went = append(x.went, s)
	if x.in.any {
		return goOn
	}
	x.in.any, x.in.init = true, step.Init
	return begin
}

// misjudged reports whether the first picture's range is another than the one that the encoder was begun for. Another
// encoder has to do the same for that one then.
func (x *encoderRun) misjudged(init []byte) bool {
	tracks, err := cmaf.NewReader(bytes.NewReader(init), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 {
		return false // the encoder says what is wrong with it
	}
	actual := tracks[0].VideoRange()
	if actual == x.job.videoRange {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	next := x.job
	next.videoRange, next.ranged, next.over = actual, true, nil
	x.next = &next
	return true
}

// take notes what goes in, and appends it to buf: a movie fragment for each picture, n the first one's number.
func (x *encoderRun) take(buf []byte, n uint32, step *window.Step) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.c.opt.Now()
	if !x.missing() {
		x.moved = now
	}
	s := x.went[len(x.went)-1]
	for i, p := range step.Samples {
		if !x.in.based {
			x.in.base, x.in.based = p.Time, true
		}
		x.came, x.writing = now, true
		what := encoded
		if s.add(&p) {
			what = encodedAsKey
		}
		buf = x.appendPicture(buf, n+uint32(i), &p, what)
	}
	s.parts, s.done = append(s.parts, step.Parts...), step.Done
	if len(step.Parts) > 0 || step.Done {
		for _, o := range x.outs {
			o.advance()
		}
		x.forget()
	}
	return buf
}

// What the encoder makes of a picture: the remainder of its presentation time by four, in ticks. See encode.LadderArgs.
const (
	encoded int64 = iota
	encodedAsKey
	decodedOnly
)

// appendPicture adds a movie fragment with a picture, on the encoder's clock.
func (x *encoderRun) appendPicture(buf []byte, n uint32, p *window.Sample, what int64) []byte {
	at := max(p.Time-x.in.base+x.lead(), 0)
	shown := (max(p.Shown-x.in.base+x.lead(), at)+3)&^3 + what
	return cmaf.AppendFragment(buf, n, cmaf.TrackID, uint64(at), []cmaf.Sample{{
		Duration: 1, CompositionOffset: int32(shown - at), Sync: p.Key, Data: p.Data,
	}})
}

// clockAt is where the first picture is decoded on the encoder's clock: nothing on it is negative.
const clockAt = 60 * time.Second

// lead is clockAt in ticks.
func (x *encoderRun) lead() int64 { return int64(clockAt/time.Second) * int64(x.c.opt.Timescale) }

// add notes a picture and reports whether it has to be a key frame.
func (s *fedSegment) add(p *window.Sample) (key bool) {
	s.times = append(s.times, p.Time)
	at, _ := slices.BinarySearch(s.shown, p.Shown)
	s.shown = slices.Insert(s.shown, at, p.Shown)
	for i := range s.keys {
		if b := &s.keys[i]; p.Shown > b.after && p.Shown < b.least {
			b.least, key = p.Shown, true
		}
	}
	return key
}

// forget drops the segments that are out in every rung. The caller holds the lock.
func (x *encoderRun) forget() {
	for len(x.went) > 1 || len(x.went) == 1 && x.went[0].done {
		for _, o := range x.outs {
			if o.msn <= x.went[0].msn {
				return
			}
		}
		x.went = x.went[1:]
	}
}
