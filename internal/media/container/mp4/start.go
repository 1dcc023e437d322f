package mp4

import (
	"math"
	"math/bits"
	"time"

	"millrace/internal/media/frame"
)

// longestLead is the most, in seconds, that an edit list leaves out for encoders' sake: priming of sound, pictures that
// wait to be put in order.
const longestLead = 1

// fromStart has the times of a fragmented file count from where the first of its sound and pictures begins, in all
// tracks alike: what was captured from a stream has the stream's clock, which may count from years ago. Nothing moves
// in a file that begins at 0, nor in one whose edit list brings it there.
func (f *File) fromStart() {
	var first *Track
	for _, t := range f.Tracks {
		if t.Len() > 0 && t.Kind != frame.Text && (first == nil || earlier(t, first)) {
			first = t
		}
	}
	if first == nil {
		return
	}
	start := uint64(first.begins())
	for _, t := range f.Tracks {
		if t.Len() > 0 {
			t.move(rescale(start, t.Timescale, first.Timescale, 1<<62))
		}
	}
}

// Length is from where times are counted to the end of the sound or the picture that ends last.
func (f *File) Length() time.Duration {
	seconds := 0.0
	for _, t := range f.Tracks {
		if n := t.Len(); n > 0 && t.Kind != frame.Text {
			seconds = max(seconds, float64(t.DTS(n-1)+int64(t.Sample(n-1).Duration))/float64(t.Timescale))
		}
	}
	return time.Duration(min(seconds, float64(math.MaxInt32)) * float64(time.Second))
}

// CountedFrom is the track with its times counted from so many ticks of its file's clock, as Start has it: 0 leaves
// them as the file says.
func (t *Track) CountedFrom(start int64) *Track {
	if start == t.Start {
		return t
	}
	c := *t
	c.EmptyEdit += c.Start - c.shift // as the file says
	c.Start, c.shift = 0, 0
	c.move(start)
	return &c
}

// move takes so many ticks off the track's times: off its decoding times, and what is more off the pause in its edit
// list.
func (t *Track) move(start int64) {
	t.Start, t.shift = start, min(start, t.late())
	t.EmptyEdit -= start - t.shift
}

// late is by how much the track's media begins later than it would in a file that begins at 0. What the edit list
// leaves out in front counts from there, if it is short; otherwise it is a place on the file's clock.
func (t *Track) late() int64 {
	at := t.samples.dtsAt(0)
	switch {
	case at <= t.MediaTime: // the edit list says where
		return 0
	case t.MediaTime > longestLead*int64(t.Timescale):
		return at - t.MediaTime
	}
	return at
}

// begins is when something of the track is first shown, in ticks of the file's clock, the same as 0 or later.
func (t *Track) begins() int64 { return t.EmptyEdit + t.late() }

// earlier compares when two tracks begin, exactly: at nanoseconds since 1970 the fraction of a float64 is too coarse.
func earlier(a, b *Track) bool {
	hiA, loA := bits.Mul64(uint64(a.begins()), uint64(b.Timescale))
	hiB, loB := bits.Mul64(uint64(b.begins()), uint64(a.Timescale))
	return hiA < hiB || hiA == hiB && loA < loB
}
