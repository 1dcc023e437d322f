package send

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// note is what the folder of notes says of a file: which upload it goes to, or what became of it. While it is open no
// other process has it.
type note struct {
	Path   string  `json:"path"` // for people who look into the folder
	Upload string  `json:"upload"`
	URL    string  `json:"url"` // a secret
	Done   *Result `json:"done,omitempty"`

	file *os.File // nil: nothing is remembered
}

const noteEnd = ".json"

// maxNote bounds what is read of a note, in bytes.
const maxNote = 1 << 20

// noteName follows from all that makes an upload the same one: where it goes, what of, and with which settings.
func (s *Sender) noteName(path string, info fs.FileInfo) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("look at file: %w", err)
	}
	o := s.opt
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %d %d", o.Server, o.TokenID, o.Policy, o.Title, path,
		info.Size(), info.ModTime().UnixNano()))
	return hex.EncodeToString(sum[:]) + noteEnd, nil
}

// note opens the note of a file, a new one if there is none.
func (s *Sender) note(path string, info fs.FileInfo) (*note, error) {
	if s.opt.Notes == "" {
		return &note{}, nil
	}
	name, err := s.noteName(path, info)
	if err != nil {
		return nil, err
	}
	if err = os.MkdirAll(s.opt.Notes, 0o700); err != nil {
		return nil, fmt.Errorf("make folder for notes: %w", err)
	}
	s.removeOld(time.Now())
	n := &note{}
	if n.file, err = hold(filepath.Join(s.opt.Notes, name)); err != nil {
		return nil, fmt.Errorf("open note of %s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(n.file, maxNote))
	if err != nil {
		n.close()
		return nil, fmt.Errorf("read note of %s: %w", path, err)
	}
	if len(text) > 0 && json.Unmarshal(text, n) != nil {
		*n = note{file: n.file} // written by half, when its process was killed
	}
	if n.Path, err = filepath.Abs(path); err != nil {
		n.close()
		return nil, fmt.Errorf("look at file: %w", err)
	}
	return n, nil
}

// errHeld is that another process sends the same file.
var errHeld = errors.New("another millrace upload sends the same file at the moment")

// hold opens a file that no other process holds, and makes it if need be.
func hold(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // a hash in our folder
		if err != nil {
			return nil, err
		}
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close() // nothing was written
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, errHeld
			}
			return nil, fmt.Errorf("lock file: %w", err)
		}
		mine, err := f.Stat()
		if there, gone := os.Lstat(path); err == nil && gone == nil && os.SameFile(mine, there) {
			return f, nil
		}
		_ = f.Close() // who had it has just removed it
	}
}

// write stores the note.
func (n *note) write() error {
	if n.file == nil {
		return nil
	}
	text, err := json.Marshal(n)
	if err == nil {
		err = n.file.Truncate(0)
	}
	if err == nil {
		_, err = n.file.WriteAt(text, 0)
	}
	if err != nil {
		return fmt.Errorf("write note: %w", err)
	}
	return nil
}

// forget removes the note.
func (n *note) forget() {
	if n.file != nil {
		_ = os.Remove(n.file.Name()) // one that stays is removed when it is old
	}
}

// close lets others have the note. One that says nothing is not kept.
func (n *note) close() {
	if n.file == nil {
		return
	}
	if n.Upload == "" && n.Done == nil {
		n.forget()
	}
	_ = n.file.Close() // it was written
}

// Forget has files that were sent be sent again the next time.
func (s *Sender) Forget(paths ...string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || s.opt.Notes == "" {
			continue
		}
		if name, err := s.noteName(path, info); err == nil {
			_ = os.Remove(filepath.Join(s.opt.Notes, name)) // one that stays is removed when it is old
		}
	}
}

// removeOld removes notes of uploads that have ended by now, whatever became of them.
func (s *Sender) removeOld(now time.Time) {
	all, err := os.ReadDir(s.opt.Notes)
	if err != nil {
		return
	}
	for _, e := range all {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), noteEnd) && now.Sub(info.ModTime()) > 2*KeptFor {
			_ = os.Remove(filepath.Join(s.opt.Notes, e.Name())) // the next process tries again
		}
	}
}
