package rig

import "testing"

// TwoAtOnce marks a test that follows a player or a picture: what it sees depends on what else the machine does. Such
// tests need half a processor each; testrun runs two of them at once, whichever two, and nothing else beside them.
func TwoAtOnce(t *testing.T) {
	t.Helper()
	t.Parallel()
}
