package images

import (
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// bare is a video of 20 seconds without media, from second 1000000 of the wall clock on.
func bare(t *testing.T) *Video {
	t.Helper()
	entries := []timeline.Entry{
		{Rendition: &timeline.RenditionInfo{ID: timeline.MainVideo, Kind: frame.Video, Timescale: 1000}},
		{Target: 2},
		{Init: &timeline.Init{Rendition: timeline.MainVideo, Codec: "avc1", Width: 320, Height: 180}},
	}
	for i := range int64(10) {
		entries = append(entries, timeline.Entry{Segment: &timeline.Segment{
			MSN: i, Start: 1000000000 + 2000*i,
			Chunks: []timeline.Chunk{
				{
					Rendition: timeline.MainVideo, Time: 10000 + 2000*i, Duration: 2000, Independent: true, Size: 1,
					Gap: i == 4, Object: "o",
				},
			},
		}})
	}
	lines, err := timeline.Build(entries)
	if err != nil {
		t.Fatal(err)
	}
	return &Video{Name: "f", Prefix: "p", Timeline: lines}
}

// Each parameter with its limits, and what is said when it is beyond them.
func TestParameters(t *testing.T) {
	t.Parallel()
	f := bare(t)
	for _, tt := range []struct{ target, wrong string }{
		{"thumbnail.jpg", ""},
		{"thumbnail.png?time=20", ""},
		{"thumbnail.png?time=20.1", "time: must be from 0 to 20"},
		{"thumbnail.webp?time=-1", "time: must be a number"},
		{"thumbnail.webp?time=", "time: must be a number"},
		{"thumbnail.webp?time=NaN", "time: must be a number"},
		{"thumbnail.webp?time=Inf", "time: must be a number"},
		{"thumbnail.webp?time=0x1p3", "time: must be a number"},
		{"thumbnail.webp?time=1e400", "time: must be a number"},
		{"thumbnail.webp?time=1e1", ""},
		{"thumbnail.jpg?time=1&program_time=1000001", "can not be given together"},
		{"thumbnail.jpg?program_time=1000001.5", ""},
		{"thumbnail.jpg?program_time=999999", "program_time: there is nothing of that moment"},
		{"thumbnail.jpg?program_time=1000021", "program_time: there is nothing of that moment"},
		{"thumbnail.jpg?latest=true", "latest: there is a newest picture only while"},
		{"thumbnail.jpg?latest=false", ""},
		{"thumbnail.jpg?latest=maybe", "latest: must be one of"},
		{"thumbnail.jpg?width=1&height=3840", ""},
		{"thumbnail.jpg?width=0", "width: must be a whole number from 1 to 3840"},
		{"thumbnail.jpg?width=3841", "width: must be a whole number from 1 to 3840"},
		{"thumbnail.jpg?height=1.5", "height: must be a whole number from 1 to 3840"},
		{"thumbnail.jpg?height=99999999999999999999", "height: must be a whole number from 1 to 3840"},
		{"thumbnail.jpg?rotate=90", ""},
		{"thumbnail.jpg?rotate=45", "rotate: must be one of 90, 180, 270"},
		{"thumbnail.jpg?fit_mode=preserve", ""},
		{"thumbnail.jpg?fit_mode=pad&width=9", "fit_mode: pad needs width and height"},
		{"thumbnail.jpg?fit_mode=smartcrop&width=9&height=9", ""},
		{"thumbnail.jpg?fit_mode=zoom", "fit_mode: must be one of preserve, stretch, crop, smartcrop, pad"},
		{"thumbnail.jpg?flip_h=true&flip_v=1", ""},
		{"thumbnail.jpg?flip_h=yes", "flip_h: must be one of"},
		{"thumbnail.jpg?width=0&flip_h=yes", "flip_h"},
		{"thumbnail.jpg?width=%zz", "not well formed"},
		{"thumbnail.jpg?unknown=1&token=a.b.c", ""},
		{"thumbnail.gif", "no such image"},
		{"thumbnail.jpg.png", "no such image"},
		{"thumbnail", "no such image"},
		{"poster.jpg", "no such image"},
		{".jpg", "no such image"},
		{"animated.gif", ""},
		{"animated.jpg", "no such image"},
		{"animated.gif?start=19.9", ""},
		{"animated.gif?start=20", "start: must be from 0 to 20"},
		{"animated.gif?start=1&end=1.25", ""},
		{"animated.gif?start=1&end=1.2", "end: must be from 0.25 to 10 seconds after start"},
		{"animated.gif?end=10", ""},
		{"animated.gif?end=10.1", "end: must be from 0.25 to 10 seconds after start"},
		{"animated.gif?start=5&end=1", "end: must be from 0.25 to 10 seconds after start"},
		{"animated.webp?width=640&height=640&fps=30", ""},
		{"animated.webp?width=641", "width: must be a whole number from 1 to 640"},
		{"animated.webp?height=641", "height: must be a whole number from 1 to 640"},
		{"animated.webp?fps=31", "fps: must be a number from 1 to 30"},
		{"animated.webp?fps=0", "fps: must be a number from 1 to 30"},
		{"storyboard.vtt?format=webp", ""},
		{"storyboard.json?format=gif", "format: must be one of jpg, png, webp"},
		{"storyboard.gif", "no such image"},
		{"storyboard.jpg?asset_start_time=2&asset_end_time=99", ""},
		{"storyboard.jpg?asset_start_time=20", "asset_start_time: must be from 0 to 20"},
		{"storyboard.jpg?asset_start_time=4&asset_end_time=4", "asset_end_time: must be after asset_start_time"},
		{"storyboard.jpg?asset_start_time=4&program_end_time=1000009", "can not be given together"},
		{"storyboard.jpg?program_start_time=1000002&program_end_time=1000009", ""},
		{
			"storyboard.jpg?program_start_time=1000009&program_end_time=1000002",
			"program_end_time: must be after program_start_time",
		},
		// a storyboard has what exists of that time, as the playlist has
		{"storyboard.jpg?program_start_time=1&program_end_time=2000000", ""},
		{"storyboard.jpg?program_start_time=1000020", "program_start_time: there is nothing of that moment"},
		{"storyboard.jpg?program_end_time=1000000", "program_end_time: there is nothing of that moment"},
	} {
		name, query, _ := strings.Cut(tt.target, "?")
		r, err := Parse(name, query)
		if err == nil {
			_, err = f.Plan(r)
		}
		if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
			t.Errorf("%s: %v, want %q", tt.target, err, tt.wrong)
		}
		kind := fault.Invalid
		if tt.wrong == "no such image" {
			kind = fault.NotFound
		}
		if err != nil && fault.KindOf(err) != kind {
			t.Errorf("%s: %v is of kind %v", tt.target, err, fault.KindOf(err))
		}
	}
}

// Equal requests have one name, others have others, and none of them leads out of its folder.
func TestNames(t *testing.T) {
	t.Parallel()
	f := bare(t)
	name := func(target string) string {
		n, query, _ := strings.Cut(target, "?")
		r, err := Parse(n, query)
		if err != nil {
			t.Fatal(target, err)
		}
		p, err := f.Plan(r)
		if err != nil {
			t.Fatal(target, err)
		}
		return p.Name
	}
	same := [][]string{
		{
			"thumbnail.jpg?time=1", "thumbnail.jpg?time=1.0004&fit_mode=preserve&x=y",
			"thumbnail.jpg?flip_h=false&time=1&time=2", "thumbnail.jpg?program_time=1000001",
		},
		{"thumbnail.jpg"},
		{"thumbnail.png?time=1"},
		{"thumbnail.jpg?time=1.001"},
		{"thumbnail.jpg?time=1&width=3"},
		{"thumbnail.jpg?time=1&height=3"},
		{"thumbnail.jpg?time=1&rotate=90"},
		{"thumbnail.jpg?time=1&flip_h=1"},
		{"thumbnail.jpg?time=1&flip_v=1"},
		{"animated.gif", "animated.gif?start=0&end=5&fps=15"},
		{"animated.gif?fps=14"},
		{"storyboard.jpg", "storyboard.jpg?asset_start_time=0&asset_end_time=20", "storyboard.jpg?format=png"},
		{"storyboard.vtt", "storyboard.json?format=webp"},
		{"storyboard.jpg?asset_end_time=19"},
	}
	seen := map[string]string{}
	for _, group := range same {
		for _, target := range group {
			n := name(target)
			if n != name(group[0]) {
				t.Errorf("%s and %s have different names", target, group[0])
			}
			if strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.Count(n, ".") != 1 {
				t.Errorf("%s is named %q", target, n)
			}
		}
		if other, ok := seen[name(group[0])]; ok {
			t.Errorf("%s and %s have the same name", group[0], other)
		}
		seen[name(group[0])] = group[0]
	}
}

// A time in a gap is that of the nearest media.
func TestGaps(t *testing.T) {
	t.Parallel()
	f := bare(t)
	for at, want := range map[float64]int{
		-1: 0, 0: 0, 1.99: 0, 2: 1, 7.9: 3, 8: 3, 9.9: 3, 10: 5, 19.9: 9, 20: 9, 99: 9,
	} {
		if got := f.at(at); got != want {
			t.Errorf("at %g: segment %d, want %d", at, got, want)
		}
	}
	for i := range f.video().Chunks[:9] {
		f.video().Chunks[i].Gap = true
	}
	if got := f.at(0); got != 9 {
		t.Errorf("segment %d", got)
	}
	f.video().Chunks[9].Gap = true
	if got := f.at(0); got != -1 {
		t.Errorf("segment %d", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("thumbnail.jpg", "time=1&width=3&height=4&fit_mode=pad&rotate=90&flip_h=true")
	f.Add("animated.gif", "start=1e308&end=-0&fps=NaN")
	f.Add("storyboard.vtt", "asset_start_time=1&program_end_time=%zz")
	film := &Video{Name: "f", Timeline: &timeline.Timeline{}}
	f.Fuzz(func(t *testing.T, name, query string) {
		r, err := Parse(name, query)
		if err != nil {
			return
		}
		for _, v := range []float64{r.Time, r.ProgramTime, r.Start, r.End, r.ProgramStart, r.ProgramEnd, r.FPS} {
			if v < 0 || v > latestSecond {
				t.Errorf("%q gives %+v", query, r)
			}
		}
		if r.Width < 0 || r.Height < 0 || max(r.Width, r.Height) > maxSide || r.Rotate%90 != 0 ||
			r.Kind == Animated && !(r.FPS >= 1 && r.FPS <= maxFPS) {
			t.Errorf("%q gives %+v", query, r)
		}
		if _, err := film.Plan(r); err == nil {
			t.Error("a plan of nothing")
		}
		p := Plan{Request: r, asked: [4]float64{r.Start, r.End, math.NaN(), math.NaN()}}
		if _, err := url.Parse("https://x/" + p.rangeOf()); err != nil || strings.ContainsAny(p.rangeOf(), "\n ") {
			t.Errorf("%q leads to %q", query, p.rangeOf())
		}
	})
}

// The text of a storyboard leads to the pictures that it is about, however much longer the video is when they are asked
// for.
func TestStoryboardOfWhatGrows(t *testing.T) {
	t.Parallel()
	now, later := bare(t), bare(t)
	rendition := now.video()
	rendition.Chunks, now.Timeline.Marks = rendition.Chunks[:7], now.Timeline.Marks[:7]
	now.Prefix, later.Prefix = "", ""
	plan := func(f *Video, name, query string) Plan {
		r, err := Parse(name, query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, query := range []string{
		"", "asset_start_time=3", "asset_end_time=60", "program_start_time=1000003", "program_end_time=2000000",
		"program_start_time=1000001.5&program_end_time=1000009",
	} {
		text := plan(now, "storyboard.vtt", query)
		if byDay := strings.Contains(text.rangeOf(), "program_"); byDay != strings.Contains(query, "program_") ||
			byDay && strings.Contains(text.rangeOf(), "asset_") {
			t.Errorf("%q leads to %q: a token that says the one kind of time does not go with the other", query,
				text.rangeOf())
		}
		pictures := plan(later, "storyboard.jpg", strings.TrimPrefix(text.rangeOf(), "?"))
		if pictures.Start != text.Start || pictures.length != text.length {
			t.Errorf("%q leads to %q, which is %g s from %g on, not %g s from %g on", query, text.rangeOf(),
				pictures.length, pictures.Start, text.length, text.Start)
		}
	}
	now.Short = true // what slides away has no seconds to ask for
	if text := plan(now, "storyboard.vtt", ""); text.rangeOf() != "" {
		t.Errorf("%q", text.rangeOf())
	}
}

// A storyboard by the time of day shows what an instant clip by the same times lists, also when it was asked for more
// than there is.
func TestStoryboardByTheTimeOfDay(t *testing.T) {
	t.Parallel()
	f := bare(t)
	for i := range f.Timeline.Marks[5:] { // the encoder was away for a minute behind second 10
		f.Timeline.Marks[5+i].Start = f.Timeline.Marks[5+i].Start.Add(time.Minute)
	}
	for _, tt := range []struct{ begin, end, start, length float64 }{
		{1000000, 1000080, 0, 20},
		{999000, 1009000, 0, 20},
		{1000003, 1000005, 3, 2},
		{1000003, 1000030, 3, 7},
		{1000030, 1000073, 10, 3},
		{1000003, 1000073, 3, 10},
		{1000020, 1000060, 0, 0},
	} {
		p, err := f.Plan(Request{
			Kind: Storyboard, Ext: "jpg", Time: math.NaN(), ProgramTime: math.NaN(), Start: math.NaN(), End: math.NaN(),
			ProgramStart: tt.begin, ProgramEnd: tt.end,
		})
		if (err != nil) != (tt.length == 0) || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", tt, err)
		}
		if err == nil && (p.Start != tt.start || p.length != tt.length) {
			t.Errorf("%v: %g s from %g on", tt, p.length, p.Start)
		}
	}
}
