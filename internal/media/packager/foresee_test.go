package packager_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
)

// publications notes how far the video had come, in frames, at each part of it.
type publications struct {
	packager.Edge
	frames   int // written so far
	open     int // of them when the segment began
	segments [][]int
}

func (p *publications) Begin(rendition string, m timeline.Mark, init int, at int64) {
	if rendition == timeline.MainVideo {
		p.segments = append(p.segments, nil)
		p.open = p.frames
	}
	p.Edge.Begin(rendition, m, init, at)
}

func (p *publications) Part(rendition string, buf []byte, ticks int64, independent bool) bool {
	if n := len(p.segments) - 1; rendition == timeline.MainVideo {
		p.segments[n] = append(p.segments[n], p.frames-p.open)
	}
	return p.Edge.Part(rendition, buf, ticks, independent)
}

// TestLastPartDoesNotWaitForTheKeyFrame: with key frames at regular distances every part, the last one of a segment
// too, goes out with its own last frame.
func TestLastPartDoesNotWaitForTheKeyFrame(t *testing.T) {
	t.Parallel()
	for _, fps := range []float64{24, 25, 29.97, 30, 50, 60} {
		for _, seconds := range []float64{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%g fps, key frames each %g s", fps, seconds), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, low)
				spy := &publications{Edge: b.edge}
				p := packager.New(packager.Options{Edge: spy, Segment: 2 * time.Second, Part: part})
				gop := int(math.Round(fps * seconds))
				err := errors.Join(p.Configure(video()), p.Rate(fps, true))
				for _, f := range (script{fps: fps, gop: gop, seconds: 20, noAudio: true}).frames() {
					spy.frames++
					err = errors.Join(err, p.Write(f))
				}
				if err = errors.Join(err, p.Close(nil)); err != nil {
					t.Fatal(err)
				}
				b.check(b.finish())
				long := gop
				if seconds == 1 {
					long = 2 * gop
				}
				if len(spy.segments) < 4 {
					t.Fatalf("%d segments", len(spy.segments))
				}
				for i, parts := range spy.segments[1 : len(spy.segments)-1] {
					// counted from the key frame's own write on, which comes as 0
					if last := parts[len(parts)-1]; last != long-1 {
						t.Errorf("segment %d: last part after frame %d of %d, all after %v", i+1, last+1, long, parts)
					}
				}
			})
		}
	}
}

// TestLastPartAtAVariableRate does not wait for the key frame behind it either: what is left over is the first part's.
func TestLastPartAtAVariableRate(t *testing.T) {
	t.Parallel()
	for gop, first := range map[int]int{60: 3, 20: 3, 56: 7, 50: 1} { // counted from the key frame's own write on
		t.Run(fmt.Sprintf("key frames each %d", gop), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			spy := &publications{Edge: b.edge}
			p := packager.New(packager.Options{Edge: spy, Segment: 2 * time.Second, Part: part})
			err := errors.Join(p.Configure(video()), p.Rate(30, false))
			shift := [...]int{0, 6, -5, 7, 2, -6, 3, -3, 7, -5}
			for i, f := range (script{fps: 30, gop: gop, seconds: 20, noAudio: true}).frames() {
				f.DTS += time.Duration(shift[i%len(shift)]) * time.Millisecond
				f.PTS, f.Duration = f.DTS, 10*time.Millisecond
				spy.frames++
				err = errors.Join(err, p.Write(f))
			}
			if err = errors.Join(err, p.Close(nil)); err != nil {
				t.Fatal(err)
			}
			tl := b.finish()
			b.whole(tl)
			b.unevenParts(tl.Rendition(timeline.MainVideo))
			if len(spy.segments) < 9 {
				t.Fatalf("%d segments", len(spy.segments))
			}
			long := gop
			if gop == 20 {
				long = 3 * gop
			}
			for i, parts := range spy.segments[2 : len(spy.segments)-1] {
				if last := parts[len(parts)-1]; parts[0] != first || last != long-1 {
					t.Errorf("segment %d of %d frames: parts after %v, the first is to be %d", i+2, long, parts, first)
				}
			}
		})
	}
}

// TestWrongForesightShortensNoPart: key frames that come when they like leave no part shorter than the playlist allows.
func TestWrongForesightShortensNoPart(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	err := errors.Join(p.Configure(video()), p.Rate(30, true))
	gops := []int{60, 75, 41, 90, 60, 60, 47, 120, 33, 66}
	n := 0
	for _, gop := range gops {
		for i := range gop {
			f := frame.Frame{
				Kind: frame.Video, DTS: at(n, 30), PTS: at(n, 30), Duration: at(n+1, 30) - at(n, 30), Key: i == 0,
				Data: []byte{0, 0, 0, 2, 0x65, 1},
			}
			f.Received = time.Unix(1700000000, 0).Add(f.DTS)
			err = errors.Join(err, p.Write(f))
			n++
		}
	}
	if err = errors.Join(err, p.Close(nil)); err != nil {
		t.Fatal(err)
	}
	tl := b.finish()
	b.check(tl)
	for _, l := range tl.Renditions {
		for i, c := range l.Chunks {
			frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
			if err != nil {
				t.Fatal(err)
			}
			for k, f := range frags {
				long, target := float64(f.Duration)/float64(l.Timescale), float64(l.PartTarget)/1e6
				if long > target || long < 0.85*target && k < len(frags)-1 {
					t.Errorf("%s %d part %d of %d lasts %.5f s, target %.5f", l.ID, i, k, len(frags), long, target)
				}
			}
		}
	}
}
