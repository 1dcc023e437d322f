package justintime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/leaktest"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// store keeps objects in memory, where nothing is made twice.
type store struct {
	t  *testing.T
	mu sync.Mutex
	m  map[string][]byte
}

func (s *store) Has(_ context.Context, key string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[key] != nil, nil
}

func (s *store) PutNew(_ context.Context, key string, data []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[key] != nil {
		s.t.Errorf("%s was made twice", key)
	}
	s.m[key] = bytes.Clone(data)
	return true, nil
}

func (s *store) Read(_ context.Context, key string) ([]byte, error) {
	if b := s.get(key); b != nil {
		return b, nil
	}
	return nil, fault.New(fault.NotFound, "no such object")
}

func (s *store) get(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[key]
}

// files are objects on disk.
type files struct{}

func (files) Open(_ context.Context, key string) (ondemand.ReaderAtCloser, int64, error) {
	f, err := os.Open(key)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	return f, st.Size(), err
}

// source is an MP4 as it is delivered.
type source struct {
	library  *ondemand.Library
	video    *timeline.Rendition
	timeline *timeline.Timeline
}

func (s source) Init(ctx context.Context, _ int) ([]byte, error) {
	return s.library.Init(ctx, *s.video.Source)
}

func (s source) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	data, err := s.library.Chunk(ctx, *s.video.Source, msn, s.video.Chunks[msn])
	return delivered.Body{Data: data}, err
}

// open plans an MP4 that ffmpeg makes of the arguments.
func open(t *testing.T, args ...string) source {
	t.Helper()
	path := programtest.Media(t, "source.mp4", args...)
	f, size, err := files{}.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	index, err := mp4.Index(f, size)
	if err != nil {
		t.Fatal(err)
	}
	idrs, err := mp4.IDRs(f, index.Tracks[0])
	if err != nil {
		t.Fatal(err)
	}
	plan, err := ondemand.Plan(index.Tracks[0], nil, idrs, path)
	if err != nil {
		t.Fatal(err)
	}
	return source{ondemand.NewLibrary(files{}, 1<<20), plan.Rendition(timeline.MainVideo), plan}
}

func (s source) work(q ladder.Quality, name string) *justintime.Work {
	in := s.video.Inits[0]
	for _, r := range ladder.Instead(ladder.Source{
		Width: in.Width, Height: in.Height, FrameRate: in.FrameRate,
	}, q, 1080) {
		if name == "" || r.Name == name {
			return &justintime.Work{Prefix: "rung", Rung: r, Timeline: s.timeline, Video: s.video, Source: s}
		}
	}
	panic("no such rung")
}

func newMaker(t *testing.T, e justintime.Encoder) (*justintime.Maker, *store) {
	t.Helper()
	s := &store{t: t, m: map[string][]byte{}}
	m := justintime.New(justintime.Options{Encoder: e, Store: s, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	run(t, m.Run)
	return m, s
}

// run runs a service until the test has ended.
func run(t *testing.T, service func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = service(ctx) // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func engine(t *testing.T) *encode.Engine {
	t.Helper()
	return engineWith(t, nil)
}

func engineWith(t *testing.T, v *encode.Reserve) *encode.Engine {
	t.Helper()
	ffmpeg := programtest.Path(t, "ffmpeg")
	ffprobe, err := encode.Find("ffprobe", "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := encode.NewEngine(encode.Options{
		FFmpeg: ffmpeg, FFprobe: ffprobe, Reserve: v, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const pattern = "testsrc2=s=320x180:r=30:d=14"

func x264(more ...string) []string {
	return append([]string{"-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p"}, more...)
}

// sources are files whose frames differ in how they are timed.
func sources() map[string][]string {
	lavfi := func(graph string, more ...string) []string {
		return append([]string{"-f", "lavfi", "-i", graph}, x264(more...)...)
	}
	return map[string][]string{
		"constant rate": lavfi(pattern, "-g", "60"),
		"NTSC":          lavfi("testsrc2=s=320x180:r=30000/1001:d=14", "-g", "60"),
		"no B-frames":   lavfi(pattern, "-g", "60", "-bf", "0"),
		"variable rate": lavfi(pattern+",select='not(mod(n*n\\,7))+not(mod(n\\,5))'", "-g", "30", "-fps_mode",
			"vfr"),
		"slides":           lavfi("testsrc2=s=320x180:r=1:d=14", "-g", "4"),
		"open GOP":         lavfi(pattern, "-x264-params", "open-gop=1:keyint=60:bframes=4"),
		"late first frame": append([]string{"-itsoffset", "0.7", "-f", "lavfi", "-i", pattern}, x264("-g", "60")...),
		"one long GOP":     lavfi(pattern, "-g", "1000"),
		"bit by bit":       lavfi(pattern, "-x264-params", "intra-refresh=1:keyint=30:bframes=0"),
		"refreshed inside": lavfi(pattern, "-x264-params", "intra-refresh=1:keyint=30:bframes=0", "-forced-idr", "1",
			"-force_key_frames", "0,4,8,12"),
		"upright": lavfi("testsrc2=s=180x320:r=25:d=9", "-g", "50"),
	}
}

// Every frame of a rung has the time of the source's, whatever run made it, and the segments join without a hole.
func TestEveryFrameHasItsTime(t *testing.T) {
	t.Parallel()
	for name, args := range sources() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := open(t, args...)
			m, s := newMaker(t, engine(t))
			w := src.work(ladder.Plus, "")
			if err := m.Init(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			last := src.timeline.Next() - 1
			for _, msn := range []int64{last, 0, last / 2} { // not in order, so that several runs make it
				if err := m.Segment(t.Context(), w, msn); err != nil {
					t.Fatal(err)
				}
			}
			joined := bytes.Clone(s.get(w.InitKey()))
			end := int64(-1)
			for msn := int64(0); msn <= last; msn++ {
				if err := m.Segment(t.Context(), w, msn); err != nil {
					t.Fatal(err)
				}
				want, err := delivered.Bytes(src.Segment(t.Context(), msn))
				if err != nil {
					t.Fatal(err)
				}
				made := s.get(w.SegmentKey(msn))
				end = compare(t, msn, times(t, want), times(t, made), end)
				joined = append(joined, made...)
			}
			decodes(t, joined, w.Rung)
		})
	}
}

// timing is when the frames of a segment are decoded and shown.
type timing struct {
	begin, end int64
	pts        []int64
	key        bool
}

func times(t *testing.T, segment []byte) timing {
	t.Helper()
	fragments, err := cmaf.ParseFragments(segment)
	if err != nil || len(fragments) != 1 {
		t.Fatalf("%d fragments: %v", len(fragments), err)
	}
	f := fragments[0]
	x := timing{begin: int64(f.BaseMediaDecodeTime), key: f.Samples[0].Sync}
	at := x.begin
	for i, s := range f.Samples {
		if s.CompositionOffset < 0 || s.Duration == 0 && i > 0 {
			t.Errorf("a frame lasts %d and is shown %d after its decoding", s.Duration, s.CompositionOffset)
		}
		x.pts = append(x.pts, at+int64(s.CompositionOffset))
		at += int64(s.Duration)
	}
	x.end = at
	slices.Sort(x.pts)
	return x
}

// compare gives where the made segment ends.
func compare(t *testing.T, msn int64, want, made timing, end int64) int64 {
	t.Helper()
	if !slices.Equal(want.pts, made.pts) {
		t.Fatalf("segment %d: frames at %v, want %v", msn, made.pts, want.pts)
	}
	if !made.key {
		t.Errorf("segment %d begins without a key frame", msn)
	}
	if end >= 0 && made.begin != end {
		t.Errorf("segment %d begins at %d, the one before ended at %d", msn, made.begin, end)
	}
	return made.end
}

// decodes holds that a decoder finds nothing wrong, and frames of the rung's size.
func decodes(t *testing.T, media []byte, r ladder.Rung) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "joined.mp4")
	if err := os.WriteFile(path, media, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ffprobe", "-v", "warning", "-count_frames", "-show_entries",
		"stream=width,height,level,profile,nb_read_frames,sample_aspect_ratio", "-of", "csv=p=0", path).CombinedOutput()
	fragments, parseErr := cmaf.ParseFragments(media)
	if parseErr != nil {
		t.Fatal(parseErr)
	}
	frames := 0
	for _, f := range fragments {
		frames += len(f.Samples)
	}
	want := fmt.Sprintf("High,%d,%d,1:1,%d,%d", r.Width, r.Height, r.Level, frames)
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("decoded %q, %v; want %q", got, err, want)
	}
}

// What somebody waits for is encoded in parts, which join without a seam: every picture is there once, at its time, and
// is the source's. The encoders of the second segment's parts have been loaded before it is asked for.
func TestPartsJoin(t *testing.T) {
	t.Parallel()
	src := open(t,
		append([]string{"-f", "lavfi", "-i", pattern},
			x264("-force_key_frames", "0,1.96,2.76,4.73,5.63,6.3,7.5", "-x264-params",
				"keyint=infinite:scenecut=0")...)...)
	v := encode.NewReserve(3)
	run(t, v.Run)
	m, s := newMaker(t, engineWith(t, v))
	w := src.work(ladder.Plus, "180p")
	if err := m.Init(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	head, err := src.Init(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for msn, keys := range []int{1, 2, 3} {
		msn := int64(msn)
		if err := m.Segment(t.Context(), w, msn); err != nil {
			t.Fatal(err)
		}
		given, err := delivered.Bytes(src.Segment(t.Context(), msn))
		if err != nil {
			t.Fatal(err)
		}
		made := s.get(w.SegmentKey(msn))
		compare(t, msn, times(t, given), times(t, made), -1)
		if want, got := keysAt(t, given), keysAt(t, made); len(got) != keys || !slices.Equal(got, want) {
			t.Errorf("segment %d has key frames at %v, the source at %v", msn, got, want)
		}
		joined := append(bytes.Clone(s.get(w.InitKey())), made...)
		decodes(t, joined, w.Rung)
		alike(t, gray(t, append(bytes.Clone(head), given...)), gray(t, joined))
	}
}

// damaged is a source of which some pictures can't be decoded.
type damaged struct {
	source
	bad func(i, n int) bool // picture i of n
}

func (d damaged) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	data, err := delivered.Bytes(d.source.Segment(ctx, msn))
	if err != nil {
		return delivered.Body{}, err
	}
	data = bytes.Clone(data)
	fragments, err := cmaf.ParseFragments(data)
	for _, f := range fragments {
		for i, x := range f.Samples {
			if d.bad(i, len(f.Samples)) {
				clear(x.Data)
			}
		}
	}
	return delivered.Body{Data: data}, err
}

// Pictures that can't be decoded are left out, wherever they are; the others keep their times, whether one encoder
// makes the segment or several do.
func TestPicturesThatCanNotBeDecoded(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"one encoder": "120", "parts": "30"} {
		src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-bf", "0", "-g", keys)...)...)
		for where, bad := range map[string]func(i, n int) bool{
			"in the end":     func(i, n int) bool { return i >= n-5 },
			"here and there": func(i, _ int) bool { return i%15 == 14 },
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				m, s := newMaker(t, engine(t))
				w := src.work(ladder.Plus, "")
				w.Source = damaged{src, bad}
				for _, msn := range []int64{1, 0} {
					if err := m.Segment(t.Context(), w, msn); err != nil {
						t.Fatal(err)
					}
					given, err := delivered.Bytes(src.Segment(t.Context(), msn))
					if err != nil {
						t.Fatal(err)
					}
					all := times(t, given).pts
					var want []int64
					for i, pts := range all {
						if !bad(i, len(all)) {
							want = append(want, pts)
						}
					}
					if got := times(t, s.get(w.SegmentKey(msn))).pts; !slices.Equal(got, want) {
						t.Errorf("segment %d has %d pictures at %v, want %d at %v", msn, len(got), got, len(want), want)
					}
				}
			})
		}
	}
}

// disordered is a source of which some pictures have times that can't be meant.
type disordered struct {
	source
	shift func(msn int64, i int) int32 // in ticks, of picture i
}

func (d disordered) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	data, err := delivered.Bytes(d.source.Segment(ctx, msn))
	if err != nil {
		return delivered.Body{}, err
	}
	fragments, err := cmaf.ParseFragments(data)
	var out []byte
	for _, f := range fragments {
		for i := range f.Samples {
			f.Samples[i].CompositionOffset += d.shift(msn, i)
		}
		out = cmaf.AppendFragment(out, uint32(msn+1), cmaf.TrackID, f.BaseMediaDecodeTime, f.Samples)
	}
	return delivered.Body{Data: out}, err
}

// A picture whose time is in disorder fails no segment: all are made, whether somebody waits for them or not, with
// every picture in its segment.
func TestTimesInDisorder(t *testing.T) {
	t.Parallel()
	const frame = 512 // ticks
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-bf", "2", "-g", "60")...)...)
	for name, shift := range map[string]func(msn int64, i int) int32{
		"one as another":      func(_ int64, i int) int32 { return map[int]int32{20: frame, 21: -frame / 2}[i] },
		"one behind the next": func(_ int64, i int) int32 { return map[int]int32{20: 5 * frame}[i] },
		"one an hour late": func(msn int64, i int) int32 {
			return map[int]int32{20: int32(msn%2) * 3600 * 30 * frame}[i]
		},
		"one seconds late": func(_ int64, i int) int32 { return map[int]int32{20: 90 * frame}[i] },
		"one seconds early": func(msn int64, i int) int32 {
			return map[int]int32{40: -int32(min(msn, 1)) * 60 * frame}[i]
		},
		"as they are decoded": func(_ int64, i int) int32 { return -1024 + int32(i%3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, s := newMaker(t, engine(t))
			w := src.work(ladder.Plus, "")
			w.Source = disordered{src, shift}
			ask := func(msn int64) error { return m.Segment(t.Context(), w, msn) }
			fill := func(msn int64) error {
				_, err := m.Fill(t.Context(), w, msn)
				return err
			}
			for msn, how := range []func(int64) error{ask, ask, fill, fill, fill} {
				if err := how(int64(msn)); err != nil {
					t.Fatalf("segment %d: %v", msn, err)
				}
				given, err := delivered.Bytes(src.Segment(t.Context(), int64(msn)))
				if err != nil {
					t.Fatal(err)
				}
				want, got := len(times(t, given).pts), times(t, s.get(w.SegmentKey(int64(msn)))).pts
				if len(got) < want-1 || len(got) > want {
					t.Errorf("segment %d has %d pictures, want %d", msn, len(got), want)
				}
			}
		})
	}
}

// keysAt is when key frames are shown.
func keysAt(t *testing.T, segment []byte) (at []int64) {
	t.Helper()
	fragments, err := cmaf.ParseFragments(segment)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fragments {
		dts := int64(f.BaseMediaDecodeTime)
		for _, s := range f.Samples {
			if s.Sync {
				at = append(at, dts+int64(s.CompositionOffset))
			}
			dts += int64(s.Duration)
		}
	}
	return at
}

const grayWidth, grayHeight = 160, 90

// gray is every picture, in the order in which they are shown.
func gray(t *testing.T, media []byte) (pictures [][]byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "ffmpeg"), "-nostdin", "-loglevel", "error", "-i",
		"pipe:0", "-fps_mode", "passthrough",
		"-vf", fmt.Sprintf("scale=%d:%d:flags=area,format=gray", grayWidth, grayHeight), "-f", "rawvideo", "pipe:1")
	cmd.Stdin = bytes.NewReader(media)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(slices.Chunk(out, grayWidth*grayHeight))
}

// alike holds that each picture is the wanted one, coded again: nearer to it than to those beside it.
func alike(t *testing.T, want, got [][]byte) {
	t.Helper()
	const most = 4 // of 255, on average: more than a rung of few bits a second differs by
	if len(want) != len(got) {
		t.Fatalf("%d pictures of %d", len(got), len(want))
	}
	for i := range want {
		own := differs(want[i], got[i])
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < len(want) && differs(want[j], got[i]) <= own {
				t.Errorf("picture %d is rather picture %d", i, j)
			}
		}
		if own > most {
			t.Errorf("picture %d differs by %.1f", i, own)
		}
	}
}

// differs is by how much the pixels of two pictures do, on average.
func differs(a, b []byte) float64 {
	sum := 0
	for k := range a {
		d := int(a[k]) - int(b[k])
		sum += max(d, -d)
	}
	return float64(sum) / float64(len(a))
}

// The parameter sets do not depend on where a run begins: one init segment fits all.
func TestOneInitFitsAllRuns(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	m, s := newMaker(t, engine(t))
	w := src.work(ladder.Plus, "180p")
	if err := m.Init(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	own := bytes.Clone(s.get(w.InitKey()))
	reader := cmaf.NewReader(bytes.NewReader(own), cmaf.ReaderOptions{})
	tracks, err := reader.Tracks()
	if err != nil || tracks[0].Kind != frame.Video || tracks[0].Config.Width != w.Rung.Width ||
		tracks[0].Timescale != src.video.Timescale {
		t.Fatalf("%+v, %v", tracks, err)
	}
	for msn := range src.timeline.Next() {
		single, kept := newMaker(t, engine(t)) // a run of its own
		if err := single.Segment(t.Context(), w, msn); err != nil {
			t.Fatal(err)
		}
		decodes(t, append(bytes.Clone(own), kept.get(w.SegmentKey(msn))...), w.Rung)
	}
}

// The init segment is the same whether an encoder was run for it or another one has said what it gives; that one costs
// no run.
func TestInitOfWhatIsKnown(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	m, s := newMaker(t, engine(t))
	w := src.work(ladder.Plus, "180p")
	w.Parameters = func(context.Context) (frame.Config, bool) { return frame.Config{}, false }
	if err := m.Init(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	own := s.get(w.InitKey())
	tracks, err := cmaf.NewReader(bytes.NewReader(own), cmaf.ReaderOptions{}).Tracks()
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{Encoder: engine(t)}
	m, s = newMaker(t, c)
	w.Parameters = func(context.Context) (frame.Config, bool) { return tracks[0].Config, true }
	if err := m.Init(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if c.count() != 0 || !bytes.Equal(own, s.get(w.InitKey())) {
		t.Errorf("%d runs for\n%x, not\n%x", c.count(), s.get(w.InitKey()), own)
	}
}

// What was encoded as another source needs no encoder for its init segment, which is the one that an encoder would have
// given; what was encoded otherwise has one.
func TestInitOfWhatIsAlike(t *testing.T) {
	t.Parallel()
	film := func(graph string, more ...string) source {
		return open(t, slices.Concat([]string{"-f", "lavfi", "-i", graph}, x264("-g", "60"), more)...)
	}
	c := &counted{Encoder: engine(t)}
	m, s := newMaker(t, c)
	for _, tt := range []struct {
		name string
		src  source
		runs int // of all so far
	}{
		{"the first one", film(pattern), 1},
		{"another film", film("mandelbrot=s=320x180:r=30,trim=duration=5"), 1},
		{"other colours", film(pattern, "-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709"), 2},
		{"another size", film("testsrc2=s=640x360:r=30:d=3"), 3},
	} {
		w := tt.src.work(ladder.Plus, "")
		w.Prefix = tt.name
		if err := m.Init(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		alone, kept := newMaker(t, engine(t))
		if err := alone.Init(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if c.count() != tt.runs || !bytes.Equal(kept.get(w.InitKey()), s.get(w.InitKey())) {
			t.Errorf("%s: %d runs, want %d, for\n%x, an encoder gives\n%x", tt.name, c.count(), tt.runs,
				s.get(w.InitKey()), kept.get(w.InitKey()))
		}
	}
}

// counted counts runs, and holds them until let go.
type counted struct {
	justintime.Encoder
	mu   sync.Mutex
	runs int
	hold chan struct{}
	jobs []encode.Priority

	prepared int // runs that have a processor
}

func (c *counted) Rung(ctx context.Context, p encode.Priority, job encode.RungJob) error {
	c.mu.Lock()
	c.runs++
	c.jobs = append(c.jobs, p)
	c.mu.Unlock()
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
			return fmt.Errorf("held: %w", context.Cause(ctx))
		}
	}
	prepare := job.Prepare
	job.Prepare = func(ctx context.Context, cores int) ([]encode.RungArgs, error) {
		args, err := prepare(ctx, cores)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.prepared++
		return args, err
	}
	return c.Encoder.Rung(ctx, p, job)
}

// atWork is how many runs have got a processor so far.
func (c *counted) atWork() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.prepared
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

// However many ask at once for the segments of a stretch, one run makes them.
func TestViewersShareARun(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	c := &counted{Encoder: engine(t)}
	m, _ := newMaker(t, c)
	w := src.work(ladder.Plus, "180p")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for msn := range src.timeline.Next() {
				if err := m.Segment(t.Context(), w, msn); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if want := int(src.timeline.Next()); c.count() != want {
		t.Errorf("%d runs, want %d", c.count(), want)
	}
	m.Ahead(t.Context(), w, 0)
	if want := int(src.timeline.Next()); c.count() != want {
		t.Error("what is made was made again")
	}
	hits, misses := m.Lookups.Hits(), m.Lookups.Misses()
	if err := m.Segment(t.Context(), w, 0); err != nil {
		t.Fatal(err)
	}
	if misses == 0 || m.Lookups.Misses() != misses || m.Lookups.Hits() != hits+1 {
		t.Errorf("%d misses, then %d; %d hits, then %d", misses, m.Lookups.Misses(), hits, m.Lookups.Hits())
	}
}

// What is not asked for any more before it has begun is not begun.
func TestRunNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	c := &counted{Encoder: engine(t), hold: make(chan struct{})}
	m, s := newMaker(t, c)
	w := src.work(ladder.Plus, "180p")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- m.Segment(ctx, w, 0) }()
	for c.count() == 0 {
		<-time.NewTimer(time.Millisecond).C
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(c.hold)
	if err := m.Segment(t.Context(), w, 1); err != nil && !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	_ = s
}

// A run that is ahead of a viewer makes several segments; anyone who asks for one of them waits for it.
func TestRunAhead(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	c := &counted{Encoder: engine(t)}
	m, _ := newMaker(t, c)
	w := src.work(ladder.Plus, "180p")
	if err := m.Segment(t.Context(), w, 0); err != nil {
		t.Fatal(err)
	}
	m.Ahead(t.Context(), w, 0)
	for c.atWork() < 2 { // before that, anyone who comes has a run of their own
		<-time.NewTimer(time.Millisecond).C
	}
	for msn := int64(1); msn < src.timeline.Next(); msn++ {
		if err := m.Segment(t.Context(), w, msn); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.jobs) != 2 || c.jobs[1] != encode.Ahead {
		t.Errorf("runs %v", c.jobs)
	}
}

// What is stored is never made again, also by a process that does not know of it: the store complains.
func TestWhatIsStoredStays(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	m, s := newMaker(t, engine(t))
	w := src.work(ladder.Plus, "180p")
	s.m[w.SegmentKey(2)] = []byte("made before")
	for _, msn := range []int64{0, 1} {
		if err := m.Segment(t.Context(), w, msn); err != nil {
			t.Fatal(err)
		}
		m.Forget(w, 1)
		m.Ahead(t.Context(), w, msn)
	}
	for msn := range src.timeline.Next() {
		if err := m.Segment(t.Context(), w, msn); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(s.get(w.SegmentKey(2))); got != "made before" {
		t.Errorf("a stored segment was replaced by %d bytes", len(got))
	}
}

var errBroken = errors.New("broken")

type broken struct{ runs int }

func (b *broken) Rung(context.Context, encode.Priority, encode.RungJob) error {
	b.runs++
	return errBroken
}

// A segment that can't be made says so, and is not tried again with every request.
func TestFailureIsRemembered(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	b := &broken{}
	m, _ := newMaker(t, b)
	w := src.work(ladder.Plus, "180p")
	for range 5 {
		if err := m.Segment(t.Context(), w, 0); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
	}
	if b.runs != 1 {
		t.Errorf("%d runs", b.runs)
	}
	if err := m.Segment(t.Context(), w, 99); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}

// full has no room, and then no manners.
type full struct{ runs int }

func (f *full) Rung(context.Context, encode.Priority, encode.RungJob) error {
	if f.runs++; f.runs <= 2 {
		return fault.New(fault.Unavailable, "the service is busy encoding")
	}
	panic("nobody thought of this")
}

// That there is no room is not remembered: there may be in a moment. A panic of one segment is its failure.
func TestFullStorageIsForgotten(t *testing.T) {
	t.Parallel()
	src := open(t, append([]string{"-f", "lavfi", "-i", pattern}, x264("-g", "60")...)...)
	f := &full{}
	m, _ := newMaker(t, f)
	w := src.work(ladder.Plus, "180p")
	for range 2 {
		if err := m.Segment(t.Context(), w, 0); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	}
	if f.runs != 2 {
		t.Errorf("%d runs", f.runs)
	}
	if err := m.Segment(t.Context(), w, 0); err == nil || !strings.Contains(err.Error(), "nobody thought of this") {
		t.Errorf("got %v", err)
	}
}

// With other settings, and with another encoder, a rung has another name, as its parameter sets may differ.
func TestRenditionNames(t *testing.T) {
	t.Parallel()
	r := ladder.Instead(ladder.Source{Width: 1280, Height: 720, FrameRate: 30}, ladder.Plus, 1080)[0]
	m := justintime.New(justintime.Options{Version: "5.1"})
	other := r
	other.CRF++
	seen := []string{
		m.Rendition(r), m.Rendition(other), justintime.New(justintime.Options{Version: "7.0"}).Rendition(r),
	}
	if m.Rendition(r) != seen[0] || !strings.HasPrefix(seen[0], "720p-") ||
		len(slices.Compact(slices.Sorted(slices.Values(seen)))) != 3 {
		t.Errorf("%v", seen)
	}
}
