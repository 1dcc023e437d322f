package remote

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// gate lets in what a server is to do at once. What is live goes first: it is never behind what has ended, of which one
// thing at most is begun and not done per place.
type gate struct {
	mu       sync.Mutex
	places   int
	entered  int             // streams
	taken    int             // the others
	live     []chan struct{} // those that wait, each closed when it may go on
	recorded []chan struct{}
}

func newGate(places int) *gate { return &gate{places: max(1, places)} }

// acquire waits for a place. release is called once.
func (g *gate) acquire(ctx context.Context, live bool) (release func(), err error) {
	let := make(chan struct{})
	line := &g.recorded
	if live {
		line = &g.live
	}
	g.mu.Lock()
	*line = append(*line, let)
	g.admit()
	g.mu.Unlock()
	select {
	case <-let:
		return g.release, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(*line, let)
	if i >= 0 {
		*line = slices.Delete(*line, i, i+1)
	}
	g.mu.Unlock()
	if i < 0 { // let in at the same moment
		g.release()
	}
	return nil, fmt.Errorf("wait for the server: %w", context.Cause(ctx))
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken--
	g.admit()
}

// enter takes a place without waiting: a stream can't wait for what has ended. One place is left for that, however many
// streams there are.
func (g *gate) enter() (leave func()) {
	g.add(1)
	return func() { g.add(-1) }
}

func (g *gate) add(streams int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entered += streams
	g.admit()
}

// admit lets in who waits, while there is room. Called with the lock.
func (g *gate) admit() {
	for g.taken < max(1, g.places-g.entered) {
		line := &g.live
		if len(*line) == 0 {
			line = &g.recorded
		}
		if len(*line) == 0 {
			return
		}
		g.taken++
		close((*line)[0])
		*line = slices.Delete(*line, 0, 1)
	}
}
