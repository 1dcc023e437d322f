package access

import (
	"context"
	"fmt"
	"sync"

	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// maxHashing is how many secrets are hashed at the same time: about 200 a second, on one processor.
	maxHashing = 1
	// maxWaiting is how many more may wait, for about a third of a second then, and maxOfToken those for one token.
	maxWaiting, maxOfToken = 64, 8
)

// line bounds how much of the machine wrong secrets can take, and how long right ones wait behind them.
type line struct {
	slots chan struct{} // a token for each secret that is being hashed

	mu      sync.Mutex
	waiting int // and being hashed
	of      map[id.Token]int
}

func newLine() *line { return &line{slots: make(chan struct{}, maxHashing), of: map[id.Token]int{}} }

// enter waits for a turn, which ends with leave. When the line is full it is fault.TooMany.
func (l *line) enter(ctx context.Context, t id.Token) (leave func(), err error) {
	l.mu.Lock()
	if l.waiting >= maxHashing+maxWaiting || l.of[t] >= maxOfToken {
		l.mu.Unlock()
		return nil, fault.New(fault.TooMany, "too many secrets are being checked; try again in a second")
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
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; out() }, nil
	case <-ctx.Done():
		out()
		return nil, fmt.Errorf("wait to check a secret: %w", context.Cause(ctx))
	}
}
