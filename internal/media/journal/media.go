package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"millrace/internal/openfile"
)

// Media is the file of one rendition's segment: its parts, one behind the other, and nothing else.
type Media struct {
	path      string
	msn       int64
	rendition string
	size      int64        // of the file; Run's own
	parts     int          // that were queued, the journal's lock guards it
	next      int64        // where the next one begins, likewise
	written   atomic.Int64 // bytes that are in the file and in the index

	mu     sync.Mutex
	file   *openfile.File // nil before the first part, and once it was put down
	closed bool           // it is to be closed
}

// Media is the file for a segment that begins; it is made with its first part.
func (j *Journal) Media(msn int64, rendition string) *Media {
	return &Media{path: filepath.Join(j.opt.Dir, mediaName(msn, rendition)), msn: msn, rendition: rendition}
}

func mediaName(msn int64, rendition string) string {
	return strconv.FormatInt(msn, 10) + "." + rendition + ".m4s"
}

// Written reports whether the first n bytes of the segment are in the file.
func (m *Media) Written(n int64) bool { return m.written.Load() >= n }

// Section reads n bytes from off on, which must be Written. It fails once the segment is forgotten and the file was put
// down.
func (m *Media) Section(off, n int64) (*openfile.Section, error) {
	f, err := m.Hold()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the section holds it
	s, _ := f.Section(off, n)
	return s, nil
}

// Hold returns the file, which the caller closes. It fails as Section does.
func (m *Media) Hold() (*openfile.File, error) {
	m.mu.Lock()
	if m.file != nil && m.file.Hold() {
		defer m.mu.Unlock()
		return m.file, nil
	}
	m.mu.Unlock()
	f, err := os.Open(m.path)
	if err != nil {
		return nil, fmt.Errorf("open media in journal: %w", err)
	}
	return openfile.New(f), nil
}

// PutDown closes the file, unless it is being read; the next reader opens it again.
func (m *Media) PutDown() {
	m.mu.Lock()
	f := m.file
	m.file, m.closed = nil, true
	m.mu.Unlock()
	if f != nil {
		_ = f.Close() // nothing is buffered
	}
}

// write appends to the file. Run calls it.
func (m *Media) write(data []byte) error {
	f, err := m.forWriting()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // held by the one who reads
	n, err := f.OS().WriteAt(data, m.size)
	m.size += int64(n)
	return err
}

var errPutDown = errors.New("the segment is given up")

func (m *Media) forWriting() (*openfile.File, error) {
	m.mu.Lock()
	f, closed := m.file, m.closed
	if f != nil {
		defer m.mu.Unlock()
		f.Hold()
		return f, nil
	}
	m.mu.Unlock()
	if closed || m.size > 0 {
		return nil, errPutDown
	}
	made, err := m.create()
	if err != nil {
		return nil, fmt.Errorf("make media in journal: %w", err)
	}
	f = openfile.New(made)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		f.Hold()
		m.file = f
	}
	return f, nil
}

// create makes a file that was not there: what a dead process left under its name may be what storage has, by a second
// name.
func (m *Media) create() (*os.File, error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_RDWR
	f, err := os.OpenFile(m.path, flags, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	if err := os.Remove(m.path); err != nil {
		return nil, err
	}
	return os.OpenFile(m.path, flags, 0o600)
}
