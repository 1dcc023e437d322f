//go:build !linux

package doctor

// fileSystem is known on Linux only.
func fileSystem(string) string { return "" }

// clockSynchronised is known on Linux only.
func clockSynchronised() (yes, known bool) { return false, false }
