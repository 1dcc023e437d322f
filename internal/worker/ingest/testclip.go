package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/download"
	"millrace/internal/media/timeline"
)

// testClip makes a test asset of a stretch of another one: it can't play the source's segments, because its picture carries the mark. The
// stretch becomes a file in the scratch folder, which is taken like one that was fetched.
func (w *Worker) testClip(ctx context.Context, a asset.Asset, in assetopt.Input, t *timeline.Timeline, from, to float64) error {
	if err := w.fetchOverlays(ctx, a); err != nil {
		return err
	}
	part, err := w.cut(ctx, a, t, from, math.Min(to, from+asset.TestLength.Seconds()))
	if err != nil {
		return err
	}
	var lanes []download.Lane
	for _, l := range part.Lanes {
		if l.ID == timeline.MainVideo || l.ID == timeline.MainAudio {
			lanes = append(lanes, download.Lane{
				Kind: l.Kind, Timescale: l.Timescale, First: part.First, Chunks: l.Chunks, Source: footage{delivered{w, part}, l},
			})
		}
	}
	f, err := download.Plan(ctx, part.ZeroTime(), lanes)
	if err != nil {
		return fmt.Errorf("plan file of the stretch: %w", err)
	}
	path := w.path(a.ID)
	if err = writeFile(path, f.Reader(ctx)); err != nil {
		return err
	}
	if err = w.accept(ctx, a, in, path); err != nil {
		return err
	}
	return w.discard(a.ID)
}

func writeFile(path string, r io.Reader) error {
	out, err := os.Create(path) //nolint:gosec // our own scratch file
	if err != nil {
		return fmt.Errorf("make file of the stretch: %w", err)
	}
	_, err = io.Copy(out, r)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write file of the stretch: %w", err)
	}
	return nil
}

// footage is a rendition's media for a file; it implements download.Source.
type footage struct {
	of delivered
	l  *timeline.Lane
}

// Init implements download.Source.
func (s footage) Init(ctx context.Context, n int) ([]byte, error) { return s.of.Init(ctx, s.l, n) }

// Segment implements download.Source.
func (s footage) Segment(ctx context.Context, msn int64) (io.ReadCloser, int64, error) {
	data, err := s.of.Segment(ctx, s.l, msn)
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), err
}
