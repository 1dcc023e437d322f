package encode

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/frame"
)

// standIn makes an engine whose ffmpeg and ffprobe are a script.
func standIn(t *testing.T, script string, b Bounds) *Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stand-in")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(Options{
		FFmpeg: path, FFprobe: path, Budget: NewBudget(BudgetOptions{Cores: 8}), Bounds: b,
		Stall: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// work is everything that is done with a file or an image and is bounded on the clock, as a caller sees it. Samples are
// not: the engine that reads them decides their pace, and may wait for a processor as long as the job has time.
func work(t *testing.T) map[string]func(e *Engine) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.ts")
	var picture bytes.Buffer
	square := image.NewNRGBA(image.Rect(0, 0, 2, 2))
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), png.Encode(&picture, square)); err != nil {
		t.Fatal(err)
	}
	nothing := func(context.Context, io.Writer) error { return nil }
	all := func(_ context.Context, r io.Reader) error {
		_, err := io.ReadAll(r)
		return err
	}
	some := func(r io.Reader) error { return all(t.Context(), r) }
	return map[string]func(e *Engine) error{
		"probe": func(e *Engine) error {
			_, err := e.Probe(t.Context(), file, MPEGTS)
			return err
		},
		"decodes": func(e *Engine) error {
			_, err := e.Decodes(t.Context(), file, MPEGTS, Video, 0)
			return err
		},
		"decodes MP4": func(e *Engine) error {
			_, err := e.Decodes(t.Context(), file, MOV, Video, 0)
			return err
		},
		"subtitles": func(e *Engine) error {
			_, err := e.Subtitles(t.Context(), file, MPEGTS, 0, 100)
			return err
		},
		"image": func(e *Engine) error {
			_, err := e.Image(t.Context(), picture.Bytes())
			return err
		},
		"still": func(e *Engine) error {
			job := StillArgs{Codec: frame.H264, Picture: image.NewRGBA(image.Rect(0, 0, 2, 2)), FPS: 25, Frames: 25}
			return e.Still(t.Context(), job, some)
		},
		"held picture": func(e *Engine) error {
			// its bound is the caller's: a tenth of the time on the clock is of the processor
			job := LastArgs{Codec: frame.H264, Within: e.opts.Bounds.Still.Wall / 10}
			return e.Last(t.Context(), job, nothing, some)
		},
		"tiles": func(e *Engine) error {
			job := ImageJob{Input: nothing, Output: some}
			return e.Tiles(t.Context(), TilesArgs{Width: 2, Height: 2, Count: 1}, job)
		},
		"rewrite": func(e *Engine) error {
			return e.Rewrite(t.Context(), RewriteArgs{Input: file, Format: MPEGTS}, all)
		},
		"sound": func(e *Engine) error {
			job := AudioArgs{Input: file, Format: MPEGTS, Output: file + ".m4a"}
			return e.EncodeAudio(t.Context(), Ingest, job, nil)
		},
		"loudness": func(e *Engine) error {
			_, err := e.Level(t.Context(), LoudnessArgs{Input: file, Format: MPEGTS}, -24)
			return err
		},
		"cut": func(e *Engine) error {
			none := func(io.Writer) error { return nil }
			return e.CutSound(t.Context(), SoundCut{Channels: 2, Samples: 1024}, none, some)
		},
	}
}

// each are the same bounds for everything.
func each(b Bound) Bounds { return Bounds{Probe: b, Decodes: b, Subtitles: b, Image: b, Still: b} }

// TestBusyMachine: what has no processor, or is stopped, or waits for a disk, says nothing of the file.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	for name, do := range work(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := do(standIn(t, "exec sleep 1000000", each(Bound{time.Hour, 100 * time.Millisecond})))
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Messages(err)[0], "busy") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSamplesWait: samples are read at the pace of who recognizes speech in them, which may pause for longer than
// anything else may stall.
func TestSamplesWait(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, io.Writer) error { return nil }
	for name, samples := range map[string]func(e *Engine, output func(context.Context, io.Reader) error) error{
		"from a pipe": func(e *Engine, output func(context.Context, io.Reader) error) error {
			return e.PCM(t.Context(), nothing, output)
		},
		"of a file": func(e *Engine, output func(context.Context, io.Reader) error) error {
			return e.PCMOfFile(t.Context(), "a.ts", false, output)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := standIn(t, "printf a; sleep 0.5; printf b", Bounds{}) // five times as long as a stall
			var got []byte
			err := samples(e, func(_ context.Context, r io.Reader) (err error) {
				got, err = io.ReadAll(r)
				return err
			})
			if err != nil || string(got) != "ab" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestHeavyFile: what takes a lot of the processor is the file's, however long it takes.
func TestHeavyFile(t *testing.T) {
	t.Parallel()
	for name, do := range work(t) {
		switch name {
		case "probe", "decodes", "subtitles", "image", "still":
		default: // their limits are hours
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := standIn(t, "while :; do :; done", each(Bound{time.Second, time.Hour}))
			e.opts.Stall = time.Hour
			err := do(e)
			const says = "that takes more than 1s of processor time"
			if !fault.Permanent(err) || !strings.Contains(fault.Messages(err)[0], says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestBlame: whose fault an end is.
func TestBlame(t *testing.T) {
	t.Parallel()
	const heavy = "it can't be read: that takes more than 1m0s of processor time"
	const busy = "it can't be read in time: the service is busy, or its disk is slow"
	const full = "x: No space left on device"
	for name, tt := range map[string]struct {
		err  error
		want fault.Kind
		says string
	}{
		"gave up":       {&ExitError{Code: 1}, fault.Invalid, "it can't be read"},
		"had no room":   {&ExitError{Code: 1, Stderr: full}, fault.Internal, ""},
		"memory killer": {&ExitError{Code: -1, Signal: "killed"}, fault.Internal, ""},
		"processor time": {
			&ExitError{Code: -1, Signal: "CPU time limit exceeded", CPU: time.Minute}, fault.Invalid, heavy,
		},
		"the hard limit of that": {&ExitError{Code: -1, Signal: "killed", CPU: time.Minute}, fault.Invalid, heavy},
		"caught":                 {&ExitError{Code: 255, CPU: time.Minute}, fault.Invalid, heavy},
		"no room at the end":     {&ExitError{Code: 255, CPU: time.Minute, Stderr: full}, fault.Internal, ""},
		"works for nothing":      {ErrStalled, fault.Invalid, "it can't be read: the decoder makes no progress"},
		"is not let":             {ErrIdle, fault.Unavailable, busy},
		"late":                   {ErrLate, fault.Unavailable, busy},
		"what reads it says so": {
			fault.Wrap(fault.Unavailable, &ExitError{Code: 1}, "away"), fault.Unavailable, "away",
		},
	} {
		got := blame(tt.err, "it can't be read")
		if fault.KindOf(got) != tt.want || strings.Join(fault.Messages(got), "") != tt.says {
			t.Errorf("%s: %v", name, got)
		}
	}
}
