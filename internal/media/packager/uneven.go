package packager

import (
	"math"
	"time"

	"millrace/internal/media/frame"
)

// stillness is how long no picture comes at a variable rate, while sound does, before a part ends with the last one. It
// is longer than sound may be ahead of pictures that are encoded again.
const stillness = time.Second

// uneven is what is known of pictures at a variable rate. How long one lasts is said by the next one, but a part goes
// out with its last picture: so that one is short in it, as long as is sure, and the first one of the next part is
// decoded early by what is left, and presented in time. Decode times have no hole, and lengths add up to the tick.
//
// It foresees how many pictures the open segment still gets from those before it: as many as they had, where that was
// the same twice, or else those of as much time.
type uneven struct {
	on       bool          // the rate is variable
	at, last time.Duration // when the newest picture is decoded, and how long after the one before it
	usual    time.Duration // the mean of the last ones; 0: nobody knows
	received time.Time

	began time.Duration // when the first picture of the open segment is decoded
	count int           // pictures of it
	long  time.Duration // how long the segment before it was; 0: nobody knows
	had   int           // pictures of that
	same  bool          // the one before had as many
}

// came takes the next picture.
func (u *uneven) came(f *frame.Frame) {
	const memory, longest = 16, 2 * time.Second
	if d := f.DTS - u.at; u.at > 0 && d > 0 {
		u.last = min(d, longest)
		if u.usual == 0 {
			u.usual = u.last
		}
		u.usual += (u.last - u.usual) / memory
	}
	u.at, u.received = f.DTS, f.Received
}

// lasts is how long a picture lasts, at a variable rate probably.
func (u *uneven) lasts(f *frame.Frame) time.Duration {
	if !u.on {
		return f.Duration
	}
	return max(f.Duration, u.usual)
}

// until is where the newest picture ends if it is the last one of its stretch: it lasts as long as the one before it
// did, or as pictures do.
func (u *uneven) until() time.Duration { return u.at + min(u.usual, u.last) }

// still reports whether no picture has come for a while, in real time too, where sound has gone on by so much since the
// last one came: pictures that are encoded again come late, behind their sound.
func (u *uneven) still(sound *frame.Frame, gone time.Duration) bool {
	return u.on && min(sound.Received.Sub(u.received), sound.PTS-u.at, gone) >= stillness
}

// begin begins a segment. other: of other media.
func (u *uneven) begin(at time.Duration, other bool) {
	u.began, u.count = at, 0
	if other {
		u.long, u.had, u.same = 0, 0, false
	}
}

// end takes the segment that f ends as the measure of the next one.
func (u *uneven) end(f *frame.Frame) {
	u.long = 0
	if f.Key {
		u.long, u.same, u.had = f.DTS-u.began, u.had == u.count, u.count
	}
}

// mean is how long the pictures of the segment before lasted.
func (u *uneven) mean() time.Duration { return u.long / time.Duration(max(u.had, 1)) }

// left is how many pictures come behind one that is decoded at `at`; false: nobody knows.
func (u *uneven) left(at time.Duration) (int, bool) {
	n := u.had - u.count
	if u.long <= 0 || u.had == 0 {
		return 0, false
	}
	if !u.same {
		n = int(math.Round(float64(u.long-(at-u.began))/float64(u.mean()))) - 1
	}
	return n, n >= 0
}

// endsUneven reports whether the pending part ends with the picture that is decoded at `at`, at a variable rate. Where
// the end of the segment is foreseen, parts have one number of pictures up to there. What is left over is the first
// one's, which may be short because it begins with a key frame: so the last part goes out with its own last picture,
// too. A wrong foresight breaks no rule here either.
func (t *track) endsUneven(u *uneven, at time.Duration) bool {
	left, foreseen := u.left(at)
	short := t.pendingLong < t.least
	usual := t.ticks(u.usual)
	if mean := u.mean(); foreseen && (mean-u.usual).Abs() < mean/5 { // of more pictures, where they come as before
		usual = t.ticks(mean)
	}
	switch {
	case short && (!foreseen || t.pendingAt != t.first || !t.pendingKey || t.start.At(t.next) != t.next):
		return false
	case !foreseen || !short && t.pendingLong+usual > t.full():
		return true
	}
	each := max((t.least+t.limit+usual)/2/max(usual, 1), 1) // to the nearest
	return int64(left)%each == 0
}

// standStill ends the part with the last picture, which stands where sound has come already: it does not have to wait
// for the next one.
func (t *track) standStill(until time.Duration) {
	if more := t.ticks(until) - t.next; len(t.pending) > 0 && more > 0 && t.pendingLong+more >= t.least {
		t.stand(more, t.limit)
		t.flush()
	}
}

// standUntil has the last picture stand until then, at the end of a stretch; its part is as long as it may be.
func (t *track) standUntil(end time.Duration) {
	next := t.ticks(end)
	if next <= t.next {
		return
	}
	if len(t.pending) > 0 {
		t.stand(next-t.next, t.limit)
	}
	t.next, t.end = next, t.duration(next)
}
