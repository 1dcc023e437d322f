package slate

import (
	"fmt"
	"io"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

const (
	// suspicion is how long no picture may come before the last one is decoded, in case that nothing comes.
	suspicion = 200 * time.Millisecond
	// heldIn is how long that may take. What is shown later is the last key frame.
	heldIn = 700 * time.Millisecond
	// heldAgain is how often it may be done.
	heldAgain = 2 * time.Second

	maxGroup      = 1200
	maxGroupBytes = 32 << 20
)

// Group is the pictures from the last key frame on. The last one that is presented is to be had by decoding all of
// them.
type Group struct {
	Config   frame.Config
	pictures []frame.Frame
	number   int64 // counts pictures
}

const groupTicks = 90000

// MP4 writes the group as fragmented MP4.
func (g Group) MP4(w io.Writer) error {
	head, err := cmaf.Init(g.Config, groupTicks)
	if err != nil {
		return fmt.Errorf("write pictures: %w", err)
	}
	first := g.pictures[0].DTS
	tick := func(d time.Duration) int64 { return int64((d - first) * groupTicks / time.Second) }
	samples := make([]cmaf.Sample, len(g.pictures))
	for i, p := range g.pictures {
		samples[i] = cmaf.Sample{
			Duration:          uint32(max(tick(p.DTS+p.Duration)-tick(p.DTS), 1)),
			CompositionOffset: int32(tick(p.PTS) - tick(p.DTS)), Sync: i == 0, Data: p.Data,
		}
	}
	_, err = w.Write(cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, samples))
	return err //nolint:wrapcheck // the reader's end, which the reader's caller explains
}

// Last is when the last picture is presented, on the clock of what MP4 writes.
func (g Group) Last() time.Duration {
	last := g.pictures[0].PTS
	for _, p := range g.pictures {
		last = max(last, p.PTS)
	}
	return last - g.pictures[0].DTS - time.Millisecond
}

// group is what is known of the pictures from the last key frame on, and of the last one.
type group struct {
	pictures []frame.Frame // none when they are too many
	bytes    int
	number   int64     // of the newest picture
	came     time.Time // when it did
	asked    time.Time // when the last one was asked for
	waits    bool      // and is not there
	held     *Still    // the last one by itself; nil: not known
}

// add takes the next picture.
func (g *group) add(f *frame.Frame, now time.Time) {
	if f.Key {
		clear(g.pictures)
		g.pictures, g.bytes = g.pictures[:0], 0
	}
	g.number, g.came, g.waits, g.held = g.number+1, now, false, nil
	whole := f.Key || len(g.pictures) > 0
	if g.bytes += len(f.Data); !whole || g.bytes > maxGroupBytes || len(g.pictures) >= maxGroup {
		clear(g.pictures)
		g.pictures = g.pictures[:0]
		return
	}
	g.pictures = append(g.pictures, *f)
}

// waiting reports whether the last picture may still come.
func (g *group) waiting(now time.Time) bool { return g.waits && now.Sub(g.asked) < heldIn }

// suspect is when the last picture is to be asked for unless another one comes; the zero time: not.
func (f *Writer) suspect() time.Time {
	g := &f.group
	c := f.content
	if c == nil || g.waits || g.held != nil || len(g.pictures) < 2 { // a key frame alone is the last picture
		return time.Time{}
	}
	if !f.on && c.newest[frame.Audio] < c.newest[frame.Video]+alone/2 { // only sound that goes on has it stand
		return time.Time{}
	}
	return latest(g.came.Add(max(suspicion, 3*c.step)), g.asked.Add(heldAgain))
}

// Gap returns the pictures whose last one may have to stand, once, when none has come for a moment. Hold is to be
// called for them.
func (f *Writer) Gap() (Group, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, at := f.opt.Now(), f.suspect()
	if f.stopped || at.IsZero() || now.Before(at) {
		return Group{}, false
	}
	f.group.asked, f.group.waits = now, true
	pictures := make([]frame.Frame, len(f.group.pictures))
	copy(pictures, f.group.pictures)
	return Group{f.known[frame.Video].config, pictures, f.group.number}, true
}

// Hold gives the last picture of a group by itself; nil when it can't be had.
func (f *Writer) Hold(g Group, last *Still) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.group.number == g.number {
		f.group.waits, f.group.held = false, last
	}
}

// lastPicture is what stands for the encoder's pictures when none come, and its parameters: the last one, or else the
// last key frame.
func (f *Writer) lastPicture() (*frame.Config, []byte) {
	if s := f.group.held; s != nil {
		return &s.Config, s.Samples[0]
	}
	v := &f.known[frame.Video]
	return &v.config, v.key
}

// holdLast has what is repeated be the last picture, which has parameters of its own. What is filled in already stays
// as it began.
func (c *content) holdLast() error {
	s := c.f.group.held
	if s == nil || c.held != nil || c.missing[frame.Video] {
		return nil
	}
	c.held = s
	return c.change(s.Config, "the last picture is held")
}

// release lets the encoder's own pictures go on.
func (c *content) release() error {
	if c.held == nil {
		return nil
	}
	c.held, c.sets = nil, true
	return c.change(c.f.known[frame.Video].config, "the picture goes on")
}

// change begins pictures with other parameters.
func (c *content) change(config frame.Config, why string) error {
	if c.end[frame.Audio] > 0 && c.end[frame.Audio] < c.end[frame.Video]+c.lag {
		c.conclude()
	}
	if err := c.out.Discontinuity(why); err != nil {
		return fmt.Errorf("hold picture: %w", err)
	}
	if err := c.out.Configure(config); err != nil {
		return fmt.Errorf("hold picture: %w", err)
	}
	return nil
}
