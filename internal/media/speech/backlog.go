package speech

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Block is sound that follows on itself.
type Block struct {
	First   int64 // sample
	Samples []int16
}

// End is the sample behind it.
func (b Block) End() int64 { return b.First + int64(len(b.Samples)) }

// Backlog is the sound of a stream that is not done with: what a process or a server has been given stays until its words are known, so that another
// one can be given it again. It may be used from many goroutines.
type Backlog struct {
	most time.Duration // that is held; zero: any

	mu      sync.Mutex
	changed chan struct{} // closed and made again at each change
	blocks  []Block
	next    int // of blocks: not given yet
	held    int64
	leftOut int64
	ended   bool
}

// NewBacklog holds at most so much sound; zero: any.
func NewBacklog(most time.Duration) *Backlog {
	return &Backlog{most: most, changed: make(chan struct{})}
}

func (b *Backlog) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Add takes samples, unless too many wait.
func (b *Backlog) Add(first int64, samples []int16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if b.most > 0 && b.held+int64(len(samples)) > Samples(b.most) {
		b.leftOut += int64(len(samples))
		return
	}
	b.put(first, samples)
}

func (b *Backlog) put(first int64, samples []int16) {
	b.blocks = append(b.blocks, Block{first, slices.Clone(samples)})
	b.held += int64(len(samples))
	b.wake()
}

// ahead is how much sound that nobody waits for is held, in samples.
const ahead = 60 * SampleRate

// Wait takes samples when there is room.
func (b *Backlog) Wait(ctx context.Context, first int64, samples []int16) error {
	for {
		b.mu.Lock()
		if b.held < ahead {
			b.put(first, samples)
			b.mu.Unlock()
			return nil
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the engine: %w", context.Cause(ctx))
		}
	}
}

// End says that no sound follows.
func (b *Backlog) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.wake()
}

// Take waits for the next block; false: there is none any more.
func (b *Backlog) Take(ctx context.Context) (Block, bool) {
	for {
		b.mu.Lock()
		if b.next < len(b.blocks) {
			next := b.blocks[b.next]
			b.next++
			b.mu.Unlock()
			return next, true
		}
		ended, changed := b.ended, b.changed
		b.mu.Unlock()
		if ended {
			return Block{}, false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Block{}, false
		}
	}
}

// Untake has the block that was taken last be the next one again.
func (b *Backlog) Untake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next--
	b.wake()
}

// Done forgets what lies in front of a sample.
func (b *Backlog) Done(until int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for n < b.next && b.blocks[n].End() <= until {
		b.held -= int64(len(b.blocks[n].Samples))
		n++
	}
	if n > 0 {
		b.blocks = slices.Delete(b.blocks, 0, n)
		b.next -= n
		b.wake()
	}
}

// Again has everything be given again that is not done with. What killed several processes is left out.
func (b *Backlog) Again(drop bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if drop {
		for _, given := range b.blocks[:b.next] {
			b.held -= int64(len(given.Samples))
			b.leftOut += int64(len(given.Samples))
		}
		b.blocks = slices.Delete(b.blocks, 0, b.next)
	}
	b.next = 0
	b.wake()
}

// Waiting is how much is not done with, how much of that has not been given to anybody, and how much was left out.
func (b *Backlog) Waiting() (held, ahead, leftOut time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, next := range b.blocks[b.next:] {
		n += len(next.Samples)
	}
	return Duration(b.held), Duration(int64(n)), Duration(b.leftOut)
}
