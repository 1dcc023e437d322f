package timeline_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func rendition(id string, k frame.Kind, scale uint32) timeline.Entry {
	return timeline.Entry{Rendition: &timeline.RenditionInfo{ID: id, Kind: k, Timescale: scale}}
}

func initOf(id, codec string) timeline.Entry {
	return timeline.Entry{Init: &timeline.Init{Rendition: id, Codec: codec, Object: "media/m/" + id + "/init-0.mp4"}}
}

func segment(msn int64, discontinuity bool, chunks ...timeline.Chunk) timeline.Entry {
	return timeline.Entry{
		Segment: &timeline.Segment{
			MSN: msn, Start: noon.UnixMilli() + 2000*msn, Discontinuity: discontinuity, Chunks: chunks,
		},
	}
}

func video(at, seconds float64, size int64) timeline.Chunk {
	return timeline.Chunk{
		Rendition: "v", Time: int64(at * 90000), Duration: int64(seconds * 90000), Size: size, Independent: true,
		Object: "v",
	}
}

func audio(at, seconds float64, size int64) timeline.Chunk {
	return timeline.Chunk{
		Rendition: "a", Time: int64(at * 48000), Duration: int64(seconds * 48000), Size: size, Independent: true,
		Object: "a",
	}
}

// broadcast is a log with everything in it: a rendition that joins late, a discontinuity, a gap, a new init segment, a
// second generation.
func broadcast() []timeline.Entry {
	late := rendition("a", frame.Audio, 48000)
	late.Rendition.PartTarget = 299000
	second := video(16, 2, 4000)
	second.Init = 1
	later := segment(10, true, second)
	later.Segment.Generation = 2
	return []timeline.Entry{
		{Target: 2},
		rendition("v", frame.Video, 90000), initOf("v", "avc1.64001f"),
		segment(7, false, video(10, 2, 1000)),
		segment(8, false, video(12, 2, 2000)),
		late, initOf("a", "mp4a.40.2"),
		segment(9, true, video(14, 2, 3000), audio(14, 2, 100)),
		initOf("v", "avc1.64000d"),
		later,
		segment(11, false, timeline.Chunk{
			Rendition: "v", Time: 18 * 90000, Duration: 2 * 90000, Gap: true,
		}, audio(18, 2, 100)),
	}
}

func build(t *testing.T, entries []timeline.Entry) *timeline.Timeline {
	t.Helper()
	tl, err := timeline.Build(entries)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestBuild(t *testing.T) {
	t.Parallel()
	tl := build(t, broadcast())
	if tl.First != 7 || tl.Next() != 12 || tl.Target != 2 || len(tl.Marks) != 5 || tl.Duration() != 10*time.Second {
		t.Errorf("first %d next %d target %d duration %v", tl.First, tl.Next(), tl.Target, tl.Duration())
	}
	a := tl.Rendition("a")
	gaps := make([]bool, 0, 5)
	for i, c := range a.Chunks {
		gaps = append(gaps, c.Gap)
		if c.Time != int64(10+2*i)*48000 || c.Duration != 2*48000 {
			t.Errorf("audio %d lasts %d from %d", i, c.Duration, c.Time)
		}
	}
	if want := []bool{true, true, false, true, false}; !slices.Equal(gaps, want) {
		t.Errorf("gaps of the late rendition are %v, want %v", gaps, want)
	}
	if !tl.Marks[2].Discontinuity || !tl.Marks[3].Discontinuity || tl.Marks[4].Discontinuity ||
		!tl.Marks[1].Start.Equal(noon.Add(16*time.Second)) {
		t.Errorf("marks %+v", tl.Marks)
	}
	if tl.Lead().ID != "v" || tl.Rendition("x") != nil || tl.ZeroTime() != timeline.Origin || !tl.Independent() {
		t.Error("lead, renditions, zero or independence")
	}
	if got := tl.Rendition("v").Peak; got != 16000 {
		t.Errorf("peak %v", got)
	}
	if got := a.Average(); got != 400 {
		t.Errorf("average %v", got)
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	base := []timeline.Entry{
		{Target: 2}, rendition("v", frame.Video, 90000), initOf("v", "avc1"), segment(0, false, video(10, 2, 1)),
	}
	two := initOf("v", "avc1")
	two.Target = 2
	for name, e := range map[string]timeline.Entry{
		"nothing":                   {},
		"two things":                two,
		"another target":            {Target: 4},
		"a negative target":         {Target: -1},
		"a negative zero":           {Zero: -1},
		"a rendition again":         rendition("v", frame.Video, 90000),
		"a rendition without clock": rendition("w", frame.Video, 0),
		"a rendition without name":  rendition("", frame.Video, 1),
		"an unknown kind":           rendition("w", 200, 1),
		"an init of nothing":        initOf("w", "x"),
		"a segment again":           segment(0, false, video(10, 2, 1)),
		"a hole":                    segment(2, false, video(10, 2, 1)),
		"an unknown rendition":      segment(1, false, audio(12, 2, 1)),
		"an unknown init":           segment(1, false, timeline.Chunk{Rendition: "v", Init: 1}),
		"a negative init":           segment(1, false, timeline.Chunk{Rendition: "v", Init: -1, Gap: true}),
		"a negative duration":       segment(1, false, timeline.Chunk{Rendition: "v", Duration: -1}),
		"a negative size":           segment(1, false, timeline.Chunk{Rendition: "v", Size: -1}),
		"samples backwards":         segment(1, false, timeline.Chunk{Rendition: "v", From: 5, To: 4}),
		"two chunks of one":         segment(1, false, video(12, 2, 1), video(12, 2, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tl := build(t, base)
			if err := tl.Apply(e); !errors.Is(err, timeline.ErrOrder) {
				t.Errorf("error %v", err)
			}
			if !reflect.DeepEqual(tl, build(t, base)) {
				t.Error("what was refused left a trace")
			}
		})
	}
	if err := (&timeline.Timeline{}).Apply(segment(-1, false)); !errors.Is(err, timeline.ErrOrder) {
		t.Errorf("negative sequence number: %v", err)
	}
}

func TestLogIsStoredAndReadBack(t *testing.T) {
	t.Parallel()
	want := broadcast()
	var index bytes.Buffer
	if err := timeline.WriteIndex(&index, want); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(index.Bytes(), []byte("\n")); n != len(want) {
		t.Errorf("%d lines", n)
	}
	got, err := timeline.ReadIndex(&index)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, e := range want {
		if d, err := timeline.Decode(timeline.Encode(e)); err != nil || !reflect.DeepEqual(d, e) {
			t.Errorf("%s is read as %+v, %v", timeline.Encode(e), d, err)
		}
	}
}

// TestStoredFormStays: rows of older versions are read for as long as their assets live.
func TestStoredFormStays(t *testing.T) {
	t.Parallel()
	log := `{"target":2}
{"rendition":{"id":"v","kind":0,"timescale":90000}}
{"rendition":{"id":"a","kind":1,"timescale":48000,"part_target":299667}}
{"init":{"rendition":"v","codec":"avc1.64001f","width":1280,"height":720,"frame_rate":30,"object":"media/m/v/init-0.mp4"}}
{"init":{"rendition":"a","codec":"mp4a.40.2","sample_rate":48000,"channels":2,"object":"media/m/a/init-0.mp4"}}
{"segment":{"msn":7,"start":1772625600000,"discontinuity":true,"chunks":[{"r":"v","t":900000,"d":180000,"n":5,"k":true,"o":"media/m/v/7.m4s"},{"r":"a","t":480000,"d":96000,"g":true}]}}
{"zero":12.5}
`
	entries, err := timeline.ReadIndex(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := timeline.WriteIndex(&again, entries); err != nil || again.String() != log {
		t.Errorf("written again:\n%s%v", again.String(), err)
	}
	if tl := build(t, entries); tl.ZeroTime() != 12.5 || tl.Rendition("a").PartTarget != 299667 {
		t.Errorf("zero %v", tl.ZeroTime())
	}
	for _, bad := range []string{"{", "[]", `{"target":"2"}`, `{"segment":{"msn":1.5}}`} {
		if _, err := timeline.Decode([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
		if _, err := timeline.ReadIndex(strings.NewReader(bad)); err == nil {
			t.Errorf("index %s is read", bad)
		}
	}
}

func TestEntriesBuildTheSame(t *testing.T) {
	t.Parallel()
	want := build(t, broadcast())
	got := build(t, want.Entries())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if e := (&timeline.Timeline{}).Entries(); len(e) != 0 {
		t.Errorf("an empty timeline has entries %+v", e)
	}
}

func TestGapWithoutAnyMediaLastsAsLongAsTheOthersSay(t *testing.T) {
	t.Parallel()
	lost := timeline.Chunk{Rendition: "v", Time: 10 * 90000, Duration: 2 * 90000, Gap: true}
	tl := build(t, []timeline.Entry{
		rendition("v", frame.Video, 90000), segment(0, false, lost), rendition("a", frame.Audio, 48000),
	})
	if c := tl.Rendition("a").Chunks[0]; !c.Gap || c.Time != 480000 || c.Duration != 96000 {
		t.Errorf("gap %+v", c)
	}
}

func TestSlice(t *testing.T) {
	t.Parallel()
	tl := build(t, broadcast()) // five segments of 2 s
	inf := math.Inf(1)
	for _, tt := range []struct {
		from, to float64
		first, n int
	}{
		{0, inf, 0, 5},
		{-5, 100, 0, 5},
		{0, 10, 0, 5},
		{2, 4, 1, 1},
		{1.9, 4.1, 0, 3},
		{2.0000001, 3.9999999, 1, 1},
		{9.9, inf, 4, 1},
		{5, 5, 0, 0},
		{6, 3, 0, 0},
		{10, 12, 0, 0},
		{-3, -1, 0, 0},
		{math.NaN(), 4, 0, 0},
		{0, math.NaN(), 0, 0},
		{-inf, inf, 0, 5},
	} {
		got := tl.Slice(tt.from, tt.to)
		if len(got.Marks) != tt.n {
			t.Errorf("[%v,%v): %d segments, want %d", tt.from, tt.to, len(got.Marks), tt.n)
			continue
		}
		for _, l := range got.Renditions {
			if want := tl.Rendition(l.ID).Chunks[tt.first : tt.first+tt.n]; tt.n > 0 && !slices.Equal(l.Chunks, want) {
				t.Errorf("[%v,%v): chunks %+v", tt.from, tt.to, l.Chunks)
			}
		}
		if tt.n > 0 && (got.Marks[0].Discontinuity || got.ZeroTime() != timeline.Origin+float64(2*tt.first)) {
			t.Errorf("[%v,%v): begins with %+v, zero %v", tt.from, tt.to, got.Marks[0], got.ZeroTime())
		}
		if again := build(t, got.Entries()); tt.n > 0 && !reflect.DeepEqual(again.Marks, got.Marks) {
			t.Errorf("[%v,%v): not the same when stored", tt.from, tt.to)
		}
	}
}

func TestSliceSharesNothing(t *testing.T) {
	t.Parallel()
	tl := build(t, broadcast())
	clip := tl.Slice(0, 4)
	want := build(t, clip.Entries())
	tl.Marks[1].Discontinuity, tl.Rendition("v").Chunks[0].Size, tl.Rendition("v").Inits[0].Codec = true, 99, "x"
	if got := build(t, clip.Entries()); !reflect.DeepEqual(got, want) {
		t.Error("the clip changed with its source")
	}
	twice := clip.Slice(2, 4)
	if len(twice.Marks) != 1 || twice.ZeroTime() != timeline.Origin+2 {
		t.Errorf("clip of a clip: %d segments from %v", len(twice.Marks), twice.ZeroTime())
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	tl := build(t, broadcast())
	if got := tl.Spans(); !slices.Equal(got, []float64{0, 2, 4, 6, 8, 10}) {
		t.Errorf("spans %v", got)
	}
	if got := (&timeline.Timeline{}).Spans(); !slices.Equal(got, []float64{0}) {
		t.Errorf("spans of nothing %v", got)
	}
	// 12 hours of 29.97 fps: nothing adds up.
	long := build(t, []timeline.Entry{rendition("v", frame.Video, 90000), initOf("v", "avc1")})
	for i := range int64(21600) {
		c := timeline.Chunk{Rendition: "v", Time: 900000 + i*180180, Duration: 180180, Size: 1}
		if err := long.Apply(segment(i, false, c)); err != nil {
			t.Fatal(err)
		}
	}
	if got := long.Spans()[21600]; got != 43243.2 {
		t.Errorf("ends at %v", got)
	}
}

func TestObjectsNamesEverythingOnce(t *testing.T) {
	t.Parallel()
	tl := build(t, broadcast())
	count := map[string]int{}
	tl.Objects(func(k string) bool { count[k]++; return true })
	if count["media/m/v/init-0.mp4"] != 2 || count["media/m/a/init-0.mp4"] != 1 || count["v"] != 4 || count["a"] != 2 ||
		len(count) != 4 {
		t.Errorf("objects %v", count)
	}
	n := 0
	tl.Objects(func(string) bool { n++; return n < 4 })
	if n != 4 {
		t.Errorf("went on after the end was asked for: %d", n)
	}
	src := build(t, []timeline.Entry{
		{Rendition: &timeline.RenditionInfo{ID: "v", Timescale: 1, Source: &timeline.Source{Object: "file"}}},
	})
	for k := range src.Objects {
		if k != "file" {
			t.Errorf("object %q", k)
		}
	}
}

func TestPeakIsOfStretches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		chunks        [][2]float64 // seconds, bytes
		peak, average float64
		target        int // 0: 2
	}{
		{
			name: "a target far above", chunks: [][2]float64{{2, 1000}, {2, 1500}, {2, 1000}, {2, 1000}, {0.5, 100}},
			peak: 6000, average: 36800 / 8.5, target: 12,
		},
		{"nothing", nil, 0, 0, 0},
		{"one short one", [][2]float64{{0.1, 1000}}, 80000, 80000, 0},
		{
			"a lone key frame between whole segments",
			[][2]float64{{2, 1000}, {0.04, 500}, {2, 1000}},
			1500 * 8 / 2.04,
			2500 * 8 / 4.04, 0,
		},
		{"short ones together", [][2]float64{{0.5, 1000}, {0.5, 3000}, {2, 4000}}, 32000, 64000 / 3.0, 0},
		{"short ones behind a short one", [][2]float64{{0.8, 100}, {0.6, 3000}, {0.6, 3000}}, 40000, 24400, 0},
		{"many short ones", slices.Repeat([][2]float64{{0.1, 100}}, 40), 8000, 8000, 0},
		{"longer than a stretch", [][2]float64{{4, 1000}, {0.5, 10}}, 2000, 1010 * 8 / 4.5, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r timeline.Rate
			for _, c := range tt.chunks {
				r.Add(int64(c[1]), int64(c[0]*90000), 90000, cmp.Or(tt.target, 2))
			}
			if math.Abs(r.Peak(90000)-tt.peak) > 0.5 || math.Abs(r.Average(90000)-tt.average) > 0.5 {
				t.Errorf("peak %.1f, average %.1f; want %.1f, %.1f", r.Peak(90000), r.Average(90000), tt.peak,
					tt.average)
			}
		})
	}
}

// TestSegmentsWhereTheyAreShortest: a lone short segment hardly counts, and a row of them counts however many long ones
// there are.
func TestSegmentsWhereTheyAreShortest(t *testing.T) {
	t.Parallel()
	hour, row := slices.Repeat([]float64{2}, 1800), slices.Repeat([]float64{0.25}, 8)
	for _, tt := range []struct {
		name    string
		seconds []float64
		want    float64
	}{
		{"nothing", nil, 0},
		{"one short one", []float64{0.1}, 1},
		{"one", []float64{2}, 2},
		{"one that is longer than a set", []float64{6}, 6},
		{"an hour", hour, 2},
		{"an hour and its end", append(slices.Clone(hour), 0.1), 2.1 / 1.1},
		{"an hour that ends with a second", append(slices.Clone(hour), 1), 1.5},
		{"a row of short ones in an hour", slices.Concat(hour, row, hour), 1},
		{"more short ones than are looked at", slices.Repeat([]float64{0.03}, 100), 1},
		{"first a short one", []float64{0.5, 2, 2}, 2.5 / 1.5},
	} {
		var r timeline.Rate
		for _, s := range tt.seconds {
			r.Add(1000, int64(s*90000), 90000, 2)
		}
		if got := r.Segment(); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v seconds, want %v", tt.name, got, tt.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, e := range broadcast() {
		f.Add(timeline.Encode(e))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		e, err := timeline.Decode(row)
		if err != nil {
			return
		}
		if e.Zero != e.Zero || math.IsInf(e.Zero, 0) {
			t.Skip()
		}
		again, err := timeline.Decode(timeline.Encode(e))
		if err != nil || !bytes.Equal(timeline.Encode(again), timeline.Encode(e)) {
			t.Errorf("%s: %v", timeline.Encode(e), err)
		}
	})
}

// FuzzApply: rows that nobody wrote on purpose are refused or applied, and what is applied can be asked everything.
func FuzzApply(f *testing.F) {
	var log bytes.Buffer
	for _, e := range broadcast() {
		log.Write(append(timeline.Encode(e), '\n'))
	}
	f.Add(log.Bytes(), uint64(1))
	f.Fuzz(func(t *testing.T, rows []byte, seed uint64) {
		lines := bytes.Split(rows, []byte("\n"))
		r := rand.New(rand.NewPCG(seed, 0))
		if seed%2 == 0 {
			r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		}
		tl := &timeline.Timeline{}
		for _, row := range lines {
			if e, err := timeline.Decode(row); err == nil {
				_ = tl.Apply(e)
			}
		}
		for _, l := range tl.Renditions {
			if len(l.Chunks) != len(tl.Marks) {
				t.Fatalf("%d chunks, %d marks", len(l.Chunks), len(tl.Marks))
			}
			_, _, _ = l.Average(), l.Kind.String(), l.Peak
			for i := range l.Chunks {
				_ = l.Seconds(i)
			}
		}
		_, _, _ = tl.Duration(), tl.Independent(), tl.Lead()
		if len(tl.Spans()) != len(tl.Marks)+1 {
			t.Fatal("spans")
		}
		half := tl.Slice(1, 1e9*r.Float64())
		if _, err := timeline.Build(half.Entries()); err != nil && len(half.Marks) > 0 {
			t.Errorf("clip is refused: %v", err)
		}
		if _, err := json.Marshal(tl.Entries()); err != nil {
			t.Error(err)
		}
		if _, err := timeline.Build(tl.Entries()); err != nil {
			t.Errorf("a timeline's own log is refused: %v", err)
		}
	})
}
