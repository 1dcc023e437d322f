package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// places are where a journal and its mark lie.
type places struct{ dir, mark string }

func newPlaces(t *testing.T) places {
	t.Helper()
	dir := t.TempDir()
	return places{filepath.Join(dir, "journal"), filepath.Join(dir, "mark")}
}

func (p places) open() *journal.Journal {
	return journal.New(journal.Options{Dir: p.dir, Mark: p.mark, Logger: slog.New(slog.DiscardHandler)})
}

// told is what is left, in a form that can be compared.
func told(j *journal.Journal) string {
	var b bytes.Buffer
	for s := range j.Left {
		if !s.Stored { // else only the lengths of its parts count
			s.Load()
		}
		fmt.Fprintf(&b, "%d: generation %d, stored %t, %d texts", s.MSN, s.Generation, s.Stored, len(s.Texts))
		for _, l := range s.Renditions {
			fmt.Fprintf(&b, "; %s: %d inits, begun %t, whole %t, %d parts, %q", l.ID, len(l.Inits), l.Begun, l.Whole,
				len(l.Parts), l.Data)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// life is what a process has published while the disk did nothing: two segments and the beginning of a third one, the
// first of them stored.
func life(j *journal.Journal) {
	j.Published(0)
	write(j, 0, 2, true)
	j.Note(0, journal.Record{Text: &timeline.Text{Rendition: "s"}}, nil)
	write(j, 1, 3, true)
	j.Stored(0)
	write(j, 2, 2, false)
}

// TestLateOutlivesTheProcess: players were told of parts that the disk had not written in time. Whatever it has done of
// them when the process dies, the next one finds all of them, once, and so does the one after it, also when that one
// died in the middle of it.
func TestLateOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	var want string
	for done := 60; done >= 0; done-- { // first of all, everything
		p := newPlaces(t)
		synctest.Test(t, func(*testing.T) {
			j := p.open()
			life(j)
			j.Do(done)
		})
		kept, err := os.ReadFile(p.mark)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = told(p.open())
			continue
		}
		if got := told(p.open()); got != want {
			t.Fatalf("with %d done:\n%s, want\n%s", done, got, want)
		}
		if err = os.WriteFile(p.mark, kept, 0o600); err != nil { // as if it had died before it was done with it
			t.Fatal(err)
		}
		for range 2 {
			if got := told(p.open()); got != want {
				t.Fatalf("with %d done, another time:\n%s, want\n%s", done, got, want)
			}
		}
		if info, err := os.Stat(p.mark); err != nil || info.Size() > 12 {
			t.Errorf("the mark has %d bytes when all is done: %v", info.Size(), err)
		}
	}
}

// TestLateIsTornAnywhere: what was being kept when the process died does not count, and nothing of what comes before it
// is lost.
func TestLateIsTornAnywhere(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	synctest.Test(t, func(*testing.T) { life(p.open()) })
	kept, err := os.ReadFile(p.mark)
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for n := 12; n <= len(kept); n += 7 {
		again := newPlaces(t)
		if err = os.WriteFile(again.mark, kept[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j, now := again.open(), 0
		for _, s := range left(j) {
			for _, l := range s.Renditions {
				now += len(l.Parts)
			}
		}
		if now < parts {
			t.Fatalf("%d bytes give %d parts, fewer gave %d", n, now, parts)
		}
		parts = now
		if next, ok := j.Marked(); !ok || next != 1 {
			t.Fatalf("the mark is %d, %t", next, ok)
		}
	}
	if parts < 10 {
		t.Errorf("%d parts were kept", parts)
	}
}

// TestLateIsBounded: what is done makes room for what is not.
func TestLateIsBounded(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	large := bytes.Repeat([]byte("x"), 1<<20)
	synctest.Test(t, func(*testing.T) {
		j := p.open()
		m := write(j, 0, 0, false)
		for range 3 {
			j.Part(m[0], large, 300, true)
		}
		j.Do(7) // four records and the three
		for range 3 {
			j.Part(m[0], large, 300, true)
		}
	})
	kept, err := os.ReadFile(p.mark)
	if err != nil || len(kept) > 4<<20+12 {
		t.Errorf("%d bytes in memory: %v", len(kept), err)
	}
	got := left(p.open())
	if len(got) != 1 || len(got[0].Rendition("v").Parts) != 6 || len(got[0].Rendition("v").Data) != 6<<20 {
		t.Fatalf("%d segments", len(got))
	}
	if !slices.Equal(got[0].Rendition("v").Data[5<<20:], large) {
		t.Error("other bytes")
	}

	p = newPlaces(t)
	synctest.Test(t, func(*testing.T) {
		j := p.open()
		m := write(j, 0, 0, false)
		for range 6 {
			j.Part(m[0], large, 300, true)
		}
	})
	// with all the rest, a fourth has no room
	if got = left(p.open()); len(got) != 1 || len(got[0].Rendition("v").Parts) != 3 {
		t.Errorf("of more than there is room for, %d parts", len(got[0].Rendition("v").Parts))
	}
}

// TestLateBehindAnUnknownSegment: that a segment begins is written with its first part. Until then it counts as late,
// also where something was done in between that wrote nothing.
func TestLateBehindAnUnknownSegment(t *testing.T) {
	t.Parallel()
	p := newPlaces(t)
	synctest.Test(t, func(*testing.T) {
		j := p.open()
		m := write(j, 0, 0, false)
		j.Stored(7) // which the index does not know
		j.Do(5)     // four records and that
		j.Part(m[0], []byte("part"), 300, true)
	})
	got := left(p.open())
	if len(got) != 1 || got[0].Rendition("v") == nil || string(got[0].Rendition("v").Data) != "part" {
		t.Errorf("%d segments: the part that players were told of is lost", len(got))
	}
}

// TestKept: whether a part outlives the process is said truly, wherever it is by then: in its file, in the machine's
// memory, or nowhere.
func TestKept(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 1<<20)
	for name, tt := range map[string]struct {
		noMark  bool
		backlog int64
		folder  bool // the disk takes it
		file    bool // there is a file in the place of the folder
		want    []bool
	}{
		"the disk has it":         {folder: true, want: []bool{true, true}},
		"the disk does not":       {folder: true, file: true, want: []bool{false, false}},
		"the machine's memory":    {want: []bool{true, true, true, false}},
		"no memory":               {noMark: true, want: []bool{false, false}},
		"more than may be waited": {backlog: 1 << 20, want: []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlaces(t)
			if tt.noMark {
				p.mark = ""
			}
			if tt.file {
				if err := os.WriteFile(p.dir, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got []bool
			synctest.Test(t, func(t *testing.T) {
				j := journal.New(journal.Options{
					Dir: p.dir, Mark: p.mark, MaxBacklog: tt.backlog, Logger: slog.New(slog.DiscardHandler),
				})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				if close(done); tt.folder {
					done = make(chan struct{})
					go func() {
						defer close(done)
						_ = j.Run(ctx) // ends with ctx
					}()
				}
				j.Note(7, journal.Record{Begin: "v"}, nil)
				m := j.Media(7, "v")
				for range tt.want {
					got = append(got, j.Part(m, large, 300, true))
				}
				stop()
				<-done
			})
			if !slices.Equal(got, tt.want) {
				t.Errorf("kept: %v, want %v", got, tt.want)
			}
			kept := 0
			for i := range got {
				if got[i] {
					kept++
				}
			}
			for _, s := range left(p.open()) {
				if l := s.Rendition("v"); l == nil || len(l.Parts) != kept {
					t.Errorf("left is %+v", l)
				}
			}
		})
	}
}

// TestCut: of a segment that was cut the first parts are left, also where the disk was late with both.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, done := range []int{0, 100} {
		p := newPlaces(t)
		synctest.Test(t, func(*testing.T) {
			j := p.open()
			m := write(j, 7, 3, false)
			j.Part(m[0], []byte("late"), 300, true)
			j.Note(7, journal.Record{Cut: "v", Parts: 2}, nil)
			j.Note(7, journal.Record{Cut: "unknown", Parts: 2}, nil)
			j.Do(done)
		})
		for range 2 {
			got := left(p.open())
			if len(got) != 1 || len(got[0].Rendition("v").Parts) != 2 || got[0].Rendition("v").Whole ||
				len(got[0].Rendition("a").Parts) != 3 {
				t.Errorf("%d done: %+v", done, got)
			}
		}
	}
}
