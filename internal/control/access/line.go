package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// maxHashing is how many secrets are hashed at the same time: about 200 a second, on one processor.
	maxHashing = 1
	// maxWaiting is how many more secrets of tokens may wait, and maxOfToken those for one of them: for about a second
	// then. One address has few of these places (see failures), so that many are needed to take them all.
	maxWaiting, maxOfToken = 1024, 256
	// maxPasswords is how many wait for the password of the dashboard, whose hash takes much longer.
	maxPasswords = 8
	// longestTurn is how long one waits on a machine that is too busy.
	longestTurn = 10 * time.Second
)

// line bounds how much of the machine wrong secrets can take, and how long right ones wait behind them. Those who wait
// are served in the order in which they came.
type line struct {
	slots      chan struct{} // a token for each secret that is being hashed
	most, each int           // that may wait: of all, and for one token

	mu      sync.Mutex
	waiting int // and being hashed
	of      map[id.Token]int
}

func newLine(most, each int) *line {
	return &line{slots: make(chan struct{}, maxHashing), most: most, each: each, of: map[id.Token]int{}}
}

func tooManySecrets() error {
	return fault.New(fault.TooMany, "too many secrets are being checked; try again in a second")
}

// enter waits for a turn, which ends with leave. When the line is full, or takes too long, it is fault.TooMany.
func (l *line) enter(ctx context.Context, t id.Token) (leave func(), err error) {
	l.mu.Lock()
	if l.waiting >= maxHashing+l.most || l.of[t] >= l.each {
		l.mu.Unlock()
		return nil, tooManySecrets()
	}
	l.waiting++
	l.of[t]++
	l.mu.Unlock()
	out := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting--
		if l.of[t]--; l.of[t] == 0 {
			delete(l.of, t)
		}
	}
	late := time.NewTimer(longestTurn)
	defer late.Stop()
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; out() }, nil
	case <-late.C:
		out()
		return nil, tooManySecrets()
	case <-ctx.Done():
		out()
		return nil, fmt.Errorf("wait to check a secret: %w", context.Cause(ctx))
	}
}
