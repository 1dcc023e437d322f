package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func openFiles() (uint64, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read limit: %w", err)
	}
	return l.Cur, nil
}
