package upload

import (
	"math"
	"strconv"
	"strings"

	"millrace/internal/fault"
)

// contentRange is what a Content-Range header says (RFC 9110 section 14.4, and "bytes */*"): which bytes a request has,
// of how many.
type contentRange struct {
	query      bool // it has none, and asks which have come
	first, end int64
	total      int64 // of the whole file; -1: not known yet
}

// maxLength keeps sums of lengths from overflowing.
const maxLength = math.MaxInt64 / 4

func parseContentRange(s string) (contentRange, error) {
	bad := fault.New(fault.Invalid,
		"Content-Range must be of the form bytes 0-524287/2000000, bytes 0-524287/*, or bytes */2000000 to ask which "+
			"bytes have come")
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		return contentRange{}, bad
	}
	r := contentRange{total: -1}
	if total != "*" {
		if r.total, ok = natural(total); !ok {
			return contentRange{}, bad
		}
	}
	if span == "*" {
		r.query = true
		return r, nil
	}
	first, last, _ := strings.Cut(span, "-")
	from, okFirst := natural(first)
	to, okLast := natural(last)
	if !okFirst || !okLast || to < from || r.total >= 0 && to >= r.total {
		return contentRange{}, bad
	}
	r.first, r.end = from, to+1
	return r, nil
}

func natural(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < maxLength
}

// chunkUnit is what chunks in front of the last one are multiples of.
const chunkUnit = 256 << 10

// whole reports whether a chunk may be followed by others: it has whole units, or ends at one, as after a chunk that
// was cut off.
func (c contentRange) whole() bool {
	return c.end == c.total || (c.end-c.first)%chunkUnit == 0 || c.end%chunkUnit == 0
}
