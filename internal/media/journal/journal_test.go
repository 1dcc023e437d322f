package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/media/frame"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
		out = append(out, s)
	}
	return out
}

// write journals a segment of two renditions: n parts each, whole or not.
func write(j *journal.Journal, msn int64, n int, whole bool) {
	for i, id := range []string{"v", "a"} {
		if msn == 0 {
			r := timeline.Rendition{ID: id, Kind: frame.Kind(i), Timescale: 1000, PartTarget: 300000}
			j.Append(msn, journal.Record{Init: &timeline.Init{Rendition: id, Codec: "c"}, Rendition: &r}, []byte("init "+id), false)
		}
		j.Append(msn, journal.Record{Begin: id, Start: 1000 * msn, Discontinuity: msn == 1, Time: 2000 * msn, Target: 2}, nil, false)
	}
	for k := range n {
		for _, id := range []string{"v", "a"} {
			j.Append(msn, journal.Record{Part: id, Duration: 300, Independent: k == 0}, fmt.Appendf(nil, "<%s %d %d>", id, msn, k), true)
		}
	}
	if whole {
		for _, id := range []string{"v", "a"} {
			j.Append(msn, journal.Record{End: id, Duration: int64(300*n + 50), Target: 2}, nil, false)
		}
	}
}

func TestWhatIsWrittenIsLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal", "m")
	j := open(dir)
	stop := run(t, j)
	write(j, 0, 2, true)
	write(j, 1, 3, true)
	write(j, 2, 1, false)
	j.Forget(1)
	stop()
	if s := j.Stats(); s.Missing != 0 {
		t.Errorf("%+v", s)
	}
	got := left(open(dir))
	if len(got) != 2 || got[0].MSN != 0 || got[1].MSN != 2 {
		t.Fatalf("%+v", got)
	}
	want := &journal.Lane{
		ID: "v", Rendition: &timeline.Rendition{ID: "v", Timescale: 1000, PartTarget: 300000}, Begun: true, Whole: true, Duration: 650,
		Inits: []journal.Init{{Init: timeline.Init{Rendition: "v", Codec: "c"}, Data: []byte("init v")}},
		Parts: []journal.Part{{End: 7, Ticks: 300, Independent: true}, {End: 14, Ticks: 300}}, Data: []byte("<v 0 0><v 0 1>"),
	}
	if !reflect.DeepEqual(got[0].Lane("v"), want) || got[0].Target != 2 {
		t.Errorf("%+v\nwant %+v", got[0].Lane("v"), want)
	}
	if a := got[1].Lane("a"); a.Whole || string(a.Data) != "<a 2 0>" || a.Ticks() != 300 || a.Time != 4000 || a.Rendition != nil {
		t.Errorf("%+v", a)
	}
}

// TestFilesAreUsedAgain: what was in a file before never comes back.
func TestFilesAreUsedAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := open(dir)
	stop := run(t, j)
	for msn := range int64(20) {
		write(j, msn, 5, true)
		if msn > 1 {
			j.Forget(msn - 2)
		}
	}
	write(j, 20, 1, false)
	stop()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 4 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	got := left(open(dir))
	if len(got) != 3 || got[0].MSN != 18 || got[2].MSN != 20 || string(got[2].Lane("v").Data) != "<v 20 0>" {
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
	j.Append(1, journal.Record{Begin: "v"}, nil, true) // nobody is hurt
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

// TestTornAnywhere: whatever the last write came to, the records before it are read.
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

func TestTornAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(dir)
	stop := run(t, j)
	write(j, 0, 3, true)
	stop()
	name := filepath.Join(dir, "0.parts")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	full := left(j)[0]
	parts := 0
	for n := range len(whole) + 1 {
		if err := os.WriteFile(name, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s := left(j)[0]
		for _, l := range s.Lanes {
			w := full.Lane(l.ID)
			if len(l.Data) > len(w.Data) || !bytes.Equal(l.Data, w.Data[:len(l.Data)]) || len(l.Parts) > 0 && l.Parts[len(l.Parts)-1].End != int64(len(l.Data)) {
				t.Fatalf("cut at %d: %+v", n, l)
			}
		}
		if v := s.Lane("v"); v != nil {
			if len(v.Parts) < parts {
				t.Fatalf("cut at %d: %d parts, %d before", n, len(v.Parts), parts)
			}
			parts = len(v.Parts)
		}
	}
	for n := range whole { // a byte that is not what was written
		bad := bytes.Clone(whole)
		bad[n] ^= 0x40
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if l := left(j)[0].Lane("v"); l != nil && !bytes.HasPrefix(full.Lane("v").Data, l.Data) {
			t.Fatalf("byte %d changed: %q", n, l.Data)
		}
	}
}

// TestDiskThatHangs: the one who appends waits once and shortly; what does not fit is counted, and nothing is written behind a hole.
func TestDiskThatHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "0.parts")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here")
	}
	j := journal.New(journal.Options{Dir: dir, MaxBacklog: 2000, Logger: slog.New(slog.DiscardHandler)})
	stop := run(t, j)
	began := time.Now()
	write(j, 0, 100, true) // opening the pipe hangs until somebody reads
	write(j, 1, 1, true)
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	s := j.Stats()
	if s.Late != 1 || s.Missing < 100 {
		t.Errorf("%+v", s)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // the disk is back
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }() // a pipe
	j.Forget(0)
	j.Forget(1)
	stop()
	stop = run(t, j)
	write(j, 2, 3, true)
	stop()
	if again := j.Stats(); again != s {
		t.Errorf("%+v, then %+v", s, again)
	}
	got := left(j)
	if len(got) != 1 || got[0].MSN != 2 || len(got[0].Lane("a").Parts) != 3 {
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
	write(j, 0, 2, true)
	stop()
	if s := j.Stats(); s.Missing == 0 {
		t.Errorf("%+v", s)
	}
	if got := left(j); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestManySegmentsWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(dir)
	stop := run(t, j)
	for n := range int64(50) {
		write(j, n, 2, true)
	}
	stop()
	if got := left(open(dir)); len(got) != 50 || got[49].MSN != 49 || !got[49].Lane("a").Whole {
		t.Errorf("%d segments", len(got))
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, m := range []string{"a", "b"} {
		j := open(filepath.Join(root, m))
		stop := run(t, j)
		write(j, 0, 1, true)
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

// FuzzLeft: a file that nobody wrote on purpose costs no more than its size.
func FuzzLeft(f *testing.F) {
	dir := f.TempDir()
	j := open(dir)
	write(j, 0, 2, true)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	_ = j.Run(ctx) // it writes what is there
	seed, err := os.ReadFile(filepath.Join(dir, "0.parts"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "3.parts"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, s := range left(open(dir)) {
			total := 0
			for _, l := range s.Lanes {
				total += len(l.Data)
				l.Keep(1)
				if l.Ticks() < 0 || len(l.Parts) > 1 {
					t.Errorf("%+v", l)
				}
			}
			if total > len(data) {
				t.Errorf("%d bytes of %d", total, len(data))
			}
			s.Clear()
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
	n := int64(0)
	for b.Loop() {
		n++
		j.Append(n/14, journal.Record{Part: "v", Duration: 27000}, data, true)
		if n%14 == 0 {
			j.Forget(n/14 - 2)
		}
	}
	cancel()
	<-done
}
