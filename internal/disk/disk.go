// Package disk tells how much room there is. It writes nothing, and knows neither what a disk is used for nor how much of it is enough.
package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Space is how much room a file system has.
type Space struct {
	Free, Total           uint64 // bytes an ordinary user may use; all bytes
	FreeFiles, TotalFiles uint64 // 0 of 0: the file system has no such limit
}

// SpaceOf asks the kernel for the room on path's file system.
func SpaceOf(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, fmt.Errorf("stat file system: %w", err)
	}
	block := uint64(max(s.Bsize, 1))
	return Space{Free: s.Bavail * block, Total: s.Blocks * block, FreeFiles: s.Ffree, TotalFiles: s.Files}, nil
}
