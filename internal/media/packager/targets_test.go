package packager_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// TestPartTargetOutlivesAReconnect has an encoder come back with another frame rate: PART-TARGET was said and never
// changes, so no later part may be longer, nor much shorter.
func TestPartTargetOutlivesAReconnect(t *testing.T) {
	t.Parallel()
	rates := []float64{15, 24, 25, 29.97, 30, 50, 59.94, 60}
	for _, first := range rates {
		for _, second := range rates {
			t.Run(fmt.Sprintf("%g then %g", first, second), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, low)
				for _, fps := range []float64{first, second} {
					p := b.publication(2*time.Second, part)
					b.play(p, script{fps: fps, gop: int(math.Round(2 * fps)), seconds: 6})
					if err := p.Close(nil); err != nil {
						t.Fatal(err)
					}
				}
				tl := b.finish()
				for _, l := range tl.Renditions {
					if l.PartTarget == 0 {
						t.Fatalf("%s has no part target", l.ID)
					}
					target := float64(l.PartTarget) / 1e6
					least := 0.85 * target
					if l.ID == timeline.MainVideo { // where no number of frames lies between, the longest that fits
						least = min(least, math.Floor(target*second)/second-1e-5)
					}
					for i, c := range l.Chunks {
						frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
						if err != nil {
							t.Fatal(err)
						}
						for k, f := range frags {
							long := float64(f.Duration) / float64(l.Timescale)
							if long > target+1e-5 || long < least && k < len(frags)-1 {
								t.Errorf("%s %d part %d lasts %.5f s, target %.5f", l.ID, i, k, long, target)
							}
						}
					}
				}
			})
		}
	}
}

// TestPartsOfUnevenPicturesAreLongEnough: an encoder comes back with pictures of uneven length. No part but a segment's
// first and last is shorter than 85 % of the PART-TARGET that was said, which is a little longer than the pictures it
// was made of.
func TestPartsOfUnevenPicturesAreLongEnough(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	b.play(p, script{fps: 30, gop: 60, seconds: 6, noAudio: true})
	closed(t, p)
	p = b.publication(2*time.Second, part)
	if err := errors.Join(p.Configure(video()), p.Rate(26.5, false)); err != nil {
		t.Fatal(err)
	}
	// six of them are 84.4 % of the target
	frames := script{fps: 90000. / 3400, gop: 53, seconds: 6, noAudio: true}.frames()
	write(t, p, frames)
	closed(t, p)
	b.unevenParts(b.finish().Rendition(timeline.MainVideo))
}

// TestPartBehindSlateIsLongEnough: an encoder of another frame rate comes back a part of a frame before what stands
// there has ended, so that its first picture is shown for a shorter time. Its first part has one more picture then.
func TestPartBehindSlateIsLongEnough(t *testing.T) {
	t.Parallel()
	for early := time.Duration(0); early < 20*time.Millisecond; early += time.Millisecond {
		b := newBench(t, low)
		p := b.publication(2*time.Second, part)
		b.play(p, script{fps: 30, gop: 60, seconds: 6, noAudio: true})
		closed(t, p)
		p = b.publication(2*time.Second, part)
		b.play(p, script{fps: 25, gop: 50, seconds: 6, noAudio: true, offset: -early})
		closed(t, p)
		b.parts(b.finish().Rendition(timeline.MainVideo), false)
	}
}

// TestSoundOfAnotherRateIsLongEnough: sound comes back at another sample rate, of which fewer frames fit into a part,
// and its first frame lasts longer or shorter than the others. A part has one more frame then, as far as what was said
// goes.
func TestSoundOfAnotherRateIsLongEnough(t *testing.T) {
	t.Parallel()
	for shift := time.Duration(0); shift < 22*time.Millisecond; shift += time.Millisecond {
		b := newBench(t, low)
		p := b.publication(2*time.Second, part)
		cd := audio()
		cd.ASC, cd.SampleRate = []byte{0x12, 0x10}, 44100
		if err := errors.Join(p.Configure(video()), p.Rate(29.97, true), p.Configure(cd)); err != nil {
			t.Fatal(err)
		}
		frames := script{fps: 29.97, gop: 60, seconds: 6, noAudio: true}.frames()
		for i := range int(6 * 44100 / 1024) {
			f := frame.Frame{Kind: frame.Audio, DTS: at(i*1024, 44100), Key: true}
			f.PTS, f.Duration, f.Received = f.DTS, at((i+1)*1024, 44100)-f.DTS, frames[0].Received.Add(f.DTS)
			frames = append(frames, f)
		}
		stamp(frames)
		arrive(frames, nil)
		write(t, p, frames)
		closed(t, p)
		p = b.publication(2*time.Second, part)
		if err := errors.Join(p.Configure(video()), p.Rate(29.97, true), p.Configure(audio())); err != nil {
			t.Fatal(err)
		}
		frames = script{fps: 29.97, gop: 60, seconds: 6}.frames()
		for i := range frames {
			if f := &frames[i]; f.Kind == frame.Audio && f.DTS > time.Second/10 { // all but the first few come later
				f.DTS, f.PTS = f.DTS+shift, f.PTS+shift
			}
		}
		stamp(frames)
		arrive(frames, nil)
		write(t, p, frames)
		closed(t, p)
		b.parts(b.finish().Rendition(timeline.MainAudio), false)
	}
}
