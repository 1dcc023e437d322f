package ingest_test

import (
	"fmt"
	"image/color"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// hampered is an engine whose programs do something else where their arguments match a pattern of the shell.
func hampered(t *testing.T, pattern, instead string, bounds encode.Bounds, stall time.Duration) *encode.Engine {
	t.Helper()
	program := func(name string) string {
		path := filepath.Join(t.TempDir(), name)
		script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in %s) %s;; esac\nexec %s \"$@\"\n",
			pattern, instead, programtest.Path(t, name))
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	e, err := encode.NewEngine(encode.Options{
		FFmpeg: program("ffmpeg"), FFprobe: program("ffprobe"), Budget: filmtest.Budget, Bounds: bounds, Stall: stall,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const (
	sleeps, spins             = "exec sleep 1000000", "while :; do :; done"
	probes, decodes, rewrites = "*show_entries*", "*framecrc*", "*frag_keyframe*"
	readsSubtitles, readsPNG  = "*webvtt*", "*png_pipe*"
)

// TestBusyMachine: a process that gets no processor, is stopped or waits for a disk takes long, and the file is none
// the worse for it: when the machine has time again the asset gets ready.
func TestBusyMachine(t *testing.T) {
	t.Parallel()
	const short = 100 * time.Millisecond
	subtitles := filepath.Join(t.TempDir(), "a.srt")
	if err := os.WriteFile(subtitles, []byte("1\n00:00:01,000 --> 00:00:02,000\nfirst\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	film := filmtest.Args(filmtest.Picture("13"), filmtest.Sound("13"), filmtest.H264)
	texted := filmtest.Args(filmtest.Picture("5"), []string{
		"-i", subtitles, "-map", "0:v", "-map", "1:s", "-c:s", "srt",
	}, filmtest.H264)
	image := pngOf(t, flat(40, 40, color.White))
	first := func(b *encode.Bounds) { b.Decodes.Wall = short }
	for name, tt := range map[string]struct {
		file    string
		args    []string
		overlay bool
		pattern string
		bound   func(*encode.Bounds)
		stall   time.Duration
	}{
		"examination":        {"a.mkv", film, false, probes, func(b *encode.Bounds) { b.Probe.Wall = short }, 0},
		"first picture, MP4": {"a.mp4", film, false, decodes, first, 0},
		"first picture":      {"a.mkv", film, false, decodes, first, 0},
		"packets":            {"a.mkv", film, false, rewrites, func(*encode.Bounds) {}, short},
		"subtitles": {
			"a.mkv", texted, false, readsSubtitles, func(b *encode.Bounds) { b.Subtitles.Wall = short }, 0,
		},
		"image that lies over": {
			"a.mp4", grey("320x180", "1"), true, readsPNG, func(b *encode.Bounds) { b.Image.Wall = short }, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounds := encode.DefaultBounds()
			tt.bound(&bounds)
			w := newWorld(t, workertest.Options{Engine: hampered(t, tt.pattern, sleeps, bounds, tt.stall)})
			inputs := []assetopt.Input{{URL: w.Site.Offer(filmtest.File(t, tt.file, tt.args...))}}
			if tt.overlay {
				over := &assetopt.Overlay{Width: "10%"}
				inputs = append(inputs, assetopt.Input{URL: w.Site.Offer(image), Overlay: over})
			}
			a := w.NewAsset(inputs...)
			j := w.Jobs.Take()[0]
			err := w.Do(j, 1)
			if a = w.Asset(a.ID); !fault.Is(err, fault.Unavailable) || fault.Outside(err) ||
				a.Status != asset.Preparing {
				t.Fatalf("the asset is %s after %v", a.Status, err)
			}
			w.Equip(filmtest.NewEngine(t, 0))
			w.Must(w.Do(j, 2))
			if a = w.Asset(a.ID); a.Status != asset.Ready || len(a.Tracks) != 2 {
				t.Errorf("the asset is %s with %+v, %+v", a.Status, a.Tracks, a.Errors)
			}
			if len(w.Jobs.Warn) != 0 {
				t.Errorf("its owner is warned of %+v", w.Jobs.Warn)
			}
		})
	}
}

// TestBusyMachineAtATrack is TestBusyMachine for a track that is added by URL.
func TestBusyMachineAtATrack(t *testing.T) {
	t.Parallel()
	bounds := encode.DefaultBounds()
	bounds.Probe.Wall = 100 * time.Millisecond
	w := newWorld(t, workertest.Options{})
	a := w.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	w.Equip(hampered(t, probes, sleeps, bounds, 0))
	tr := w.AddTrackFrom(a, asset.AudioTrack, w.Site.Offer(filmtest.File(t, "a.mp3", filmtest.Sound("2")...)))
	j := w.Jobs.Take()[0]
	err := w.Do(j, 1)
	if got, _ := w.FindTrack(a, tr); !fault.Is(err, fault.Unavailable) || got.Status != asset.TrackPreparing {
		t.Fatalf("the track is %s after %v", got.Status, err)
	}
	w.Equip(filmtest.NewEngine(t, 0))
	w.Must(w.Do(j, 2))
	if got, _ := w.FindTrack(a, tr); got.Status != asset.TrackReady {
		t.Errorf("the track is %s, %+v", got.Status, got.Errors)
	}
}

// TestAlwaysBusyMachine: when nothing will be tried again, the owner hears whose fault it was.
func TestAlwaysBusyMachine(t *testing.T) {
	t.Parallel()
	bounds := encode.DefaultBounds()
	bounds.Probe.Wall = 10 * time.Millisecond
	w := newWorld(t, workertest.Options{Engine: hampered(t, probes, sleeps, bounds, 0)})
	a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(filmtest.Usual(t, "a.mkv"))})
	if err := w.DoAll(); fault.Outside(err) {
		t.Errorf("nothing of the service is at fault: %v", err)
	}
	a = w.Asset(a.ID)
	if a.Status != asset.Errored {
		t.Fatalf("the asset is %s", a.Status)
	}
	said := a.Errors.Messages
	if a.Errors.Type != "internal_error" || len(said) != 1 || !strings.Contains(said[0], "the service is busy") {
		t.Errorf("its owner is told %+v", a.Errors)
	}
	w.NothingLeft()
}

// TestHeavyFile: what takes more of the processor than a file may is not tried again.
func TestHeavyFile(t *testing.T) {
	t.Parallel()
	const much, long = time.Second, time.Hour
	for name, tt := range map[string]struct {
		pattern string
		bound   func(*encode.Bounds)
	}{
		"examination":   {probes, func(b *encode.Bounds) { b.Probe = encode.Bound{CPU: much, Wall: long} }},
		"first picture": {decodes, func(b *encode.Bounds) { b.Decodes = encode.Bound{CPU: much, Wall: long} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounds := encode.DefaultBounds()
			tt.bound(&bounds)
			w := newWorld(t, workertest.Options{Engine: hampered(t, tt.pattern, spins, bounds, 0)})
			w.refused(w.Site.Offer(filmtest.Usual(t, "a.mkv")), "that takes more than 1s of processor time")
		})
	}
}

// TestTriesOutside: a host that can't be reached is tried for minutes, where the service's own trouble would be for
// hours.
func TestTriesOutside(t *testing.T) {
	t.Parallel()
	const tries = 5
	w := newWorld(t, workertest.Options{})
	url := w.Site.Handle(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	a := w.NewAsset(assetopt.Input{URL: url})
	j := w.Jobs.Take()[0]
	for attempt := 1; attempt < tries; attempt++ {
		if err := w.Do(j, attempt); err == nil || fault.Permanent(err) || w.Asset(a.ID).Status != asset.Preparing {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
	}
	err := w.Do(j, tries)
	if a = w.Asset(a.ID); !fault.Permanent(err) || a.Status != asset.Errored {
		t.Fatalf("the asset is %s after %v", a.Status, err)
	}
	if a.Errors.Type != "invalid_input" || !strings.Contains(a.Errors.Messages[0], "503") {
		t.Errorf("its owner is told %+v", a.Errors)
	}
}
