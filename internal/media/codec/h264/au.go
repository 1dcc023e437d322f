package h264

import (
	"bytes"
	"iter"
)

// next cuts the first NAL unit off an access unit. ok is false at the end and at a length that lies.
func next(au []byte, lengthSize int) (nal, rest []byte, ok bool) {
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

// NALs iterates over the NAL units of an access unit whose lengths have lengthSize bytes, without copying or allocating.
// It ends silently at a length that points past the end; see Check.
func NALs(au []byte, lengthSize int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			nal, rest, ok := next(au, lengthSize)
			if !ok || !yield(nal) {
				return
			}
			au = rest
		}
	}
}

// Check tells whether the lengths (4 bytes each) of an access unit add up to it exactly and it holds at least one NAL unit.
func Check(au []byte) error {
	if len(au) == 0 {
		return malformed("empty access unit")
	}
	for len(au) > 0 {
		_, rest, ok := next(au, 4)
		if !ok {
			return malformed("a NAL unit is longer than its access unit")
		}
		au = rest
	}
	return nil
}

// HasIDR tells whether an access unit with 4-byte lengths is an IDR picture.
func HasIDR(au []byte) bool {
	for {
		nal, rest, ok := next(au, 4)
		if !ok {
			return false
		}
		if t := Type(nal); t >= TypeNonIDR && t <= TypeIDR {
			return t == TypeIDR
		}
		au = rest
	}
}

// IsIDRPrefix looks at the first bytes of an access unit, lengthSize 1 to 4. When they reach the first slice, known is true and idr tells whether
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
		nal, after, ok := next(rest, 4)
		if !ok {
			return au
		}
		if !droppable(nal, sets) {
			if first < 0 {
				first = at
			}
			last = at + 4 + len(nal)
			kept += 4 + len(nal)
		}
		total += 4 + len(nal)
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
		nal, after, _ := next(rest, 4)
		if !droppable(nal, sets) {
			out = append(out, rest[:4+len(nal)]...)
		}
		rest = after
	}
	return out
}

func droppable(nal []byte, sets [][]byte) bool {
	switch Type(nal) {
	case 0, TypeAUD, TypeFiller:
		return true
	case TypeSPS, TypePPS:
		for _, s := range sets {
			if bytes.Equal(s, nal) {
				return true
			}
		}
	}
	return false
}
