//go:build !linux

package app

// machineMemory is taken for 4 GiB where nobody tells.
func machineMemory() (uint64, error) { return 4 << 30, nil }
