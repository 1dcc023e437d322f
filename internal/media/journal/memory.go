package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Memory is a folder in this machine's memory (tmpfs) for the marks of the journals below one folder. It lies in a
// folder of our user, which stays for ever: every user may make files in /dev/shm, so that a folder there that was
// removed could be made by another one. This process holds its own by a lock (flock), and the next start removes those
// that no process holds and that have no marks of the last day.
type Memory struct {
	Dir  string // empty: this machine has none that only we may write to
	held *os.File
}

// marksKept is how long the marks of a killed process stay: many times the longest reconnect window.
const marksKept = 24 * time.Hour

// OpenMemory makes the folder of the journals below root, and removes what killed processes have left.
func OpenMemory(root string) *Memory { return openMemory("/dev/shm", root) }

func openMemory(tmpfs, root string) *Memory {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return &Memory{}
	}
	ours := filepath.Join(tmpfs, "millrace-"+strconv.Itoa(os.Geteuid()))
	if makePrivate(ours) != nil {
		return &Memory{}
	}
	sum := sha256.Sum256([]byte(absolute))
	m, err := hold(filepath.Join(ours, hex.EncodeToString(sum[:8])))
	if err != nil {
		return &Memory{}
	}
	removeLeft(ours, time.Now())
	return m
}

// makePrivate makes a folder that no other user may look into or change, or finds that it is one.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder in memory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at folder in memory: %w", err)
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) != os.Geteuid() || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return errors.New("a folder in memory is not ours alone")
	}
	return nil
}

// hold makes a folder, which another start may remove until it is locked, and locks it. Several processes may hold one;
// a start that looks whether it is held has the lock for an instant.
func hold(dir string) (*Memory, error) {
	const tries = 10
	for range tries {
		if err := makePrivate(dir); err != nil {
			return nil, err
		}
		f, err := os.Open(dir) //nolint:gosec // our own name
		if err != nil {
			continue // it was removed
		}
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err == nil && is(f, dir) {
			return &Memory{Dir: dir, held: f}, nil
		}
		_ = f.Close() // it was only locked
	}
	return nil, errors.New("a folder in memory is removed again and again")
}

// is reports whether the open file f is still the one of that name.
func is(f *os.File, name string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(name)
	return err == nil && os.SameFile(open, named)
}

// removeLeft removes the folders in dir that no process holds, unless they have marks for the process that goes on with
// their journals. The broadcasts of a process that has been away for longer than marksKept are over.
func removeLeft(dir string, now time.Time) {
	recent := func(mark fs.DirEntry) bool {
		info, err := mark.Info()
		return err != nil || now.Sub(info.ModTime()) < marksKept
	}
	folders, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range folders {
		name := filepath.Join(dir, e.Name())
		f, err := os.Open(name) //nolint:gosec // our own folder
		if err != nil {
			continue
		}
		// another one may have its name by now
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && is(f, name) {
			if marks, err := os.ReadDir(name); err == nil && !slices.ContainsFunc(marks, recent) {
				_ = os.RemoveAll(name) // the next start tries again
			}
		}
		_ = f.Close() // it was only locked
	}
}

// Close removes the folder, unless broadcasts have marks in it that are to go on, and releases it.
func (m *Memory) Close() error {
	if m.held == nil {
		return nil
	}
	// For an instant between the two locks nobody has one: a start may remove the folder then, and another one make it
	// again.
	if syscall.Flock(int(m.held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && is(m.held, m.Dir) {
		_ = os.Remove(m.Dir) // it may have marks
	}
	if err := m.held.Close(); err != nil {
		return fmt.Errorf("let go of folder in memory: %w", err)
	}
	return nil
}
