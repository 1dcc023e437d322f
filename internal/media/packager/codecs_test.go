package packager_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
)

// voice is a sound track of some codec.
type voice struct {
	name    string // CODECS
	config  frame.Config
	rate    int
	samples []int // of each frame in turn
	data    func(samples int) []byte
}

func voices() map[string]voice {
	opus := func(samples int) []byte {
		toc := map[int]byte{120: 0xe0, 480: 0xf0, 960: 0xf8, 2880: 0x18}[samples]
		return []byte{toc, 1, 2}
	}
	plain := func(int) []byte { return make([]byte, 100) }
	// blocks of 4096, 44.1 kHz, stereo, 16 bit
	info := []byte{0x10, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0xc4, 0x42, 0xf0}
	info = append(info, make([]byte, 20)...)
	box := []byte{0, 2, 1, 0x38, 0, 0, 0xbb, 0x80, 0, 0, 0}
	return map[string]voice{
		"AAC": {"mp4a.40.2", audio(), 48000, []int{1024}, plain},
		"AAC at 44.1": {
			"mp4a.40.2",
			frame.Config{Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x12, 0x10}, SampleRate: 44100, Channels: 2},
			44100,
			[]int{1024},
			plain,
		},
		"Opus": {
			"opus",
			frame.Config{Kind: frame.Audio, Codec: frame.Opus, Header: box, SampleRate: 48000, Channels: 2},
			48000,
			[]int{960},
			opus,
		},
		"Opus of 60 ms": {
			"opus",
			frame.Config{Kind: frame.Audio, Codec: frame.Opus, Header: box, SampleRate: 48000, Channels: 2},
			48000,
			[]int{2880},
			opus,
		},
		"Opus of any": {
			"opus",
			frame.Config{Kind: frame.Audio, Codec: frame.Opus, Header: box, SampleRate: 48000, Channels: 2},
			48000,
			[]int{960, 480, 2880, 120},
			opus,
		},
		"FLAC": {
			"fLaC",
			frame.Config{Kind: frame.Audio, Codec: frame.FLAC, Header: info, SampleRate: 44100, Channels: 2},
			44100,
			[]int{4096},
			func(int) []byte {
				return []byte{0xff, 0xf8, 0xc9, 0x18, 0, 0}
			},
		},
		"AC-3": {
			"ac-3",
			frame.Config{
				Kind: frame.Audio, Codec: frame.AC3, Header: []byte{0x10, 0x3d, 0xe0}, SampleRate: 48000, Channels: 6,
			},
			48000,
			[]int{1536},
			plain,
		},
		"MP3": {
			"mp4a.40.34",
			frame.Config{Kind: frame.Audio, Codec: frame.MP3, SampleRate: 44100, Channels: 2},
			44100,
			[]int{1152},
			plain,
		},
		"MP3 at 22.05": {
			"mp4a.40.34",
			frame.Config{Kind: frame.Audio, Codec: frame.MP3, SampleRate: 22050, Channels: 1},
			22050,
			[]int{576},
			plain,
		},
	}
}

// speak publishes six seconds of picture, and of sound in this voice, as a session gives them.
func (b *bench) speak(p *packager.Packager, v voice, withPicture bool) {
	b.t.Helper()
	const seconds = 6
	var all []frame.Frame
	if withPicture {
		all = script{fps: 25, gop: 50, seconds: seconds, noAudio: true}.frames()
		if err := p.Configure(video()); err != nil {
			b.t.Fatal(err)
		}
		if err := p.Rate(25, true); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := p.Configure(v.config); err != nil {
		b.t.Fatal(err)
	}
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n, pos := 0, 0; pos < seconds*v.rate; n++ {
		long := v.samples[n%len(v.samples)]
		from := at(pos, float64(v.rate))
		pos += long
		all = append(all, frame.Frame{
			Kind: frame.Audio, DTS: from, PTS: from, Duration: at(pos, float64(v.rate)) - from, Key: true,
			Data: v.data(long), Received: wall.Add(from),
		})
	}
	slices.SortStableFunc(all, func(a, b frame.Frame) int { return int(a.DTS - b.DTS) })
	for _, f := range all {
		if err := p.Write(f); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := p.Close(nil); err != nil {
		b.t.Fatal(err)
	}
}

// TestAnyCodecAfterAnyOther has an encoder come back with sound of another codec or sample rate. The rendition keeps
// the timescale and the part target that it had, gets another init segment, and has neither hole nor overlap.
func TestAnyCodecAfterAnyOther(t *testing.T) {
	t.Parallel()
	for from, first := range voices() {
		for to, second := range voices() {
			t.Run(fmt.Sprintf("%s then %s", from, to), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, low)
				b.speak(b.publication(2*time.Second, part), first, true)
				b.speak(b.publication(2*time.Second, part), second, true)
				tl := b.finish()
				b.check(tl)
				l := tl.Rendition(timeline.MainAudio)
				if l.Timescale != uint32(first.config.SampleRate) {
					t.Errorf("timescale %d", l.Timescale)
				}
				if l.Inits[0].Codec != first.name || l.Inits[len(l.Inits)-1].Codec != second.name ||
					from != to && len(l.Inits) != 2 && first.name+from[:3] != second.name+to[:3] {
					t.Errorf("init segments %+v", l.Inits)
				}
				b.parts(l,
					max(slices.Max(first.samples), slices.Max(second.samples)) > 1000 ||
						len(first.samples)+len(second.samples) > 2)
				video := tl.Rendition(timeline.MainVideo)
				ends := func(l *timeline.Rendition) float64 {
					c := l.Chunks[len(l.Chunks)-1]
					return float64(c.Time+c.Duration) / float64(l.Timescale)
				}
				if off := ends(l) - ends(video); math.Abs(off) > 0.1 {
					t.Errorf("sound ends %.3f s from the picture", off)
				}
			})
		}
	}
}

func TestSoundAloneOfAnyCodec(t *testing.T) {
	t.Parallel()
	for name, v := range voices() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			b.speak(b.publication(2*time.Second, part), v, false)
			tl := b.finish()
			b.check(tl)
			if n := len(tl.Marks); n < 3 || n > 4 {
				t.Errorf("%d segments", n)
			}
			b.parts(tl.Renditions[0], len(v.samples) > 1)
		})
	}
}

// parts checks that no part is longer than said, and none but a segment's last much shorter. loose: frames of uneven or
// great length leave no choice.
func (b *bench) parts(l *timeline.Rendition, loose bool) {
	b.t.Helper()
	target := float64(l.PartTarget) / 1e6
	for i, c := range l.Chunks {
		frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
		if err != nil {
			b.t.Fatal(err)
		}
		for k, f := range frags {
			long := float64(f.Duration) / float64(l.Timescale)
			if long > target+1e-5 || long < 0.85*target && k < len(frags)-1 && !loose {
				b.t.Errorf("%s %d part %d of %d lasts %.5f s, target %.5f", l.ID, i, k, len(frags), long, target)
			}
		}
	}
}

func TestAccepts(t *testing.T) {
	t.Parallel()
	for name, v := range voices() {
		if err := packager.Accepts(v.config); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := packager.Accepts(frame.Config{Kind: frame.Video, Codec: frame.VP8}); err == nil {
		t.Error("VP8 is accepted")
	}
}
