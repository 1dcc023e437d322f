// Package track does the job track.ingest: a file by URL becomes a text or an alternate audio track of an asset.
package track

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/media/captions"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/storage/blob"
)

// Options is what a Worker needs.
type Options struct {
	Assets  asset.Work
	Store   blob.Store
	Fetch   *fetch.Client
	Engine  *encode.Engine
	Scratch string // folder for downloads
	MaxSize int64  // of an audio file, bytes
	Now     func() time.Time
}

// Worker does track.ingest.
type Worker struct{ opt Options }

// New returns a Worker.
func New(o Options) *Worker { return &Worker{opt: o} }

const maxText = 16 << 20 // bytes of a subtitle file

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobTrackIngest, MaxAttempts: 5, Timeout: 6 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.TrackArgs](j)
	if err != nil {
		return err
	}
	a, err := w.opt.Assets.Find(ctx, args.Asset)
	if err != nil {
		return gone(err)
	}
	for _, t := range a.Tracks {
		if t.ID == args.Track && t.Status == asset.TrackPreparing {
			return w.ingest(ctx, a, t, j.Last())
		}
	}
	return nil // deleted or done meanwhile
}

func gone(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// ingest makes the track; a file that is at fault, or the last attempt, errors it. The asset stays as it is.
func (w *Worker) ingest(ctx context.Context, a asset.Asset, t asset.Track, last bool) error {
	var err error
	if t.Type == asset.TextTrack {
		err = w.text(ctx, a, &t)
	} else {
		err = w.audio(ctx, a, &t)
	}
	if err == nil {
		return gone(w.opt.Assets.TrackReady(ctx, a.ID, t, w.opt.Now()))
	}
	if ctx.Err() != nil || !fault.Permanent(err) && !last {
		return err
	}
	messages := fault.Messages(err)
	if len(messages) == 0 {
		messages = []string{"the track could not be made; the service's log says why"}
	}
	failed := w.opt.Assets.TrackFailed(ctx, a.ID, t.ID, asset.Errors{Type: "invalid_input", Messages: messages}, w.opt.Now())
	return errors.Join(err, gone(failed))
}

func (w *Worker) text(ctx context.Context, a asset.Asset, t *asset.Track) error {
	data, _, err := w.opt.Fetch.Get(ctx, t.URL, maxText)
	if err != nil {
		return err
	}
	d, err := captions.Parse(data)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the file is no usable subtitle file: %s", err)
	}
	t.Object = fmt.Sprintf("media/%s/tracks/%s.vtt", a.Media, t.ID)
	t.Rendition, t.Duration = string(t.ID), d.End().Seconds()
	if err := w.opt.Store.Put(ctx, t.Object, bytes.NewReader(d.AppendVTT(nil))); err != nil {
		return fmt.Errorf("store text track: %w", err)
	}
	return nil
}

func (w *Worker) audio(ctx context.Context, a asset.Asset, t *asset.Track) error {
	raw := filepath.Join(w.opt.Scratch, "track-"+string(t.ID))
	made := raw + ".m4a"
	if _, err := w.opt.Fetch.Download(ctx, t.URL, raw, fetch.Limits{MaxBytes: w.opt.MaxSize}, nil); err != nil {
		return err
	}
	defer func() { _ = errors.Join(os.Remove(raw), os.Remove(made)) }() // the second has moved when all went well
	if err := w.convert(ctx, raw, made); err != nil {
		return err
	}
	if err := describe(made, t); err != nil {
		return err
	}
	t.Object = fmt.Sprintf("media/%s/tracks/%s.m4a", a.Media, t.ID)
	t.Rendition = string(t.ID)
	if err := w.opt.Store.Adopt(ctx, t.Object, made); err != nil {
		return fmt.Errorf("store audio track: %w", err)
	}
	return nil
}

// convert makes an M4A of any audio file; AAC is passed through.
func (w *Worker) convert(ctx context.Context, raw, made string) error {
	format, err := sniff(raw)
	if err != nil {
		return err
	}
	info, err := w.opt.Engine.Probe(ctx, raw, format)
	if err != nil {
		return err
	}
	for _, s := range info.Tracks {
		if s.Kind == encode.Audio {
			return w.opt.Engine.EncodeAudio(ctx, encode.AudioArgs{
				Input: raw, Format: format, Output: made, Copy: s.Codec == "aac" && s.Channels <= 2, SampleRate: s.SampleRate, Channels: s.Channels,
			}, nil)
		}
	}
	return fault.New(fault.Invalid, "the file has no audio")
}

func sniff(path string) (encode.Format, error) {
	f, err := os.Open(path) //nolint:gosec // our own scratch file
	if err != nil {
		return "", fmt.Errorf("open download: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	head := make([]byte, encode.SniffSize)
	n, err := f.ReadAt(head, 0)
	if n == 0 && err != nil {
		return "", fault.New(fault.Invalid, "the file is empty")
	}
	format, ok := encode.Sniff(head[:n])
	if !ok {
		return "", fault.New(fault.Invalid, "the file is of no known audio format: M4A, MP3, WAV, AAC, Opus and FLAC can be used")
	}
	return format, nil
}

// describe measures what was made.
func describe(path string, t *asset.Track) error {
	f, err := os.Open(path) //nolint:gosec // our own scratch file
	if err != nil {
		return fmt.Errorf("open converted audio: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at converted audio: %w", err)
	}
	index, err := mp4.Index(f, st.Size())
	if err != nil {
		return fmt.Errorf("index converted audio: %w", err)
	}
	for _, tr := range index.Tracks {
		if tr.Kind == frame.Audio && tr.Len() > 0 {
			t.Duration = float64(tr.Duration()) / float64(tr.Timescale)
			t.MaxChannels = tr.Config.Channels
			return nil
		}
	}
	return fault.New(fault.Invalid, "the file has no audio that can be decoded")
}
