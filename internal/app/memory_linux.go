package app

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// machineMemory is how many bytes of memory the machine has.
func machineMemory() (uint64, error) {
	var i unix.Sysinfo_t
	if err := unix.Sysinfo(&i); err != nil {
		return 0, fmt.Errorf("ask for the size of the memory: %w", err)
	}
	return i.Totalram * uint64(i.Unit), nil
}
