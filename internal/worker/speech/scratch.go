package speech

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"millrace/internal/id"
	"millrace/internal/media/container/mp4"
)

const scratchPrefix = "speech-"

func (w *Worker) scratch(t id.Track) string {
	return filepath.Join(w.Scratch, scratchPrefix+string(t)+".m4a")
}

// fetch puts a stored file into the scratch folder: its index may lie behind its sound.
func (w *Worker) fetch(ctx context.Context, object string, t id.Track) (path string, err error) {
	r, err := w.Store.Get(ctx, object, 0, -1)
	if err != nil {
		return "", fmt.Errorf("read audio track: %w", err)
	}
	defer func() { _ = r.Close() }() // it was only read
	path = w.scratch(t)
	out, err := os.Create(path) //nolint:gosec // our own scratch file
	if err != nil {
		return "", fmt.Errorf("make scratch file: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err = io.Copy(out, r); err != nil {
		return "", fmt.Errorf("copy audio track: %w", err)
	}
	return path, nil
}

// isFragmented tells an MP4 whose times may count from any place on a clock.
func isFragmented(path string) (bool, error) {
	f, err := os.Open(path) //nolint:gosec // our own scratch file
	if err != nil {
		return false, fmt.Errorf("open audio track: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	st, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("look at audio track: %w", err)
	}
	index, err := mp4.Index(f, st.Size())
	if err != nil {
		return false, fmt.Errorf("index audio track: %w", err)
	}
	return index.Fragmented, nil
}

func (w *Worker) tidy(t id.Track) error {
	if err := os.Remove(w.scratch(t)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove scratch file: %w", err)
	}
	return nil
}

// Tidy removes what earlier processes have left in the scratch folder. It is called before the first job.
func (w *Worker) Tidy() error {
	files, err := os.ReadDir(w.Scratch)
	if err != nil {
		return fmt.Errorf("tidy scratch folder: %w", err)
	}
	var errs []error
	for _, f := range files {
		if strings.HasPrefix(f.Name(), scratchPrefix) && !f.IsDir() {
			errs = append(errs, os.Remove(filepath.Join(w.Scratch, f.Name())))
		}
	}
	return errors.Join(errs...)
}
