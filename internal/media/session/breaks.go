package session

import (
	"fmt"
	"time"

	limits "golang.org/x/time/rate"
)

// Each discontinuity ends a segment. An encoder may break off as often as segments end anyway, and this often at once:
// a switch of scenes that changes the picture's size, a browser that looks for a size that its line has room for, a
// clock that is set.
const (
	breaksAtOnce = 30
	breakEvery   = 2 * time.Second // the shortest segments
)

// Breaks bounds how many discontinuities there are. The publications of a broadcast share one: who connects again
// begins no new account.
type Breaks struct{ limiter *limits.Limiter }

// NewBreaks returns one for a broadcast. It is used by one publication at a time.
func NewBreaks() *Breaks {
	return &Breaks{limits.NewLimiter(limits.Every(breakEvery), breaksAtOnce)}
}

// add counts a discontinuity; UnsteadyError: it is one too many.
func (b *Breaks) add(now time.Time, reason string) error {
	if b.limiter.AllowN(now, 1) {
		return nil
	}
	return UnsteadyError(reason)
}

// UnsteadyError is why a publication can't go on that breaks off all the time: the reason of the discontinuity that was
// one too many. Its text is for people.
type UnsteadyError string

func (u UnsteadyError) Error() string { return u.Reason() }

// Reason says it to the owner of the stream.
func (u UnsteadyError) Reason() string {
	return fmt.Sprintf("the encoder changes its parameters, or its clock jumps, all the time: %d times at once, or "+
		"for long more often than every %v. The last time: %s. Give it constant settings and a steady clock",
		breaksAtOnce, breakEvery, string(u))
}
