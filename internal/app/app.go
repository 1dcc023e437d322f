// Package app builds the object graph of each role and runs it.
package app

import (
	"fmt"
	"io"
)

// Main returns the exit code.
func Main(_ []string, _ func(string) string, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "millrace: no command yet")
	return 2
}
