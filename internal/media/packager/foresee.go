package packager

import "millrace/internal/media/frame"

// Without foresight the last part of a segment is closed by the key frame behind it, a frame too late. An encoder that
// sends key frames at regular distances makes the end known: the parts are then spread evenly over the segment, so that
// the last one is as long as the others and goes out with its own last frame. It is a guess from the segment before. A
// wrong one breaks no rule, since no part gets shorter than 85 % of PART-TARGET, RFC 8216bis section 4.4.4.9.

// foresee takes the segment that f ends as the measure of the next one.
func (t *track) foresee(f *frame.Frame) {
	t.foreseen = 0
	if f.Key {
		t.foreseen = t.next - t.first
	}
}

// endsEvenly reports whether the pending part, at a constant rate of a frame in so many ticks, ends where the parts of
// the open segment are of about the same length.
func (t *track) endsEvenly(frame int64) bool {
	longest := t.partTarget + t.ticks(partSlack)
	if t.foreseen <= 0 || t.pendingLong < t.least {
		return false
	}
	parts := (t.foreseen + longest - 1) / longest
	before := ((t.pendingAt-t.first)*parts + t.foreseen/2) / t.foreseen
	return t.next-t.first+frame/2 >= (before+1)*t.foreseen/parts
}
