package h264

import (
	"bytes"
	"fmt"
	"iter"

	"millrace/internal/media/codec/nal"
)

// NALs iterates over the NAL units of an access unit whose lengths have lengthSize bytes, without copying or allocating.
// It ends silently at a length that points past the end; see Check.
func NALs(au []byte, lengthSize int) iter.Seq[[]byte] { return nal.Units(au, lengthSize) }

// Check reports whether the lengths (4 bytes each) of an access unit add up to it exactly and it holds at least one NAL unit.
func Check(au []byte) error {
	if err := nal.Check(au); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// HasIDR reports whether an access unit with 4-byte lengths is an IDR picture.
func HasIDR(au []byte) bool {
	for {
		unit, rest, ok := nal.Next(au, 4)
		if !ok {
			return false
		}
		if t := Type(unit); t >= TypeNonIDR && t <= TypeIDR {
			return t == TypeIDR
		}
		au = rest
	}
}

// Disposable reports whether no other picture refers to this access unit's, whose lengths have lengthSize bytes: section 7.4.1, nal_ref_idc.
func Disposable(au []byte, lengthSize int) bool {
	slices, refers := 0, false
	for len(au) > lengthSize && lengthSize > 0 {
		unit, rest, ok := nal.Next(au, lengthSize)
		if !ok || len(unit) == 0 {
			return false
		}
		if t := Type(unit); t >= TypeNonIDR && t <= TypeIDR {
			slices++
			refers = refers || unit[0]>>5&3 != 0
		}
		au = rest
	}
	return slices > 0 && !refers
}

// IsIDRPrefix looks at the first bytes of an access unit, lengthSize 1 to 4. When they reach the first slice, known is true and idr reports whether
// the picture is an IDR. When they do not (long SEI), known is false and at is where, counted from the prefix's start, the next NAL unit
// stands: read on from there. at is past the unit's end when it has no slice.
func IsIDRPrefix(prefix []byte, lengthSize int) (idr, known bool, at int64) {
	if lengthSize < 1 || lengthSize > 4 {
		return false, true, 0
	}
	for at+int64(lengthSize) < int64(len(prefix)) {
		var n int64
		for _, c := range prefix[at : at+int64(lengthSize)] {
			n = n<<8 | int64(c)
		}
		if n > 0 {
			if t := int(prefix[at+int64(lengthSize)] & 0x1f); t >= TypeNonIDR && t <= TypeIDR {
				return t == TypeIDR, true, at
			}
		}
		at += int64(lengthSize) + n
	}
	return false, false, at
}

// Strip returns an access unit (4-byte lengths) without access unit delimiters, filler data and parameter sets that equal one of sets.
// Those carry nothing in CMAF, and under avc1 parameter sets belong into the init segment. SEI stays, it has captions. The result shares au's
// memory and nothing is allocated when there is nothing to strip or only units at the front and the back are; au itself is never written to.
// A malformed unit comes back as it is.
func Strip(au []byte, sets ...[]byte) []byte {
	kept, first, last, total := 0, -1, 0, 0
	for rest := au; len(rest) > 0; {
		at := len(au) - len(rest)
		unit, after, ok := nal.Next(rest, 4)
		if !ok {
			return au
		}
		if !droppable(unit, sets) {
			if first < 0 {
				first = at
			}
			last = at + 4 + len(unit)
			kept += 4 + len(unit)
		}
		total += 4 + len(unit)
		rest = after
	}
	if kept == 0 || kept == total {
		return au
	}
	if last-first == kept {
		return au[first:last:last]
	}
	out := make([]byte, 0, kept)
	for rest := au; len(rest) > 0; {
		unit, after, _ := nal.Next(rest, 4)
		if !droppable(unit, sets) {
			out = append(out, rest[:4+len(unit)]...)
		}
		rest = after
	}
	return out
}

func droppable(unit []byte, sets [][]byte) bool {
	switch Type(unit) {
	case 0, TypeAUD, TypeFiller:
		return true
	case TypeSPS, TypePPS:
		for _, s := range sets {
			if bytes.Equal(s, unit) {
				return true
			}
		}
	}
	return false
}
