// Package limit is a rate limiter: so many requests a second for each client, with bursts. It must never know who the
// client is, nor what is requested. It starts no goroutine.
package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// burst is for how many seconds' worth of requests may come at once.
	burst = 10
	// generation is how many keys are kept at least, of those that asked last; who is forgotten has a full burst again.
	generation = 32768
)

// Limiter bounds each key by itself. A nil one bounds nothing.
type Limiter struct {
	perSecond rate.Limit
	burst     int

	mu         sync.Mutex
	young, old map[string]*rate.Limiter
}

// New makes a limiter of so many requests a second; nil for 0.
func New(perSecond int) *Limiter {
	if perSecond <= 0 {
		return nil
	}
	return &Limiter{perSecond: rate.Limit(perSecond), burst: burst * perSecond, young: map[string]*rate.Limiter{}}
}

// Take counts a request of a key and returns 0, or how long to wait: then it does not count.
func (l *Limiter) Take(key string, now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	r := l.of(key).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

func (l *Limiter) of(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.young[key]
	if ok {
		return v
	}
	if v, ok = l.old[key]; !ok {
		v = rate.NewLimiter(l.perSecond, l.burst)
	}
	if len(l.young) >= generation {
		l.old, l.young = l.young, map[string]*rate.Limiter{}
	}
	l.young[key] = v
	return v
}
