package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"millrace/internal/disk"
)

// partial is a download that is under way: the bytes so far beside the file that they will become, and a note that
// tells a later attempt, or a later process, of which version of which URL they are.
type partial struct {
	path string // where the whole file goes
	file *os.File
	size int64 // bytes in file
	note note
	// What has come is written to the disk while the rest comes: finish has to wait for the last of it only.
	begun disk.Writeback
}

// note is written before the first byte that it describes.
type note struct {
	URL       string `json:"url"`       // its SHA-256, since a URL may hold a secret
	Validator string `json:"validator"` // for If-Range; empty: the bytes can't be continued
	Total     int64  `json:"total"`     // of the whole file; -1 when unknown
	Info      Info   `json:"info"`
}

const maxNoteBytes = 16 << 10

func partName(path string) string { return path + ".part" }
func noteName(path string) string { return path + ".part.json" }

// Discard removes what a download to path has left, finished or not.
func Discard(path string) error {
	var errs []error
	for _, name := range []string{path, partName(path), noteName(path)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("discard download: %w", err))
		}
	}
	return errors.Join(errs...)
}

// openPartial continues what is there of the same URL, or begins again.
func openPartial(path, rawURL string) (*partial, error) {
	sum := sha256.Sum256([]byte(rawURL))
	p := &partial{path: path}
	var err error
	if p.file, err = os.OpenFile(partName(path), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, fmt.Errorf("open download: %w", err)
	}
	info, err := p.file.Stat()
	if err != nil {
		_ = p.file.Close()
		return nil, fmt.Errorf("open download: %w", err)
	}
	p.size, p.note = info.Size(), readNote(path)
	p.begun.From = p.size
	fits := p.note.Total < 0 || p.size <= p.note.Total
	if p.note.URL != hex.EncodeToString(sum[:]) || p.note.Validator == "" || !fits {
		p.note = note{URL: hex.EncodeToString(sum[:]), Total: -1}
		err = p.restart(p.note)
	}
	if err != nil {
		_ = p.file.Close()
		return nil, err
	}
	return p, nil
}

// readNote gives an empty note for one that is missing or damaged.
func readNote(path string) note {
	data, err := os.ReadFile(noteName(path))
	var n note
	if err != nil || len(data) > maxNoteBytes || json.Unmarshal(data, &n) != nil {
		return note{}
	}
	return n
}

// restart drops the bytes so far; those to come are of the version that n tells of. First the note goes, then the
// bytes, then the new note comes: at no moment does a note stand beside bytes of another version.
func (p *partial) restart(n note) error {
	if err := os.Remove(noteName(p.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restart download: %w", err)
	}
	if err := p.file.Truncate(0); err != nil {
		return fmt.Errorf("restart download: %w", err)
	}
	p.size, p.note, p.begun = 0, n, disk.Writeback{}
	if n.Validator == "" {
		return nil
	}
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("restart download: %w", err)
	}
	tmp := noteName(p.path) + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("restart download: %w", err)
	}
	if err := os.Rename(tmp, noteName(p.path)); err != nil {
		return fmt.Errorf("restart download: %w", err)
	}
	return nil
}

func (p *partial) Write(b []byte) (int, error) {
	n, err := p.file.WriteAt(b, p.size)
	p.size += int64(n)
	p.begun.UpTo(p.file, p.size)
	return n, err
}

// finish gives the file its name, which it has on the disk only once all of it is there too: a process that finds it
// after a loss of power takes it for the whole.
func (p *partial) finish() error {
	if err := errors.Join(p.file.Sync(), p.file.Close()); err != nil {
		return fmt.Errorf("finish download: %w", err)
	}
	if err := os.Rename(partName(p.path), p.path); err != nil {
		return fmt.Errorf("finish download: %w", err)
	}
	if err := os.Remove(noteName(p.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("finish download: %w", err)
	}
	return nil
}

// validator picks what identifies this version of the file for If-Range (RFC 9110 13.1.5): a strong entity tag, or a
// time of change that was no longer the current second when it was sent (8.8.2.2).
func validator(h http.Header) string {
	if tag := h.Get("ETag"); len(tag) >= 2 && len(tag) <= maxFieldBytes && tag[0] == '"' &&
		strings.HasSuffix(tag, `"`) {
		return tag
	}
	changed, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil || sent.Sub(changed) < time.Second {
		return ""
	}
	return h.Get("Last-Modified")
}
