package internode

import (
	"strconv"
	"strings"
)

// The versions of what nodes ask each other that this program speaks. A field or a request that nodes of the version
// before can do without is no new version; whatever else changes is one, and the version before is spoken for as long
// as a fleet may have nodes that know no other: those of the release before.
const oldestSpoken, newestSpoken = 1, 1

// Range is from the oldest to the newest version of the protocol that a node speaks.
type Range struct {
	Oldest int `json:"oldest"`
	Newest int `json:"newest"`
}

// Spoken is what this program speaks.
func Spoken() Range { return Range{oldestSpoken, newestSpoken} }

// With is the newest version that two nodes both speak; 0: there is none.
func (r Range) With(other Range) int {
	newest := min(r.Newest, other.Newest)
	if newest < max(r.Oldest, other.Oldest, 1) {
		return 0
	}
	return newest
}

// String is how a header has it: 1-2.
func (r Range) String() string { return strconv.Itoa(r.Oldest) + "-" + strconv.Itoa(r.Newest) }

// parseRange reads what String writes; anything else is a Range that has nothing in common with any.
func parseRange(text string) Range {
	oldest, newest, _ := strings.Cut(text, "-")
	r := Range{}
	var errs [2]error
	r.Oldest, errs[0] = strconv.Atoi(oldest)
	r.Newest, errs[1] = strconv.Atoi(newest)
	if errs[0] != nil || errs[1] != nil || r.Oldest < 1 || r.Newest < r.Oldest || r.String() != text {
		return Range{}
	}
	return r
}
