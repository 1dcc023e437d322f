package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

// errChanges says that the sound of a stream has other parameters than in the beginning.
var errChanges = errors.New("the sound changes")

// parameters waits for sound with other parameters. It implements mpegts.Output.
type parameters struct{ asc []byte }

func (p *parameters) Configure(c frame.Config) error {
	if c.Codec != frame.AAC {
		return nil
	}
	if p.asc != nil && !bytes.Equal(p.asc, c.ASC) {
		return errChanges
	}
	p.asc = c.ASC
	return nil
}

func (p *parameters) Write(frame.Frame) error { return nil }

// oneSound has sound encoded that has other parameters midway.
func (w *Worker) oneSound(ctx context.Context, c *conform, path string) error {
	if c.audio == nil || c.args.Sound != nil || c.audio.Codec != "aac" {
		return nil
	}
	changes, err := w.soundChanges(ctx, path)
	if err == nil && changes {
		c.args.Sound = &encode.Sound{SampleRate: c.audio.SampleRate, Channels: c.audio.Channels}
		c.reasons.FileParameters = unusual
	}
	return err
}

// soundChanges reports whether the AAC of an MPEG-TS goes on with another sample rate or number of channels, as where broadcasts follow each
// other: its packets can't stay as they are, for one track has one AudioSpecificConfig. What is no stream to us changes nothing.
func (w *Worker) soundChanges(ctx context.Context, path string) (changes bool, err error) {
	err = w.opt.ProbeLimiter.Examine(ctx, func() (failed error) {
		changes, failed = readUntilChange(ctx, path)
		return failed
	})
	return changes, err
}

func readUntilChange(ctx context.Context, path string) (bool, error) {
	f, err := os.Open(path) //nolint:gosec // our own scratch file
	if err != nil {
		return false, fmt.Errorf("open download: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	d := mpegts.NewDemuxer(&parameters{})
	b := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, read := f.Read(b)
		if wrong := d.Write(b[:n], time.Time{}); wrong != nil { // of what is wrong with the file ffmpeg tells
			return errors.Is(wrong, errChanges), nil
		}
		if errors.Is(read, io.EOF) {
			return false, nil
		}
		if read != nil {
			return false, fmt.Errorf("read download: %w", read)
		}
	}
	return false, context.Cause(ctx)
}
