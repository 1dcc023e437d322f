package ondemand

import "sync"

const (
	// copied is how much of a segment is in memory at a time, in bytes, while its client takes it.
	copied = 32 << 10
	// copiedAtOnce is how much it is for the first atOnce that are sent at the same time: a client that takes what
	// comes has most segments in one write, which costs half of the processor. Clients that take nothing keep no more
	// than these from the others, who get theirs in smaller pieces.
	copiedAtOnce, atOnce = 256 << 10, 32
)

// copyBuffers lends memory to what is being sent.
type copyBuffers struct {
	small, large sync.Pool
	places       chan struct{} // of large ones
}

var copies = newCopyBuffers() //nolint:gochecknoglobals // memory is the process's

func newCopyBuffers() *copyBuffers {
	return &copyBuffers{
		small:  sync.Pool{New: func() any { return new([copied]byte) }},
		large:  sync.Pool{New: func() any { return new([copiedAtOnce]byte) }},
		places: make(chan struct{}, atOnce),
	}
}

// take lends a buffer until give is called: a large one where there is one left.
func (c *copyBuffers) take() (buf []byte, give func()) {
	select {
	case c.places <- struct{}{}:
		x, _ := c.large.Get().(*[copiedAtOnce]byte)
		return x[:], func() { c.large.Put(x); <-c.places }
	default:
		x, _ := c.small.Get().(*[copied]byte)
		return x[:], func() { c.small.Put(x) }
	}
}
