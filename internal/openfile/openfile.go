// Package openfile shares one file descriptor among many readers. It stays open until the last of them closes it, even
// if its owner no longer needs it or the file was deleted. It must never know what the file contains, nor who reads it.
// It starts no goroutine.
package openfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// File is an open file, with as many holders as have to Close it.
type File struct {
	os      *os.File
	holders atomic.Int64
}

// New makes the caller the only holder of f, which nobody else may close.
func New(f *os.File) *File {
	out := &File{os: f}
	out.holders.Store(1)
	return out
}

// Hold adds a holder and reports whether the file is still open. It is always true for a caller that holds the file
// already.
func (f *File) Hold() bool {
	for {
		n := f.holders.Load()
		if n <= 0 {
			return false
		}
		if f.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Close removes a holder; each one calls it once.
func (f *File) Close() error {
	if f.holders.Add(-1) != 0 {
		return nil
	}
	return f.os.Close()
}

// OS is the file, for its holder; its own position is nobody's.
func (f *File) OS() *os.File { return f.os }

// Section reads n bytes of the file from off on. It is a holder of its own; false when the file is closed.
func (f *File) Section(off, n int64) (*Section, bool) {
	if !f.Hold() {
		return nil, false
	}
	return &Section{file: f, from: off, n: n}, true
}

// Section is a stretch of a File, for one reader.
type Section struct {
	file    *File
	from, n int64
	at      int64 // bytes of it that are read
	closed  bool
}

// Size is how long it is.
func (s *Section) Size() int64 { return s.n }

// Read implements io.Reader.
func (s *Section) Read(p []byte) (int, error) {
	switch {
	case s.closed:
		return 0, os.ErrClosed
	case s.at >= s.n:
		return 0, io.EOF
	}
	n, err := s.file.os.ReadAt(p[:min(int64(len(p)), s.n-s.at)], s.from+s.at)
	s.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) { // the next read says so, if that was not all
		err = nil
	}
	return n, err
}

var errSeek = errors.New("a place outside of the section")

// Seek implements io.Seeker.
func (s *Section) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.n
	}
	if offset < 0 || offset > s.n {
		return 0, fmt.Errorf("seek %d: %w", offset, errSeek)
	}
	s.at = offset
	return offset, nil
}

// Rest is what is not read yet, as n bytes of a file: a sender by other ways than Read seeks behind them.
func (s *Section) Rest() (f *os.File, off, n int64) { return s.file.os, s.from + s.at, s.n - s.at }

// Close implements io.Closer.
func (s *Section) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.file.Close()
}
