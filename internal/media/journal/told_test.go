package journal_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/media/frame"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// fullDisk is a folder in which nothing can be made.
func fullDisk(t *testing.T) places {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return places{filepath.Join(file, "journal"), newPlaces(t).mark}
}

// tell publishes a segment as the edge does, without waiting for the disk.
func tell(j *journal.Journal, msn, generation, ticks int64) {
	for _, id := range []string{"v", "a"} {
		if msn == 7 {
			r := timeline.RenditionInfo{ID: id, Kind: frame.Video, Timescale: 1000}
			j.Note(msn, journal.Record{Init: &timeline.Init{Rendition: id}, Rendition: &r}, []byte("init of "+id))
		}
		j.Note(msn, journal.Record{
			Begin: id, Generation: generation, Time: msn * 1000, Discontinuity: msn == 8, Target: 2,
		}, nil)
		if ticks > 0 {
			j.Note(msn, journal.Record{End: id, Duration: ticks, Parts: 3}, nil)
		}
	}
	j.Published(msn)
}

// TestToldOutlivesADiskThatIsFull: the next process knows where each segment that players were told of begins and how
// long it is, until it is recorded.
func TestToldOutlivesADiskThatIsFull(t *testing.T) {
	t.Parallel()
	p := fullDisk(t)
	one := p.open()
	if got := left(one); len(got) != 0 {
		t.Errorf("%d segments before the first", len(got))
	}
	tell(one, 7, 0, 1900)
	tell(one, 8, 0, 2100)
	tell(one, 9, 0, 0)
	for range 2 { // the next process may die, too
		got := left(p.open())
		if len(got) != 3 || got[0].MSN != 7 || got[2].MSN != 9 || got[1].Target != 2 {
			t.Fatalf("%d segments", len(got))
		}
		first, second, open := got[0].Rendition("v"), got[1].Rendition("a"), got[2].Rendition("v")
		if first.Told != 1900 || first.Rendition == nil || string(first.Inits[0].Data) != "init of v" || got[0].Any() {
			t.Errorf("the first one is %+v", first)
		}
		if second.Told != 2100 || second.Time != 8000 || !second.Discontinuity || second.Whole {
			t.Errorf("the second one is %+v", second)
		}
		if !open.Begun || open.Told != 0 {
			t.Errorf("the open one is %+v", open)
		}
	}
	two := p.open()
	left(two)
	two.Stored(7)
	two.Forget(9) // nobody was told
	tell(two, 9, 1, 500)
	if got := left(p.open()); len(got) != 2 || got[1].Generation != 1 || got[1].Rendition("v").Told != 500 {
		t.Errorf("%d segments, want 8 and 9", len(got))
	}
	this := func(name string) bool { return name == filepath.Base(p.mark) }
	if err := journal.Sweep(filepath.Dir(p.mark), this); err != nil {
		t.Fatal(err)
	}
	if got := left(p.open()); len(got) != 2 {
		t.Errorf("%d segments are left of a broadcast that is kept", len(got))
	}
	two.Close()
	if err := two.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Dir(p.mark)); err != nil || len(entries) != 0 {
		t.Errorf("left in memory: %v %v", entries, err)
	}
}

// TestToldIsAddedToWhatTheDiskHas: a segment whose end the disk has not is whole where all of its parts are there, and
// known to be longer where they are not. What another generation has said of a number does not count.
func TestToldIsAddedToWhatTheDiskHas(t *testing.T) {
	t.Parallel()
	disk, memory := newPlaces(t), newPlaces(t)
	for _, p := range []places{disk, memory} {
		j := p.open()
		left(j)
		write(j, 3, 2, false)
		write(j, 4, 1, false)
		if p.mark == memory.mark {
			j.Note(3, journal.Record{End: "v", Duration: 650, Parts: 2}, nil)
			write(j, 5, 1, true)
		}
		j.Do(100)
	}
	got := left(places{disk.dir, memory.mark}.open())
	if len(got) != 3 {
		t.Fatalf("%d segments", len(got))
	}
	whole, open, lost := got[0].Rendition("v"), got[1].Rendition("v"), got[2].Rendition("v")
	if !whole.Whole || whole.Told == 0 || whole.Duration != whole.Told || len(whole.Parts) != 2 {
		t.Errorf("all but the end: %+v", whole)
	}
	if open.Whole || open.Told != 0 || len(open.Parts) != 1 {
		t.Errorf("open: %+v", open)
	}
	if lost.Whole || lost.Told == 0 || len(lost.Parts) != 0 {
		t.Errorf("lost: %+v", lost)
	}
}

// TestToldIsBounded: what does not fit is not kept, and nothing of what does is lost.
func TestToldIsBounded(t *testing.T) {
	t.Parallel()
	p := fullDisk(t)
	j := journal.New(journal.Options{Dir: p.dir, Mark: p.mark, MaxBacklog: 1, Logger: slog.New(slog.DiscardHandler)})
	left(j)
	for msn := range int64(12000) {
		tell(j, msn+7, 0, 2000)
	}
	info, err := os.Stat(filepath.Join(p.mark+".told", "index"))
	if err != nil || info.Size() > 4<<20 {
		t.Fatalf("%d bytes: %v", info.Size(), err)
	}
	if got := left(p.open()); len(got) < 9000 ||
		got[0].Rendition("v").Told != 2000 || got[5000].Rendition("a").Told != 2000 {
		t.Errorf("%d segments", len(got))
	}
	for msn := range int64(6000) {
		j.Stored(msn + 7)
	}
	tell(j, 13000, 0, 1000)
	if got := left(p.open()); got[len(got)-1].MSN != 13000 {
		t.Errorf("there is no room where much is recorded: the last one is %d", got[len(got)-1].MSN)
	}
}
