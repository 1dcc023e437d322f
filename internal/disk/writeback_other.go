//go:build !linux

package disk

import "os"

// Writeback leaves it to the system when a file that grows is written to the disk.
type Writeback struct{ From int64 }

// UpTo does nothing.
func (*Writeback) UpTo(*os.File, int64) {}
