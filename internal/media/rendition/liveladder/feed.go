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
func (e *encoderRun) write(ctx context.Context, in io.Writer) (err error) {
	close(e.fed)
	defer e.c.poke()
	defer func() { e.endFeed(err) }()
	input, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.input, cancel)()
	f, err := e.c.opt.Edge.Follow(e.c.opt.Source, e.job.from)
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
			if err = e.jump(&f); err != nil {
				return err
			}
			continue
		case err != nil && input.Err() != nil && ctx.Err() == nil: // it is told to end
			e.pause()
			return nil
		case err != nil:
			return err
		}
		switch do := e.enter(&step); do {
		case goOn:
		case begin:
			var init []byte
			if init, err = e.c.opt.Init(ctx, step.Init); err != nil {
				return fmt.Errorf("read init segment: %w", err)
			}
			if e.misjudged(init) {
				return nil
			}
			if n, err = e.begin(ctx, in, &step, init); err != nil {
				return err
			}
		case catchUp:
			if err = e.jump(&f); err != nil {
				return err
			}
			continue
		case end:
			return nil
		}
		for _, part := range e.turns(step) {
			buf, n = e.appendStep(buf, n, &part), n+uint32(len(part.Samples))
			if _, err := in.Write(buf); err != nil {
				return err // the engine says what was written
			}
			e.written()
			buf = buf[:0]
			e.waitTurn(input)
		}
	}
}

// turns are what may go in at once: the first part of what is at hand when another encoder has its turn, and the rest
// behind it.
func (e *encoderRun) turns(step window.Step) []window.Step {
	if e.job.turn == nil || len(step.Parts) == 0 || step.Parts[0].Samples >= len(step.Samples) {
		e.job.turn = nil
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
func (e *encoderRun) waitTurn(ctx context.Context) {
	if e.job.turn == nil {
		return
	}
	enough := time.NewTimer(longTurn)
	defer enough.Stop()
	select {
	case <-e.job.turn:
	case <-enough.C:
	case <-ctx.Done():
	}
	e.job.turn = nil
}

// pause says what another encoder has to do: begin with the next segment, or, behind what this one makes of the open
// one, go on there.
func (e *encoderRun) pause() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.went); n == 0 || e.went[n-1].done {
		e.next = &job{rungs: e.job.rungs, from: e.in.at + 1, after: []*encoderRun{e}}
	}
	e.paused = true
}

// endFeed ends an encoder that got no picture, as there was none for it: of an empty input it would say that it is
// broken.
func (e *encoderRun) endFeed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.in.ended, e.writing = true, false
	if err == nil && !e.in.based {
		e.cancel(errNothing)
	}
}

func (e *encoderRun) written() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.writing = false
}

// jump has f go on with the newest segment: those before it are given up.
func (e *encoderRun) jump(f **window.Follower) error {
	msn := e.c.opt.Edge.Newest(e.c.opt.Source)
	e.c.opt.Logger.Warn("encoder of rungs does not keep up: segments are left out", "media_sequence", msn)
	e.mu.Lock()
	for _, o := range e.outs {
		o.skip(msn, "the encoder is behind")
	}
	e.mu.Unlock()
	next, err := e.c.opt.Edge.Follow(e.c.opt.Source, msn)
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
func (e *encoderRun) enter(step *window.Step) int {
	newest := e.c.opt.Edge.Newest(e.c.opt.Source)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.in.any && step.MSN == e.in.at:
		return goOn
	case e.to != 0 && step.MSN >= e.to:
		return end
	case step.MSN < newest-1 && (e.in.any || len(e.job.stood) == 0):
		return catchUp
	case e.in.any && step.Init != e.in.init: // an encoder for each picture size and codec
		e.next = &job{rungs: e.job.rungs, from: step.MSN, after: []*encoderRun{e}}
		return end
	}
	e.in.at = step.MSN
	s := &fedSegment{msn: step.MSN}
	if e.in.based { // the first picture of all is a key frame by itself, and what the parity of times is measured by
		s.keys = append(s.keys, border{math.MinInt64, math.MaxInt64})
	}
	for _, o := range e.outs {
		if m, ok := e.job.stood[o.rung.ID]; ok && m.msn == s.msn && m.parts > 0 {
			s.keys = append(s.keys, border{m.shown, math.MaxInt64})
		}
	}
	e.went = append(e.went, s)
	if e.in.any {
		return goOn
	}
	e.in.any, e.in.init = true, step.Init
	return begin
}

// misjudged reports whether the first picture's range is another than the one that the encoder was begun for. Another
// encoder has to do the same for that one then.
func (e *encoderRun) misjudged(init []byte) bool {
	tracks, err := cmaf.NewReader(bytes.NewReader(init), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 {
		return false // the encoder says what is wrong with it
	}
	actual := tracks[0].VideoRange()
	if actual == e.job.videoRange {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	next := e.job
	next.videoRange, next.ranged, next.over = actual, true, nil
	e.next = &next
	return true
}

// appendStep notes what goes in, and appends it to buf: a movie fragment for each picture, n the first one's number.
func (e *encoderRun) appendStep(buf []byte, n uint32, step *window.Step) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.c.opt.Now()
	if !e.missing() {
		e.moved = now
	}
	s := e.went[len(e.went)-1]
	for i, p := range step.Samples {
		if !e.in.based {
			e.in.base, e.in.based = p.Time, true
		}
		e.came, e.writing = now, true
		what := encoded
		if s.add(&p) {
			what = encodedAsKey
		}
		buf = e.appendPicture(buf, n+uint32(i), &p, what)
	}
	s.parts, s.done = append(s.parts, step.Parts...), step.Done
	if len(step.Parts) > 0 || step.Done {
		for _, o := range e.outs {
			o.advance()
		}
		e.forget()
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
func (e *encoderRun) appendPicture(buf []byte, n uint32, p *window.Sample, what int64) []byte {
	at := max(p.Time-e.in.base+e.lead(), 0)
	shown := (max(p.Shown-e.in.base+e.lead(), at)+3)&^3 + what
	return cmaf.AppendFragment(buf, n, cmaf.TrackID, uint64(at), []cmaf.Sample{{
		Duration: 1, CompositionOffset: int32(shown - at), Sync: p.Key, Data: p.Data,
	}})
}

// clockAt is where the first picture is decoded on the encoder's clock: nothing on it is negative.
const clockAt = 60 * time.Second

// lead is clockAt in ticks.
func (e *encoderRun) lead() int64 { return int64(clockAt/time.Second) * int64(e.c.opt.Timescale) }

// add notes a picture and reports whether it has to be a key frame.
func (f *fedSegment) add(p *window.Sample) (key bool) {
	f.times = append(f.times, p.Time)
	at, _ := slices.BinarySearch(f.shown, p.Shown)
	f.shown = slices.Insert(f.shown, at, p.Shown)
	for i := range f.keys {
		if b := &f.keys[i]; p.Shown > b.after && p.Shown < b.least {
			b.least, key = p.Shown, true
		}
	}
	return key
}

// forget drops the segments that are out in every rung. The caller holds the lock.
func (e *encoderRun) forget() {
	for len(e.went) > 1 || len(e.went) == 1 && e.went[0].done {
		for _, o := range e.outs {
			if o.msn <= e.went[0].msn {
				return
			}
		}
		e.went = e.went[1:]
	}
}
