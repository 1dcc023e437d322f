package mp4

import (
	"errors"
	"fmt"
	"io"

	"millrace/internal/media/container/bmff"
)

// source reads small pieces of a file through a window, as storage may be far away.
type source struct {
	r      io.ReaderAt
	size   int64
	window []byte
	start  int64 // of the window in the file
	buf    [windowSize]byte
}

const windowSize = 16 << 10

// header reads the box header at a place in the file.
func (s *source) header(at int64) (bmff.Header, error) {
	b, err := s.peek(at, min(16, s.size-at))
	if err != nil {
		return bmff.Header{}, err
	}
	return bmff.ParseHeader(b)
}

// peek returns n bytes, at most a window, valid until the next call.
func (s *source) peek(at, n int64) ([]byte, error) {
	if at < s.start || at+n > s.start+int64(len(s.window)) {
		got := min(windowSize, s.size-at)
		s.window = nil
		if err := readFull(s.r, s.buf[:got], at); err != nil {
			return nil, err
		}
		s.window, s.start = s.buf[:got], at
	}
	return s.window[at-s.start : at-s.start+n], nil
}

// bytes returns n bytes that the caller may keep. The caller has bounded n; it lies in the file.
func (s *source) bytes(at, n int64) ([]byte, error) {
	out := make([]byte, n)
	if n <= windowSize {
		b, err := s.peek(at, n)
		copy(out, b)
		return out, err
	}
	return out, readFull(s.r, out, at)
}

// readFull fills b. A file that is shorter than was said is ErrTruncated.
func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %d bytes are missing from byte %d on", ErrTruncated, len(b)-n, at+int64(n))
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), at, err)
}
