package queue

import (
	"sync"
	"time"
)

const (
	// An owner's jobs that get no place are put off, the first by firstTurn, and each further one by nextTurn more:
	// they come back one after the other, no matter who has asked for how many.
	firstTurn, nextTurn = 2 * time.Second, 100 * time.Millisecond
)

// places are those of a queue. An owner gets one only while it holds fewer than are free: alone it has half of them,
// and the next one finds some however many jobs others have.
type places struct {
	mu   sync.Mutex
	free int
	held map[string]int
	turn map[string]time.Time // when the last job of those that were put off comes back
}

func newPlaces(n int) *places {
	return &places{free: n, held: map[string]int{}, turn: map[string]time.Time{}}
}

// enter gives an owner a place until leave is called, or says after how long to ask again.
func (p *places) enter(owner string, now time.Time) (leave func(), after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[owner] >= p.free {
		at := p.turn[owner].Add(nextTurn)
		if first := now.Add(firstTurn); at.Before(first) {
			at = first
		}
		p.turn[owner] = at
		return nil, at.Sub(now)
	}
	p.free--
	p.held[owner]++
	return func() { p.leave(owner) }, 0
}

func (p *places) leave(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.held[owner]--; p.held[owner] == 0 {
		delete(p.held, owner)
		delete(p.turn, owner)
	}
}
