package packager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// memory keeps objects and rows.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	entries []timeline.Entry
}

func (m *memory) Put(_ context.Context, key string, r io.Reader) error {
	data, err := io.ReadAll(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = data
	return err
}

func (m *memory) Link(ctx context.Context, key string, f *os.File) error {
	return m.Put(ctx, key, io.NewSectionReader(f, 0, 1<<40))
}

func (m *memory) Record(_ context.Context, e []timeline.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = append(m.entries, e...)
	return nil
}

// A real 320x180 High profile SPS and PPS of x264, and AAC-LC 48 kHz stereo.
var (
	sps = []byte{
		0x67, 0x64, 0x00, 0x0d, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9e, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
		0x03, 0x03, 0xc0, 0xf1, 0x42, 0x99, 0x60,
	}
	pps = []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}
	asc = []byte{0x11, 0x90}
)

func video() frame.Config {
	return frame.Config{Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: pps, Width: 320, Height: 180}
}

func audio() frame.Config {
	return frame.Config{Kind: frame.Audio, Codec: frame.AAC, ASC: asc, SampleRate: 48000, Channels: 2}
}

// script is a source of frames: video at fps with key frames every gop frames and reorder frames of delay, audio beside
// it.
type script struct {
	fps     float64
	gop     int
	reorder int
	seconds float64
	noAudio bool
	noVideo bool
	offset  time.Duration // of the publication's clock
	lose    func(i int) bool
	pyramid bool // decoded as I P B B P B B
}

func at(i int, rate float64) time.Duration {
	return time.Duration(math.Round(float64(i) * float64(time.Second) / rate))
}

func (s script) frames() []frame.Frame {
	var out []frame.Frame
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v, a := 0, 0
	for {
		vt, atime := at(v, s.fps), at(a*1024, 48000)
		if s.noVideo || (!s.noAudio && atime < vt) {
			if atime.Seconds() >= s.seconds {
				return out
			}
			f := frame.Frame{
				Kind: frame.Audio, DTS: atime, PTS: atime, Duration: at((a+1)*1024, 48000) - atime, Key: true,
				Data: make([]byte, 200),
			}
			f.Received = wall.Add(f.DTS)
			out = append(out, f)
			a++
			continue
		}
		if vt.Seconds() >= s.seconds {
			return out
		}
		f := frame.Frame{
			Kind: frame.Video, DTS: vt, PTS: vt + at(s.reorder, s.fps), Duration: at(v+1, s.fps) - vt,
			Key: v%s.gop == 0, Data: []byte{0, 0, 0, 2, 0x65, 1},
		}
		if s.pyramid {
			f.PTS = vt + at([]int{0, 3, 0}[v%3], s.fps)
			if v == 0 {
				f.PTS = at(1, s.fps)
			}
		}
		f.Received = wall.Add(f.DTS)
		if s.lose == nil || !s.lose(v) {
			out = append(out, f)
		}
		v++
	}
}

// bench is an edge under test with its store.
type bench struct {
	last *packager.Packager
	t    *testing.T
	edge *window.Edge
	mem  *memory
	done chan error
}

func newBench(t *testing.T, mode window.Mode) *bench {
	t.Helper()
	b := &bench{t: t, mem: &memory{objects: map[string][]byte{}}, done: make(chan error, 1)}
	b.edge = window.New(window.Options{
		Media: "m", Mode: mode, Store: b.mem, Recorder: b.mem, Logger: slog.New(slog.DiscardHandler),
	})
	go func() { b.done <- b.edge.Run(t.Context()) }()
	return b
}

func (b *bench) publication(segment, part time.Duration) *packager.Packager {
	st := b.edge.Standing()
	o := packager.Options{Edge: b.edge, Segment: segment, Part: part, At: st.At, Began: st.Began}
	if b.last != nil {
		o.Lag = b.last.Lag()
	}
	for i, r := range st.Renditions {
		o.Renditions = append(o.Renditions, packager.Rendition{RenditionInfo: r, Next: st.Next[i]})
	}
	b.last = packager.New(o)
	return b.last
}

func (b *bench) play(p *packager.Packager, s script) {
	b.t.Helper()
	var err error
	if !s.noVideo {
		err = errors.Join(err, p.Configure(video()), p.Rate(s.fps, true))
	}
	if !s.noAudio {
		err = errors.Join(err, p.Configure(audio()))
	}
	for _, f := range s.frames() {
		f.DTS += s.offset
		f.PTS += s.offset
		err = errors.Join(err, p.Write(f))
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) finish() *timeline.Timeline {
	b.t.Helper()
	b.edge.Close()
	if err := <-b.done; err != nil {
		b.t.Fatal(err)
	}
	tl, err := timeline.Build(b.mem.entries)
	if err != nil {
		b.t.Fatal(err)
	}
	return tl
}

// check holds a stored timeline against its media: every chunk is there, as long as it says, and starts where the one
// before ended.
func (b *bench) check(tl *timeline.Timeline) {
	b.t.Helper()
	for _, l := range tl.Renditions {
		next := int64(-1)
		for i, c := range l.Chunks {
			if c.Gap {
				next = -1
				continue
			}
			if c.Duration <= 0 || float64(c.Duration)/float64(l.Timescale) > float64(tl.Target)+0.5 {
				b.t.Errorf("%s %d lasts %d ticks, target %d s", l.ID, i, c.Duration, tl.Target)
			}
			data := b.mem.objects[c.Object]
			if int64(len(data)) != c.Size {
				b.t.Fatalf("%s %d: %d bytes stored, %d recorded", l.ID, i, len(data), c.Size)
			}
			frags, err := cmaf.ParseFragments(data)
			if err != nil {
				b.t.Fatal(err)
			}
			at := int64(frags[0].BaseMediaDecodeTime)
			if at != c.Time && !moved(tl, l, i, &frags[0]) {
				b.t.Errorf("%s %d: tfdt %d, recorded %d", l.ID, i, at, c.Time)
			}
			if next >= 0 && c.Time != next && !tl.Marks[i].Discontinuity {
				b.t.Errorf("%s %d starts at %d, the one before ended at %d", l.ID, i, c.Time, next)
			}
			for k, f := range frags {
				if int64(f.BaseMediaDecodeTime) != at {
					b.t.Errorf("%s %d part %d starts at %d, want %d", l.ID, i, k, f.BaseMediaDecodeTime, at)
				}
				at += int64(f.Duration)
			}
			// The last picture stands until the segment ends, and where other media follows no rendition ends before
			// the others.
			stands := i+1 < len(l.Chunks) && (l.Chunks[i+1].Gap || tl.Marks[i+1].Discontinuity)
			if at > c.Time+c.Duration || at < c.Time+c.Duration && !stands && i < len(l.Chunks)-1 {
				b.t.Errorf("%s %d: samples last to %d, recorded %d", l.ID, i, at, c.Time+c.Duration)
			}
			next = c.Time + c.Duration
		}
	}
	b.aligned(tl)
	b.dates(tl)
}

// dates checks that the date of each segment is the end of the one before.
func (b *bench) dates(tl *timeline.Timeline) {
	b.t.Helper()
	for _, l := range tl.Renditions {
		most := 3 * time.Millisecond
		if l.Kind == frame.Video {
			// pictures may be presented longer after their decoding from one key frame to the next
			most = 100 * time.Millisecond
		}
		for i, c := range l.Chunks {
			if i == 0 || c.Gap || l.Chunks[i-1].Gap || tl.Marks[i].Discontinuity {
				continue
			}
			long := time.Duration(float64(c.Time-l.Chunks[i-1].Time) / float64(l.Timescale) * float64(time.Second))
			off := tl.Marks[i].Start.Sub(tl.Marks[i-1].Start) +
				time.Duration(c.Apart-l.Chunks[i-1].Apart)*time.Millisecond - long
			if off.Abs() > most {
				b.t.Errorf("%s %d is dated %v off the end of the one before", l.ID, i, off)
			}
		}
	}
}

// moved reports whether the first picture of a chunk is decoded when it is presented, behind a discontinuity, and not
// somewhat earlier.
func moved(tl *timeline.Timeline, l *timeline.Rendition, i int, first *cmaf.Fragment) bool {
	late := int64(first.BaseMediaDecodeTime) - l.Chunks[i].Time
	return l.Kind == frame.Video && tl.Marks[i].Discontinuity && first.Samples[0].CompositionOffset == 0 && late > 0 &&
		late < int64(l.Timescale)/4
}

// aligned checks that renditions start every segment within a frame of each other.
func (b *bench) aligned(tl *timeline.Timeline) {
	b.t.Helper()
	lead := tl.Lead()
	for _, l := range tl.Renditions {
		for i := range l.Chunks {
			if l.Chunks[i].Gap || lead.Chunks[i].Gap {
				continue
			}
			apart := float64(l.Chunks[i].Time)/float64(l.Timescale) -
				float64(lead.Chunks[i].Time)/float64(lead.Timescale)
			if math.Abs(apart) > 0.120 { // a reorder delay and an audio frame
				b.t.Errorf("%s %d starts %.3f s from the video", l.ID, i, apart)
			}
		}
	}
}

var low = window.Mode{Low: true, Leading: 7, Listed: 30 * time.Second, InMemory: 2}

const part = 290 * time.Millisecond

func TestSegmentsFollowKeyFrames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		s        script
		segment  time.Duration
		segments int
		target   int
	}{
		{"30 fps, 2 s GOP", script{fps: 30, gop: 60, seconds: 20}, 2 * time.Second, 10, 2},
		{"B-frames", script{fps: 30, gop: 60, reorder: 2, seconds: 20}, 2 * time.Second, 10, 2},
		{"29.97", script{fps: 30000.0 / 1001, gop: 60, seconds: 20}, 2 * time.Second, 10, 2},
		{"short GOPs are joined", script{fps: 25, gop: 12, seconds: 20}, 2 * time.Second, 11, 2},
		{"long GOP", script{fps: 25, gop: 250, seconds: 40}, 2 * time.Second, 4, 10},
		{"1 fps", script{fps: 1, gop: 2, seconds: 20}, 2 * time.Second, 10, 2},
		{"60 fps standard", script{fps: 60, gop: 120, seconds: 24}, 4 * time.Second, 6, 4},
		{"video only", script{fps: 30, gop: 60, seconds: 20, noAudio: true}, 2 * time.Second, 10, 2},
		{"audio only", script{fps: 30, gop: 60, seconds: 20, noVideo: true}, 2 * time.Second, 10, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			p := b.publication(tt.segment, part)
			b.play(p, tt.s)
			if err := p.Close(nil); err != nil {
				t.Fatal(err)
			}
			tl := b.finish()
			b.check(tl)
			if len(tl.Marks) != tt.segments || tl.Target != tt.target || tl.First != 7 {
				t.Errorf("%d segments from %d, target %d; want %d from 7, %d", len(tl.Marks), tl.First, tl.Target,
					tt.segments, tt.target)
			}
			if got := tl.Duration().Seconds(); math.Abs(got-tt.s.seconds) > 0.05 {
				t.Errorf("lasts %.3f s, want %v", got, tt.s.seconds)
			}
		})
	}
}

func TestCutInsideGOPKeepsRenditionsTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	b.play(p, script{fps: 10, gop: 20, seconds: 2, pyramid: true})
	// one GOP from here on, much longer than the target
	long := script{fps: 10, gop: 1000, seconds: 30, pyramid: true}.frames()
	var err error
	for _, f := range long {
		f.DTS += 2 * time.Second
		f.PTS += 2 * time.Second
		f.Received = f.Received.Add(2 * time.Second)
		err = errors.Join(err, p.Write(f))
	}
	if err = errors.Join(err, p.Close(nil)); err != nil {
		t.Fatal(err)
	}
	tl := b.finish()
	b.check(tl)
	if len(tl.Marks) < 12 {
		t.Errorf("%d segments in 32 s with a target of %d s", len(tl.Marks), tl.Target)
	}
	for i := 1; i < len(tl.Marks); i++ {
		span := tl.Marks[i].Start.Sub(tl.Marks[i-1].Start).Seconds()
		for _, l := range tl.Renditions {
			long := float64(l.Chunks[i-1].Duration) / float64(l.Timescale)
			if math.Abs(long-span) > 0.05 || math.Round(long) > float64(tl.Target) {
				t.Errorf("%s %d lasts %.3f s, its date says %.3f s, target %d s", l.ID, i-1, long, span, tl.Target)
			}
		}
	}
}

func TestReconnectGoesOnBehindADiscontinuity(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	for n, s := range []script{
		{fps: 30, gop: 60, seconds: 9.5},
		{fps: 25, gop: 50, seconds: 7.3, reorder: 1},
		{fps: 30, gop: 60, seconds: 5, noAudio: true},
		{fps: 30, gop: 60, seconds: 5},
	} {
		p := b.publication(2*time.Second, part)
		b.play(p, s)
		if err := p.Close(nil); err != nil {
			t.Fatal(n, err)
		}
	}
	tl := b.finish()
	b.check(tl)
	disc := 0
	for _, m := range tl.Marks {
		if m.Discontinuity {
			disc++
		}
	}
	if disc != 3 {
		t.Errorf("%d discontinuities, want 3", disc)
	}
	if got := tl.Duration().Seconds(); math.Abs(got-26.8) > 0.1 {
		t.Errorf("lasts %.3f s, want 26.8", got)
	}
	gaps := 0
	for _, c := range tl.Rendition(timeline.MainAudio).Chunks {
		if c.Gap {
			gaps++
		}
	}
	if gaps != 3 {
		t.Errorf("audio has %d gaps, want 3 for the publication without it", gaps)
	}
}

func TestLostFramesKeepTime(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	b.play(p, script{fps: 30, gop: 60, seconds: 20, lose: func(i int) bool { return i%97 > 90 || i == 121 }})
	if err := p.Close(nil); err != nil {
		t.Fatal(err)
	}
	tl := b.finish()
	b.check(tl)
	if got := tl.Duration().Seconds(); math.Abs(got-20) > 0.3 {
		t.Errorf("lasts %.3f s, want 20", got)
	}
}

func TestVideoThatStandsStillLetsAudioLead(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	b.play(p, script{fps: 30, gop: 60, seconds: 40, lose: func(i int) bool { return i > 300 && i < 900 }})
	if err := p.Close(nil); err != nil {
		t.Fatal(err)
	}
	tl := b.finish()
	b.check(tl)
	if got := tl.Duration().Seconds(); math.Abs(got-40) > 0.5 {
		t.Errorf("lasts %.3f s, want 40", got)
	}
}

func TestPartsKeepTheirTarget(t *testing.T) {
	t.Parallel()
	for _, fps := range []float64{1, 10, 15, 23.976, 24, 25, 29.97, 30, 50, 59.94, 60} {
		t.Run(fmt.Sprint(fps), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			p := b.publication(2*time.Second, part)
			b.play(p, script{fps: fps, gop: int(math.Round(2 * fps)), seconds: 12})
			if err := p.Close(nil); err != nil {
				t.Fatal(err)
			}
			tl := b.finish()
			for _, l := range tl.Renditions {
				var longest int64
				for _, c := range l.Chunks {
					frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range frags {
						longest = max(longest, int64(f.Duration))
					}
				}
				for i, c := range l.Chunks[:len(l.Chunks)-1] {
					frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
					if err != nil {
						t.Fatal(err)
					}
					for k, f := range frags[:len(frags)-1] {
						if int64(f.Duration)*100 < longest*85 {
							t.Errorf("%s %d part %d lasts %d of %d ticks", l.ID, i, k, f.Duration, longest)
						}
					}
				}
				limit := max(part.Seconds(), 1/fps)
				if three := 3 / fps; three < 0.34 { // rather than two
					limit = max(limit, three)
				}
				if got := float64(longest) / float64(l.Timescale); got > limit+0.001 {
					t.Errorf("%s: longest part %.4f s", l.ID, got)
				}
			}
		})
	}
}

func TestAudioInFrontOfTheFirstPictureMakesNoSegment(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{1, 3, 30} {
		b := newBench(t, low)
		p := b.publication(2*time.Second, part)
		if err := errors.Join(p.Configure(video()), p.Configure(audio()), p.Rate(30, true)); err != nil {
			t.Fatal(err)
		}
		frames := script{fps: 30, gop: 60, seconds: 10}.frames()
		var first, rest []frame.Frame
		for _, f := range frames {
			if f.Kind == frame.Audio && len(first) < ahead {
				first = append(first, f)
			} else {
				rest = append(rest, f)
			}
		}
		for _, f := range append(first, rest...) {
			if err := p.Write(f); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(nil); err != nil {
			t.Fatal(err)
		}
		tl := b.finish()
		b.check(tl)
		if len(tl.Marks) != 5 || tl.Rendition(timeline.MainVideo).Chunks[0].Gap {
			t.Errorf("%d audio frames first: %d segments, want 5 that all have video", ahead, len(tl.Marks))
		}
	}
}
