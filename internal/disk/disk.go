// Package disk reports how much space is free, and how much of it may be used, and has files that grow written to the
// disk in time. It makes no file.
package disk

import (
	"errors"
	"fmt"
	"math"

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

// On a disk that takes files from outside live streams are recorded and a database may write: they are left a twentieth
// of it, at most 1 GiB.
const (
	leftShare = 20
	leftMost  = 1 << 30
)

// ErrFull says that there is no room but what is left to live streams.
var ErrFull = errors.New("the disk is full, but for what is left to live streams")

// Has reports whether there is room for more bytes from outside.
func (s Space) Has(more int64) bool {
	return s.Total == 0 || s.Free >= s.left()+uint64(max(more, 0))
}

// Room is how many bytes from outside there is room for; 0 where the size of the disk is not known.
func (s Space) Room() int64 { return roomOf(s.Free, s.left()) }

// Most is how many bytes from outside the disk can have when nothing else is on it; 0 where its size is not known.
func (s Space) Most() int64 { return roomOf(s.Total, s.left()) }

func (s Space) left() uint64 { return min(s.Total/leftShare, leftMost) }

func roomOf(bytes, left uint64) int64 { return int64(min(bytes-min(left, bytes), math.MaxInt64)) }
