package fetch

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"millrace/internal/disk"
	"millrace/internal/fault"
)

const lookBytes = 16 << 20 // how much is written between two looks at the disk

var errNoSpace = disk.ErrFull

// checkSpace returns errNoSpace when the disk has no room for more bytes, or is nearly full without them. What can't be
// asked is not known.
func (d *download) checkSpace(more int64) error {
	d.looked = d.part.size
	s, err := d.client.space(filepath.Dir(d.part.path))
	if err == nil && !s.Has(more) {
		return noSpace(d, errNoSpace)
	}
	return nil
}

// write adds bytes to the file.
func (d *download) write(b []byte) error {
	if d.part.size-d.looked >= lookBytes {
		if err := d.checkSpace(0); err != nil {
			return err
		}
	}
	_, err := d.part.Write(b)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return noSpace(d, errors.Join(errNoSpace, err))
	}
	if err != nil {
		return fmt.Errorf("write download: %w", err)
	}
	return nil
}

func noSpace(d *download, err error) error {
	return fault.Wrap(fault.Unavailable, err, "%s: the service has no room for it at the moment", show(d.url))
}
