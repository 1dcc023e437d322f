package h264

import (
	"fmt"
	"iter"

	"millrace/internal/media/codec/nal"
)

// NALs iterates over the NAL units of an access unit whose lengths have lengthSize bytes, without copying or
// allocating. It ends silently at a length that points past the end; see Check.
func NALs(au []byte, lengthSize int) iter.Seq[[]byte] { return nal.Units(au, lengthSize) }

// Check reports whether the lengths (4 bytes each) of an access unit add up to it exactly and it holds at least one NAL
// unit.
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

// Disposable reports whether no other picture refers to this access unit's, whose lengths have lengthSize bytes:
// section 7.4.1, nal_ref_idc.
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

// IsIDRPrefix looks at the first bytes of an access unit, lengthSize 1 to 4. When they reach the first slice, known is
// true and idr reports whether the picture is an IDR. When they do not (long SEI), known is false and at is where,
// counted from the prefix's start, the next NAL unit stands: read on from there. at is past the unit's end when it has
// no slice.
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
