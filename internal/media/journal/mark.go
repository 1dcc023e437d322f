package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"syscall"
)

// mark is the media sequence number up to which players were told of a broadcast's segments. It stands in a file in the
// machine's memory (tmpfs): a disk that is full or hangs, so that the journal has not all that was published, does not
// hold it up, and it outlives the process. Behind it stand, while the disk is late, the operations that it has not done
// (late.go).
type mark struct {
	name string // empty: there is none

	mu   sync.Mutex
	file *os.File
	next int64 // the first number that no player was told of
	over bool  // it is not kept any more
	late int64 // bytes of late operations behind it
}

const (
	markSize = 12      // the number, 8 bytes, big-endian; the CRC-32C of that
	maxLate  = 4 << 20 // bytes of late operations: seconds of a stream
)

var (
	errNoRoom = errors.New("there is no room for more late records")
	errNoMark = errors.New("there is no file in memory for late records")
)

// read returns what an earlier process has marked.
func (m *mark) read() (next int64, ok bool) {
	if m.name == "" {
		return 0, false
	}
	data, err := os.ReadFile(m.name)
	if err != nil || len(data) < markSize ||
		crc32.Checksum(data[:8], castagnoli()) != binary.BigEndian.Uint32(data[8:markSize]) {
		return 0, false
	}
	n := binary.BigEndian.Uint64(data)
	return int64(n), n < 1<<62
}

// set notes that players are told of a segment.
func (m *mark) set(msn int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name == "" || m.over || msn < m.next {
		return nil
	}
	m.next = msn + 1
	data := binary.BigEndian.AppendUint64(make([]byte, 0, markSize), uint64(m.next))
	data = binary.BigEndian.AppendUint32(data, crc32.Checksum(data, castagnoli()))
	err := m.write(data)
	if err != nil {
		m.end(true) // an old one would say too little
		return fmt.Errorf("mark segment as published: %w", err)
	}
	return nil
}

func (m *mark) write(data []byte) error {
	if err := m.open(); err != nil {
		return err
	}
	_, err := m.file.WriteAt(data, 0)
	return err
}

func (m *mark) open() (err error) {
	if m.file == nil {
		m.file, err = os.OpenFile(m.name, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	}
	return err
}

// readLate returns what an earlier process has added.
func (m *mark) readLate() []byte {
	if m.name == "" {
		return nil
	}
	data, err := os.ReadFile(m.name)
	if err != nil || len(data) < markSize {
		return nil
	}
	return data[markSize:]
}

// add keeps a record of a late operation, if there is room for it.
func (m *mark) add(record []byte) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name == "" || m.over {
		return errNoMark
	}
	if m.late+int64(len(record)) > maxLate {
		return errNoRoom
	}
	if err = m.open(); err == nil && m.late == 0 {
		err = m.cut()
	}
	if err == nil {
		_, err = m.file.WriteAt(record, markSize+m.late)
	}
	if err != nil {
		return fmt.Errorf("keep late record: %w", err)
	}
	m.late += int64(len(record))
	return nil
}

// clear forgets the late operations.
func (m *mark) clear() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name == "" || m.over {
		return nil
	}
	m.late = 0
	if err := m.open(); err != nil {
		return fmt.Errorf("forget late records: %w", err)
	}
	return m.cut()
}

// cut removes all behind the mark itself. Called with the lock.
func (m *mark) cut() error {
	info, err := m.file.Stat()
	if err == nil && info.Size() > markSize {
		err = m.file.Truncate(markSize)
	}
	return err //nolint:wrapcheck // the caller says what it was about
}

// close lets go of the mark: as it is, or for ever.
func (m *mark) close(remove bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.over {
		m.end(remove)
	}
}

func (m *mark) end(remove bool) {
	m.over = true
	if m.file != nil {
		_ = m.file.Close() // nothing is buffered
		m.file = nil
	}
	if remove && m.name != "" {
		_ = os.Remove(m.name) // it may not be there
	}
}
