package timeline_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"millrace/internal/media/timeline"
)

// broadcastWithSlate is content, slate, content, and slate at the end; each stretch has an init segment of its own.
func broadcastWithSlate() []timeline.Entry {
	out := []timeline.Entry{{Target: 2}, {Rendition: &timeline.RenditionInfo{ID: "v", Timescale: 1}}}
	for i, slate := range []bool{false, false, true, false, true, true} {
		use := []int{0, 0, 1, 2, 3, 3}[i]
		if i == 0 || use != []int{0, 0, 1, 2, 3, 3}[i-1] {
			out = append(out, timeline.Entry{
				Init: &timeline.Init{Rendition: "v", Codec: "avc1." + string(rune('a'+use)), Object: "init"},
			})
		}
		out = append(out, timeline.Entry{
			Segment: &timeline.Segment{MSN: 7 + int64(i), Slate: slate, Chunks: []timeline.Chunk{
				{
					Rendition: "v", Init: use, Time: 10 + 2*int64(i), Duration: 2, Size: 100,
					Object: "v" + string(rune('0'+i)),
				},
			}},
		})
	}
	return out
}

func TestConcluded(t *testing.T) {
	t.Parallel()
	whole := build(t, broadcastWithSlate())
	got, err := whole.Concluded(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Marks) != 4 || got.Duration().Seconds() != 8 || len(got.Renditions[0].Inits) != 3 ||
		len(got.Spans()) != 5 {
		t.Errorf("concluded as %+v", got)
	}
	tail := got.Tail
	if tail == nil || tail.First != 11 || len(tail.Marks) != 2 || len(tail.Renditions[0].Inits) != 4 ||
		tail.Renditions[0].Chunks[1].Object != "v5" {
		t.Errorf("the tail is %+v", tail)
	}
	if got.Find(10) != got || got.Find(11) != tail || got.Find(12) != tail || got.Find(13) != nil ||
		got.Find(6) != nil {
		t.Error("a segment is found in the wrong place")
	}
	if again, e := got.Concluded(0); e != nil || again != got {
		t.Errorf("concluded twice: %v", e)
	}
	var index bytes.Buffer
	if err = timeline.WriteIndex(&index, got.Entries()); err != nil {
		t.Fatal(err)
	}
	entries, err := timeline.ReadIndex(&index)
	if err != nil {
		t.Fatal(err)
	}
	if back := build(t, entries); !reflect.DeepEqual(back, got) {
		t.Errorf("read back as %+v", back)
	}
	keys := slices.Sorted(got.Objects)
	if want := []string{"init", "v0", "v1", "v2", "v3", "v4", "v5"}; !slices.Equal(slices.Compact(keys), want) {
		t.Errorf("objects %v", keys)
	}
	n := 0
	got.Objects(func(string) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("went on after the end was asked for: %d", n)
	}
}

func TestConcludedWithoutSlateAtTheEnd(t *testing.T) {
	t.Parallel()
	log := broadcastWithSlate()
	for name, entries := range map[string][]timeline.Entry{"content": log[:len(log)-3], "nothing": nil} {
		tl := build(t, entries)
		if got, err := tl.Concluded(0); err != nil || got != tl || got.Tail != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	alone := build(t, []timeline.Entry{
		{Rendition: &timeline.RenditionInfo{ID: "v", Timescale: 1}}, {Segment: &timeline.Segment{Slate: true}},
	})
	if got, err := alone.Concluded(0); err != nil || got != alone {
		t.Errorf("slate alone: %+v, %v", got, err)
	}
}

// TestConcludedByALimit: a recording that may have so many seconds has as many whole segments, and the others are found
// still.
func TestConcludedByALimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[float64]int{1: 1, 3: 1, 4: 2, 5.95: 3, 7: 3, 100: 4} {
		got, err := build(t, broadcastWithSlate()).Concluded(limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Marks) != want || got.Tail == nil || len(got.Tail.Marks) != 6-want || got.Find(12) != got.Tail {
			t.Errorf("limited to %v s: %d segments, want %d", limit, len(got.Marks), want)
		}
	}
}
