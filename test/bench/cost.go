package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/rendition/ladder"
	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

// cost measures what a rung costs that is watched from beginning to end, beside one plain ffmpeg with the same
// settings.
func (b *bench) cost(ctx context.Context) error {
	path, err := b.film(ctx, "H.264", 1)
	if err != nil {
		return err
	}
	b.out.begin("A minute of 1080p30 watched in a smaller size", "ffmpeg")
	source := ladder.Source{Width: 1920, Height: 1080, FrameRate: 30}
	for _, rung := range ladder.Below(source, ladder.Plus, 1080) {
		var ours, theirs []float64
		for range b.rounds {
			plain, err := b.plainCost(ctx, path, rung)
			if err != nil {
				return err
			}
			watched, err := b.watchedCost(ctx, path, rung)
			if err != nil {
				return err
			}
			ours, theirs = append(ours, watched), append(theirs, plain)
		}
		b.out.pair(fmt.Sprintf("%dp", min(rung.Width, rung.Height)), "s of CPU", median(ours), median(theirs),
			"at most 1.1 of the peer")
	}
	return nil
}

// plainCost is how much CPU time ffmpeg takes for all of it in one go, in seconds.
func (b *bench) plainCost(ctx context.Context, path string, r ladder.Rung) (float64, error) {
	args := encode.RungArgs{
		Width: r.Width, Height: r.Height, Preset: r.Preset, CRF: r.CRF, Bitrate: r.Bitrate, Level: r.Level,
		NoReorder: r.NoReorder, FrameRate: r.FrameRate, Timescale: 15360,
	}
	for s := 0.0; s < 60; s += 4 {
		args.Keys = append(args.Keys, s)
	}
	in, err := os.Open(filepath.Clean(path))
	if err != nil {
		return 0, fmt.Errorf("open film: %w", err)
	}
	defer func() { _ = in.Close() }() // it was only read
	cmd := exec.CommandContext(ctx, "ffmpeg", args.Build()...)
	cmd.Stdin = in
	if out, err := cmd.Output(); err != nil || len(out) == 0 {
		return 0, fmt.Errorf("ffmpeg: %w", err)
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}

// watchedCost is how much CPU time the service takes for one viewer of all segments, in seconds; what it takes for the
// file itself is not counted.
func (b *bench) watchedCost(ctx context.Context, path string, r ladder.Rung) (float64, error) {
	o, s, stop, err := b.offering(ctx, path)
	if err != nil {
		return 0, err
	}
	defer stop()
	below, names, err := s.rung(ctx, o.url, fmt.Sprintf("RESOLUTION=%dx%d", r.Width, r.Height))
	if err != nil {
		return 0, err
	}
	if err = sleep(ctx, 2*time.Second); err != nil { // until the file is dealt with
		return 0, err
	}
	before, err := proc.Read(s.p.PID())
	if err != nil {
		return 0, err
	}
	c := viewer.NewClient(s.http)
	defer c.Close()
	for _, name := range names {
		if got, _, failed := c.Get(below + name); failed != nil || got.Status != 200 {
			return 0, fmt.Errorf("get %s: %d %w", name, got.Status, failed)
		}
	}
	if err = sleep(ctx, time.Second); err != nil { // until the last child has ended and was waited for
		return 0, err
	}
	after, err := proc.Read(s.p.PID())
	return (after.CPU - before.CPU).Seconds(), err
}
