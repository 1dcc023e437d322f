// Package programtest finds and runs the programs that tests need. It must never know what they are for; tests alone
// import it. No goroutines.
package programtest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Path is where a program is. Without it the test is skipped, or fails where MILLRACE_TEST_REQUIRE is set: nothing may
// be skipped there.
func Path(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

// Run runs a program and gives what it writes to its standard output; its failure is the test's.
func Run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Path(t, name), args...) //nolint:gosec // the test's own
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, log.String())
	}
	return out
}

// Inputs has a test run again once the files of a folder have changed, which other programs read for it: go test takes
// what passed from a cache, and that knows of the files and folders alone that a test itself has looked at.
func Inputs(t testing.TB, folder string) {
	t.Helper()
	if _, err := os.ReadDir(folder); err != nil {
		t.Fatal(err)
	}
}
