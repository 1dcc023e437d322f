package ingest_test

import (
	"context"
	"io"
	"math"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/mediastore"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// lateStarts are where times of captured streams begin, in seconds: shortly after 0, behind the longest asset, and in
// 1970.
var lateStarts = []string{"10", "60000", "1767225600"}

// starting has a fragmented file's decoding times begin at so many seconds.
func starting(seconds string) []string {
	return []string{
		"-output_ts_offset", seconds, "-frag_duration", "1000000",
		"-movflags", "+frag_keyframe+delay_moov+default_base_moof+frag_discont",
	}
}

// TestFilesThatStartLate: a fragmented file whose times begin later than at 0 is an asset of what it has, stored as it
// is or rewritten.
func TestFilesThatStartLate(t *testing.T) {
	t.Parallel()
	for _, start := range lateStarts {
		for name, how := range map[string][]string{
			"adopted":   nil,
			"rewritten": {"-c:a", "libopus"},
		} {
			t.Run(name+" from "+start, func(t *testing.T) {
				t.Parallel()
				path := filmtest.File(t, "a.mp4",
					filmtest.Args(filmtest.Picture("13"), filmtest.Sound("13"), filmtest.H264, how, starting(start))...)
				w := newWorld(t, workertest.Options{})
				a := w.ReadyAsset(path)
				if math.Abs(a.Facts.Duration-13) > 0.1 || tracks(a.InputInfo[0]) == "" {
					t.Errorf("it lasts %.3f s: %s", a.Facts.Duration, tracks(a.InputInfo[0]))
				}
				if len(w.Jobs.Warn) > 0 {
					t.Errorf("told: %v", w.Jobs.Warn)
				}
				if n, want := w.Samples(a)["v"], filmtest.Packets(t, path, "h264"); n != want {
					t.Errorf("%d pictures, the file has %d", n, want)
				}
				line, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
				w.Must(err)
				for _, l := range line.Renditions {
					for i := range l.Chunks {
						if l.Chunks[i].Gap || l.Seconds(i) > 2.5 || l.Kind == frame.Video && len(l.Inits) > 1 {
							t.Errorf("%s %d lasts %.3f s: %+v, %d init segments", l.ID, i,
								l.Seconds(i), l.Chunks[i], len(l.Inits))
						}
					}
				}
			})
		}
	}
}

// TestTracksThatStartLate: sound that is added from a fragmented file whose times begin later than at 0 is heard from
// the beginning on.
func TestTracksThatStartLate(t *testing.T) {
	t.Parallel()
	film := filmtest.Usual(t, "film.mp4")
	for _, start := range lateStarts {
		for _, codec := range []string{"aac", "libopus"} {
			t.Run(codec+" from "+start, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, workertest.Options{})
				a := w.ReadyAsset(film)
				path := filmtest.File(t, "a.mp4",
					filmtest.Args(filmtest.Sound("13"), []string{"-c:a", codec}, starting(start))...)
				tr := w.AddTrackFrom(a, asset.AudioTrack, w.Site.Offer(path))
				w.Must(w.DoAll())
				got, _ := w.FindTrack(a, tr)
				if got.Status != asset.TrackReady || math.Abs(got.Duration-13) > 0.1 {
					t.Fatalf("track %+v %+v", got, got.Errors)
				}
				f, err := ondemand.NewLibrary(workertest.Objects{Store: w.Store}, 1<<20).File(w.Ctx(), got.Object)
				w.Must(err)
				x := f.Tracks[0]
				l := ondemand.Follow(x, got.Object, "added", []float64{0, 4, 8, 12, 13}, 0)
				first := l.Chunks[0]
				at := float64(first.Time) / float64(x.Timescale)
				if first.Gap || first.Lead > 0 || first.To-first.From < 180 || math.Abs(at) > 0.05 {
					t.Errorf("the first segment is %+v", first)
				}
			})
		}
	}
}

// TestSpeechOfTracksThatStartLate: what recognises the speech of such sound hears it from the beginning on, and no
// silence in front.
func TestSpeechOfTracksThatStartLate(t *testing.T) {
	t.Parallel()
	engine := filmtest.NewEngine(t, 0)
	for _, start := range lateStarts {
		path := filmtest.File(t, "a.m4a",
			filmtest.Args(filmtest.Sound("13"), []string{"-c:a", "aac"}, starting(start))...)
		seconds := 0.0
		err := engine.PCMOfFile(t.Context(), path, true, func(_ context.Context, pcm io.Reader) error {
			n, err := io.Copy(io.Discard, io.LimitReader(pcm, 60*2*encode.PCMRate))
			seconds = float64(n) / (2 * encode.PCMRate)
			return err
		})
		if err != nil || math.Abs(seconds-13) > 0.1 {
			t.Errorf("from %s: %.3f s are heard: %v", start, seconds, err)
		}
	}
}
