package fetch

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"millrace/internal/fault"
)

// On the disk that takes downloads live streams are recorded and a database may write: a download leaves them a twentieth of it, at most 1 GiB.
const (
	leftShare = 20
	leftMost  = 1 << 30
	lookBytes = 16 << 20 // how much is written between two looks at the disk
)

var errNoRoom = errors.New("the disk is full, but for what is left to live streams")

// lookForRoom is errNoRoom when the disk has no room for more bytes, or is nearly full without them. What can't be asked is not known.
func (d *download) lookForRoom(more int64) error {
	d.looked = d.part.size
	s, err := d.client.space(filepath.Dir(d.part.path))
	if err == nil && s.Total > 0 && s.Free < min(s.Total/leftShare, leftMost)+uint64(max(more, 0)) {
		return noRoom(d, errNoRoom)
	}
	return nil
}

// write adds bytes to the file.
func (d *download) write(b []byte) error {
	if d.part.size-d.looked >= lookBytes {
		if err := d.lookForRoom(0); err != nil {
			return err
		}
	}
	_, err := d.part.Write(b)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return noRoom(d, errors.Join(errNoRoom, err))
	}
	if err != nil {
		return fmt.Errorf("write download: %w", err)
	}
	return nil
}

func noRoom(d *download, err error) error {
	return fault.Wrap(fault.Unavailable, err, "%s: the service has no room for it at the moment", show(d.url))
}
