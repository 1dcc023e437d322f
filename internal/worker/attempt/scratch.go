package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Scratch is the files that one kind of job keeps in a folder while it is done, and leaves there for the next attempt.
// Their names begin with a prefix.
type Scratch struct{ path, prefix string }

// NewScratch returns the files of a folder that begin with a prefix. Their paths are absolute: ffmpeg has a working
// folder of its own.
func NewScratch(folder, prefix string) Scratch {
	if whole, err := filepath.Abs(folder); err == nil {
		folder = whole
	}
	return Scratch{folder, prefix}
}

// File is the path of a file.
func (s Scratch) File(name string) string { return filepath.Join(s.path, s.prefix+name) }

// Discard removes files where they are.
func Discard(paths ...string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove scratch file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Write makes a scratch file of what r gives, in place of one that is there.
func Write(path string, r io.Reader) (err error) {
	f, err := os.Create(path) //nolint:gosec // a name of our own
	if err != nil {
		return fmt.Errorf("make scratch file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err = io.Copy(f, r); err != nil {
		return fmt.Errorf("write scratch file: %w", err)
	}
	return nil
}

// Open opens a scratch file to be read, and tells its size.
func Open(path string) (*os.File, int64, error) {
	f, err := os.Open(path) //nolint:gosec // a name of our own
	if err != nil {
		return nil, 0, fmt.Errorf("open scratch file: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("look at scratch file: %w", err), f.Close())
	}
	return f, info.Size(), nil
}

// Tidy removes what earlier processes have left, but for the files of what is still being made: those whose names, up
// to the first full stop, are busy; nil: there is none. It is called before the first job.
func (s Scratch) Tidy(ctx context.Context, busy func(ctx context.Context, name string) (bool, error)) error {
	files, err := os.ReadDir(s.path)
	if err != nil {
		return fmt.Errorf("tidy scratch folder: %w", err)
	}
	var errs []error
	for _, f := range files {
		name, ours := strings.CutPrefix(f.Name(), s.prefix)
		if !ours || f.IsDir() {
			continue
		}
		name, _, _ = strings.Cut(name, ".")
		kept := false
		if busy != nil {
			if kept, err = busy(ctx, name); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if !kept {
			errs = append(errs, os.Remove(filepath.Join(s.path, f.Name())))
		}
	}
	return errors.Join(errs...)
}
