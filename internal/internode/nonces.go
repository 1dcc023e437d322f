package internode

import (
	"sync"
	"time"
)

// nonces remembers those of requests that may come once only, as long as their signatures are valid.
type nonces struct {
	most int

	mu   sync.Mutex
	seen map[string]struct{}
	// order has them as they came, each with when its signature is no longer valid. They are dropped from the front,
	// and so a few are kept for up to twice as long where clocks differ.
	order []expiring
	first int // of order
}

type expiring struct {
	nonce string
	until time.Time
}

func newNonces(most int) *nonces { return &nonces{most: most, seen: map[string]struct{}{}} }

type admission int

const (
	admitted admission = iota
	seenBefore
	noRoom
)

// admit remembers a nonce until a time. Where there is no room for it the request is refused: one that can't be
// remembered could come again.
func (n *nonces) admit(nonce string, until, now time.Time) admission {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drop(now)
	if _, ok := n.seen[nonce]; ok {
		return seenBefore
	}
	if len(n.seen) >= n.most {
		return noRoom
	}
	n.seen[nonce] = struct{}{}
	n.order = append(n.order, expiring{nonce, until})
	return admitted
}

func (n *nonces) drop(now time.Time) {
	for n.first < len(n.order) && n.order[n.first].until.Before(now) {
		delete(n.seen, n.order[n.first].nonce)
		n.first++
	}
	if n.first > len(n.order)/2 {
		n.order, n.first = append(n.order[:0], n.order[n.first:]...), 0
	}
}
