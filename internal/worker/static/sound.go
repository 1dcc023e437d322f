package static

import (
	"context"
	"fmt"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/download"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/worker/attempt"
)

// files are those of this kind of job in the scratch folder.
func (w *Worker) files() attempt.Scratch { return attempt.NewScratch(w.Scratch, "static-") }

// Tidy removes what earlier processes have left in the scratch folder. It is called before the first job.
func (w *Worker) Tidy(ctx context.Context) error { return w.files().Tidy(ctx, nil) }

// sound are the files of the sound of a file to download: as it is, and encoded again.
func (w *Worker) sound(f id.StaticRendition) (raw, made string) {
	return w.files().File(string(f) + ".mp4"), w.files().File(string(f) + ".m4a")
}

// resound puts AAC of one piece in the place of the sound: that is written into a file, encoded, and cut where it was
// cut before.
func (w *Worker) resound(ctx context.Context, f *download.Footage, file id.StaticRendition) error {
	last := len(f.Renditions) - 1
	raw, made := w.sound(file)
	plan, err := download.Plan(ctx, f.Zero, f.Renditions[last:])
	if err != nil {
		return fmt.Errorf("plan sound: %w", err)
	}
	if err = attempt.Write(raw, plan.Reader(ctx)); err != nil {
		return err
	}
	err = w.Encoder.EncodeAudio(ctx, encode.Background, encode.AudioArgs{
		Input:  raw,
		Format: encode.MOV,
		Output: made,
		Sound:  encode.Sound{SampleRate: f.SampleRate, Channels: f.Channels},
	}, nil)
	if err != nil {
		return err
	}
	const indexes = 64 << 20 // of one file
	library := ondemand.NewLibrary(local{}, indexes)
	index, err := library.File(ctx, made)
	if err != nil {
		return fmt.Errorf("index encoded sound: %w", err)
	}
	for _, t := range index.Tracks {
		if t.Kind != frame.Audio || t.Len() == 0 {
			continue
		}
		l := ondemand.Follow(t, made, timeline.MainAudio, f.Spans, f.Zero)
		f.Renditions[last] = download.Rendition{
			Kind: frame.Audio, Timescale: l.Timescale, First: f.Renditions[last].First, Chunks: l.Chunks,
			Source: mediastore.Recordings{Library: library}.Rendition(l, f.Renditions[last].First),
		}
		return nil
	}
	return fault.New(fault.Invalid, "the asset has no audio that can be decoded")
}

// local opens files of the scratch folder.
type local struct{}

// Open implements ondemand.Objects.
func (local) Open(_ context.Context, path string) (ondemand.ReaderAtCloser, int64, error) {
	return attempt.Open(path)
}
