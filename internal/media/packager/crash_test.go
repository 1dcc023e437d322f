package packager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millrace/internal/media/journal"
	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// TestSumsOfLengthsStayTogetherOverCrashes: so they do when processes die anywhere, also between the segment of the one
// rendition and that of the other, and when the disk has less of the one than of the other.
func TestSumsOfLengthsStayTogetherOverCrashes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		fps     float64
		reorder int     // of every other life
		then    int     // of those in between
		most    float64 // seconds: the lag of the pictures, and a frame of sound
	}{
		{"without B-frames", 30, 0, 0, 0.022},
		{"with B-frames", 30, 2, 2, 0.067 + 0.022},
		{"with long B-frames, or none", 10, 2, 0, 0.2 + 0.022},
		{"with very long B-frames, or none", 10, 4, 0, 0.4 + 0.022},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(tt.name, ", seed ", seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, 0))
				mem := &memory{objects: map[string][]byte{}}
				dir := t.TempDir()
				long := script{fps: tt.fps, gop: int(2 * tt.fps), seconds: 12, reorder: tt.reorder}
				other := long
				other.reorder = tt.then
				scripts := [...]script{long, other}
				for life := range int64(80) {
					liveUntilDeath(t, mem, dir, life, scripts[life%2], 1+random.IntN(60))
					if life%2 == 1 {
						cutShort(t, random, dir)
					}
				}
				tl, err := timeline.Build(mem.entries)
				if err != nil {
					t.Fatal(err)
				}
				v, a, worst := 0.0, 0.0, 0.0
				for i := range tl.Marks {
					v += tl.Rendition(timeline.MainVideo).Seconds(i)
					a += tl.Rendition(timeline.MainAudio).Seconds(i)
					worst = max(worst, math.Abs(v-a))
				}
				if worst > tt.most || len(tl.Marks) < 80 {
					t.Errorf("the sums of %d segments are up to %.3f s apart", len(tl.Marks), worst)
				}
			})
		}
	}
}

// liveUntilDeath goes on with a broadcast as a new process does, until that dies after so many calls of its edge.
func liveUntilDeath(t *testing.T, mem *memory, dir string, life int64, of script, calls int) {
	t.Helper()
	before, err := timeline.Build(mem.entries)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	edge := window.New(window.Options{
		Media: "m", Mode: low, Store: mem, Recorder: mem, Timeline: before, Generation: life, Logger: log,
		Journal: journal.New(journal.Options{
			Dir: filepath.Join(dir, "journal"), Mark: filepath.Join(dir, "mark"), Patience: time.Minute, Logger: log,
		}),
	})
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- edge.Run(ctx) }()
	stands := edge.Standing()
	m := &mortal{edge, t, calls}
	o := packager.Options{Edge: m, Segment: 2 * time.Second, Part: part, At: stands.At, Began: stands.Began}
	for i, r := range stands.Renditions {
		o.Renditions = append(o.Renditions, packager.Rendition{RenditionInfo: r, Next: stands.Next[i]})
	}
	p := packager.New(o)
	err = errors.Join(p.Configure(video()), p.Rate(of.fps, true), p.Configure(audio()))
	for _, f := range of.frames() {
		if m.left > 0 {
			err = errors.Join(err, p.Write(f))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	kill()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// mortal is the edge of a process that dies after so many calls: none reaches it from then on.
type mortal struct {
	*window.Edge
	t    *testing.T
	left int
}

func (m *mortal) lives() bool {
	m.left--
	return m.left >= 0
}

func (m *mortal) Begin(rendition string, mark timeline.Mark, init int, at int64) {
	if m.lives() {
		m.Edge.Begin(rendition, mark, init, at)
	}
}

func (m *mortal) Part(rendition string, buf []byte, ticks int64, independent bool) bool {
	scale := map[string]float64{timeline.MainVideo: 90000, timeline.MainAudio: 48000}[rendition]
	if most := m.PartLimit(rendition).Seconds(); float64(ticks)/scale > most+0.001 {
		m.t.Errorf("a part of %s lasts %.3f s, PART-TARGET %.3f", rendition, float64(ticks)/scale, most)
	}
	if m.lives() {
		return m.Edge.Part(rendition, buf, ticks, independent)
	}
	return false
}

func (m *mortal) Finish(rendition string, ticks int64) {
	if m.lives() {
		m.Edge.Finish(rendition, ticks)
	}
}

// cutShort takes away the end of some files of a journal: the disk did not get to it before the process died.
func cutShort(t *testing.T, random *rand.Rand, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 0 && random.IntN(3) == 0 {
			if err := os.Truncate(name, random.Int64N(info.Size())); err != nil {
				t.Fatal(err)
			}
		}
	}
}
