package blob

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Unfinished writes lie in a folder that each open store has for itself. It is locked for as long as the store is open, by the system, which
// gives the lock back when the process dies, however it does: what lies in a folder that nobody has locked will never be finished.

const (
	tmpDir = ".tmp"         // holds these folders; no key begins with a dot
	tmpAge = 24 * time.Hour // where files can't be locked, an unfinished write this old was left by a process that is gone
)

// occupy makes the folder of this store's unfinished writes, and so tries whether the storage can be written to.
func (f *folder) occupy() error {
	for range nameTrials {
		dir, err := makeLocked(filepath.Join(f.root, tmpDir, rand.Text()))
		if err != nil {
			return fmt.Errorf("write to storage folder: %w", err)
		}
		if dir != nil {
			f.tmp = dir
			return nil
		}
	}
	return errors.New("write to storage folder: it is swept all the time")
}

// makeLocked makes a folder and locks it, where that can be done; nil when another process sweeps it away in between.
func makeLocked(name string) (*os.File, error) {
	if err := os.Mkdir(name, 0o750); err != nil {
		return nil, err
	}
	dir, err := os.Open(name) //nolint:gosec // our own name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as said above
	}
	if err != nil {
		return nil, err
	}
	_, held := lock(dir)
	made, err := dir.Stat()
	now, gone := os.Lstat(name)
	if held || errors.Is(gone, fs.ErrNotExist) || !os.SameFile(made, now) {
		return nil, dir.Close()
	}
	return dir, errors.Join(err, gone)
}

// lock locks a file until it is closed. held says that somebody else has; neither, that files can't be locked there.
func lock(f *os.File) (done, held bool) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return err == nil, errors.Is(err, syscall.EWOULDBLOCK)
}

// vacate lets go of the folder of this store's unfinished writes.
func (f *folder) vacate() error {
	_ = os.Remove(f.tmp.Name()) // where a write is still under way it is swept later
	err := f.tmp.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}

func (f *folder) tmpName() string { return filepath.Join(f.tmp.Name(), rand.Text()) }

// sweep removes what killed processes left. What another process may be writing stays.
func (f *folder) sweep(now time.Time) error {
	entries, err := os.ReadDir(filepath.Join(f.root, tmpDir))
	if err != nil {
		return fmt.Errorf("read storage folder: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(f.root, tmpDir, e.Name())
		switch {
		case name == f.tmp.Name():
		case e.IsDir():
			sweepWrites(name, now)
		default: // of a version that had no folders
			removeOld(name, e, now)
		}
	}
	return nil
}

// sweepWrites removes the unfinished writes of a store that is not open any more. Another process may sweep too.
func sweepWrites(name string, now time.Time) {
	dir, err := os.Open(name) //nolint:gosec // our own name
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	done, held := lock(dir)
	switch {
	case done:
		_ = os.RemoveAll(name)
	case !held:
		entries, _ := dir.ReadDir(-1)
		for _, e := range entries {
			removeOld(filepath.Join(name, e.Name()), e, now)
		}
	}
}

func removeOld(name string, e fs.DirEntry, now time.Time) {
	if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > tmpAge {
		_ = os.Remove(name)
	}
}
