package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// known is a test, or a subtest with all below it, that is known to be flaky: it failed and passed with the same code,
// and it is to be mended.
type known struct {
	pkg, test string // as a run names them: "test/e2e", "TestA/sqlite+folder"
	found     string // the day, as in 2006-01-02
	cause     string // as far as it is known
}

// knownFlaky stands at the head of a run. An entry goes when its cause is mended.
var knownFlaky = []known{} //nolint:gochecknoglobals // a table

// secondLooks is how long a test that is known to be flaky is still run again when it has failed.
const secondLooks = 14 * 24 * time.Hour

// until is the last moment at which the test is run again. A day that can't be read was long ago.
func (k known) until() time.Time {
	found, err := time.Parse(time.DateOnly, k.found)
	if err != nil {
		return time.Time{}
	}
	return found.Add(secondLooks)
}

// covers reports whether a test is the known one or below it.
func (k known) covers(pkg, test string) bool {
	return short(pkg) == k.pkg && (test == k.test || strings.HasPrefix(test, k.test+"/"))
}

// printKnown names the tests that are known to be flaky.
func printKnown(out io.Writer, list []known, now time.Time) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "known to be flaky: %d\n", len(list))
	for _, k := range list {
		again := "run again until " + k.until().Format(time.DateOnly)
		if now.After(k.until()) {
			again = "no longer run again"
		}
		fmt.Fprintf(out, "  %s %s, found on %s, %s: %s\n", k.pkg, k.test, k.found, again, k.cause)
	}
}
