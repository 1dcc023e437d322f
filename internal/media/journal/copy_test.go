package journal_test

import (
	"bytes"
	"log/slog"
	"math"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/journal"
)

// machine keeps what a journal says, as another machine does.
type machine struct {
	journal.Replica

	outline bool
	awaited int
	took    time.Duration // Await takes so long, if it may
}

func (m *machine) Add(record []byte) {
	if m.outline {
		record = journal.Outline(record)
	}
	if err := m.Replica.Add(record); err != nil {
		panic(err)
	}
}

func (m *machine) Await(most time.Duration) {
	m.awaited++
	time.Sleep(min(m.took, most))
}

func tapped(dir string, by journal.Tap) *journal.Journal {
	return journal.New(journal.Options{Dir: dir, Tap: by, Logger: slog.New(slog.DiscardHandler)})
}

func fromCopy(t *testing.T, records []byte) *journal.Journal {
	t.Helper()
	return journal.New(journal.Options{
		Dir: filepath.Join(t.TempDir(), "other"), Copied: journal.Copied{Records: records, Before: 1000},
		Logger: slog.New(slog.DiscardHandler),
	})
}

// all are segments without where they lie.
func all(of []*journal.Segment) (out []journal.Segment) {
	for _, s := range of {
		out = append(out, journal.Segment{
			MSN: s.MSN, Generation: s.Generation, Target: s.Target, Stored: s.Stored, Renditions: s.Renditions,
			Texts: s.Texts,
		})
	}
	return out
}

// What a machine has copied is what the disk of the first one has, whatever became of the segments.
func TestCopyIsWhatIsLeft(t *testing.T) {
	t.Parallel()
	dir, by := filepath.Join(t.TempDir(), "m"), &machine{}
	j := tapped(dir, by)
	stop := run(t, j)
	putDown(j, write(j, 0, 2, true))
	putDown(j, write(j, 1, 3, true))
	putDown(j, write(j, 2, 2, true))
	putDown(j, write(j, 3, 1, false))
	j.Stored(0)
	j.Stored(1)
	j.Forget(0)
	stop()
	want := all(left(open(dir)))
	other := fromCopy(t, by.All())
	got := left(other)
	if !reflect.DeepEqual(all(got), want) || len(want) != 3 || len(want[2].Renditions) == 0 {
		t.Errorf("%+v\nwant %+v", all(got), want)
	}
	if next, known := other.Marked(); next != 4 || !known || !other.Inherited() {
		t.Errorf("published before %d, %v", next, known)
	}
	if by.awaited != 2*(2+3+2+1) {
		t.Errorf("awaited %d times", by.awaited)
	}
	again := &machine{}
	again.Fill(by.All())
	if !bytes.Equal(again.All(), by.All()) || again.Size() != by.Size() {
		t.Error("a copy of the copy is another one")
	}
}

// Where only lengths were copied, or media was left out, a segment is known by how long it was as players were told.
func TestCopyOfLengths(t *testing.T) {
	t.Parallel()
	for name, outline := range map[string]bool{"lengths": true, "left out": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, by := filepath.Join(t.TempDir(), "m"), &machine{outline: outline}
			j := tapped(dir, by)
			stop := run(t, j)
			putDown(j, write(j, 0, 2, true))
			putDown(j, write(j, 1, 3, false))
			stop()
			for by.Thin() > 0 {
				if outline {
					t.Fatal("there was media")
				}
			}
			got := left(fromCopy(t, by.All()))
			if len(got) != 2 {
				t.Fatalf("%+v", got)
			}
			for i, want := range []int64{650, 900} {
				if v := got[i].Rendition("v"); v.Lost != want || len(v.Parts) > 0 || len(v.Data) > 0 || !v.Begun {
					t.Errorf("%d: %+v, lost should be %d", i, v, want)
				}
			}
		})
	}
}

// The media of the oldest segment is left out first.
func TestCopyIsThinned(t *testing.T) {
	t.Parallel()
	by := &machine{}
	j := tapped(filepath.Join(t.TempDir(), "m"), by)
	stop := run(t, j)
	write(j, 0, 2, true)
	write(j, 1, 2, true)
	stop()
	was := by.Size()
	n := by.Thin()
	if n <= 0 || by.Size() != was-n {
		t.Errorf("%d left out: %d bytes after %d", n, by.Size(), was)
	}
	got := left(fromCopy(t, by.All()))
	if v := got[0].Rendition("v"); len(v.Parts) != 0 || v.Lost != 650 {
		t.Errorf("%+v", v)
	}
	if v := got[1].Rendition("v"); string(v.Data) != "<v 1 0><v 1 1>" {
		t.Errorf("%+v", v)
	}
}

// Records that were fetched are not fetched again, and what others were to forget is not kept for ever.
func TestCopyGoesOn(t *testing.T) {
	t.Parallel()
	by, other := &machine{}, &machine{}
	j := tapped(filepath.Join(t.TempDir(), "m"), by)
	stop := run(t, j)
	defer stop()
	at := uint64(0)
	fetch := func(most int) (n int) {
		for {
			records, last := by.Since(at, most)
			if at = last; len(records) == 0 {
				return n
			}
			for _, r := range records {
				other.Add(r)
			}
			n += len(records)
		}
	}
	write(j, 0, 2, true)
	first := fetch(1)
	write(j, 1, 2, true)
	j.Stored(0)
	second := fetch(math.MaxInt)
	j.Forget(0)
	third := fetch(1)
	if first != 10 || second != 9 || third != 1 || at != by.Last() {
		t.Errorf("%d, %d and %d records", first, second, third)
	}
	by.Fetched(at)
	other.Fetched(other.Last())
	if !bytes.Equal(by.All(), other.All()) {
		t.Error("the other machine has something else")
	}
	if got := left(fromCopy(t, by.All())); len(got) != 1 || got[0].MSN != 1 {
		t.Errorf("%+v", got)
	}
}

// A machine that copies holds a part up for no longer than a disk may.
func TestCopyIsNotAwaitedForLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		by := &machine{took: time.Hour}
		j := tapped(dir, by)
		began := time.Now()
		write(j, 0, 1, false) // nobody writes: the disk takes its time too
		if took := time.Since(began); took != 2*50*time.Millisecond {
			t.Errorf("two parts took %v", took)
		}
	})
}

// What another machine sends may be anything.
func TestCopyOfNonsense(t *testing.T) {
	t.Parallel()
	by := &machine{}
	j := tapped(filepath.Join(t.TempDir(), "m"), by)
	stop := run(t, j)
	write(j, 0, 2, true)
	stop()
	good := by.All()
	for at := range good {
		bad := bytes.Clone(good)
		bad[at] ^= 0x55
		got := left(fromCopy(t, bad))
		if len(got) > 1 {
			t.Fatalf("byte %d: %+v", at, got)
		}
		if _, _, err := journal.Frame(bad); err == nil {
			var r journal.Replica
			r.Fill(bad)
			if r.Size() > 64*64+int64(len(good)) {
				t.Fatalf("byte %d: %d bytes", at, r.Size())
			}
		}
	}
	far := journal.New(journal.Options{
		Dir: filepath.Join(t.TempDir(), "far"), Copied: journal.Copied{Records: good, Before: 0},
		Logger: slog.New(slog.DiscardHandler),
	})
	if got := left(far); len(got) != 0 || far.Inherited() {
		t.Errorf("numbers that can't be: %+v", got)
	}
	if err := new(journal.Replica).Add(good); err == nil {
		t.Error("many records were taken for one")
	}
}
