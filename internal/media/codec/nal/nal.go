// Package nal splits access units of H.264 and HEVC into NAL units: length-prefixed as in ISO 14496-15, or with start
// codes. Bytes in, values out: it must never know files, sockets, time of day or a logger, and it starts no goroutines.
package nal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// ErrMalformed means that lengths or start codes do not add up.
var ErrMalformed = errors.New("malformed NAL units")

// Next cuts the first NAL unit off an access unit whose lengths have lengthSize bytes. ok is false at the end and at a
// length that lies.
func Next(au []byte, lengthSize int) (unit, rest []byte, ok bool) {
	if len(au) < lengthSize {
		return nil, nil, false
	}
	var n uint64
	for _, c := range au[:lengthSize] {
		n = n<<8 | uint64(c)
	}
	au = au[lengthSize:]
	if n > uint64(len(au)) {
		return nil, nil, false
	}
	return au[:n:n], au[n:], true
}

// Units iterates over the NAL units of an access unit, without copying or allocating. It ends silently at a length that
// points past the end; see Check.
func Units(au []byte, lengthSize int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			unit, rest, ok := Next(au, lengthSize)
			if !ok || !yield(unit) {
				return
			}
			au = rest
		}
	}
}

// Check reports whether the lengths (4 bytes each) of an access unit add up to it exactly and it holds at least one NAL
// unit.
func Check(au []byte) error {
	if len(au) == 0 {
		return fmt.Errorf("%w: empty access unit", ErrMalformed)
	}
	if !Every(au, 4, func([]byte) bool { return true }) {
		return fmt.Errorf("%w: a NAL unit is longer than its access unit", ErrMalformed)
	}
	return nil
}

// Every reports whether the lengths of an access unit, of lengthSize bytes, add up to it exactly, and ok says so of
// each unit. It ends at the first of which it does not.
func Every(au []byte, lengthSize int, ok func(unit []byte) bool) bool {
	for len(au) > 0 {
		unit, rest, whole := Next(au, lengthSize)
		if !whole || !ok(unit) {
			return false
		}
		au = rest
	}
	return true
}

// Append appends NAL units with lengths of 4 bytes before each.
func Append(b []byte, units ...[]byte) []byte {
	for _, u := range units {
		b = binary.BigEndian.AppendUint32(b, uint32(len(u)))
		b = append(b, u...)
	}
	return b
}

var startCode = []byte{0, 0, 1} //nolint:gochecknoglobals // a constant

// AnnexB iterates over the NAL units of a byte stream with start codes, ITU-T H.264 and H.265 annex B. What stands
// before the first start code and empty units are left out; zeros behind a unit are not part of it.
func AnnexB(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		at := bytes.Index(stream, startCode)
		if at < 0 {
			return
		}
		stream = stream[at+3:]
		for len(stream) > 0 {
			unit, rest := stream, []byte(nil)
			if end := bytes.Index(stream, startCode); end >= 0 {
				unit, rest = stream[:end], stream[end+3:]
			}
			unit = bytes.TrimRight(unit, "\x00")
			if len(unit) > 0 && !yield(slices.Clip(unit)) {
				return
			}
			stream = rest
		}
	}
}

// Unescape returns a unit without its emulation prevention bytes, ITU-T H.264 section 7.4.1: the payload as its syntax
// is written. It is the unit itself where there are none.
func Unescape(unit []byte) []byte {
	if !bytes.Contains(unit, []byte{0, 0, 3}) {
		return unit
	}
	out := make([]byte, 0, len(unit))
	zeros := 0
	for _, c := range unit {
		if zeros >= 2 && c == 3 {
			zeros = 0
			continue
		}
		if zeros++; c != 0 {
			zeros = 0
		}
		out = append(out, c)
	}
	return out
}

// Escape returns a payload with emulation prevention bytes, as Unescape takes it.
func Escape(payload []byte) []byte {
	out := make([]byte, 0, len(payload)+len(payload)/64+2)
	zeros := 0
	for _, c := range payload {
		if zeros >= 2 && c <= 3 {
			out, zeros = append(out, 3), 0
		}
		if zeros++; c != 0 {
			zeros = 0
		}
		out = append(out, c)
	}
	return out
}
