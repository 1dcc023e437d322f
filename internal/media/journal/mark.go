package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// mark is the media sequence number up to which players were told of a broadcast's segments. It stands in a file in the machine's memory
// (tmpfs): a disk that is full or hangs, so that the journal has not all that was published, does not hold it up, and it outlives the process.
type mark struct {
	name string // empty: there is none

	mu   sync.Mutex
	file *os.File
	next int64 // the first number that nobody was told of
	over bool  // it is not kept any more
}

const markSize = 12 // the number, 8 bytes, big-endian; the CRC-32C of that

// read gives what an earlier process has marked.
func (m *mark) read() (next int64, ok bool) {
	if m.name == "" {
		return 0, false
	}
	data, err := os.ReadFile(m.name)
	if err != nil || len(data) != markSize || crc32.Checksum(data[:8], castagnoli()) != binary.BigEndian.Uint32(data[8:]) {
		return 0, false
	}
	n := binary.BigEndian.Uint64(data)
	return int64(n), n < 1<<62
}

// set says that players are told of a segment.
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

func (m *mark) write(data []byte) (err error) {
	if m.file == nil {
		if m.file, err = os.OpenFile(m.name, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600); err != nil {
			return err
		}
	}
	_, err = m.file.WriteAt(data, 0)
	return err
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

// Memory is a folder in this machine's memory for the marks of the journals below root. Empty: this machine has none that only we may write
// to. As long as the process runs it stays, so that nobody else makes it; what ends the process well removes it, if it is empty.
func Memory(root string) string {
	const tmpfs = "/dev/shm"
	absolute, err := filepath.Abs(root)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(absolute))
	dir := filepath.Join(tmpfs, "millrace-"+hex.EncodeToString(sum[:8]))
	if err = os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return ""
	}
	info, err := os.Lstat(dir) // everybody may make folders there
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return ""
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return ""
	}
	return dir
}
