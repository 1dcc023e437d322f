package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// diskSpace asks the kernel for the room on path's file system.
func diskSpace(path string) (Space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return Space{}, fmt.Errorf("stat file system: %w", err)
	}
	block := uint64(max(s.Bsize, 1))
	return Space{Free: s.Bavail * block, Total: s.Blocks * block, FreeFiles: s.Ffree, TotalFiles: s.Files}, nil
}

func openFiles() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read limit: %w", err)
	}
	return l.Cur, nil
}
