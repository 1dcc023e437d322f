package window

import (
	"context"
	"errors"
	"fmt"
	"io"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/journal"
)

// Sample is a picture as it comes to the edge, before its part is whole. Times are in ticks.
type Sample struct {
	Time, Shown int64 // of decoding and of presentation
	Key         bool
	Data        []byte
}

// PartEnd is where a part ends.
type PartEnd struct {
	Samples int   // of its segment, up to here
	Time    int64 // ticks: where the last one's decoding ends
}

// Step is what has come to one segment since the step before: samples, the ends of parts, and the segment's end.
type Step struct {
	MSN     int64
	Init    int
	Samples []Sample
	Parts   []PartEnd
	Done    bool

	Discontinuity bool // of its segment: the samples do not follow those before
	Slate         bool // it stands in for an encoder that is away
}

// ErrBehind says that a follower was too slow: what comes next is not at hand any more.
var ErrBehind = errors.New("too far behind the live edge")

// Follower reads a rendition picture by picture, as it comes. It holds nothing up: one that is slow is told that it is
// behind. One goroutine at a time may call its methods.
type Follower struct {
	e         *Edge
	l         *liveRendition
	i         int   // segment, from Edge.first on
	given     int   // samples of it that were given
	whole     int   // samples of it that are in parts which were told
	announced int   // parts of it that were told
	at        int64 // ticks: where those end

	closed bool
}

// Follow reads a rendition from the beginning of a segment on, which may be one that has not begun. It has to be
// closed.
func (e *Edge) Follow(rendition string, msn int64) (*Follower, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if l == nil {
		return nil, ErrUnknown
	}
	l.followers++
	return &Follower{e: e, l: l, i: max(int(msn-e.first), 0)}, nil
}

// Newest is the segment that is open in a rendition, or the one that comes next.
func (e *Edge) Newest(rendition string) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if l == nil {
		return e.first
	}
	return l.newest(e)
}

func (l *liveRendition) newest(e *Edge) int64 {
	n := len(l.segs)
	if l.open() != nil {
		n--
	}
	return e.first + int64(n)
}

// Close lets go; once is enough.
func (f *Follower) Close() {
	f.e.mu.Lock()
	defer f.e.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.l.followers--
	}
}

// Timescale is the rendition's, in ticks a second.
func (f *Follower) Timescale() uint32 { return f.l.Timescale }

// Next waits for something new. io.EOF says that the recording has ended.
func (f *Follower) Next(ctx context.Context) (Step, error) {
	for {
		step, old, wait, err := f.look()
		switch {
		case err != nil:
			return Step{}, err
		case wait == nil:
			return step, step.read(old)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return Step{}, context.Cause(ctx)
		}
	}
}

// Since is what there is of a rendition from the beginning of a segment on, in the order of decoding.
func (e *Edge) Since(rendition string, msn int64) (all []Sample, err error) {
	f, err := e.Follow(rendition, msn)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		step, old, wait, err := f.look()
		if errors.Is(err, io.EOF) || err == nil && wait != nil {
			return all, nil
		}
		if err == nil {
			err = step.read(old)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, step.Samples...)
	}
}

// raw are parts whose samples have to be read, but for the first few.
type raw struct {
	parts []partBytes
	skip  int
}

// partBytes are those of a part: in memory or in a file.
type partBytes struct {
	data []byte
	file *journal.Media
	at   int64
	long int64
}

func (p *partBytes) read() ([]byte, error) {
	if p.data != nil {
		return p.data, nil
	}
	f, err := p.file.Section(p.at, p.long)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(f)
}

// look gives what there is, or what to wait on.
func (f *Follower) look() (step Step, old raw, wait chan struct{}, err error) {
	e, l := f.e, f.l
	e.mu.Lock()
	defer e.mu.Unlock()
	for f.i < len(l.segs) && l.segs[f.i].gap {
		f.next()
	}
	if f.i >= len(l.segs) {
		if e.ended {
			return step, old, nil, io.EOF
		}
		return step, old, l.stirring(), nil
	}
	s := &l.segs[f.i]
	if s.hot == nil || s.hot.buf == nil && s.parts > 0 && !s.written() {
		return step, old, nil, ErrBehind
	}
	step = Step{MSN: e.first + int64(f.i), Init: int(s.init), Done: s.done, Discontinuity: s.disc, Slate: s.slate}
	old = f.parts(s, &step)
	if !s.done {
		before := len(l.news)
		if f.whole < f.given {
			before -= f.given - f.whole
		}
		step.Samples = append(step.Samples, l.news[len(l.news)-before:]...)
		f.given = f.whole + len(l.news)
	}
	if !s.done && len(step.Samples) == 0 && len(old.parts) == 0 && len(step.Parts) == 0 {
		return step, old, l.stirring(), nil
	}
	if s.done {
		f.next()
	}
	return step, old, nil, nil
}

// parts tells the ends of parts that were not told, and gives those of which not all samples were given.
func (f *Follower) parts(s *segment, step *Step) (old raw) {
	if f.announced == 0 {
		f.at = s.time
	}
	count := 0
	for k := range s.hot.parts {
		p := &s.hot.parts[k]
		if count+p.samples > f.given {
			if len(old.parts) == 0 {
				old.skip = f.given - count
			}
			x := partBytes{file: s.hot.media, at: p.off, long: p.end - p.off}
			if s.hot.buf != nil && p.off >= s.hot.from {
				x.data = s.hot.buf[p.off-s.hot.from : p.end-s.hot.from : p.end-s.hot.from]
			}
			old.parts = append(old.parts, x)
		}
		count += p.samples
		if k >= f.announced {
			f.at += p.dur
			step.Parts = append(step.Parts, PartEnd{Samples: count, Time: f.at})
		}
	}
	f.whole, f.announced, f.given = count, len(s.hot.parts), max(f.given, count)
	return old
}

// next goes on to the next segment.
func (f *Follower) next() { f.i, f.given, f.whole, f.announced = f.i+1, 0, 0, 0 }

// read adds the samples of parts.
func (s *Step) read(old raw) error {
	var all []Sample
	for i := range old.parts {
		data, err := old.parts[i].read()
		if err != nil {
			return fmt.Errorf("read part of segment %d: %w", s.MSN, err)
		}
		fragments, err := cmaf.ParseFragments(data)
		if err != nil {
			return fmt.Errorf("read part of segment %d: %w", s.MSN, err)
		}
		for _, x := range fragments {
			at := int64(x.BaseMediaDecodeTime)
			for _, p := range x.Samples {
				all = append(all, Sample{Time: at, Shown: at + int64(p.CompositionOffset), Key: p.Sync, Data: p.Data})
				at += int64(p.Duration)
			}
		}
	}
	if old.skip > len(all) {
		return fmt.Errorf("read part of segment %d: it has %d samples, not %d", s.MSN, len(all), old.skip)
	}
	s.Samples = append(all[old.skip:], s.Samples...)
	return nil
}

// Sample shows followers a picture or a frame of sound that belongs to the open segment, in the order of decoding; its
// part comes later. It is called for all of them, followed or not: a part has as many samples as came since the part
// before.
func (e *Edge) Sample(rendition string, at int64, p cmaf.Sample) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(rendition)
	if e.ended || l == nil || l.open() == nil {
		return
	}
	l.news = append(l.news, Sample{Time: at, Shown: at + int64(p.CompositionOffset), Key: p.Sync, Data: p.Data})
	l.stirred()
}

// takeNews forgets the pictures that are in a part now.
func (l *liveRendition) takeNews() {
	clear(l.news)
	l.news = l.news[:0]
}

// stirring is closed with the next picture. Called with the lock.
func (l *liveRendition) stirring() chan struct{} {
	if l.stir == nil {
		l.stir = make(chan struct{})
	}
	return l.stir
}

func (l *liveRendition) stirred() {
	if l.stir != nil {
		close(l.stir)
		l.stir = nil
	}
}
