package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/media/frame"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func open(dir string) *journal.Journal {
	return journal.New(journal.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
}

// run writes until stop is called, as the owner does.
func run(t *testing.T, j *journal.Journal) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = j.Run(ctx) // its end is the test's
	}()
	return func() { cancel(); <-done }
}

func left(j *journal.Journal) []*journal.Segment {
	var out []*journal.Segment
	for s := range j.Left {
		s.Load()
		out = append(out, s)
	}
	return out
}

// media are the files of a segment's renditions.
func media(j *journal.Journal, msn int64) [2]*journal.Media {
	return [2]*journal.Media{j.Media(msn, "v"), j.Media(msn, "a")}
}

// write journals a segment of two renditions: n parts each, whole or not. The files are still open.
func write(j *journal.Journal, msn int64, n int, whole bool) [2]*journal.Media {
	m := media(j, msn)
	for i, id := range []string{"v", "a"} {
		if msn == 0 {
			r := timeline.RenditionInfo{ID: id, Kind: frame.Kind(i), Timescale: 1000, PartTarget: 300000}
			j.Note(msn, journal.Record{
				Init: &timeline.Init{Rendition: id, Codec: "c"}, Rendition: &r,
			}, []byte("init "+id))
		}
		j.Note(msn, journal.Record{
			Begin: id, Start: 1000 * msn, Discontinuity: msn == 1, Time: 2000 * msn, Target: 2,
		}, nil)
	}
	for k := range n {
		for i, id := range []string{"v", "a"} {
			j.Part(m[i], fmt.Appendf(nil, "<%s %d %d>", id, msn, k), 300, k == 0)
		}
	}
	if whole {
		for _, id := range []string{"v", "a"} {
			j.Note(msn, journal.Record{End: id, Duration: int64(300*n + 50), Target: 2}, nil)
		}
	}
	return m
}

// putDown has files closed once they are written.
func putDown(j *journal.Journal, m [2]*journal.Media) {
	j.PutDown(m[0])
	j.PutDown(m[1])
}

func TestWhatIsWrittenIsLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal", "m")
	j := open(dir)
	stop := run(t, j)
	putDown(j, write(j, 0, 2, true))
	putDown(j, write(j, 1, 3, true))
	putDown(j, write(j, 2, 1, false))
	j.Forget(1)
	stop()
	if s := j.Stats(); s.Missing != 0 {
		t.Errorf("%+v", s)
	}
	got := left(open(dir))
	if len(got) != 2 || got[0].MSN != 0 || got[1].MSN != 2 {
		t.Fatalf("%+v", got)
	}
	want := &journal.Rendition{
		ID: "v", Rendition: &timeline.RenditionInfo{ID: "v", Timescale: 1000, PartTarget: 300000}, Begun: true,
		Whole: true, Duration: 650,
		Inits: []journal.Init{{Init: timeline.Init{Rendition: "v", Codec: "c"}, Data: []byte("init v")}},
		Parts: []journal.Part{{End: 7, Ticks: 300, Independent: true}, {End: 14, Ticks: 300}},
		Data:  []byte("<v 0 0><v 0 1>"),
	}
	if !reflect.DeepEqual(got[0].Rendition("v"), want) || got[0].Target != 2 {
		t.Errorf("%+v\nwant %+v", got[0].Rendition("v"), want)
	}
	if a := got[1].Rendition("a"); a.Whole || string(a.Data) != "<a 2 0>" || a.Ticks() != 300 || a.Time != 4000 ||
		a.Rendition != nil {
		t.Errorf("%+v", a)
	}
}

// TestSecondLife: what the first life gave up or stored is marked so in the index, and its numbers do not stand in the
// second one's way.
func TestSecondLife(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	life := func(do func(j *journal.Journal)) []*journal.Segment {
		j := open(dir)
		before := left(j)
		stop := run(t, j)
		do(j)
		stop()
		return before
	}
	life(func(j *journal.Journal) {
		putDown(j, write(j, 0, 2, true))
		putDown(j, write(j, 1, 1, false))
	})
	life(func(j *journal.Journal) {
		j.Stored(0)
		j.Forget(1)
		putDown(j, write(j, 1, 3, true))
		putDown(j, write(j, 2, 2, false))
	})
	got := left(open(dir))
	if len(got) != 3 || !got[0].Stored || len(got[0].Rendition("v").Parts) != 0 || got[1].Stored || got[2].MSN != 2 {
		t.Fatalf("%+v", got)
	}
	if v := got[1].Rendition("v"); !v.Whole || string(v.Data) != "<v 1 0><v 1 1><v 1 2>" {
		t.Errorf("%+v", v)
	}
	for s := range open(dir).Left {
		if v := s.Rendition("v"); s.Stored && (len(v.Parts) != 2 || v.Parts[1].End != 14 || v.Parts[1].Ticks != 300) {
			t.Errorf("the parts of what is stored are %+v", v.Parts)
		}
	}
	// two segments of two renditions, and the index
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 5 {
		t.Errorf("%v %v", entries, err)
	}
}

// TestLaterGenerationCounts: where a life could not say that it has given a number up, the generation of the next one
// does.
func TestLaterGenerationCounts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	for generation := range int64(3) {
		j := open(dir)
		left(j)
		stop := run(t, j)
		m := j.Media(7, "v")
		j.Note(7, journal.Record{Begin: "v", Generation: generation}, nil)
		j.Part(m, fmt.Appendf(nil, "<generation %d>", generation), 300, true)
		j.PutDown(m)
		stop()
	}
	got := left(open(dir))
	if len(got) != 1 || got[0].Generation != 2 || string(got[0].Rendition("v").Data) != "<generation 2>" {
		t.Errorf("%+v", got)
	}
}

// TestForgottenSegmentsLeaveNothing: neither files nor, for long, records.
func TestForgottenSegmentsLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := open(dir)
	stop := run(t, j)
	const last = 500
	for msn := range int64(last) {
		putDown(j, write(j, msn, 5, true))
		if msn > 1 {
			j.Forget(msn - 2)
		}
	}
	putDown(j, write(j, last, 1, false))
	stop()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 7 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "index")); err != nil || info.Size() > 100<<10 {
		t.Errorf("%+v, %v", info, err)
	}
	j = open(dir)
	got := left(j)
	if len(got) != 3 || got[0].MSN != last-2 || got[2].MSN != last ||
		string(got[2].Rendition("v").Data) != "<v 500 0>" {
		t.Fatalf("%+v", got)
	}
	stop = run(t, j) // another life goes on in the same index
	for msn := int64(last + 1); msn < 2*last; msn++ {
		putDown(j, write(j, msn, 5, true))
		j.Forget(msn - 3)
	}
	stop()
	if got := left(open(dir)); len(got) != 3 || got[0].MSN != 2*last-3 || len(got[2].Rendition("a").Parts) != 5 {
		t.Fatalf("%+v", got)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := open(dir)
	write(j, 0, 1, true)
	j.Close()
	j.Close()
	j.Note(1, journal.Record{Begin: "v"}, nil) // nobody is hurt
	j.Part(j.Media(1, "v"), []byte("late"), 1, true)
	j.Forget(0)
	if err := j.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if got := left(j); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// ending is a context that ends in the very moment somebody asks whether it has; at is done just before.
type ending struct {
	context.Context
	at func()
}

func (e ending) Err() error {
	e.at()
	return context.Canceled
}

// TestClosedInTheLastMoment: what was ordered before the end is done, also when Run has just found nothing to do.
func TestClosedInTheLastMoment(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := open(dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := j.Run(ending{t.Context(), j.Close}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the journal is still there: %v", err)
	}
}

// TestTornAnywhere: whatever the last write came to, the parts before it are read, and nothing else.
func TestTornAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(dir)
	stop := run(t, j)
	putDown(j, write(j, 0, 3, true))
	stop()
	full := left(open(dir))[0]
	same := func(what string) (parts int) {
		for _, s := range left(open(dir)) {
			for _, l := range s.Renditions {
				w := full.Rendition(l.ID)
				if len(l.Parts) > 0 && l.Parts[len(l.Parts)-1].End != int64(len(l.Data)) ||
					!bytes.HasPrefix(w.Data, l.Data) || l.Whole && len(l.Parts) != 3 {
					t.Fatalf("%s: %+v", what, l)
				}
				parts += len(l.Parts)
			}
		}
		return parts
	}
	for file, least := range map[string]int{"index": 0, "0.v.m4s": 3, "0.a.m4s": 3} {
		name := filepath.Join(dir, file)
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		parts := least
		for n := range len(whole) + 1 {
			if err := os.WriteFile(name, whole[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			got := same(fmt.Sprintf("%s cut at %d", file, n))
			if got < parts {
				t.Fatalf("%s cut at %d: %d parts, %d before", file, n, got, parts)
			}
			parts = got
		}
		if parts != 6 {
			t.Errorf("%d parts", parts)
		}
		for n := range whole { // a byte that is not what was written
			bad := bytes.Clone(whole)
			bad[n] ^= 0x40
			if err := os.WriteFile(name, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := same(fmt.Sprintf("%s: byte %d changed", file, n)); got == 6 && file != "index" {
				t.Fatalf("%s: byte %d changed, and not seen", file, n)
			}
		}
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiskThatHangs: the one who appends waits once and shortly; what does not fit is counted, and nothing is written
// behind a hole.
func TestDiskThatHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.Options{Dir: dir, MaxBacklog: 1500, Logger: slog.New(slog.DiscardHandler)})
		began := time.Now()
		m := write(j, 0, 100, true) // nobody writes
		if m[0].Written(1) {
			t.Error("written, says a file that does not exist")
		}
		write(j, 1, 1, true)
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("took %v", took)
		}
		s := j.Stats()
		if s.Late != 1 || s.Missing < 100 {
			t.Errorf("%+v", s)
		}
		stop := run(t, j) // the disk is back
		defer func() { stop() }()
		for !m[0].Written(int64(len("<v 0 0>"))) {
			runtime.Gosched()
		}
		if m[0].Written(100 * 7) {
			t.Error("all written, and some did not fit")
		}
		putDown(j, m)
		j.Forget(0)
		j.Forget(1)
		stop()
		stop = run(t, j)
		putDown(j, write(j, 2, 3, true))
		stop()
		if again := j.Stats(); again.Missing != s.Missing { // on a busy machine one more may be late
			t.Errorf("%+v, then %+v", s, again)
		}
		got := left(open(dir))
		if len(got) != 1 || got[0].MSN != 2 || len(got[0].Rendition("a").Parts) != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// TestFileIsTheSegment: what is written is read at once, by as many as like to, also after the file was put down, until
// it is forgotten.
func TestFileIsTheSegment(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := journal.New(journal.Options{Dir: dir, Patience: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	stop := run(t, j)
	m := j.Media(0, "v")
	if _, err := m.Section(0, 1); err == nil || m.Written(1) || !m.Written(0) {
		t.Error("a file that nobody has written to is read")
	}
	j.Note(0, journal.Record{Begin: "v"}, nil)
	read := func(off, n int64, want string) {
		t.Helper()
		s, err := m.Section(off, n)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got, err := io.ReadAll(s); string(got) != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
	for k := range 3 {
		j.Part(m, fmt.Appendf(nil, "<part %d>", k), 300, true)
		if !m.Written(int64(8*k+8)) || m.Written(int64(8*k+9)) {
			t.Error("not written in time")
		}
		read(int64(8*k), 8, fmt.Sprintf("<part %d>", k))
	}
	read(0, 24, "<part 0><part 1><part 2>")
	open, err := m.Hold()
	if err != nil {
		t.Fatal(err)
	}
	m.PutDown()
	read(8, 16, "<part 1><part 2>")
	if n := descriptors(t, dir, ".m4s"); n != 1 {
		t.Errorf("%d files are open", n)
	}
	j.Forget(0)
	j.Close()
	stop()
	if _, err := m.Section(0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("forgotten, and: %v", err)
	}
	if data, err := io.ReadAll(io.NewSectionReader(open.OS(), 0, 100)); string(data) != "<part 0><part 1><part 2>" ||
		err != nil {
		t.Errorf("who had it open reads %q, %v", data, err)
	}
	if err := open.Close(); err != nil || descriptors(t, dir, "") != 0 {
		t.Errorf("files are open still, %v", err)
	}
}

// descriptors counts those of this process that lead below dir to such names, also to what was deleted there.
func descriptors(t *testing.T, dir, ending string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	n := 0
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if to = strings.TrimSuffix(to, " (deleted)"); err == nil && strings.HasPrefix(to, dir+"/") &&
			strings.HasSuffix(to, ending) {
			n++
		}
	}
	return n
}

// TestWhatStorageHasIsNotTouched: a dead process left a file that is an object of storage by its second name.
func TestWhatStorageHasIsNotTouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, stored := filepath.Join(dir, "0.v.m4s"), filepath.Join(t.TempDir(), "object")
	if err := errors.Join(os.WriteFile(name, []byte("stored"), 0o600), os.Link(name, stored)); err != nil {
		t.Fatal(err)
	}
	j := open(dir)
	stop := run(t, j)
	putDown(j, write(j, 0, 2, true))
	stop()
	if data, err := os.ReadFile(stored); string(data) != "stored" || err != nil {
		t.Errorf("%q %v", data, err)
	}
	if got := left(open(dir)); len(got) != 1 || string(got[0].Rendition("v").Data) != "<v 0 0><v 0 1>" {
		t.Errorf("%+v", got)
	}
}

func TestDiskThatRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(filepath.Join(file, "m")) // a file is no folder
	stop := run(t, j)
	m := write(j, 0, 2, true)
	stop()
	if s := j.Stats(); s.Missing == 0 || m[0].Written(1) {
		t.Errorf("%+v", s)
	}
	if got := left(j); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestDiskThatRefusesOnce: one segment is not there to its end, those behind it are.
func TestDiskThatRefusesOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ breaks, left string }{
		"media": {"1.a.m4s/x", "0 2 1 1|1 1 0 0|2 2 1 1|"}, // a folder that is not empty stands where the file is to be
		"index": {"index/x", "2 2 1 1|"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			j := open(dir)
			stop := run(t, j)
			if name == "media" {
				putDown(j, write(j, 0, 1, true))
			}
			if err := os.MkdirAll(filepath.Join(dir, tt.breaks), 0o700); err != nil {
				t.Fatal(err)
			}
			m := write(j, 1, 1, true)
			for j.Stats().Missing == 0 {
				runtime.Gosched()
			}
			putDown(j, m)
			stop()
			if err := os.RemoveAll(filepath.Join(dir, filepath.Dir(tt.breaks))); err != nil {
				t.Fatal(err)
			}
			stop = run(t, j)
			putDown(j, write(j, 2, 1, true))
			stop()
			got := ""
			for _, s := range left(open(dir)) {
				v, a := s.Rendition("v"), s.Rendition("a")
				got += fmt.Sprint(s.MSN, " ", len(v.Parts)+len(a.Parts), " ")
				for _, l := range []*journal.Rendition{v, a} {
					if l.Whole {
						got += "1"
					} else {
						got += "0"
					}
					got += " "
				}
				got = strings.TrimSuffix(got, " ") + "|"
			}
			if got != tt.left {
				t.Errorf("%s, want %s", got, tt.left)
			}
		})
	}
}

func TestManySegmentsWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(dir)
	stop := run(t, j)
	for n := range int64(50) {
		putDown(j, write(j, n, 2, true))
	}
	stop()
	if got := left(open(dir)); len(got) != 50 || got[49].MSN != 49 || !got[49].Rendition("a").Whole {
		t.Errorf("%d segments", len(got))
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, m := range []string{"a", "b"} {
		j := open(filepath.Join(root, m))
		stop := run(t, j)
		putDown(j, write(j, 0, 1, true))
		stop()
	}
	if err := journal.Sweep(root, func(name string) bool { return name == "b" }); err != nil {
		t.Fatal(err)
	}
	if a, b := left(open(filepath.Join(root, "a"))), left(open(filepath.Join(root, "b"))); len(a) != 0 || len(b) != 1 {
		t.Errorf("%d, %d left", len(a), len(b))
	}
	if err := journal.Sweep(filepath.Join(root, "nowhere"), nil); err != nil {
		t.Error(err)
	}
}

// TestSweepFollowsNoLink: what a link leads to is not ours to delete.
func TestSweepFollowsNoLink(t *testing.T) {
	t.Parallel()
	theirs, root := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	kept := filepath.Join(theirs, "letters")
	if err := errors.Join(os.WriteFile(kept, []byte("dear"), 0o600), os.Symlink(theirs, root)); err != nil {
		t.Fatal(err)
	}
	none := func(string) bool { return false }
	if err := journal.Sweep(root, none); !errors.Is(err, journal.ErrLink) {
		t.Errorf("a link is swept: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

// FuzzLeft: a file that nobody wrote on purpose costs no more than its size.
func FuzzLeft(f *testing.F) {
	dir := f.TempDir()
	j := open(dir)
	write(j, 0, 2, true)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	_ = j.Run(ctx) // it writes what is there
	seed, err := os.ReadFile(filepath.Join(dir, "index"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		parts := bytes.Repeat([]byte("<v 0 0><v 0 1>"), 100)
		for name, data := range map[string][]byte{
			"index": data, "0.v.m4s": parts, "0.a.m4s": parts[14:], "3.v.m4s": parts,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range left(open(dir)) {
			total := 0
			for _, l := range s.Renditions {
				total += len(l.Data)
				for _, in := range l.Inits {
					total += len(in.Data)
				}
				l.Keep(1)
				if l.Ticks() < 0 || len(l.Parts) > 1 {
					t.Errorf("%+v", l)
				}
			}
			if total > len(data)+2*len(parts) {
				t.Errorf("%d bytes of %d", total, len(data))
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	j := open(b.TempDir())
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(b.Context())
	go func() {
		defer close(done)
		_ = j.Run(ctx) // its end is the benchmark's
	}()
	data := make([]byte, 40<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	n, m := int64(0), j.Media(0, "v")
	for b.Loop() {
		n++
		j.Part(m, data, 27000, true)
		if n%14 == 0 {
			j.PutDown(m)
			m = j.Media(n/14, "v")
			j.Forget(n/14 - 2)
		}
	}
	cancel()
	<-done
}
