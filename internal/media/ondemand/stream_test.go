package ondemand_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

// streamed is what was cut from a stream.
type streamed struct {
	timeline *timeline.Timeline
	objects  map[string][]byte
	entries  []timeline.Entry
	order    string // of everything that came, as a hash
}

func stream(t *testing.T, mp4 []byte) streamed {
	t.Helper()
	return streamWith(t, mp4, ondemand.StreamOptions{Prefix: "media/x/"})
}

func streamWith(t *testing.T, mp4 []byte, o ondemand.StreamOptions) streamed {
	t.Helper()
	s := streamed{objects: map[string][]byte{}}
	sum := sha256.New()
	var err error
	s.timeline, err = ondemand.Stream(cmaf.NewReader(bytes.NewReader(mp4),
		cmaf.ReaderOptions{}), o, func(sealed ondemand.Sealed) error {
		for _, o := range sealed.Objects {
			if s.objects[o.Key] != nil {
				t.Errorf("%s comes twice", o.Key)
			}
			s.objects[o.Key] = o.Data
			_, _ = fmt.Fprintf(sum, "%s %x\n", o.Key, sha256.Sum256(o.Data))
		}
		for _, e := range sealed.Entries {
			s.entries = append(s.entries, e)
			_, _ = sum.Write(timeline.Encode(e))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.order = hex.EncodeToString(sum.Sum(nil))
	return s
}

func (s streamed) join(t *testing.T, l *timeline.Rendition) string {
	t.Helper()
	all := slices.Clone(s.objects[l.Inits[0].Object])
	next := int64(-1)
	for i, c := range l.Chunks {
		if c.Gap {
			continue
		}
		data := s.objects[c.Object]
		f, err := cmaf.ParseFragments(data)
		if err != nil || len(f) != 1 {
			t.Fatalf("%s: %d fragments, %v", c.Object, len(f), err)
		}
		if int64(f[0].BaseMediaDecodeTime) != c.Time || int64(f[0].Duration) != c.Duration ||
			int64(len(data)) != c.Size {
			t.Errorf("%s: at %d for %d with %d bytes, the timeline has %+v", c.Object, f[0].BaseMediaDecodeTime,
				f[0].Duration, len(data), c)
		}
		if next >= 0 && c.Time != next && !l.Chunks[i-1].Gap {
			t.Errorf("%s begins at %d, the one before ended at %d", c.Object, c.Time, next)
		}
		if c.Independent && !f[0].Samples[0].Sync {
			t.Errorf("%s does not begin with a sync sample", c.Object)
		}
		if math.Round(l.Seconds(i)) > float64(s.timeline.Target) {
			t.Errorf("%s lasts %.3f s, the target duration is %d", c.Object, l.Seconds(i), s.timeline.Target)
		}
		at := c.Time
		for k, x := range f[0].Samples {
			at += int64(x.Duration)
			if over := float64(at+int64(x.CompositionOffset)-c.Time-c.Duration) / float64(l.Timescale); c.Independent &&
				over > 1.6 {
				t.Errorf("%s: sample %d seems to be shown until %.3f s behind the segment's end", c.Object, k, over)
			}
		}
		next = c.Time + c.Duration
		all = append(all, data...)
	}
	path := filepath.Join(t.TempDir(), l.ID+".mp4")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is joined of the segments of a rewritten file is the source: every frame with its time, and sound in step with
// pictures.
func TestStreamedSegmentsAreTheSource(t *testing.T) {
	t.Parallel()
	cfr := ffmpeg(t, "cfr.mp4", args(picture("13", "30"), sound("13"), h264("60"))...)
	vfr := ffmpeg(t, "vfr.mp4",
		args(picture("13", "60"), sound("13"),
			h264("30", "-vf", "select='not(mod(n*n,7))+not(mod(n,5))'", "-fps_mode", "vfr"))...)
	open := ffmpeg(t, "open.mp4", args(picture("26", "30000/1001"), sound("26"), openGOP)...)
	long := ffmpeg(t, "long.mp4",
		args(picture("33", "10"), sound("33"), h264("9999", "-keyint_min", "9999", "-sc_threshold", "0"))...)
	short := ffmpeg(t, "short.m4a", args(sound("3"), []string{"-c:a", "aac"})...)
	paused := ffmpeg(t, "paused.mp4",
		args(picture("13", "30"), sound("13"),
			h264("60", "-bf", "3", "-b_strategy", "0", "-vf", pauses, "-fps_mode", "vfr"))...)
	for name, src := range map[string]struct {
		from     string
		extra    []string
		segments int
		depends  bool
		gaps     string
	}{
		"constant rate": {from: cfr, segments: 7},
		"variable rate": {from: vfr, segments: 9},
		"open GOP":      {from: open, segments: 10, depends: true},
		"one GOP":       {from: long, segments: 12, depends: true},
		"sound late": {
			from: cfr, extra: []string{"-itsoffset", "0.7", "-i", cfr, "-map", "0:v", "-map", "1:a"}, segments: 7,
		},
		"picture late": {
			from: cfr, extra: []string{"-itsoffset", "0.7", "-i", cfr, "-map", "1:v", "-map", "0:a"}, segments: 7,
		},
		"sound ends": {from: cfr, extra: []string{"-i", short, "-map", "0:v", "-map", "1:a"}, segments: 7},
		"hole in sound": {
			from: cfr, extra: []string{"-bsf:a", "noise=drop=between(pts/48000\\,2.5\\,7.2)"}, segments: 7,
		},
		"sound at 5 s": {
			from: cfr, extra: []string{"-itsoffset", "5", "-i", short, "-map", "0:v", "-map", "1:a"}, segments: 7,
		},
		"a picture at 3": {
			from: cfr, extra: []string{"-itsoffset", "3", "-i", cfr, "-map", "1:v", "-map", "0:a"}, segments: 7,
		},
		"pauses":        {from: paused, segments: 4},
		"an hour late":  {from: cfr, extra: []string{"-output_ts_offset", "3600"}, segments: 7},
		"picture only":  {from: cfr, extra: []string{"-an"}, segments: 7},
		"sound only":    {from: cfr, extra: []string{"-vn"}, segments: 7},
		"sound goes on": {from: cfr, extra: []string{"-i", long, "-map", "0:v", "-map", "1:a"}, segments: 17},
	} {
		for format, ext := range map[encode.Format]string{encode.Matroska: ".mkv", encode.MPEGTS: ".ts"} {
			t.Run(name+ext, func(t *testing.T) {
				t.Parallel()
				in := ffmpeg(t, "in"+ext, append(append([]string{"-i", src.from}, src.extra...), "-c", "copy")...)
				mp4 := programtest.Run(t, "ffmpeg", encode.RewriteArgs{Input: in, Format: format}.Build()...)
				got := stream(t, mp4)
				if again := stream(t, mp4); again.order != got.order {
					t.Error("a second time gives other segments")
				}
				if n := len(got.timeline.Marks); n != src.segments {
					t.Errorf("%d segments, want %d", n, src.segments)
				}
				if got.timeline.Independent() == src.depends {
					t.Errorf("every segment begins with an IDR: %t", got.timeline.Independent())
				}
				rebuilt, err := timeline.Build(got.entries)
				if err != nil || len(rebuilt.Marks) != len(got.timeline.Marks) {
					t.Errorf("the entries give %d segments, %v", len(rebuilt.Marks), err)
				}
				got.compare(t, in)
			})
		}
	}
}

// asc is how a rendition of sound is decoded.
func (s streamed) asc(t *testing.T, l *timeline.Rendition) []byte {
	t.Helper()
	tracks, err := cmaf.NewReader(bytes.NewReader(s.objects[l.Inits[0].Object]), cmaf.ReaderOptions{}).Tracks()
	if err != nil {
		t.Fatal(err)
	}
	return tracks[0].Config.ASC
}

func (s streamed) compare(t *testing.T, in string) {
	t.Helper()
	type pair struct {
		rendition *timeline.Rendition
		want, got []shown
	}
	var pairs []pair
	earliest := math.Inf(1)
	for _, l := range s.timeline.Renditions {
		stream := "v"
		if l.Kind == frame.Audio {
			stream = "a"
		}
		joined := s.join(t, l)
		p := pair{rendition: l}
		if stream == "v" {
			p.want, p.got = decode(t, in, "v"), decode(t, joined, "v")
		} else {
			for _, x := range packets(t, in, "a") {
				p.want = append(p.want, shown{x.at(), x.Hash})
			}
			for _, x := range withoutSilence(t, s.asc(t, l), packets(t, joined, "a")) {
				p.got = append(p.got, shown{x.at(), x.Hash})
			}
			if strings.HasSuffix(in, ".ts") { // the bytes differ by their ADTS headers
				for _, list := range [][]shown{p.want, p.got} {
					for i := range list {
						list[i].hash = ""
					}
				}
			}
		}
		earliest = min(earliest, p.want[0].at)
		pairs = append(pairs, p)
	}
	for _, p := range pairs {
		if len(p.got) != len(p.want) {
			t.Fatalf("%s: %d frames, the source has %d", p.rendition.ID, len(p.got), len(p.want))
		}
		for i, f := range p.got {
			want := p.want[i].at - earliest + timeline.Origin
			if i == 0 && want > timeline.Origin+0.1 && p.rendition.Kind == frame.Video {
				want = timeline.Origin // what comes late is shown from the beginning on
			}
			if f.hash != p.want[i].hash || math.Abs(f.at-want) > 0.0016 {
				t.Fatalf("%s: frame %d at %.4f is %q, should be at %.4f and %q", p.rendition.ID, i, f.at, f.hash, want,
					p.want[i].hash)
			}
		}
	}
	if len(pairs) == 2 {
		for i, c := range pairs[0].rendition.Chunks {
			a := pairs[1].rendition.Chunks[i]
			if i == 0 || c.Gap || a.Gap || !c.Independent {
				continue
			}
			f, err := cmaf.ParseFragments(s.objects[c.Object])
			if err != nil {
				t.Fatal(err)
			}
			picture := float64(c.Time+int64(f[0].Samples[0].CompositionOffset)) / float64(pairs[0].rendition.Timescale)
			if d := float64(a.Time)/float64(pairs[1].rendition.Timescale) - picture; d < -1e-6 || d > 0.022 {
				t.Errorf("segment %d: sound begins %.4f s after the picture", i, d)
			}
		}
	}
}

// A picture that is to be turned, as phones say it, is turned too where it is unpacked because of its sound.
func TestRewrittenPictureIsTurned(t *testing.T) {
	t.Parallel()
	whole := ffmpeg(t, "whole.mov", args(picture("2", "30"), sound("2"), h264("30", "-c:a", "pcm_s16le"))...)
	for turn, size := range map[string][2]int{"90": {90, 160}, "180": {160, 90}, "270": {90, 160}} {
		t.Run(turn, func(t *testing.T) {
			t.Parallel()
			in := ffmpeg(t, "in.mov", "-i", whole, "-c", "copy", "-metadata:s:v:0", "rotate="+turn)
			as := encode.RewriteArgs{
				Input: in, Format: encode.MOV, Sound: &encode.Sound{SampleRate: 48000, Channels: 1},
			}
			got := stream(t, programtest.Run(t, "ffmpeg", as.Build()...))
			l := got.timeline.Rendition(timeline.MainVideo)
			if l.Inits[0].Width != size[0] || l.Inits[0].Height != size[1] {
				t.Errorf("%+v, want %dx%d", l.Inits[0], size[0], size[1])
			}
			want, have := decode(t, in, "v"), decode(t, got.join(t, l), "v")
			if !slices.EqualFunc(want, have, func(a, b shown) bool { return a.hash == b.hash }) {
				t.Error("the pictures are others than the file's")
			}
		})
	}
}

// A muxer without edit lists lets the first picture stand while the first sound comes: that is no slower rate.
func TestFirstPictureDoesNotSlowTheRate(t *testing.T) {
	t.Parallel()
	rate := func(tl *timeline.Timeline) float64 { return tl.Rendition(timeline.MainVideo).Inits[0].FrameRate }
	for name, how := range map[string][]string{
		"fragmented":   {"-movflags", "+frag_keyframe+empty_moov+default_base_moof"},
		"no edit list": {"-use_editlist", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := plan(t, ffmpeg(t, "a.mp4", args(picture("9", "30"), sound("9"), h264("60", how...))...))
			if got := rate(m.timeline); math.Abs(got-30) > 0.005 {
				t.Errorf("%v frames per second, want 30", got)
			}
		})
	}
	t.Run("rewritten", func(t *testing.T) {
		t.Parallel()
		in := ffmpeg(t, "a.mkv", args(picture("9", "30"), sound("9"), h264("60"))...)
		got := rate(stream(t,
			programtest.Run(t, "ffmpeg", encode.RewriteArgs{Input: in, Format: encode.Matroska}.Build()...)).timeline)
		if math.Abs(got-30) > 0.02 { // Matroska counts milliseconds
			t.Errorf("%v frames per second, want 30", got)
		}
	})
	t.Run("rewritten, the last one stands", func(t *testing.T) {
		t.Parallel()
		in := ffmpeg(t, "a.mkv", args(picture("5", "30"), sound("9"), h264("60"))...)
		got := rate(stream(t,
			programtest.Run(t, "ffmpeg", encode.RewriteArgs{Input: in, Format: encode.Matroska}.Build()...)).timeline)
		if math.Abs(got-30) > 0.02 {
			t.Errorf("%v frames per second, want 30", got)
		}
	})
}
