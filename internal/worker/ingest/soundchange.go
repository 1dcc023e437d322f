package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/worker/attempt"
)

// flow is what is known of an MPEG-TS that was read from end to end.
type flow struct {
	changes bool // the AAC goes on with another sample rate or number of channels, as in broadcasts put together
	torn    bool // packets of it are missing, or can't be read
}

// parameters notes sound with other parameters. It implements mpegts.Output.
type parameters struct {
	asc     []byte
	changes bool
}

func (p *parameters) Configure(c frame.Config) error {
	if c.Codec != frame.AAC {
		return nil
	}
	p.changes = p.changes || p.asc != nil && !bytes.Equal(p.asc, c.ASC)
	p.asc = c.ASC
	return nil
}

func (p *parameters) Write(frame.Frame) error { return nil }

// oneSound has sound encoded that has other parameters midway: its packets can't stay as they are, for one track has
// one AudioSpecificConfig.
func (c *conform) oneSound(f flow) {
	if !f.changes || c.audio == nil || c.args.Sound != nil || c.audio.Codec != "aac" {
		return
	}
	c.args.Sound = &encode.Sound{SampleRate: c.audio.SampleRate, Channels: c.audio.Channels}
	c.reasons.FileParameters = unusual
}

// flows reads an MPEG-TS. What is no stream to us is neither torn nor changes.
func (i *inspector) flows(ctx context.Context, path string) (f flow, err error) {
	err = i.limiter.Examine(ctx, func() (failed error) {
		f, failed = readFlow(ctx, path)
		return failed
	})
	return f, err
}

func readFlow(ctx context.Context, path string) (flow, error) {
	f, _, err := attempt.Open(path)
	if err != nil {
		return flow{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	p := &parameters{}
	d := mpegts.NewDemuxer(p)
	b := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, read := f.Read(b)
		wrong := d.Write(b[:n], time.Time{}) // of what is wrong with the file ffmpeg tells
		if wrong != nil || errors.Is(read, io.EOF) {
			s := d.Stats()
			return flow{p.changes, wrong == nil && s.Lost+s.Broken+s.Malformed > 0}, nil
		}
		if read != nil {
			return flow{}, fmt.Errorf("read download: %w", read)
		}
	}
	return flow{}, context.Cause(ctx)
}
