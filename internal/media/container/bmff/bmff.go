// Package bmff reads and writes boxes of the ISO base media file format, ISO 14496-12: what cmaf and mp4 have in
// common. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no
// goroutines. Values that are read share the memory of the bytes that they were read from.
package bmff

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by every error about a box that contradicts itself or its parent.
var ErrMalformed = errors.New("malformed MP4")

// ErrTruncated means that a box goes on past the bytes at hand; errors of this kind wrap ErrMalformed too.
var ErrTruncated = fmt.Errorf("%w: it ends inside a box", ErrMalformed)

// Malformed makes an error that wraps ErrMalformed.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// FourCC is a box type or another code of four characters.
type FourCC [4]byte

// Is compares without allocating.
func (f FourCC) Is(s string) bool { return string(f[:]) == s }

// String shows bytes that are no printable ASCII as dots: the code may come from anywhere and go into an error message.
func (f FourCC) String() string {
	for i, x := range f {
		if x < 0x20 || x > 0x7e {
			f[i] = '.'
		}
	}
	return string(f[:])
}

// Header is the first 8 or 16 bytes of a box.
type Header struct {
	Type FourCC
	// Size of the whole box with its header; 0 means up to the end of what holds it.
	Size uint64
	// Len of the header, 8 or 16.
	Len int
}

// ParseHeader reads a box header; b may be longer. ErrTruncated when it is too short.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < 8 {
		return Header{}, ErrTruncated
	}
	h := Header{Type: FourCC(b[4:8]), Size: uint64(binary.BigEndian.Uint32(b)), Len: 8}
	if h.Size == 1 {
		if len(b) < 16 {
			return h, ErrTruncated
		}
		h.Size, h.Len = binary.BigEndian.Uint64(b[8:]), 16
		if h.Size == 0 {
			return h, Malformed("box %s has a long size of 0", h.Type)
		}
	}
	if h.Size != 0 && h.Size < uint64(h.Len) {
		return h, Malformed("box %s is smaller than its header", h.Type)
	}
	return h, nil
}

// Box is a box that is there as a whole.
type Box struct {
	Type FourCC
	// Raw is the whole box, Body what follows its header.
	Raw, Body []byte
}

// Next cuts the first box off b. Both results are empty at the end of b; up to 7 bytes left over are no box (QuickTime
// ends lists with a zero). ErrTruncated when the box is longer than b.
func Next(b []byte) (box Box, rest []byte, err error) {
	if len(b) < 8 {
		return Box{}, nil, nil
	}
	h, err := ParseHeader(b)
	if err != nil {
		return Box{Type: h.Type}, nil, err
	}
	if h.Size == 0 {
		h.Size = uint64(len(b))
	}
	if h.Size > uint64(len(b)) {
		return Box{Type: h.Type}, nil, fmt.Errorf("%w %s", ErrTruncated, h.Type)
	}
	return Box{Type: h.Type, Raw: b[:h.Size:h.Size], Body: b[h.Len:h.Size:h.Size]}, b[h.Size:], nil
}

// Walk calls visit for each box in b, in order, and stops at its first error. Boxes before a broken one have been
// visited.
func Walk(b []byte, visit func(Box) error) error {
	for len(b) >= 8 {
		box, rest, err := Next(b)
		if err != nil {
			return err
		}
		if err := visit(box); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// Find returns the body of the first box at a path below b, nil when there is none.
func Find(b []byte, path ...string) []byte {
	for _, want := range path {
		var found []byte
		for found == nil {
			box, rest, err := Next(b)
			if err != nil || box.Raw == nil {
				return nil
			}
			if box.Type.Is(want) {
				found = box.Body
			}
			b = rest
		}
		b = found
	}
	return b
}

// Reader takes big-endian fields off a box body. Past the end it gives zeros and Err says so.
type Reader struct {
	b     []byte
	short bool
}

// NewReader starts at the beginning of b.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Bytes takes n bytes, nil when there are fewer.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// Skip passes n bytes.
func (r *Reader) Skip(n int) { r.Bytes(n) }

// U8 takes a byte.
func (r *Reader) U8() uint8 {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// U16 takes 2 bytes.
func (r *Reader) U16() uint16 {
	if b := r.Bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// U32 takes 4 bytes.
func (r *Reader) U32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// U64 takes 8 bytes.
func (r *Reader) U64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Sized takes 8 bytes when version is 1 and 4 otherwise, as times in full boxes do.
func (r *Reader) Sized(version uint8) uint64 {
	if version == 1 {
		return r.U64()
	}
	return uint64(r.U32())
}

// Full takes the version and flags of a full box.
func (r *Reader) Full() (version uint8, flags uint32) {
	v := r.U32()
	return uint8(v >> 24), v & 0xffffff
}

// Left returns what has not been taken.
func (r *Reader) Left() []byte { return r.b }

// Err is ErrTruncated once something past the end was asked for.
func (r *Reader) Err() error {
	if r.short {
		return ErrTruncated
	}
	return nil
}
