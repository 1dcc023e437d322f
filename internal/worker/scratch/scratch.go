// Package scratch is the folder in which workers keep files while a job is done, and what an attempt leaves there for
// the next one.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Folder is the files of one kind of job, whose names begin with a prefix.
type Folder struct{ path, prefix string }

// In gives the files of a folder that begin with a prefix. Their paths are absolute: ffmpeg has a working folder of its
// own.
func In(folder, prefix string) Folder {
	if whole, err := filepath.Abs(folder); err == nil {
		folder = whole
	}
	return Folder{folder, prefix}
}

// File is the path of a file.
func (f Folder) File(name string) string { return filepath.Join(f.path, f.prefix+name) }

// Remove removes files where they are.
func Remove(paths ...string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove scratch file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Tidy removes what earlier processes have left, but for the files of what is still being made: those whose names, up to
// the first full stop, are busy; nil: there is none. It is called before the first job.
func (f Folder) Tidy(ctx context.Context, busy func(ctx context.Context, name string) (bool, error)) error {
	files, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("tidy scratch folder: %w", err)
	}
	var errs []error
	for _, have := range files {
		name, ours := strings.CutPrefix(have.Name(), f.prefix)
		if !ours || have.IsDir() {
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
			errs = append(errs, os.Remove(filepath.Join(f.path, have.Name())))
		}
	}
	return errors.Join(errs...)
}
