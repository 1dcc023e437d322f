package speech

import (
	"context"
	"fmt"

	"millrace/internal/id"
	"millrace/internal/media/container/mp4"
	"millrace/internal/worker/attempt"
)

// files are those of this kind of job in the scratch folder.
func (w *Worker) files() attempt.Scratch { return attempt.NewScratch(w.Scratch, "speech-") }

// Tidy removes what earlier processes have left in the scratch folder. It is called before the first job.
func (w *Worker) Tidy(ctx context.Context) error { return w.files().Tidy(ctx, nil) }

// sound is the file of the sound of which a track is made.
func (w *Worker) sound(t id.Track) string { return w.files().File(string(t) + ".m4a") }

// fetch puts a stored file into the scratch folder: its index may lie behind its sound.
func (w *Worker) fetch(ctx context.Context, object, path string) error {
	r, err := w.Store.Get(ctx, object, 0, -1)
	if err != nil {
		return fmt.Errorf("read audio track: %w", err)
	}
	defer func() { _ = r.Close() }() // it was only read
	return attempt.Write(path, r)
}

// isFragmented tells an MP4 whose times may count from any place on a clock.
func isFragmented(path string) (bool, error) {
	f, size, err := attempt.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	index, err := mp4.Index(f, size)
	if err != nil {
		return false, fmt.Errorf("index audio track: %w", err)
	}
	return index.Fragmented, nil
}
