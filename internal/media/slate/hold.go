package slate

import (
	"fmt"
	"hash/maphash"
	"io"
	"slices"
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
// them, once Find has found what they are.
type Group struct {
	Config   frame.Config
	pictures []seen
	seed     maphash.Seed
	number   int64 // counts pictures
}

// seen is what is known of a picture that was written: the live edge has it, and a second copy of the last seconds
// would be most of what a stream holds in memory.
type seen struct {
	dts, pts, duration time.Duration
	size               int
	sum                uint64
	data               []byte // nil: it is where it was written
}

// ends is how many bytes at either end of a picture its sum is of: behind what slices begin with, no two are alike.
const ends = 64

func sum(seed maphash.Seed, data []byte) uint64 {
	if len(data) <= 2*ends {
		return maphash.Bytes(seed, data)
	}
	return maphash.Bytes(seed, data[:ends]) ^ maphash.Bytes(seed, data[len(data)-ends:])
}

// is reports whether a sample is the picture; parameter sets may have been put in front of it.
func (s *seen) is(sample []byte, seed maphash.Seed) bool {
	return len(sample) >= s.size && sum(seed, sample[len(sample)-s.size:]) == s.sum
}

// Find looks for the group's pictures among what was written of late, in order of decoding, and reports whether all of
// them are there. Without them there is no MP4.
func (g *Group) Find(written [][]byte) bool {
	pictures := slices.Clone(g.pictures)
	rest := written
	for i, p := range slices.Backward(pictures) {
		for p.data == nil {
			if len(rest) == 0 {
				return false
			}
			if last := rest[len(rest)-1]; p.is(last, g.seed) {
				p.data = last
			}
			rest = rest[:len(rest)-1]
		}
		pictures[i] = p
	}
	g.pictures = pictures
	return true
}

const groupTicks = 90000

// MP4 writes the group as fragmented MP4.
func (g Group) MP4(w io.Writer) error {
	head, err := cmaf.Init(g.Config, groupTicks)
	if err != nil {
		return fmt.Errorf("write pictures: %w", err)
	}
	first := g.pictures[0].dts
	tick := func(d time.Duration) int64 { return int64((d - first) * groupTicks / time.Second) }
	samples := make([]cmaf.Sample, len(g.pictures))
	for i, p := range g.pictures {
		end := p.dts + p.duration
		if i+1 < len(g.pictures) { // at a variable rate, or where something was lost, it lasts longer
			end = g.pictures[i+1].dts
		}
		samples[i] = cmaf.Sample{
			Duration:          uint32(max(tick(end)-tick(p.dts), 1)),
			CompositionOffset: int32(tick(p.pts) - tick(p.dts)), Sync: i == 0, Data: p.data,
		}
	}
	_, err = w.Write(cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, samples))
	return err //nolint:wrapcheck // the reader's end, which the reader's caller explains
}

// Last is when the last picture is presented, on the clock of what MP4 writes.
func (g Group) Last() time.Duration {
	last := g.pictures[0].pts
	for _, p := range g.pictures {
		last = max(last, p.pts)
	}
	return last - g.pictures[0].dts - time.Millisecond
}

// group is what is known of the pictures from the last key frame on, and of the last one.
type group struct {
	pictures []seen // none when they are too many
	seed     maphash.Seed
	bytes    int
	number   int64         // of the newest picture
	at       time.Duration // when it is decoded
	came     time.Time     // when it did
	asked    time.Time     // when the last one was asked for
	waits    bool          // and is not there
	held     *Still        // the last one by itself; nil: not known
}

// add takes the next picture.
func (g *group) add(f *frame.Frame, now time.Time) {
	if f.Key {
		clear(g.pictures)
		g.pictures, g.bytes = g.pictures[:0], 0
	}
	g.number, g.at, g.came, g.waits, g.held = g.number+1, f.DTS, now, false, nil
	whole := f.Key || len(g.pictures) > 0
	if g.bytes += len(f.Data); !whole || g.bytes > maxGroupBytes || len(g.pictures) >= maxGroup {
		clear(g.pictures)
		g.pictures = g.pictures[:0]
		return
	}
	g.pictures = append(g.pictures, seen{
		dts: f.DTS, pts: f.PTS, duration: f.Duration, size: len(f.Data), sum: sum(g.seed, f.Data),
	})
}

// keep keeps the bytes of the newest picture, which is not written anywhere.
func (g *group) keep(data []byte) {
	if n := len(g.pictures); n > 0 {
		g.pictures[n-1].data = data
	}
}

// waiting reports whether the last picture may still come.
func (g *group) waiting(now time.Time) bool { return g.waits && now.Sub(g.asked) < heldIn }

// suspect is when the last picture is to be asked for unless another one comes; the zero time: not.
func (w *Writer) suspect() time.Time {
	g := &w.group
	c := w.content
	if c == nil || g.waits || g.held != nil || len(g.pictures) < 2 { // a key frame alone is the last picture
		return time.Time{}
	}
	if !w.on && c.newest[frame.Audio] < c.newest[frame.Video]+alone/2 { // only sound that goes on has it stand
		return time.Time{}
	}
	return latest(g.came.Add(max(suspicion, 3*c.step)), g.asked.Add(heldAgain))
}

// Gap returns the pictures whose last one may have to stand, once, when none has come for a moment. Hold is to be
// called for them.
func (w *Writer) Gap() (Group, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, at := w.opt.Now(), w.suspect()
	if w.stopped || at.IsZero() || now.Before(at) {
		return Group{}, false
	}
	w.group.asked, w.group.waits = now, true
	return Group{
		Config: w.known[frame.Video].config, pictures: slices.Clone(w.group.pictures), seed: w.group.seed,
		number: w.group.number,
	}, true
}

// Hold gives the last picture of a group by itself; nil when it can't be had.
func (w *Writer) Hold(g Group, last *Still) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.group.number == g.number {
		w.group.waits, w.group.held = false, last
	}
}

// lastPicture is what stands for the encoder's pictures when none come, and its parameters: the last one, or else the
// last key frame.
func (w *Writer) lastPicture() (*frame.Config, []byte) {
	if s := w.group.held; s != nil {
		return &s.Config, s.Samples[0]
	}
	v := &w.known[frame.Video]
	return &v.config, v.key
}

// freezeLast has what is repeated be the last picture, which has parameters of its own. What is filled in already stays
// as it began.
func (c *content) freezeLast() error {
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
