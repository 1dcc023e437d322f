package images_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	_ "image/jpeg"
	_ "image/png"
	"iter"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "golang.org/x/image/webp"

	"millrace/internal/fault"
	"millrace/internal/leaktest"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/images"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// Every frame has one grey of its own, so that a picture says which frame it is: ten a second, a key frame every two
// seconds.
const greys = "nullsrc=s=320x180:r=10,geq=lum='16+3*N':cb=128:cr=128"

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

// source is an MP4 as it is delivered; it counts what is read.
type source struct {
	library   *ondemand.Library
	rendition *timeline.Rendition
	mu        sync.Mutex
	opened    int
}

func (s *source) Init(ctx context.Context, _ int) ([]byte, error) {
	return s.library.Init(ctx, *s.rendition.Source)
}

func (s *source) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	s.mu.Lock()
	s.opened++
	s.mu.Unlock()
	r, size, err := s.library.Segment(ctx, *s.rendition.Source, msn, s.rendition.Chunks[msn])
	return delivered.Body{Reader: r, Size: size}, err
}

// film plans an MP4 that ffmpeg makes of the arguments.
func film(t *testing.T, args ...string) *images.Video {
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
	lines, err := ondemand.Plan(index.Tracks[0], nil, idrs, path)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{library: ondemand.NewLibrary(files{}, 64<<20), rendition: lines.Rendition(timeline.MainVideo)}
	return &images.Video{Name: "f", Prefix: "media/f/images", Timeline: lines, Source: s}
}

// sixSeconds of greys in H.264 with B-frames.
func sixSeconds(t *testing.T, more ...string) *images.Video {
	t.Helper()
	return film(t,
		append([]string{
			"-f", "lavfi", "-i", greys, "-t", "6", "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p",
			"-crf", "1", "-g", "20", "-bf", "3", "-sc_threshold", "0",
		}, more...)...)
}

// store keeps objects in memory.
type store struct {
	mu sync.Mutex
	m  map[string][]byte
}

func (s *store) PutNew(_ context.Context, key string, data []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[key] != nil {
		return false, nil
	}
	s.m[key] = bytes.Clone(data)
	return true, nil
}

func (s *store) Read(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data := s.m[key]; data != nil {
		return data, nil
	}
	return nil, fault.New(fault.NotFound, "no such object")
}

func (s *store) List(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, k := range s.keys(prefix) {
			if !yield(k, nil) {
				return
			}
		}
	}
}

func (s *store) keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for k := range s.m {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (s *store) Delete(_ context.Context, keys ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		delete(s.m, k)
	}
	return nil
}

// counted are programs whose jobs are counted.
type counted struct {
	*encode.Warm
	mu   sync.Mutex
	jobs int
}

func (c *counted) Do(ctx context.Context, job encode.ImageJob) error {
	c.mu.Lock()
	c.jobs++
	c.mu.Unlock()
	return c.Warm.Do(ctx, job)
}

// studio is a Maker at work.
type studio struct {
	*images.Maker
	t        *testing.T
	store    *store
	pictures *counted
}

func newStudio(t *testing.T) *studio {
	t.Helper()
	return node(t, &store{m: map[string][]byte{}}, nil, new(atomic.Int32), 1)
}

// counting is an encoder whose animations are counted.
type counting struct {
	*encode.Engine
	animations *atomic.Int32
}

func (c counting) Animation(ctx context.Context, args encode.AnimationArgs, job encode.ImageJob) error {
	c.animations.Add(1)
	return c.Engine.Animation(ctx, args, job)
}

// node is a studio that shares a store with others, and has so many programs of each kind wait for work.
func node(t *testing.T, kept *store, claims images.Claims, animations *atomic.Int32, spare int) *studio {
	t.Helper()
	ffmpeg := programtest.Path(t, "ffmpeg")
	ffprobe, err := encode.Find("ffprobe", "")
	if err != nil {
		t.Fatal(err)
	}
	budget := encode.NewBudget(encode.BudgetOptions{Cores: 2})
	e, err := encode.NewEngine(encode.Options{FFmpeg: ffmpeg, FFprobe: ffprobe, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	s := &studio{t: t, store: kept, pictures: &counted{Warm: encode.NewWarm(e, encode.PictureArgs(frame.SDR), spare)}}
	webps := encode.NewWarm(e, encode.WebPArgs(), spare)
	s.Maker = images.New(images.Options{
		Encoder: counting{e, animations}, Pictures: s.pictures, WebPs: webps, Budget: budget, Store: s.store,
		Claims: claims, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for _, r := range []interface{ Run(context.Context) error }{s.Maker, s.pictures, webps} {
		all.Go(func() { _ = r.Run(ctx) })
	}
	t.Cleanup(func() {
		cancel(errors.New("the test is over"))
		all.Wait()
	})
	return s
}

// ask makes an image; nil data with an error.
func (s *studio) ask(f *images.Video, name, query string) ([]byte, images.Plan, error) {
	r, err := images.Parse(name, query)
	if err != nil {
		return nil, images.Plan{}, err
	}
	p, err := f.Plan(r)
	if err != nil {
		return nil, p, err
	}
	data, err := s.Make(s.t.Context(), f, p)
	if err == nil && data == nil {
		data, err = s.store.Read(s.t.Context(), f.Prefix+"/"+p.Name)
	}
	return data, p, err
}

func (s *studio) picture(f *images.Video, name, query string) image.Image {
	s.t.Helper()
	data, _, err := s.ask(f, name, query)
	if err != nil {
		s.t.Fatalf("%s?%s: %v", name, query, err)
	}
	p, kind, err := image.Decode(bytes.NewReader(data))
	if _, ext, _ := strings.Cut(name, "."); err != nil || kind != strings.Replace(ext, "jpg", "jpeg", 1) {
		s.t.Fatalf("%s?%s: a %s of %d bytes: %v", name, query, kind, len(data), err)
	}
	if y, ok := p.(*image.YCbCr); ok && kind == "webp" { // black is 16 in WebP, which Go's decoder does not say
		for i, v := range y.Y {
			y.Y[i] = uint8(min(max(0, (int(v)-16)*255/219), 255))
		}
	}
	return p
}

// frames puts the pictures of an animation together: each one only says what is new.
func frames(g *gif.GIF) []image.Image {
	whole := image.NewRGBA(image.Rect(0, 0, g.Config.Width, g.Config.Height))
	var out []image.Image
	for _, p := range g.Image {
		draw.Draw(whole, p.Rect, p, p.Rect.Min, draw.Over)
		still := image.NewRGBA(whole.Rect)
		copy(still.Pix, whole.Pix)
		out = append(out, still)
	}
	return out
}

// length is how long an animated WebP lasts, in milliseconds, by its frames' headers.
func length(data []byte) (ms int) {
	for at := 12; at+8 <= len(data); {
		size := int(data[at+4]) | int(data[at+5])<<8 | int(data[at+6])<<16 | int(data[at+7])<<24
		if string(data[at:at+4]) == "ANMF" {
			ms += int(data[at+20]) | int(data[at+21])<<8 | int(data[at+22])<<16
		}
		at += 8 + size + size&1
	}
	return ms
}

// shown is which frame of the greys a picture is at a place.
func shown(p image.Image, x, y int) int {
	r, g, b, _ := p.At(x, y).RGBA()
	return int(math.Round(float64(r+g+b) / 3 / 257 * 219 / 255 / 3))
}

func frameOf(p image.Image) int { return shown(p, p.Bounds().Dx()/2, p.Bounds().Dy()/2) }

// The frame that is shown at a time is the one that is given, at every place in a group of pictures and in each form.
func TestTheRightFrame(t *testing.T) {
	t.Parallel()
	s, f := newStudio(t), sixSeconds(t)
	for query, want := range map[string]int{
		"time=0": 0, "time=0.05": 0, "time=0.1": 1, "time=0.199": 2, "time=0.73": 7, "time=1.9": 19, "time=1.95": 19,
		"time=2": 20, "time=3.333": 33, "time=3.95": 39,
		"time=5.9": 59, "time=6": 59,
		"": 20, // the key frame that is nearest to the middle
	} {
		if got := frameOf(s.picture(f, "thumbnail.png", query)); got != want {
			t.Errorf("%s: frame %d, want %d", query, got, want)
		}
	}
	for _, ext := range []string{"jpg", "webp"} {
		p := s.picture(f, "thumbnail."+ext, "time=4.7&width=160")
		if got := frameOf(p); got != 47 || p.Bounds() != image.Rect(0, 0, 160, 90) {
			t.Errorf("%s: frame %d of %v", ext, got, p.Bounds())
		}
	}
	chosen, growing := *f, *f // what was asked for with a video is still being kept when the response was sent
	chosen.Chosen = new(1.25)
	if got := frameOf(s.picture(&chosen, "thumbnail.png", "")); got != 12 {
		t.Errorf("chosen: frame %d", got)
	}
	growing.Newest, growing.Short, growing.Prefix = nil, false, ""
	if _, _, err := s.ask(&growing, "thumbnail.png", "latest=true"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("latest of what is not live: %v", err)
	}
}

// The picture is the one on screen also where a tick lasts as long as a picture.
func TestTheRightFrameOfCoarseTimes(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	f := sixSeconds(t, "-video_track_timescale", "10")
	for at, want := range map[string]int{"1.06": 10, "1.099": 11, "1.09": 10, "3": 30, "3.05": 30} {
		if got := frameOf(s.picture(f, "thumbnail.png", "time="+at)); got != want {
			t.Errorf("at %s: frame %d, want %d", at, got, want)
		}
	}
}

// Where a file lists as key frames what a decoder has to recover at, or open groups of pictures, the picture is as it
// should be nevertheless.
func TestTheRightFrameBehindEntries(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{
		"bit by bit":  "intra-refresh=1:keyint=10:bframes=0",
		"open groups": "open-gop=1:keyint=10:min-keyint=10:bframes=3:b-adapt=0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, f := newStudio(t), sixSeconds(t, "-x264-params", how)
			for query, want := range map[string]int{
				"time=0": 0, "time=1": 10, "time=2": 20, "time=2.9": 29, "time=3": 30, "time=5.9": 59,
			} {
				if got := frameOf(s.picture(f, "thumbnail.png", query)); got != want {
					t.Errorf("%s: frame %d, want %d", query, got, want)
				}
			}
			if got := frameOf(s.picture(f, "thumbnail.png", "")); got < 0 || got > 59 { // the nearest that can be shown
				t.Errorf("in the middle: frame %d", got)
			}
		})
	}
}

// What else is delivered is decoded as well: pixels that are not square, B-frames that others refer to.
func TestOtherSources(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		size image.Point
		dark int // how many greys darker it may be: ffmpeg's scaler rounds down
	}{
		"wide pixels":    {[]string{"-vf", "setsar=2/1"}, image.Pt(640, 180), 1},
		"B as reference": {[]string{"-x264-params", "b-pyramid=normal:bframes=7:b-adapt=0"}, image.Pt(320, 180), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// a studio of its own: all videos of this test have one name
			s, f := newStudio(t), sixSeconds(t, tt.args...)
			for _, n := range []int{0, 1, 13, 25, 39, 40, 58} {
				p := s.picture(f, "thumbnail.png", fmt.Sprintf("time=%.2f", float64(n)/10+0.05))
				if got := frameOf(p); n-got > tt.dark || got > n || p.Bounds().Size() != tt.size {
					t.Errorf("frame %d of %v, want %d", got, p.Bounds(), n)
				}
			}
		})
	}
}

// Images of high dynamic range have the light that any screen shows: white paper in PQ (ITU-R BT.2408) is light grey by
// Hable's curve; untouched it would be 148, as dark as 40 % of the light of SDR.
func TestHighDynamicRange(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	f := film(t, "-f", "lavfi", "-i", "color=s=320x180:r=10,format=yuv420p10le,geq=lum=573:cb=512:cr=512", "-t", "4",
		"-c:v", "libx264", "-preset", "veryfast", "-g", "20", "-color_trc", "smpte2084", "-color_primaries", "bt2020",
		"-colorspace", "bt2020nc")
	for name, query := range map[string]string{
		"thumbnail.png": "time=1", "animated.gif": "start=1&end=2", "storyboard.png": "",
	} {
		p := s.picture(f, name, query)
		if r, g, b, _ := p.At(20, 20).RGBA(); max(r, g, b)>>8 > 195 || min(r, g, b)>>8 < 189 {
			t.Errorf("%s: %d, %d, %d, not 192", name, r>>8, g>>8, b>>8)
		}
	}
}

// An animation begins and ends where it is said, in both forms.
func TestAnimated(t *testing.T) {
	t.Parallel()
	s, f := newStudio(t), sixSeconds(t)
	for query, tt := range map[string]struct {
		frames, first, last int
		size                image.Point
	}{
		"start=1.5&end=4&fps=10":                    {25, 15, 39, image.Pt(320, 180)},
		"start=0&end=0.5&fps=10&width=64":           {5, 0, 4, image.Pt(64, 36)},
		"start=4&fps=5&height=90":                   {10, 40, 58, image.Pt(160, 90)},
		"fps=2&width=640&height=640":                {10, 0, 45, image.Pt(320, 180)}, // nothing is enlarged
		"start=5.9&end=6.2&fps=10&width=2&height=2": {1, 59, 59, image.Pt(2, 1)},
	} {
		data, _, err := s.ask(f, "animated.gif", query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		g, err := gif.DecodeAll(bytes.NewReader(data))
		if err != nil || len(g.Image) != tt.frames || image.Pt(g.Config.Width, g.Config.Height) != tt.size {
			t.Errorf("%s: %d pictures of %v (%v), want %d of %v", query, len(g.Image), g.Config, err, tt.frames,
				tt.size)
			continue
		}
		all := frames(g)
		// A GIF has few colours: greys that are near to each other become one.
		if first, last := frameOf(all[0]),
			frameOf(all[len(all)-1]); max(first-tt.first, tt.first-first, last-tt.last, tt.last-last) > 5 {
			t.Errorf("%s: from frame %d to %d, want %d to %d", query, first, last, tt.first, tt.last)
		}
	}
	data, _, err := s.ask(f, "animated.webp", "start=1&end=3&fps=10")
	if err != nil || len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:16]) != "WEBPVP8X" ||
		length(data) != 2000 {
		t.Errorf("WebP: %v, %d ms in %d bytes", err, length(data), len(data))
	}
}

// Each tile of a storyboard shows a key frame of its time, where JSON and WebVTT say.
func TestStoryboard(t *testing.T) {
	t.Parallel()
	s, f := newStudio(t), sixSeconds(t)
	data, plan, err := s.ask(f, "storyboard.json", "format=webp")
	if err != nil {
		t.Fatal(err)
	}
	words, err := plan.Words(data, "https://host/p1")
	if err != nil {
		t.Fatal(err)
	}
	var l images.Layout
	if err = json.Unmarshal(words, &l); err != nil || l.URL != "https://host/p1/storyboard.webp" || l.Duration != 6 ||
		len(l.Tiles) != 50 || l.TileWidth != 256 || l.TileHeight != 144 {
		t.Fatalf("%v in\n%s", err, words)
	}
	for _, ext := range []string{"png", "webp", "jpg"} {
		board := s.picture(f, "storyboard."+ext, "")
		if board.Bounds() != image.Rect(0, 0, 5*256, 10*144) {
			t.Fatalf("%s: %v", ext, board.Bounds())
		}
		for i, tile := range l.Tiles {
			// A segment is a whole number of groups of pictures: its first key frame stands for all of it.
			want := int(f.Timeline.Spans()[slices.IndexFunc(f.Timeline.Spans(), func(v float64) bool {
				return v > tile.Start+0.06
			})-1]*10 + 0.5)
			for _, at := range []image.Point{{2, 2}, {253, 141}} {
				if got := shown(board, tile.X+at.X, tile.Y+at.Y); got != want && ext == "png" ||
					math.Abs(float64(got-want)) > 1 {
					t.Errorf("%s: tile %d of second %g shows frame %d, want %d", ext, i, tile.Start, got, want)
				}
			}
		}
	}
	data, plan, err = s.ask(f, "storyboard.vtt", "asset_start_time=2&asset_end_time=4&token=x")
	if err != nil {
		t.Fatal(err)
	}
	words, err = plan.Words(data, "https://host/p1")
	head := "WEBVTT\n\n00:00:00.000 --> " +
		"00:00:00.040\nhttps://host/p1/storyboard.jpg?asset_end_time=4&asset_start_time=2#xywh=0,0,256,144\n"
	tail := "\n00:00:01.960 --> 00:00:02.000\nhttps://host/p1/storyboard.jpg?asset_end_time=4&asset_start_time=2#xywh=1024,1296,256,144\n"
	if err != nil || !strings.HasPrefix(string(words), head) || !strings.HasSuffix(string(words), tail) ||
		strings.Count(string(words), "-->") != 50 {
		t.Errorf("%v\n%s", err, words)
	}
}

// A thumbnail without a time reads one segment, and of a storyboard each segment is read once.
func TestReadsLittle(t *testing.T) {
	t.Parallel()
	s, f := newStudio(t), sixSeconds(t)
	src, _ := f.Source.(*source)
	s.picture(f, "thumbnail.jpg", "")
	if src.opened != 1 {
		t.Errorf("%d segments were read for a thumbnail", src.opened)
	}
	src.opened = 0
	s.picture(f, "storyboard.jpg", "")
	if src.opened > len(src.rendition.Chunks)+1 {
		t.Errorf("%d segments were read for a storyboard of %d", src.opened, len(src.rendition.Chunks))
	}
}

// Who asks for the same at once gets the same, what was made is kept, and no more of it than there may be.
func TestKept(t *testing.T) {
	t.Parallel()
	s, f := newStudio(t), sixSeconds(t)
	var herd sync.WaitGroup
	var mu sync.Mutex
	var got [][]byte
	for range 20 {
		herd.Go(func() {
			data, _, err := s.ask(f, "thumbnail.jpg", "time=1&width=64&utm=x")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, data)
		})
	}
	herd.Wait()
	for _, data := range got {
		if !bytes.Equal(data, got[0]) {
			t.Error("different pictures")
		}
	}
	for i := range 16 {
		s.picture(f, "thumbnail.jpg", fmt.Sprintf("time=%g&width=16", float64(i)/4))
	}
	if err := until(t, func() bool { n := len(s.store.keys(f.Prefix + "/thumbnail-")); return n == 10 }); err != nil {
		t.Errorf("kept: %q", s.store.keys(""))
	}
	grows, before := &images.Video{Name: "g", Timeline: f.Timeline, Source: f.Source}, s.pictures.jobs
	for range 5 {
		s.picture(grows, "thumbnail.jpg", "time=3")
	}
	if n := s.pictures.jobs - before; n != 1 {
		t.Errorf("what grows was made %d times", n)
	}
}

func until(t *testing.T, ok func() bool) error {
	t.Helper()
	end := time.NewTimer(3 * time.Minute)
	defer end.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-end.C:
			return errors.New("it did not come to it")
		}
	}
	return nil
}

// What is stored and can't be decoded is no fault of who asks, and ends soon.
func TestBrokenPictures(t *testing.T) {
	t.Parallel()
	s, f := newStudio(t), sixSeconds(t)
	f.Source = broken{f.Source}
	for _, q := range []string{"thumbnail.jpg?time=1", "thumbnail.webp?", "animated.gif?", "storyboard.png?"} {
		name, query, _ := strings.Cut(q, "?")
		if data, _, err := s.ask(f, name, query); err == nil || fault.KindOf(err) == fault.Invalid {
			t.Errorf("%s: %d bytes, %v", q, len(data), err)
		}
	}
}

// broken gives segments whose pictures are rubbish.
type broken struct{ delivered.Source }

func (b broken) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	data, err := delivered.Bytes(b.Source.Segment(ctx, msn))
	if at := bytes.Index(data, []byte("mdat")); at > 0 {
		for i := range data[at+4:] {
			data[at+4+i] = byte(i * 7)
		}
	}
	return delivered.Body{Data: data}, err
}
