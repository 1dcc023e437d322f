package packager_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
)

// shown notes what followers are told of the pictures.
type shown struct {
	packager.Edge
	decoded map[int64]int64 // by when they are presented
}

func (s *shown) Sample(id string, at int64, x cmaf.Sample) {
	if id == timeline.MainVideo {
		s.decoded[at+int64(x.CompositionOffset)] = at
	}
	s.Edge.Sample(id, at, x)
}

// TestOtherPicturesStartWhenTheyAreShown: the first tfdt behind a discontinuity is the time at which the first picture
// is presented, which is where the last one in front of it ends: hls.js would leave a hole as long as the encoder's
// delay. Neither presentation nor the playlist changes.
func TestOtherPicturesStartWhenTheyAreShown(t *testing.T) {
	t.Parallel()
	for _, reorder := range []int{0, 1, 2} {
		for _, fps := range []float64{25, 29.97, 60} {
			t.Run(fmt.Sprintf("%g fps, %d pictures later", fps, reorder), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, low)
				spy := &shown{b.edge, map[int64]int64{}}
				s := script{fps: fps, gop: int(fps) + 1, seconds: 5.3, reorder: reorder}
				b.play(b.publication(2*time.Second, part), s)
				closed(t, b.last)
				o := packager.Options{
					Edge: spy, Segment: 2 * time.Second, Part: part, At: b.edge.Standing().At, Began: true,
					Lag: b.last.Lag(),
				}
				for i, r := range b.edge.Standing().Renditions {
					o.Renditions = append(o.Renditions, packager.Rendition{
						RenditionInfo: r, Next: b.edge.Standing().Next[i],
					})
				}
				p := packager.New(o)
				b.play(p, s)
				closed(t, p)
				tl := b.finish()
				b.check(tl)
				l, end, pictures := tl.Rendition(timeline.MainVideo), int64(0), 0
				for i, c := range l.Chunks {
					fragments, err := cmaf.ParseFragments(b.mem.objects[c.Object])
					if err != nil {
						t.Fatal(err)
					}
					first := int64(fragments[0].BaseMediaDecodeTime)
					if tl.Marks[i].Discontinuity && (first != end || fragments[0].Samples[0].CompositionOffset != 0) {
						t.Errorf("the picture ends at %d and begins again at %d, presented %d later", end, first,
							fragments[0].Samples[0].CompositionOffset)
					}
					end, pictures = times(t, spy, fragments, end, pictures)
				}
				if want := 2 * len(onlyVideo(s.frames())); pictures != want || len(spy.decoded) != want/2 {
					t.Errorf("%d pictures, %d told of, want %d", pictures, len(spy.decoded), want)
				}
				if got := float64(end)/float64(l.Timescale) - timeline.Origin; math.Abs(got-tl.Duration().Seconds()) >
					0.001 {
					t.Errorf("presented up to second %.3f of %.3f", got, tl.Duration().Seconds())
				}
			})
		}
	}
}

// times checks the pictures of a segment and says where they end.
func times(t *testing.T, spy *shown, fragments []cmaf.Fragment, end int64, pictures int) (int64, int) {
	t.Helper()
	at := int64(fragments[0].BaseMediaDecodeTime)
	for _, f := range fragments {
		for _, s := range f.Samples {
			if decoded, ok := spy.decoded[at+int64(s.CompositionOffset)]; s.CompositionOffset < 0 || s.Duration == 0 ||
				ok && decoded != at {
				t.Errorf("a picture is decoded at %d for %d ticks, presented %d later, and told of at %d", at,
					s.Duration, s.CompositionOffset, decoded)
			}
			end = max(end, at+int64(s.CompositionOffset)+int64(s.Duration))
			at += int64(s.Duration)
			pictures++
		}
	}
	return end, pictures
}

func onlyVideo(all []frame.Frame) (out []frame.Frame) {
	for _, f := range all {
		if f.Kind == frame.Video {
			out = append(out, f)
		}
	}
	return out
}

// TestCutOffInFrontOfBFrames: an encoder may leave between a picture and the B-frames that are presented before it.
// What follows begins where the last picture that came ends, in every rendition.
func TestCutOffInFrontOfBFrames(t *testing.T) {
	t.Parallel()
	for cut := range 8 {
		t.Run(fmt.Sprint(cut, " pictures"), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			s := script{fps: 30, gop: 61, seconds: 5, reorder: 2}
			for range 3 {
				frames, n := s.frames(), 0
				for i := range frames {
					if f := &frames[i]; f.Kind == frame.Video {
						if n == 90+cut {
							frames = frames[:i]
							break
						}
						if g := n % s.gop; g > 0 { // presented as B b b P
							const step = time.Second / 30
							f.PTS += time.Duration([...]int{3, 0, -2, -1}[(g-1)%4]) * step
						}
						n++
					}
				}
				stamp(frames)
				p := b.publication(2*time.Second, part)
				configure(t, p, s)
				write(t, p, frames)
				closed(t, p)
			}
			tl := b.finish()
			b.whole(tl)
			l, end := tl.Rendition(timeline.MainVideo), int64(0)
			for i, c := range l.Chunks {
				fragments, err := cmaf.ParseFragments(b.mem.objects[c.Object])
				if err != nil {
					t.Fatal(err)
				}
				if first := int64(fragments[0].BaseMediaDecodeTime); tl.Marks[i].Discontinuity && first != end {
					t.Errorf("the picture ends at %d and begins again at %d", end, first)
				}
				end, _ = times(t, &shown{}, fragments, end, 0)
			}
			b.sums(tl)
		})
	}
}

// sums checks that the lengths of sound and picture add up to the same, and to where the media is.
func (b *bench) sums(tl *timeline.Timeline) {
	b.t.Helper()
	sums := map[string]float64{}
	for i := range tl.Marks {
		for _, l := range tl.Renditions {
			begins := float64(l.Chunks[i].Time)/float64(l.Timescale) - timeline.Origin
			if off := math.Abs(begins - sums[l.ID]); off > 0.12 {
				b.t.Errorf("%s %d begins %.3f s from the sum of the lengths before", l.ID, i, off)
			}
			sums[l.ID] += l.Seconds(i)
		}
	}
	if apart := math.Abs(sums[timeline.MainVideo] - sums[timeline.MainAudio]); apart > 0.05 {
		b.t.Errorf("the sums are %.3f s apart", apart)
	}
}
