// Package codectest has what tests of codecs have in common.
package codectest

import (
	"encoding/hex"
	"testing"
)

// Unhex reads bytes that are written as hexadecimal digits.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
