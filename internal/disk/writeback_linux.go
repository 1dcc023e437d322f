package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// Writeback has a file that grows written to the disk while it does, so that little is left when it is to be synced,
// and no more than two windows of it wait in memory in front of what others write.
type Writeback struct{ From int64 } // what is in front of it is on its way to the disk

const window = 8 << 20

// UpTo begins to write each whole window in front of size, and waits for the one before. It is only advice: what goes
// wrong, Sync tells.
func (w *Writeback) UpTo(f *os.File, size int64) {
	for ; size-w.From >= window; w.From += window {
		fd := int(f.Fd())
		_ = unix.SyncFileRange(fd, w.From, window, unix.SYNC_FILE_RANGE_WRITE)
		if before := w.From - window; before >= 0 {
			_ = unix.SyncFileRange(fd, before, window,
				unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
		}
	}
}
