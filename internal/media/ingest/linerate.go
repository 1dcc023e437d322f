package ingest

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// LineRate bounds how often the log is told of something that strangers can cause as often as they want.
type LineRate struct {
	Burst int           // lines at once
	Every time.Duration // and then one in so long

	mu      sync.Mutex
	limiter *rate.Limiter
	left    int // lines that were not logged since the last one
}

// Take reports whether a line may be logged now, and how many before it were not.
func (l *LineRate) Take(now time.Time) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limiter == nil {
		l.limiter = rate.NewLimiter(rate.Every(l.Every), l.Burst)
	}
	if !l.limiter.AllowN(now, 1) {
		l.left++
		return 0, false
	}
	left, l.left = l.left, 0
	return left, true
}
