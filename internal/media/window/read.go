package window

import (
	"context"
	"errors"
	"time"

	"millrace/internal/media/timeline"
)

// What a reader is told.
var (
	ErrUnknown = errors.New("no such rendition, segment or part")
	ErrTooFar  = errors.New("too far ahead of the live edge")
	ErrNotYet  = errors.New("nothing to play yet")
	ErrTimeout = errors.New("the live edge did not get there in time")
)

// Place is where bytes are: in Data, or N bytes from Offset on of a stored Object.
type Place struct {
	Data   []byte
	Object string
	Offset int64
	N      int64
}

// Lane describes a rendition at the edge.
type Lane struct {
	timeline.Rendition
	Inits   []timeline.Init // every one so far, the newest last
	Peak    float64         // bits per second, of the fastest segment
	Average float64
}

// Describe tells what there is to play; ErrNotYet before one whole segment exists.
func (e *Edge) Describe() ([]Lane, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sealed == 0 {
		return nil, ErrNotYet
	}
	var out []Lane
	for _, l := range e.lanes {
		if len(l.inits) == 0 {
			continue
		}
		d := Lane{Rendition: l.Rendition, Peak: l.peak}
		for i := range l.inits {
			d.Inits = append(d.Inits, l.inits[i].Init)
		}
		if l.ticks > 0 {
			d.Average = float64(l.bytes) * 8 * float64(l.Timescale) / float64(l.ticks)
		}
		out = append(out, d)
	}
	return out, nil
}

// ReadInit is an initialization segment.
func (e *Edge) ReadInit(rendition string, n int) (Place, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(rendition)
	if l == nil || n < 0 || n >= len(l.inits) {
		return Place{}, ErrUnknown
	}
	in := &l.inits[n]
	return Place{Data: in.data, Object: in.Object, N: -1}, nil
}

// ReadSegment is a whole media segment; one that is still open, or comes next, is waited for.
func (e *Edge) ReadSegment(ctx context.Context, rendition string, msn int64) (Place, error) {
	return e.await(ctx, rendition, func(l *lane) (Place, bool, error) {
		i := msn - e.first
		if i < 0 || i > int64(len(l.segs))+1 {
			return Place{}, false, ErrUnknown
		}
		if i >= int64(len(l.segs)) || !l.segs[i].done {
			return Place{}, false, nil
		}
		s := l.segs[i]
		if s.gap {
			return Place{}, false, ErrUnknown
		}
		return Place{Data: s.buf, Object: e.key(l.ID, msn), N: s.size}, true, nil
	})
}

// ReadPart is a partial segment; the next ones of the open segment are waited for.
func (e *Edge) ReadPart(ctx context.Context, rendition string, msn int64, part int) (Place, error) {
	return e.await(ctx, rendition, func(l *lane) (Place, bool, error) {
		i := msn - e.first
		if i < 0 || i > int64(len(l.segs)) {
			return Place{}, false, ErrUnknown
		}
		if i == int64(len(l.segs)) {
			return Place{}, false, nil
		}
		s := l.segs[i]
		if part < len(s.parts) {
			p := s.parts[part]
			if s.buf == nil {
				return Place{Object: e.key(l.ID, msn), Offset: p.off, N: p.end - p.off}, true, nil
			}
			return Place{Data: s.buf[p.off:p.end:p.end], N: p.end - p.off}, true, nil
		}
		if s.done || part > len(s.parts)+e.advanceLimit(l) {
			return Place{}, false, ErrUnknown
		}
		return Place{}, false, nil
	})
}

// await runs look, with the lock, now and after every publication on the rendition, until it has an answer.
func (e *Edge) await(ctx context.Context, rendition string, look func(l *lane) (Place, bool, error)) (Place, error) {
	var timer *time.Timer
	for {
		e.mu.Lock()
		l := e.lane(rendition)
		if l == nil {
			e.mu.Unlock()
			return Place{}, ErrUnknown
		}
		p, ok, err := look(l)
		if err == nil && !ok && e.ended {
			err = ErrUnknown
		}
		if ok || err != nil {
			e.mu.Unlock()
			return p, err
		}
		if timer == nil {
			timer = time.NewTimer(e.patience())
			defer timer.Stop()
		}
		if l.wait == nil {
			l.wait = make(chan struct{})
		}
		wait := l.wait
		e.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return Place{}, context.Cause(ctx)
		case <-timer.C:
			return Place{}, ErrTimeout
		}
	}
}

// patience is how long a blocked request waits: three target durations, RFC 8216bis section 6.2.5.2.
func (e *Edge) patience() time.Duration {
	return time.Duration(3*max(e.target, 2)) * time.Second
}

// advanceLimit is the Advance Part Limit, section 6.2.5.2: how many parts ahead of the edge may be asked for.
func (e *Edge) advanceLimit(l *lane) int {
	target := e.parts[l.ID]
	if target <= 0 || target >= time.Second {
		return 3
	}
	return int((3*time.Second + target - 1) / target)
}

// Reload is what a playlist request asks for beyond the playlist itself, section 6.2.5.
type Reload struct {
	Event bool  // the whole recording (EVENT) instead of the sliding window
	MSN   int64 // _HLS_msn; -1: do not wait
	Part  int   // _HLS_part; -1: not given
	Skip  bool  // _HLS_skip
}

// Playlist is a rendition's media playlist, plain or compressed with gzip. It waits for the asked media sequence number and part;
// when the edge stands still for three target durations the unchanged playlist is the answer, so that players keep polling.
func (e *Edge) Playlist(ctx context.Context, rendition string, r Reload, compressed bool) ([]byte, error) {
	if r.MSN >= 0 {
		_, err := e.await(ctx, rendition, func(l *lane) (Place, bool, error) { return Place{}, e.reached(l, r), e.sane(l, r) })
		if err != nil && !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrUnknown) {
			return nil, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lane(rendition)
	if l == nil {
		return nil, ErrUnknown
	}
	if e.sealed == 0 {
		return nil, ErrNotYet
	}
	return e.rendered(l, listing{event: r.Event, skip: r.Skip && e.opt.Mode.Low}).bytes(compressed)
}

// sane refuses what no playlist will say soon, section 6.2.5.2.
func (e *Edge) sane(l *lane, r Reload) error {
	last := e.first + int64(len(l.segs)) - 1
	if r.MSN > last+2 {
		return ErrTooFar
	}
	if s := l.open(); r.Part >= 0 && s != nil && r.MSN == s.msn && r.Part > len(s.parts)-1+e.advanceLimit(l) {
		return ErrTooFar
	}
	return nil
}

// reached says that the playlist lists the asked segment, or part of it. A part past a finished segment's end stands for the next
// segment's first part.
func (e *Edge) reached(l *lane, r Reload) bool {
	i := r.MSN - e.first
	if i < 0 {
		return true
	}
	if i >= int64(len(l.segs)) {
		return false
	}
	s := l.segs[i]
	if r.Part < 0 || s.done && r.Part < len(s.parts) {
		return s.done
	}
	if r.Part < len(s.parts) {
		return true
	}
	return s.done && i+1 < int64(len(l.segs)) && (l.segs[i+1].done || len(l.segs[i+1].parts) > 0)
}
