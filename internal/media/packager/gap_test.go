package packager_test

import (
	"testing"
	"time"

	"millrace/internal/media/timeline"
)

// TestGapsAreDated: where one of picture and sound is away, the dates of its gaps, and of what comes behind them, go on
// by the lengths that the playlist says, however much earlier pictures are decoded than shown.
func TestGapsAreDated(t *testing.T) {
	t.Parallel()
	for reorder := range 4 {
		for first := 290; first < 330; first += 3 {
			b := newBench(t, low)
			p := b.publication(2*time.Second, part)
			b.play(p, script{
				fps: 30, gop: 60, reorder: reorder, seconds: 24,
				lose: func(i int) bool { return i >= first && i < 480 },
			})
			closed(t, p)
			tl := b.finish()
			b.check(tl)
			gaps := 0
			for _, l := range tl.Renditions {
				gaps += b.drift(tl, l)
			}
			if gaps == 0 {
				t.Errorf("%d pictures reordered, from picture %d: no gap", reorder, first)
			}
		}
	}
}

// drift holds the dates of a rendition, of its gaps too, against the sum of the lengths, and counts the gaps.
func (b *bench) drift(tl *timeline.Timeline, l *timeline.Rendition) (gaps int) {
	b.t.Helper()
	var from time.Time
	begin := int64(0)
	for i, c := range l.Chunks {
		date := tl.Marks[i].Start.Add(time.Duration(c.Apart) * time.Millisecond)
		if c.Gap {
			gaps++
		}
		if i == 0 || tl.Marks[i].Discontinuity {
			from, begin = date, c.Time
		}
		long := time.Duration(float64(c.Time-begin) / float64(l.Timescale) * float64(time.Second))
		if off := date.Sub(from) - long; off.Abs() > 3*time.Millisecond {
			b.t.Errorf("%s %d (gap: %t) is dated %v off", l.ID, i, c.Gap, off)
		}
	}
	return gaps
}
