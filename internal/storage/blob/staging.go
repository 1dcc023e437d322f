package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	stagingDir = ".tmp" // holds the folders of unfinished writes; no key begins with a dot
	// stagingAge: where files can't be locked, an unfinished write this old was left by a process that is gone.
	stagingAge = 24 * time.Hour
	copyBytes  = 256 << 10
)

// staging is where files are written before they get their names: a folder that each open store has for itself. It is
// locked for as long as the store is open, by the system, which gives the lock back when the process dies, however it
// does: what lies in a folder that nobody has locked will never be finished.
type staging struct {
	dir     *os.File
	noSync  bool
	buffers sync.Pool
}

// openStaging makes a store's folder below parent, and so tries whether the storage can be written to. What killed
// processes left there is removed.
func openStaging(parent string, noSync bool) (*staging, error) {
	s := &staging{noSync: noSync}
	s.buffers.New = func() any { b := make([]byte, copyBytes); return &b }
	for range nameTrials {
		dir, err := makeLocked(filepath.Join(parent, rand.Text()))
		if err != nil {
			return nil, fmt.Errorf("write to storage folder: %w", err)
		}
		if dir == nil {
			continue
		}
		s.dir = dir
		if err = s.sweep(parent, time.Now()); err != nil {
			return nil, errors.Join(err, s.close())
		}
		return s, nil
	}
	return nil, errors.New("write to storage folder: it is swept all the time")
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

// close lets go of the folder.
func (s *staging) close() error {
	_ = os.Remove(s.dir.Name()) // where a write is still under way it is swept later
	err := s.dir.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}

// name is one that no file has yet.
func (s *staging) name() string { return filepath.Join(s.dir.Name(), rand.Text()) }

// write leaves all of r in a new file, or nothing.
func (s *staging) write(ctx context.Context, r io.Reader) (_ string, err error) {
	if err = ctx.Err(); err != nil {
		return "", err
	}
	name := s.name()
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // our own name
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(name)
		}
	}()
	buf, _ := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	// Both ends are hidden, so that ctx is asked between two buffers whatever else they can do.
	if _, err := io.CopyBuffer(struct{ io.Writer }{file}, &ctxReader{ctx: ctx, r: r}, *buf); err != nil {
		return "", err
	}
	if s.noSync {
		return name, nil
	}
	return name, file.Sync()
}

// ctxReader ends with the error of its context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	if cause := c.ctx.Err(); cause != nil && err != nil {
		err = cause // also instead of the end, after which the object would be stored
	}
	return n, err
}

// sweep removes what killed processes left. What another process may be writing stays.
func (s *staging) sweep(parent string, now time.Time) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("read storage folder: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(parent, e.Name())
		switch {
		case name == s.dir.Name():
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
	if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > stagingAge {
		_ = os.Remove(name)
	}
}
