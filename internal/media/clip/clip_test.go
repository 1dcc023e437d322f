package clip_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/media/clip"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

// material is a video of six seconds of which every picture says its number, in ten stripes, and a tune that never is
// the same twice.
var material = struct {
	once           sync.Once
	samples, sound string
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	if material.samples != "" {
		_ = os.RemoveAll(filepath.Dir(material.samples))
	}
	os.Exit(code)
}

func recordMaterial(t testing.TB) (pictures, sound string) {
	t.Helper()
	material.once.Do(func() {
		dir, err := os.MkdirTemp("", "clip") //nolint:usetesting // of all tests
		if err != nil {
			t.Fatal(err)
		}
		material.samples, material.sound = filepath.Join(dir, "film.mp4"), filepath.Join(dir, "sound.wav")
		const w, h = 320, 180
		raw := make([]byte, 0, 180*w*h)
		for n := range 180 {
			row := make([]byte, w)
			for x := range row {
				row[x] = byte(30 + 190*(n>>(x*10/w)&1))
			}
			raw = append(raw, bytes.Repeat(row, h)...)
		}
		if err := os.WriteFile(filepath.Join(dir, "raw"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		programtest.Run(t, "ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "gray",
			"-video_size", "320x180", "-framerate", "30", "-i", filepath.Join(dir, "raw"),
			"-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-qp", "0", material.samples)
		programtest.Run(t, "ffmpeg", "-nostdin", "-y", "-loglevel", "error", "-f", "lavfi", "-i",
			"aevalsrc='0.4*sin(2*PI*(200*t+40*t*t))|0.4*sin(2*PI*(1500*t-30*t*t))':s=48000:duration=6", material.sound)
	})
	return material.samples, material.sound
}

// medium is a recording in memory.
type medium struct {
	mu    sync.Mutex
	files map[string][]byte
	t     *timeline.Timeline
}

// rendition is one of its renditions.
type rendition struct {
	m *medium
	l *timeline.Rendition
}

func (r rendition) Init(_ context.Context, n int) ([]byte, error) {
	return r.m.get(r.l.Inits[n].Object)
}

func (r rendition) Segment(_ context.Context, msn int64) (delivered.Body, error) {
	data, err := r.m.get(r.l.Chunks[msn-r.m.t.First].Object)
	return delivered.Body{Data: data}, err
}

func (m *medium) get(key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.files[key]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%s is not there", key)
}

func (m *medium) put(_ context.Context, key string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[key] = data
	return nil
}

// record makes a recording of what ffmpeg gives, a segment for each fragment: the picture's every second.
func record(t *testing.T, video, audio []string) *medium {
	t.Helper()
	m := &medium{files: map[string][]byte{}, t: &timeline.Timeline{}}
	var renditions []*timeline.Rendition
	var borders []float64
	for _, x := range []struct {
		id   string
		kind frame.Kind
		args []string
	}{{timeline.MainVideo, frame.Video, video}, {timeline.MainAudio, frame.Audio, audio}} {
		if x.args == nil {
			continue
		}
		flags := "+frag_keyframe+delay_moov+empty_moov+default_base_moof"
		if x.kind == frame.Audio {
			flags = "+frag_every_frame+delay_moov+empty_moov+default_base_moof"
		}
		pictures, sound := recordMaterial(t)
		args := []string{"-threads", "1", "-i", pictures}
		if x.kind == frame.Audio {
			args[len(args)-1] = sound
		}
		args = append(args, x.args...)
		path := programtest.Media(t, x.id+".mp4",
			append(args, "-movflags", flags, "-use_editlist", "0", "-avoid_negative_ts", "make_non_negative")...)
		l, b := m.rendition(t, path, x.id, x.kind, borders)
		renditions, borders = append(renditions, l), b
	}
	entries := []timeline.Entry{{Target: 2}}
	for _, l := range renditions {
		entries = append(entries, timeline.Entry{Rendition: &l.RenditionInfo}, timeline.Entry{Init: &l.Inits[0]})
	}
	for i := range renditions[0].Chunks {
		s := timeline.Segment{MSN: int64(i)}
		for _, l := range renditions {
			s.Chunks = append(s.Chunks, l.Chunks[i])
		}
		entries = append(entries, timeline.Entry{Segment: &s})
	}
	var err error
	if m.t, err = timeline.Build(entries); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *medium) rendition(
	t *testing.T, path, id string, kind frame.Kind, borders []float64,
) (*timeline.Rendition, []float64) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tracks, err := cmaf.NewReader(bytes.NewReader(data), cmaf.ReaderOptions{}).Tracks()
	if err != nil {
		t.Fatal(err)
	}
	fragments, err := cmaf.ParseFragments(data)
	if err != nil {
		t.Fatal(err)
	}
	scale := float64(tracks[0].Timescale)
	l := &timeline.Rendition{RenditionInfo: timeline.RenditionInfo{ID: id, Kind: kind, Timescale: tracks[0].Timescale}}
	m.files["init/"+id] = data[:fragments[0].Offset]
	l.Inits = []timeline.Init{{Rendition: id, Codec: tracks[0].FourCC, Width: 320, Height: 180, Object: "init/" + id}}
	var groups [][]cmaf.Sample
	at := int64(10 * scale)
	first := fragments[0].Samples[0]
	if kind == frame.Video {
		at -= int64(first.CompositionOffset)
		borders = []float64{10}
	}
	for _, f := range fragments {
		if kind == frame.Video {
			if n := len(groups); n > 0 && len(groups[n-1]) < 30 { // there are several key frames in a second
				groups[n-1] = append(groups[n-1], f.Samples...)
				borders[n] += float64(f.Duration) / scale
				continue
			}
			groups = append(groups, f.Samples)
			borders = append(borders, borders[len(borders)-1]+float64(f.Duration)/scale)
			continue
		}
		if now := 10 + float64(f.BaseMediaDecodeTime-fragments[0].BaseMediaDecodeTime)/scale; len(groups) == 0 ||
			len(groups) < len(borders)-1 && now >= borders[len(groups)] {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], f.Samples...)
	}
	for i, g := range groups {
		key := fmt.Sprintf("%s/%d", id, i)
		c := timeline.Chunk{Rendition: id, Time: at, Independent: true, Object: key}
		for _, s := range g {
			at += int64(s.Duration)
		}
		c.Duration = at - c.Time
		m.files[key] = cmaf.AppendFragment(nil, uint32(i+1), cmaf.TrackID, uint64(c.Time), g)
		c.Size = int64(len(m.files[key]))
		l.Chunks = append(l.Chunks, c)
	}
	return l, borders
}

var budget = encode.NewBudget(encode.BudgetOptions{Cores: runtime.NumCPU()})

func (m *medium) cut(t *testing.T, from, to float64) (*medium, error) {
	t.Helper()
	e, err := encode.NewEngine(encode.Options{
		FFmpeg: programtest.Path(t, "ffmpeg"), FFprobe: programtest.Path(t, "ffprobe"), Budget: budget,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := clip.Cutter{
		Source: func(l *timeline.Rendition) delivered.Source { return rendition{m, l} }, Encoder: e, Put: m.put,
	}
	part, err := c.Cut(t.Context(), m.t, from, to, "clip/")
	return &medium{files: m.files, t: part}, err
}

// shown is a picture's number and its time.
type shown struct {
	number int
	at     float64
}

// runs writes what plays with the same init segment into a file each.
func (m *medium) runs(t *testing.T, id string) []string {
	t.Helper()
	l := m.t.Rendition(id)
	var files []string
	var data []byte
	last := -1
	flush := func() {
		if len(data) > 0 {
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d.mp4", id, len(files)))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
		data = nil
	}
	next := int64(-1)
	for i, c := range l.Chunks {
		if c.Gap {
			next = -1
			continue
		}
		if c.Init != last {
			flush()
			if last >= 0 && !m.t.Marks[i].Discontinuity {
				t.Errorf("segment %d has another init segment without a discontinuity", i)
			}
			last = c.Init
			b, err := m.get(l.Inits[last].Object)
			if err != nil {
				t.Fatal(err)
			}
			data = slices.Clone(b)
		}
		b, err := m.get(c.Object)
		if err != nil {
			t.Fatal(err)
		}
		f, err := cmaf.ParseFragments(b)
		if err != nil || len(f) != 1 || int64(f[0].BaseMediaDecodeTime) != c.Time ||
			int64(f[0].Duration) != c.Duration || next >= 0 && c.Time != next {
			t.Errorf("%s %d: %v, planned %+v, the one before ends at %d", id, i, err, c, next)
		}
		next = c.Time + c.Duration
		data = append(data, b...)
	}
	flush()
	return files
}

func (m *medium) pictures(t *testing.T) []shown {
	t.Helper()
	const w, h = 320, 180
	var out []shown
	for _, path := range m.runs(t, timeline.MainVideo) {
		raw := programtest.Run(t, "ffmpeg", "-nostdin", "-loglevel", "error", "-i", path, "-fps_mode", "passthrough",
			"-vf", "scale=320:180,format=gray", "-f", "rawvideo", "-")
		var probed struct {
			Frames []struct {
				At string `json:"pts_time"`
			} `json:"frames"`
		}
		if err := json.Unmarshal(programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
			"frame=pts_time", "-of", "json", path), &probed); err != nil {
			t.Fatal(err)
		}
		if len(raw) != len(probed.Frames)*w*h {
			t.Fatalf("%d bytes of %d pictures", len(raw), len(probed.Frames))
		}
		for i, f := range probed.Frames {
			at, _ := strconv.ParseFloat(f.At, 64)
			n := 0
			for bit := range 10 {
				if raw[i*w*h+h/2*w+bit*32+16] > 125 {
					n |= 1 << bit
				}
			}
			out = append(out, shown{n, at})
		}
	}
	return out
}

func x264(more ...string) []string {
	return append([]string{
		"-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-g", "30", "-sc_threshold", "0",
	}, more...)
}

func film(encoder string, more ...string) []string {
	return append([]string{"-c:v", encoder, "-pix_fmt", "yuv420p", "-g", "30"}, more...)
}

// TestEveryCodec: whatever the picture's codec is, the clip shows exactly the pictures of the stretch, each at its
// time. Parameter sets of H.264 go together, so that no decoder is set up again; other codecs' ends have init segments
// of their own behind a discontinuity.
func TestEveryCodec(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args    []string
		inits   int // of a clip with both ends made
		encoded int // segments of video that are made for 1.5–4.5
	}{
		"H.264": {x264(), 1, 2},
		"Baseline": {
			x264("-profile:v", "baseline", "-level:v", "1.2", "-slices", "4", "-aud", "1", "-color_range", "pc",
				"-colorspace", "bt709"), 1, 2,
		},
		"Main":              {x264("-profile:v", "main", "-bf", "2"), 1, 2},
		"no B-frames":       {x264("-bf", "0"), 1, 2},
		"other set numbers": {x264("-x264-params", "sps-id=1"), 1, 2},
		"High 10":           {x264("-pix_fmt", "yuv420p10le"), 1, 2},
		"fields":            {x264("-flags", "+ilme+ildct"), 1, 2},
		"HEVC": {
			film("libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:open-gop=0:keyint=30:min-keyint=30",
				"-tag:v", "hvc1"), 3, 2,
		},
		"HEVC 10": {
			film("libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", "-x265-params",
				"log-level=none:open-gop=0:keyint=30:min-keyint=30", "-tag:v", "hvc1"), 3, 2,
		},
		"AV1": {film("libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"), 2, 2},
		"VP9": {film("libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"), 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := record(t, tt.args, nil)
			whole := m.pictures(t)
			if len(whole) != 180 || len(m.t.Marks) != 6 {
				t.Fatalf("%d pictures in %d segments", len(whole), len(m.t.Marks))
			}
			part, err := m.cut(t, 1.5, 4.5)
			if err != nil {
				t.Fatal(err)
			}
			got := part.pictures(t)
			if len(got) != 90 {
				t.Fatalf("%d pictures from %d to %d", len(got), got[0].number, got[len(got)-1].number)
			}
			for i, s := range got {
				if want := whole[45+i]; s.number != want.number || math.Abs(s.at-want.at) > 0.0002 {
					t.Fatalf("picture %d is number %d at %.4f, want %d at %.4f", i, s.number, s.at, want.number,
						want.at)
				}
			}
			l := part.t.Rendition(timeline.MainVideo)
			if n := len(l.Inits); n != tt.inits {
				t.Errorf("%d init segments, want %d: %+v", n, tt.inits, l.Inits)
			}
			made := slices.DeleteFunc(slices.Clone(l.Chunks), func(c timeline.Chunk) bool {
				return !strings.HasPrefix(c.Object, "clip/")
			})
			if len(made) != tt.encoded || part.t.ZeroTime() != 11.5 {
				t.Errorf("%d segments were made, second 0 is at %.4f", len(made), part.t.ZeroTime())
			}
		})
	}
}

// TestWhatStays: of a segment with several key frames only what lost its own is made, and at the end what was decoded
// from a picture that is left out.
func TestWhatStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args     []string
		from, to float64
		made     int // pictures at most
	}{
		"H.264":                {x264("-g", "10"), 1.5, 4.5, 5 + 4},
		"Main":                 {x264("-g", "15", "-profile:v", "main", "-bf", "2"), 1.4, 4.7, 3 + 4},
		"no B-frames":          {x264("-g", "10", "-bf", "0"), 1.2, 4.4, 8},
		"at key frames":        {x264("-g", "10"), 1 + 1.0/3, 4 + 1.0/3, 0},
		"within a segment":     {x264("-g", "10"), 2.1, 2.9, 7 + 4},
		"within a GOP":         {x264("-g", "10"), 2.1, 2.3, 6},
		"within two":           {x264("-g", "10"), 2.1, 2.4, 9},
		"another ID of sets":   {x264("-g", "10", "-x264-params", "sps-id=3"), 1.5, 4.5, 5 + 4},
		"fields":               {x264("-g", "10", "-flags", "+ilme+ildct"), 1.5, 4.5, 5 + 4},
		"sets that do not fit": {x264("-g", "10", "-pix_fmt", "yuv422p"), 1.5, 4.5, 15 + 15},
		"HEVC": {
			film("libx265", "-preset", "ultrafast", "-g", "10", "-x265-params",
				"log-level=none:open-gop=0:keyint=10:min-keyint=10", "-tag:v", "hvc1"), 1.5, 4.5, 15 + 15,
		},
		"HEVC at key frames": {
			film("libx265", "-preset", "ultrafast", "-g", "10", "-bf", "0", "-x265-params",
				"log-level=none:open-gop=0:keyint=10:min-keyint=10:bframes=0", "-tag:v", "hvc1"), 1 + 1.0/3, 4.5, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := record(t, tt.args, nil)
			whole := m.pictures(t)
			if len(whole) != 180 {
				t.Fatalf("%d pictures", len(whole))
			}
			stays := map[string]bool{}
			for _, s := range m.samples(t) {
				stays[string(s)] = true
			}
			part, err := m.cut(t, tt.from, tt.to)
			if err != nil {
				t.Fatal(err)
			}
			first := int(math.Round(tt.from * 30))
			got := part.pictures(t)
			if want := int(math.Round((tt.to - tt.from) * 30)); len(got) != want {
				t.Fatalf("%d pictures, want %d: %v", len(got), want, got)
			}
			for i, s := range got {
				if want := whole[first+i]; s.number != want.number || math.Abs(s.at-want.at) > 0.0002 {
					t.Fatalf("picture %d is number %d at %.4f, want %d at %.4f", i, s.number, s.at, want.number,
						want.at)
				}
			}
			made := 0
			for _, s := range part.samples(t) {
				if !stays[string(s)] {
					made++
				}
			}
			if made > tt.made {
				t.Errorf("%d pictures were made, want %d at most", made, tt.made)
			}
		})
	}
}

// samples are the coded pictures.
func (m *medium) samples(t *testing.T) (all [][]byte) {
	t.Helper()
	for _, c := range m.t.Rendition(timeline.MainVideo).Chunks {
		b, err := m.get(c.Object)
		if err != nil {
			t.Fatal(err)
		}
		fragments, err := cmaf.ParseFragments(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fragments {
			for _, s := range f.Samples {
				all = append(all, s.Data)
			}
		}
	}
	return all
}

// TestSoundOfEveryCodec: AAC-LC is cut to the sample, other sound between packets.
func TestSoundOfEveryCodec(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args  []string
		slack float64 // seconds by which the ends may miss what was asked for
		lead  float64 // by which it may begin early, silently
	}{
		"AAC":      {[]string{"-c:a", "aac"}, 0.0217, 0.0427},
		"AAC 44.1": {[]string{"-c:a", "aac", "-ar", "44100"}, 0.0235, 0.047},
		"AAC 5.1":  {[]string{"-c:a", "aac", "-ac", "6"}, 0.0217, 0.0427},
		"Opus":     {[]string{"-c:a", "libopus"}, 0.0101, 0.0101},
		"MP3":      {[]string{"-c:a", "libmp3lame"}, 0.0121, 0.0121},
		"AC-3":     {[]string{"-c:a", "ac3"}, 0.0161, 0.0161},
		"FLAC":     {[]string{"-c:a", "flac", "-strict", "-2"}, 0.048, 0.048},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := record(t, x264(), tt.args)
			for _, span := range [][2]float64{{1.5, 4.5}, {2.51, 3.02}, {2, 4}, {0, 3.3}, {1.1, 6}} {
				part, err := m.cut(t, span[0], span[1])
				if err != nil {
					t.Fatal(err)
				}
				part.runs(t, timeline.MainAudio)
				l, zero := part.t.Rendition(timeline.MainAudio), part.t.ZeroTime()
				scale := float64(l.Timescale)
				first, last := l.Chunks[0], l.Chunks[len(l.Chunks)-1]
				begin, end := float64(first.Time)/scale-zero, float64(last.Time+last.Duration)/scale-zero
				long := part.t.Duration().Seconds()
				if begin < -tt.lead-0.0001 || begin > tt.slack || math.Abs(end-long) > tt.slack+0.05 {
					t.Errorf("%v: sound from %.4f to %.4f, the picture lasts %.4f", span, begin, end, long)
				}
			}
		})
	}
}

// TestEmpty refuses what nothing is shown in. TestLengths: a clip lasts as long as was asked for, to half a tick, also
// where it begins in the middle of a picture and where a tick is as long as a picture; and it begins with the picture
// that is on screen then.
func TestLengths(t *testing.T) {
	t.Parallel()
	for _, scale := range []int{30, 15360} {
		m := record(t, x264("-bf", "2", "-video_track_timescale", strconv.Itoa(scale)), nil)
		for _, tt := range []struct {
			from, to float64
			first    int
		}{{1.02, 3, 30}, {1.02, 3.02, 30}, {1.99, 4.01, 59}, {0, 2.01, 0}} {
			part, err := m.cut(t, tt.from, tt.to)
			if err != nil {
				t.Fatalf("%d: %v: %v", scale, tt, err)
			}
			off := max(0.5/float64(scale), 0.002) + 1e-6
			if got := part.t.Duration().Seconds(); math.Abs(got-(tt.to-tt.from)) > off {
				t.Errorf("%d ticks a second, from %g to %g: lasts %.4f s", scale, tt.from, tt.to, got)
			}
			// All that decodes takes as long as what is shown.
			sum, l := 0.0, part.t.Rendition(timeline.MainVideo)
			for i := range l.Chunks {
				sum += l.Seconds(i)
			}
			if math.Abs(sum-part.t.Duration().Seconds()) > off {
				t.Errorf("%d ticks a second, from %g to %g: segments of %.4f s in %.4f s", scale, tt.from, tt.to, sum,
					part.t.Duration().Seconds())
			}
			if got := part.pictures(t)[0].number; got != tt.first {
				t.Errorf("%d ticks a second, from %g to %g: begins with picture %d, want %d", scale, tt.from, tt.to,
					got, tt.first)
			}
		}
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	m := record(t, x264(), nil)
	for _, span := range [][2]float64{{3, 3}, {5, 4}, {6, 8}, {math.NaN(), 3}, {2, math.NaN()}, {-4, -1}} {
		if _, err := m.cut(t, span[0], span[1]); !errors.Is(err, clip.ErrEmpty) {
			t.Errorf("%v: %v", span, err)
		}
	}
	if part, err := m.cut(t, -1, 100); err != nil || len(part.pictures(t)) != 180 {
		t.Errorf("all of it: %v", err)
	}
}

// TestGapsAndBreaks: a clip begins and ends inside of gaps too, and keeps the discontinuities that lie in it.
func TestGapsAndBreaks(t *testing.T) {
	t.Parallel()
	m := record(t, x264(), []string{"-c:a", "aac"})
	v := m.t.Rendition(timeline.MainVideo)
	for _, i := range []int{1, 2, 5} {
		v.Chunks[i].Gap, v.Chunks[i].Object = true, ""
	}
	m.t.Marks[4].Discontinuity = true
	part, err := m.cut(t, 1.4, 5.6)
	if err != nil {
		t.Fatal(err)
	}
	part.runs(t, timeline.MainVideo)
	part.runs(t, timeline.MainAudio)
	if d := part.t.Duration().Seconds(); math.Abs(d-4.2) > 0.001 || part.t.ZeroTime() != 11.4 ||
		len(part.t.Marks) != 5 || !part.t.Marks[3].Discontinuity {
		t.Errorf("%.4f s from %.4f, %+v", d, part.t.ZeroTime(), part.t.Marks)
	}
	if part, err = m.cut(t, 4.01, 4.6); err != nil { // right behind the break: nothing of what was in front is needed
		t.Fatal(err)
	}
	// the picture of 4.0 goes on being shown
	if got := part.pictures(t); len(got) != 18 || got[0].number != 120 || math.Abs(got[0].at-14.01) > 0.001 {
		t.Errorf("%d pictures from %+v", len(got), got[0])
	}
	part.runs(t, timeline.MainAudio)
}

// TestDates: the sound of a clip is dated by its own first sample, as that of the recording is, so that each segment
// begins when the one before ended.
func TestDates(t *testing.T) {
	t.Parallel()
	m := record(t, x264("-bf", "2"), []string{"-c:a", "aac"})
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sound := m.t.Rendition("a")
	for i, span := range m.t.Spans()[:len(m.t.Marks)] {
		m.t.Marks[i].Start = began.Add(time.Duration(span * float64(time.Second)))
		c := &sound.Chunks[i]
		c.Apart = int64(math.Round((float64(c.Time)/float64(sound.Timescale) - timeline.Origin - span) * 1000))
	}
	for _, from := range []float64{0, 1, 1.51} {
		part, err := m.cut(t, from, 4.2)
		if err != nil {
			t.Fatal(err)
		}
		l := part.t.Rendition("a")
		for i, c := range l.Chunks {
			date := part.t.Marks[i].Start.Add(time.Duration(c.Apart) * time.Millisecond).Sub(began).Seconds()
			if want := float64(c.Time)/float64(l.Timescale) - timeline.Origin; math.Abs(date-want) > 0.003 {
				t.Errorf("from %g: segment %d of the sound is dated %.3f s, and is of %.3f s", from, i, date, want)
			}
		}
	}
}
