package packager

import (
	"time"

	"millrace/internal/media/frame"
)

// maxLate is how far one kind may arrive behind the other and still be waited for.
const maxLate = 5 * time.Second

// arrival remembers how far the tracks had come, so that one that is late is told from one that is away. Times are
// media time.
type arrival struct {
	newest [2]time.Duration // by kind
	other  [2]time.Duration // newest of the other kind when this one came last
	alone  time.Duration    // how long nothing of a kind may come that is not away
}

func newArrival() arrival {
	const never = -time.Hour
	return arrival{other: [2]time.Duration{never, never}, alone: audioPatience}
}

func (a *arrival) came(f *frame.Frame) {
	a.newest[f.Kind] = max(a.newest[f.Kind], f.PTS)
	a.other[f.Kind] = a.newest[1-f.Kind]
}

// sinceLast is how far the other kind has gone on since the last of kind k came.
func (a *arrival) sinceLast(k frame.Kind) time.Duration { return a.newest[1-k] - a.other[k] }

// away reports whether nothing of kind k has come for a while.
func (a *arrival) away(k frame.Kind) bool { return a.sinceLast(k) > a.alone }

// patience is how long the other kind waits for k.
func (a *arrival) patience(k frame.Kind) time.Duration {
	if a.away(k) {
		return a.alone
	}
	return maxLate
}
