package packager

import "sync"

// buffers are what parts are made in that the edge is done with at once: one that was written to its file is read from
// there. They are used again, by all tracks.
//
//nolint:gochecknoglobals // memory that belongs to nobody meanwhile
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// mostLent is how large a buffer may be to be used again.
const mostLent = 1 << 20

// lend gives an empty buffer.
func lend() []byte {
	b, _ := buffers.Get().(*[]byte)
	return (*b)[:0]
}

// giveBack takes back a buffer that nobody reads.
func giveBack(b []byte) {
	if cap(b) <= mostLent {
		buffers.Put(&b)
	}
}
