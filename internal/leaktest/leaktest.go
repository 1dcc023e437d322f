// Package leaktest fails a package's tests if they leave a goroutine behind. It must never know what is tested.
package leaktest

import (
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines that are about to end may take: goleak's own is 0.43 s, which is too short on a busy
// machine.
const patience = 10 * time.Second

// Runner runs the tests of a package: a *testing.M.
type Runner interface{ Run() int }

// Main is the end of a package's TestMain: it runs the tests and exits, with 1 if they passed and a goroutine is still
// there ten seconds later.
func Main(tests Runner, but ...goleak.Option) {
	os.Exit(run(tests, os.Stderr, func() error { return goleak.Find(but...) }))
}

// run asks find, which waits for a moment itself, until it finds nothing.
func run(tests Runner, log io.Writer, find func() error) (code int) {
	if code = tests.Run(); code != 0 {
		return code
	}
	err := find()
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); {
		err = find()
	}
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(log, "goroutines are left behind: %v\n", err)
	return 1
}
