package encode

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"testing"
)

// TestIngestWaitsForNoBackground has downloads and speech hold all of their share of the processor, and as many more
// wait for it as may: what a file is encoded for before it is an asset or a track goes on.
func TestIngestWaitsForNoBackground(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	background := e.opts.Budget.background
	// the next one is refused
	background.free, background.waiting = 0, slices.Repeat([]*waiter{{weight: 1}}, maxWaiting)
	ctx := t.Context()
	in, sound := lasting(t, "in.wav", "sine=duration=1"), Sound{SampleRate: 44100, Channels: 1}
	for name, work := range map[string]func() error{
		"loudness": func() error {
			_, err := e.Level(ctx, LoudnessArgs{Input: in, Format: WAV, Sound: sound}, -24)
			return err
		},
		"an audio track": func() error {
			out := filepath.Join(t.TempDir(), "out.m4a")
			return e.EncodeAudio(ctx, Ingest, AudioArgs{Input: in, Format: WAV, Output: out, Sound: sound}, nil)
		},
		"an asset": func() error {
			job := RewriteArgs{Input: in, Format: WAV, Sound: &sound}
			return e.Rewrite(ctx, job, func(_ context.Context, r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			})
		},
	} {
		if err := work(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
