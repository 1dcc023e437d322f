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

// Backlog is the sound of a stream that is not done with: what a process or a server has been given stays until its
// words are known, so that another one can be given it again. It may be used from many goroutines.
type Backlog struct {
	most  time.Duration // that is held; zero: any
	ahead time.Duration // that waits to be given; zero: any

	mu      sync.Mutex
	changed chan struct{} // closed and made again at each change
	blocks  []Block
	next    int // of blocks: not given yet
	held    int64
	leftOut int64
	ended   bool
}

// NewBacklog holds at most so much sound, of which no more than ahead waits to be given; zero: any.
func NewBacklog(most, ahead time.Duration) *Backlog {
	return &Backlog{most: most, ahead: ahead, changed: make(chan struct{})}
}

func (b *Backlog) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// resumed is how much of the newest sound recognition goes on with when it jumps to live, in samples.
const resumed = SampleRate

// Add takes samples of live sound. Where more than the limit waits, that is left out but for the newest second:
// recognition jumps to live, since words that come late are of no use. The samples themselves are left out where
// that much was given to somebody who does not get done with it.
func (b *Backlog) Add(first int64, samples []int16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if b.ahead > 0 && b.waiting() > Samples(b.ahead) {
		b.jump(resumed)
	}
	if b.most > 0 && b.held+int64(len(samples)) > Samples(b.most) {
		b.jump(0)
		if b.held+int64(len(samples)) > Samples(b.most) {
			b.leftOut += int64(len(samples))
			return
		}
	}
	b.put(first, samples)
}

// waiting is how many samples are held that were not given to anybody. Called with the lock.
func (b *Backlog) waiting() (n int64) {
	for _, next := range b.blocks[b.next:] {
		n += int64(len(next.Samples))
	}
	return n
}

// jump leaves out what waits, but for the newest blocks that have so many samples. Called with the lock.
func (b *Backlog) jump(keep int64) {
	to, kept := len(b.blocks), int64(0)
	for to > b.next && kept < keep {
		to--
		kept += int64(len(b.blocks[to].Samples))
	}
	for _, old := range b.blocks[b.next:to] {
		b.held -= int64(len(old.Samples))
		b.leftOut += int64(len(old.Samples))
	}
	b.blocks = slices.Delete(b.blocks, b.next, to)
}

func (b *Backlog) put(first int64, samples []int16) {
	b.blocks = append(b.blocks, Block{first, slices.Clone(samples)})
	b.held += int64(len(samples))
	b.wake()
}

// aheadMost is how much sound that nobody waits for is held, in samples.
const aheadMost = 60 * SampleRate

// Wait takes samples when there is room.
func (b *Backlog) Wait(ctx context.Context, first int64, samples []int16) error {
	for {
		b.mu.Lock()
		if b.held < aheadMost {
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
	return Duration(b.held), Duration(b.waiting()), Duration(b.leftOut)
}
