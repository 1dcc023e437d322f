package doctor

import (
	"context"
	"fmt"
	"strings"
)

// UploadsLeft is what there is of direct uploads whose files are not whole.
type UploadsLeft struct {
	Underway int // wait for more bytes
	// Late are over, or their time is, and should have been cleared up after by now.
	Late      int
	LateBytes int64
	// Unknown are files in storage that no row of the database knows.
	Unknown      int
	UnknownBytes int64
	Partly       bool // there is more than was measured
}

// Uploads tells of uploads that nobody can finish any more.
type Uploads struct {
	Look func(ctx context.Context) (UploadsLeft, error)
}

// Name implements Check.
func (Uploads) Name() string { return "uploads" }

// Run implements Check.
func (u Uploads) Run(ctx context.Context) Finding {
	left, err := u.Look(ctx)
	if err != nil {
		return warning("See what is said about database and storage.", "they could not be looked at: %v", err)
	}
	text := []string{fmt.Sprintf("%d under way", left.Underway)}
	if left.Late == 0 && left.Unknown == 0 {
		return ok("%s, none abandoned", text[0])
	}
	least := ""
	if left.Partly {
		least = "at least "
	}
	var mend []string
	if left.Late > 0 {
		text = append(text, fmt.Sprintf("%d over and not cleared, with %s%s",
			left.Late, least, mebibytes(left.LateBytes)))
		mend = append(mend, "What is over is cleared within ten minutes while the service runs.")
	}
	if left.Unknown > 0 {
		text = append(text, fmt.Sprintf("%d abandoned that no row of the database knows, with %s%s",
			left.Unknown, least, mebibytes(left.UnknownBytes)))
		mend = append(mend, "What no row knows is deleted about a day after its last byte. "+
			"If it should not be, stop the service: is this the right database for this storage?")
	}
	mend = append(mend, "If they stay, look for upload.clear and for \"look for what is unfinished\" in the log.")
	return warning(strings.Join(mend, " "), "%s", strings.Join(text, "; "))
}

// mebibytes is a size that may be small.
func mebibytes(n int64) string {
	if n >= 1<<30 {
		return size(uint64(n))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
