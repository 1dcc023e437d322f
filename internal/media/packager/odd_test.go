package packager_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/packager"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// stamp gives every frame of a kind a number in its data, so that it is known again in what was stored.
func stamp(frames []frame.Frame) {
	var n [2]uint32
	for i := range frames {
		f := &frames[i]
		k := n[f.Kind]
		n[f.Kind]++
		if f.Kind == frame.Video {
			f.Data = append([]byte{0, 0, 0, 5, 0x65}, binary.BigEndian.AppendUint32(nil, k)...)
		} else {
			f.Data = append([]byte{0x21}, binary.BigEndian.AppendUint32(nil, k)...)
		}
	}
}

// arrive orders frames as they come when each kind is late by some time, and keeps the order within a kind.
func arrive(frames []frame.Frame, late map[frame.Kind]time.Duration) {
	for i := range frames {
		frames[i].Received = frames[i].Received.Add(late[frames[i].Kind])
	}
	slices.SortStableFunc(frames, func(a, b frame.Frame) int { return a.Received.Compare(b.Received) })
}

func configure(t *testing.T, p *packager.Packager, s script) {
	t.Helper()
	var err error
	if !s.noVideo {
		err = errors.Join(err, p.Configure(video()), p.Rate(s.fps, true))
	}
	if !s.noAudio {
		err = errors.Join(err, p.Configure(audio()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, p *packager.Packager, frames []frame.Frame) {
	t.Helper()
	for _, f := range frames {
		if err := p.Write(f); err != nil {
			t.Fatal(err)
		}
	}
}

// writeChanging is write, the video having other parameters from a time on.
func writeChanging(t *testing.T, p *packager.Packager, frames []frame.Frame, from time.Duration) {
	t.Helper()
	first := slices.IndexFunc(frames, func(f frame.Frame) bool { return f.Kind == frame.Video && f.DTS >= from })
	write(t, p, frames[:first])
	other := video()
	other.PPS = append(slices.Clone(other.PPS), 0x80)
	change := p.Discontinuity("video parameters changed")
	if err := errors.Join(change, p.Configure(other), p.Rate(30, true)); err != nil {
		t.Fatal(err)
	}
	write(t, p, frames[first:])
}

func closed(t *testing.T, p *packager.Packager) {
	t.Helper()
	if err := p.Close(nil); err != nil {
		t.Fatal(err)
	}
}

// offsets finds what was added to the times of the frames of one kind: least and most, in seconds, and how many there
// are.
func (b *bench) offsets(tl *timeline.Timeline, frames []frame.Frame, k frame.Kind) (least, most float64, n int) {
	b.t.Helper()
	var sent []frame.Frame
	for _, f := range frames {
		if f.Kind == k {
			sent = append(sent, f)
		}
	}
	least, most = math.Inf(1), math.Inf(-1)
	for _, l := range tl.Renditions {
		if l.Kind != k {
			continue
		}
		for _, c := range l.Chunks {
			if c.Gap {
				continue
			}
			frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
			if err != nil {
				b.t.Fatal(err)
			}
			for _, f := range frags {
				at := int64(f.BaseMediaDecodeTime)
				for _, s := range f.Samples {
					src := sent[binary.BigEndian.Uint32(s.Data[len(s.Data)-4:])]
					off := float64(at+int64(s.CompositionOffset))/float64(l.Timescale) - src.PTS.Seconds()
					least, most, n = min(least, off), max(most, off), n+1
					at += int64(s.Duration)
				}
			}
		}
	}
	return least, most, n
}

// inStep checks that every frame of both kinds was moved by the same time, to 40 ms, and that hardly any is missing.
func (b *bench) inStep(tl *timeline.Timeline, frames []frame.Frame, missing int) {
	b.t.Helper()
	sent := map[frame.Kind]int{}
	for _, f := range frames {
		sent[f.Kind]++
	}
	var all []float64
	for k, n := range sent {
		least, most, kept := b.offsets(tl, frames, k)
		if kept < n-missing {
			b.t.Errorf("%v: %d of %d frames are kept", k, kept, n)
		}
		all = append(all, least, most)
	}
	if apart := slices.Max(all) - slices.Min(all); apart > 0.040 || missing == 0 && apart > 0.001 {
		b.t.Errorf("frames are moved by different times: %v", all)
	}
}

func TestOddArrivals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		late    map[frame.Kind]time.Duration
		reorder int
		missing int
	}{
		"together":               {nil, 0, 0},
		"audio 500 ms ahead":     {map[frame.Kind]time.Duration{frame.Video: 500 * time.Millisecond}, 0, 0},
		"video 500 ms ahead":     {map[frame.Kind]time.Duration{frame.Audio: 500 * time.Millisecond}, 2, 25},
		"audio 900 ms ahead":     {map[frame.Kind]time.Duration{frame.Video: 900 * time.Millisecond}, 2, 6},
		"video two seconds late": {map[frame.Kind]time.Duration{frame.Video: 2 * time.Second}, 0, 0},
		"audio two seconds late": {map[frame.Kind]time.Duration{frame.Audio: 2 * time.Second}, 0, 1},
		"video far too late":     {map[frame.Kind]time.Duration{frame.Video: 7 * time.Second}, 0, 600},
		"audio far too late":     {map[frame.Kind]time.Duration{frame.Audio: 7 * time.Second}, 0, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			s := script{fps: 30, gop: 60, seconds: 20, reorder: tt.reorder}
			frames := s.frames()
			stamp(frames)
			arrive(frames, tt.late)
			p := b.publication(2*time.Second, part)
			configure(t, p, s)
			write(t, p, frames)
			closed(t, p)
			tl := b.finish()
			b.whole(tl)
			if tt.missing < 400 { // else what is dropped leaves holes, and a frame behind a hole stands for it
				b.inStep(tl, frames, tt.missing)
			}
		})
	}
}

// whole checks what holds for any timeline: chunks are where they say, decoding time has no hole where media goes on,
// segments fit the target, and parts make up their segment.
func (b *bench) whole(tl *timeline.Timeline) {
	b.t.Helper()
	for _, l := range tl.Renditions {
		next := int64(-1)
		for i, c := range l.Chunks {
			if c.Gap {
				next = -1
				continue
			}
			if long := l.Seconds(i); long <= 0 || math.Round(long) > float64(tl.Target) {
				b.t.Errorf("%s %d lasts %.3f s, target %d s", l.ID, i, long, tl.Target)
			}
			frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
			if err != nil || len(frags) == 0 || int64(len(b.mem.objects[c.Object])) != c.Size {
				b.t.Fatalf("%s %d: %d fragments in %d bytes: %v", l.ID, i, len(frags), c.Size, err)
			}
			at := int64(frags[0].BaseMediaDecodeTime)
			if at != c.Time && !moved(tl, l, i, &frags[0]) || next >= 0 && at != next && !tl.Marks[i].Discontinuity ||
				at < next {
				b.t.Errorf("%s %d starts at %d, recorded %d, the one before ends at %d", l.ID, i, at, c.Time, next)
			}
			for k, f := range frags {
				if int64(f.BaseMediaDecodeTime) != at {
					b.t.Errorf("%s %d part %d starts at %d, the one before ends at %d",
						l.ID, i, k, f.BaseMediaDecodeTime, at)
				}
				at += int64(f.Duration)
			}
			last := i+1 == len(l.Chunks) || tl.Marks[i+1].Discontinuity // no rendition ends before the others
			if at != c.Time+c.Duration && (!last || at > c.Time+c.Duration) {
				b.t.Errorf("%s %d: samples last %d ticks, recorded %d", l.ID, i, at-c.Time, c.Duration)
			}
			next = at
		}
	}
}

func TestTracksThatJoinLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		late frame.Kind
		gaps map[string]int
	}{
		"audio": {frame.Audio, map[string]int{"v": 0, "a": 4}}, // joins at the next key frame, 8 s
		// the audio was cut at 2, 4 and 6 s; its segment ends when the video comes
		"video": {frame.Video, map[string]int{"v": 4, "a": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			s := script{fps: 30, gop: 60, seconds: 20}
			frames := s.frames()
			stamp(frames)
			p := b.publication(2*time.Second, part)
			configure(t, p, script{fps: 30, noVideo: tt.late == frame.Video, noAudio: tt.late == frame.Audio})
			joined := false
			var err error
			for _, f := range frames {
				if f.Kind == tt.late && f.DTS < 6500*time.Millisecond {
					continue
				}
				if f.Kind == tt.late && !joined {
					joined = true
					if tt.late == frame.Video {
						f.Key = true
						err = errors.Join(err, p.Configure(video()), p.Rate(30, true))
					} else {
						err = errors.Join(err, p.Configure(audio()))
					}
				}
				err = errors.Join(err, p.Write(f))
			}
			if err != nil {
				t.Fatal(err)
			}
			closed(t, p)
			tl := b.finish()
			b.whole(tl)
			for id, want := range tt.gaps {
				gaps := 0
				for _, c := range tl.Rendition(id).Chunks {
					if c.Gap {
						gaps++
					}
				}
				if gaps != want {
					t.Errorf("%s has %d gaps, want %d", id, gaps, want)
				}
			}
			b.inStep(tl, frames, 400)
			if got := tl.Duration().Seconds(); math.Abs(got-20) > 0.1 {
				t.Errorf("lasts %.3f s", got)
			}
			for _, m := range tl.Marks {
				if m.Discontinuity {
					t.Error("a track that joins is no discontinuity")
				}
			}
		})
	}
}

func TestParametersThatChange(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	s := script{fps: 30, gop: 60, seconds: 20}
	frames := s.frames()
	stamp(frames)
	arrive(frames, map[frame.Kind]time.Duration{frame.Video: 300 * time.Millisecond})
	p := b.publication(2*time.Second, part)
	configure(t, p, s)
	writeChanging(t, p, frames, 8*time.Second)
	closed(t, p)
	tl := b.finish()
	b.whole(tl)
	b.inStep(tl, frames, 3)
	v := tl.Rendition("v")
	if len(tl.Marks) != 10 || len(v.Inits) != 2 || len(tl.Rendition("a").Inits) != 1 {
		t.Fatalf("%d segments, %d and %d init segments", len(tl.Marks), len(v.Inits), len(tl.Rendition("a").Inits))
	}
	for i, m := range tl.Marks {
		if m.Discontinuity != (i == 4) || (v.Chunks[i].Init == 1) != (i >= 4) {
			t.Errorf("segment %d: discontinuity %v, init %d", i, m.Discontinuity, v.Chunks[i].Init)
		}
	}
}

// TestPictureThatStaysAwayBehindADiscontinuity: the sound goes on at once.
func TestPictureThatStaysAwayBehindADiscontinuity(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	s := script{fps: 30, gop: 60, seconds: 20}
	frames := s.frames()
	stamp(frames)
	p := b.publication(2*time.Second, part)
	configure(t, p, s)
	announced := false
	for _, f := range frames {
		at := f.DTS.Seconds()
		if !announced && at >= 7 {
			announced = true
			if err := p.Discontinuity("the encoder's clock jumped"); err != nil {
				t.Fatal(err)
			}
		}
		if f.Kind == frame.Video && at >= 7 && at < 14 {
			continue
		}
		if err := p.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, p)
	tl := b.finish()
	b.whole(tl)
	b.inStep(tl, frames, 215)
	a := tl.Rendition("a")
	for i, c := range a.Chunks {
		if c.Gap {
			t.Errorf("audio %d is a gap", i)
		}
	}
	if got := tl.Duration().Seconds(); math.Abs(got-20) > 0.1 {
		t.Errorf("lasts %.3f s", got)
	}
}

// TestSoundThatGoesOnAloneIsKept: the picture stands, in the midst of a segment, and comes back, with other parameters
// or as before, or not at all. The sound is all there, and segments of the picture and of the sound are as long as each
// other.
func TestSoundThatGoesOnAloneIsKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from, to float64 // the picture is away
		changes  bool
		missing  int // frames: a picture that comes back behind the sound waits for its next key frame
		late     time.Duration
		reorder  int
	}{
		"in the first segment":                    {1.5, 8, false, 3, 100 * time.Millisecond, 0},
		"in the first segment, other parameters":  {1.5, 8, true, 3, 100 * time.Millisecond, 0},
		"later":                                   {6.5, 14, false, 33, 100 * time.Millisecond, 0},
		"later, other parameters":                 {6.5, 14, true, 3, 100 * time.Millisecond, 0},
		"shortly, other parameters":               {6.5, 8, true, 3, 100 * time.Millisecond, 0},
		"to the end":                              {14.5, 30, false, 3, 100 * time.Millisecond, 0},
		"from the first segment on to the end":    {1.5, 30, false, 3, 100 * time.Millisecond, 0},
		"shorter than a segment, in the first":    {1.5, 3, false, 3, 100 * time.Millisecond, 0},
		"for little more than a second, later on": {6.5, 8, false, 3, 100 * time.Millisecond, 0},
		"later, far behind the sound":             {6.5, 14, false, 33, 700 * time.Millisecond, 0},
		"later, with B-frames":                    {6.5, 14, false, 33, 0, 4},
		"later, with both":                        {6.5, 14, false, 33, 300 * time.Millisecond, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			s := script{fps: 30, gop: 30, seconds: 20, reorder: tt.reorder}
			frames := slices.DeleteFunc(s.frames(), func(f frame.Frame) bool {
				return f.Kind == frame.Video && f.DTS.Seconds() >= tt.from && f.DTS.Seconds() < tt.to
			})
			stamp(frames)
			arrive(frames, map[frame.Kind]time.Duration{frame.Video: tt.late})
			p := b.publication(2*time.Second, part)
			configure(t, p, s)
			if tt.changes {
				writeChanging(t, p, frames, time.Duration(tt.to*float64(time.Second)))
			} else {
				write(t, p, frames)
			}
			closed(t, p)
			tl := b.finish()
			b.inStep(tl, frames, tt.missing)
			v, a := tl.Rendition("v"), tl.Rendition("a")
			for i := range v.Chunks {
				if long := a.Seconds(i); math.Round(long) > float64(tl.Target) {
					t.Errorf("sound %d lasts %.3f s, target %d s", i, long, tl.Target)
				}
				if apart := v.Seconds(i) - a.Seconds(i); math.Abs(apart) > 1.15 && !v.Chunks[i].Gap &&
					(i+1 == len(v.Chunks) || !v.Chunks[i+1].Gap) {
					t.Errorf("segment %d: %.3f s of picture, %.3f s of sound", i, v.Seconds(i), a.Seconds(i))
				}
			}
			if got := tl.Duration().Seconds(); math.Abs(got-20) > 0.1 {
				t.Errorf("lasts %.3f s", got)
			}
		})
	}
}

func TestSampleRateThatChangesOnReconnect(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	first := b.publication(2*time.Second, part)
	b.play(first, script{fps: 30, gop: 60, seconds: 10})
	closed(t, first)
	p := b.publication(2*time.Second, part)
	cd := audio()
	cd.ASC, cd.SampleRate = []byte{0x12, 0x10}, 44100
	if err := errors.Join(p.Configure(video()), p.Rate(30, true), p.Configure(cd)); err != nil {
		t.Fatal(err)
	}
	frames := script{fps: 30, gop: 60, seconds: 20, noAudio: true}.frames()
	for i := range int(20 * 44100 / 1024) {
		f := frame.Frame{
			Kind: frame.Audio, DTS: at(i*1024, 44100), Duration: at((i+1)*1024, 44100) - at(i*1024, 44100), Key: true,
		}
		f.PTS, f.Received = f.DTS, frames[0].Received.Add(f.DTS)
		frames = append(frames, f)
	}
	stamp(frames)
	arrive(frames, nil)
	write(t, p, frames)
	closed(t, p)
	tl := b.finish()
	b.whole(tl)
	a := tl.Rendition("a")
	if a.Timescale != 48000 || len(a.Inits) != 2 || a.Inits[1].SampleRate != 44100 {
		t.Errorf("%+v", a.RenditionInfo)
	}
	longest := 0.0
	for _, c := range a.Chunks {
		frags, err := cmaf.ParseFragments(b.mem.objects[c.Object])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frags {
			longest = max(longest, float64(f.Duration)/48000)
		}
	}
	if target := float64(a.PartTarget) / 1e6; longest > target || longest < 0.85*target {
		t.Errorf("longest part %.4f s, target %.4f s", longest, target)
	}
}

func TestVariableFrameRate(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	if err := errors.Join(p.Configure(video()), p.Rate(24, false), p.Configure(audio())); err != nil {
		t.Fatal(err)
	}
	frames := script{fps: 30, gop: 60, seconds: 20}.frames()
	var kept []frame.Frame
	lastVideo, n := -1, 0
	for _, f := range frames { // a third of the pictures does not come, and each lasts until the next
		if f.Kind == frame.Video {
			n++
			if n%3 == 0 && !f.Key {
				continue
			}
			if lastVideo >= 0 {
				kept[lastVideo].Duration = f.DTS - kept[lastVideo].DTS
			}
			lastVideo = len(kept)
		}
		kept = append(kept, f)
	}
	stamp(kept)
	write(t, p, kept)
	closed(t, p)
	tl := b.finish()
	b.whole(tl)
	b.inStep(tl, kept, 2)
	if len(tl.Marks) != 10 {
		t.Errorf("%d segments", len(tl.Marks))
	}
}

func TestLongGOPsAreCutWhenTheTargetIsKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	one := b.publication(2*time.Second, part)
	b.play(one, script{fps: 30, gop: 60, seconds: 6})
	closed(t, one)
	two := b.publication(2*time.Second, part)
	s := script{fps: 30, gop: 600, seconds: 60, reorder: 2}
	frames := s.frames()
	stamp(frames)
	configure(t, two, s)
	write(t, two, frames)
	closed(t, two)
	tl := b.finish()
	b.whole(tl)
	independent := 0
	for _, c := range tl.Rendition("v").Chunks {
		if c.Independent {
			independent++
		}
	}
	if tl.Target != 2 || independent != 3+3 || len(tl.Marks) < 3+24 || len(tl.Marks) > 3+33 {
		t.Errorf("%d segments, %d independent, target %d", len(tl.Marks), independent, tl.Target)
	}
}

func TestHugeFrames(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	p := b.publication(2*time.Second, part)
	s := script{fps: 2, gop: 40, seconds: 6, noAudio: true}
	configure(t, p, s)
	huge := make([]byte, 12<<20)
	for _, f := range s.frames() {
		f.Data = huge
		if err := p.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, p)
	tl := b.finish()
	b.whole(tl)
	for i, c := range tl.Rendition("v").Chunks {
		if c.Size > 64<<20 {
			t.Errorf("segment %d has %d bytes", i, c.Size)
		}
	}
}

// TestFlappingEncoder publishes five times a second: each publication adds at most one segment, and nothing adds
// nothing.
func TestFlappingEncoder(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	seconds := 0.0
	for n := range 200 {
		p := b.publication(2*time.Second, part)
		s := script{fps: 30, gop: 60, seconds: 0.2, reorder: n % 3, noAudio: n%5 == 4, noVideo: n%7 == 6 && n%5 != 4}
		switch n % 11 {
		case 3: // nothing but a handshake
		case 5:
			configure(t, p, s)
		case 7: // one frame
			one := script{fps: 30, gop: 60, seconds: 0.01}
			configure(t, p, one)
			write(t, p, one.frames()[:1])
			seconds += 1.0 / 30
		default:
			b.play(p, s)
			seconds += 0.2
		}
		closed(t, p)
	}
	tl := b.finish()
	b.whole(tl)
	if n := len(tl.Marks); n > 200 || n < 140 {
		t.Errorf("%d segments", n)
	}
	if got := tl.Duration().Seconds(); math.Abs(got-seconds) > 0.05*seconds {
		t.Errorf("lasts %.3f s, %.3f s were sent", got, seconds)
	}
	for i, m := range tl.Marks {
		if m.Discontinuity != (i > 0) {
			t.Errorf("segment %d: discontinuity %v", i, m.Discontinuity)
		}
	}
	for _, id := range []string{"v", "a"} {
		all := window.Reload{MSN: -1, Part: -1, Event: true}
		if _, err := b.edge.Playlist(t.Context(), id, all, false); err != nil {
			t.Error(err)
		}
	}
}

// TestTargetIsSaidByAnyFirstSegment: also by one that ends with its publication, so that every playlist has one from
// the start.
func TestTargetIsSaidByAnyFirstSegment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s    script
		want int
	}{
		{script{fps: 30, gop: 600, seconds: 0.1}, 2},
		{script{fps: 30, gop: 600, seconds: 5}, 5},
		{script{fps: 30, gop: 600, seconds: 5, noVideo: true}, 2},
		{script{fps: 30, gop: 600, seconds: 19}, 19},
	} {
		b := newBench(t, low)
		p := b.publication(2*time.Second, part)
		b.play(p, tt.s)
		closed(t, p)
		again := b.publication(2*time.Second, part)
		b.play(again, script{fps: 25, gop: 250, seconds: 30})
		closed(t, again)
		tl := b.finish()
		b.whole(tl)
		if tl.Target != tt.want {
			t.Errorf("%+v: target %d, want %d", tt.s, tl.Target, tt.want)
		}
	}
}

// TestWallClockFollowsAJump: behind a discontinuity dates are those of the frames' arrival, whatever media time does.
func TestWallClockFollowsAJump(t *testing.T) {
	t.Parallel()
	b := newBench(t, low)
	s := script{fps: 30, gop: 60, seconds: 12}
	p := b.publication(2*time.Second, part)
	configure(t, p, s)
	for _, f := range s.frames() {
		if f.DTS >= 6*time.Second {
			if f.Key && f.Kind == frame.Video && f.DTS == 6*time.Second {
				if err := p.Discontinuity("jump"); err != nil {
					t.Fatal(err)
				}
			}
			f.Received = f.Received.Add(time.Hour)
		}
		if err := p.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, p)
	tl := b.finish()
	if got := tl.Marks[3].Start.Sub(tl.Marks[2].Start); got != time.Hour+2*time.Second || !tl.Marks[3].Discontinuity {
		t.Errorf("the date moves by %v", got)
	}
	if got := tl.Marks[4].Start.Sub(tl.Marks[3].Start); got != 2*time.Second {
		t.Errorf("and then by %v", got)
	}
}
