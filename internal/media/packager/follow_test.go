package packager_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// TestSoundIsFollowed: who follows sound is given every frame from the beginning of a segment on, wherever in the
// segment the follower joins.
func TestSoundIsFollowed(t *testing.T) {
	t.Parallel()
	for _, mode := range []window.Mode{low, {Listed: 30 * time.Second}} {
		mode.InMemory = 20 // a follower is never behind
		for _, joined := range []int{1, 40, 100, 301} {
			b := newBench(t, mode)
			p := b.publication(2*time.Second, part)
			s := script{fps: 30, gop: 31, seconds: 6}
			configure(t, p, s)
			frames := s.frames()
			write(t, p, frames[:joined])
			f, err := b.edge.Follow(timeline.MainAudio, b.edge.Newest(timeline.MainAudio))
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan []int64, 1)
			go func() { got <- followed(t, f) }()
			write(t, p, frames[joined:])
			closed(t, p)
			tl := b.finish()
			times := <-got
			f.Close()
			if len(times) == 0 {
				t.Fatalf("joined behind %d frames: no sound was given", joined)
			}
			sound := tl.Rendition(timeline.MainAudio)
			first, last := -1, sound.Chunks[len(sound.Chunks)-1]
			for i, c := range sound.Chunks {
				if c.Time == times[0] {
					first = i
				}
			}
			if end := times[len(times)-1] + 1024; first < 0 || end != last.Time+last.Duration {
				t.Errorf("joined behind %d frames: sound from %d to %d, and it ends at %d",
					joined, times[0], end, last.Time+last.Duration)
			}
			for i := range times[1:] {
				if times[i+1]-times[i] != 1024 {
					t.Fatalf("joined behind %d frames: behind the frame at %d comes the one at %d",
						joined, times[i], times[i+1])
				}
			}
		}
	}
}

// followed are the times of all samples up to the end.
func followed(t *testing.T, f *window.Follower) (times []int64) {
	t.Helper()
	for {
		step, err := f.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return times
		}
		if err != nil {
			t.Errorf("follow: %v", err)
			return times
		}
		for _, s := range step.Samples {
			times = append(times, s.Time)
		}
	}
}
