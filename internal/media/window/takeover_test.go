package window

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/hls"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// witness remembers all that it was told and given, over all lives of a broadcast.
type witness struct {
	t      *testing.T
	given  map[string][]byte  // bytes by URI
	length map[string]float64 // EXTINF by URI
	gaps   map[string]bool
	next   map[string]int64 // by rendition: the media sequence number behind the last one that was listed
	parts  map[string]bool  // listed in the last playlists before the crash
	below  *makers          // of the derived rendition "s"; nil: there is none
	// headsWait says that what of "s" is made behind a stored head may be missing while storage is away.
	headsWait bool
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	return &witness{
		t: t, given: map[string][]byte{}, length: map[string]float64{}, gaps: map[string]bool{},
		next: map[string]int64{}, parts: map[string]bool{},
	}
}

// fetch gets what a URI names.
func (w *witness) fetch(r *rig, uri string) []byte {
	w.t.Helper()
	rendition, name, _ := strings.Cut(uri, "/")
	res, ok := hls.ParseResource(name)
	if !ok || !r.Named(rendition, res) {
		return nil
	}
	var p Location
	var err error
	switch {
	case res.Init >= 0:
		p, err = r.ReadInit(rendition, res.Init)
	case res.Part >= 0:
		p, err = r.ReadPart(w.t.Context(), rendition, res.MSN, res.Part)
	default:
		p, err = r.ReadSegment(w.t.Context(), rendition, res.MSN)
	}
	if err != nil {
		return nil
	}
	if rendition == "s" {
		return w.below.get(r, p)
	}
	if p.File != nil {
		s, err := p.File.Section(p.Offset, p.N)
		if err == nil {
			defer s.Close()
			data, _ := io.ReadAll(s)
			return data
		}
	}
	if p.Data != nil {
		return p.Data
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	data := r.store.objects[p.Object]
	if p.N < 0 {
		return data
	}
	if int64(len(data)) < p.Offset+p.N {
		return nil
	}
	return data[p.Offset:][:p.N]
}

// same fetches a URI and compares it with what it gave before.
func (w *witness) same(r *rig, when, uri string) {
	w.t.Helper()
	data := w.fetch(r, uri)
	switch before, known := w.given[uri]; {
	case data == nil && strings.HasPrefix(uri, "s/") && (!known || w.headsWait && r.store.before != nil):
		// it takes storage to make it
	case data == nil:
		w.t.Errorf("%s: %s was listed and is not there", when, uri)
	case known && !bytes.Equal(before, data):
		w.t.Errorf("%s: %s gave %q and gives %q", when, uri, before, data)
	default:
		w.given[uri] = bytes.Clone(data)
	}
}

// watch reads the playlists of both renditions and all that they name.
func (w *witness) watch(r *rig, when string) {
	w.t.Helper()
	if _, err := r.Describe(); err != nil {
		return
	}
	clear(w.parts)
	ids := []string{"v", "a"}
	if w.below != nil {
		ids = append(ids, "s")
	}
	for _, id := range ids {
		l := r.list(w.t, id, now())
		if next := l.msn + int64(len(l.segs)); next < w.next[id] {
			w.t.Errorf("%s: %s goes back from %d to %d", when, id, w.next[id], next)
		} else {
			w.next[id] = next
		}
		for _, s := range l.segs {
			if s.init != "" && id != "s" {
				w.same(r, when, s.init)
			}
			if s.msn < 7 {
				continue
			}
			if d, known := w.length[s.uri]; known && (d != s.dur || w.gaps[s.uri] != s.gap) {
				w.t.Errorf("%s: %s was listed with %v, gap %v, and is with %v, gap %v", when, s.uri, d, w.gaps[s.uri],
					s.dur, s.gap)
			}
			w.length[s.uri], w.gaps[s.uri] = s.dur, s.gap
			if !s.gap {
				w.same(r, when, s.uri)
			}
			for _, p := range s.parts {
				w.parts[p.uri] = true
			}
		}
		for _, p := range l.open {
			w.parts[p.uri] = true
		}
	}
	for uri := range w.parts {
		w.same(r, when, uri)
	}
}

// TestStormOfCrashes lets a broadcast live many short lives, most of them shorter than a segment, on storage that is
// there or away, and wants everything that a viewer was ever told to stay true.
func TestStormOfCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "m")
			storm(t, seed, func() *journal.Journal { return journalIn(dir) })
		})
		t.Run(fmt.Sprint("seed ", seed, ", each time on another machine"), func(t *testing.T) {
			t.Parallel()
			copies := &replica{}
			storm(t, seed, func() *journal.Journal { return copies.next(filepath.Join(t.TempDir(), "m")) })
		})
	}
}

// replica is the copies of a broadcast's journals, one after the other.
type replica struct{ journal.Replica }

// Add implements journal.Tap.
func (r *replica) Add(record []byte) {
	if err := r.Replica.Add(record); err != nil {
		panic(err)
	}
	r.Fetched(r.Last())
}

// Await implements journal.Tap.
func (*replica) Await(time.Duration) {}

// next is the journal of a machine that has nothing but the copy.
func (r *replica) next(dir string) *journal.Journal {
	return journal.New(journal.Options{
		Dir: dir, Tap: r, Copied: journal.Copied{Records: r.All(), Before: 1 << 20},
		Patience: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
}

func storm(t *testing.T, seed uint64, open func() *journal.Journal) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWitness(t)
	store := newStorage()
	sent := 0.0
	for life := range 12 {
		store.before = nil
		if random.IntN(2) == 0 {
			store.before = func(context.Context, string) error { return errAway }
		}
		r := newRig(Options{
			Mode: low, Timeline: store.timeline(t), Journal: open(), Generation: int64(life),
			Store: store, Recorder: store,
		})
		r.store = store
		if r.at == 0 {
			r.at = timeline.Origin
		}
		stop := r.run(t)
		w.watchAgain(r, fmt.Sprintf("life %d begins", life))
		sent += liveOn(w, r, random, life)
		stop()
	}
	store.before = nil
	r := newRig(Options{
		Mode: low, Timeline: store.timeline(t), Journal: open(), Generation: 100, Store: store,
		Recorder: store,
	})
	r.store = store
	w.watchAgain(r, "the end")
	r.Close()
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	tl := store.timeline(t)
	if got := tl.Duration().Seconds(); got < sent-0.001 {
		t.Errorf("%.1f s of %.1f s are recorded", got, sent)
	}
	alike(t, tl)
}

// watchAgain looks at what the life before has left: the parts that were listed last are there, listed or not.
func (w *witness) watchAgain(r *rig, when string) {
	w.t.Helper()
	for uri := range w.parts {
		w.same(r, when, uri)
	}
	w.watch(r, when)
}

// liveOn writes a few parts and segments, the sound a little behind the pictures, and ends anywhere. It gives the
// seconds of picture.
func liveOn(w *witness, r *rig, random *rand.Rand, life int) (sent float64) {
	steps := random.IntN(25)
	r.start()
	disc := life > 0
	for {
		n := 2 + random.IntN(4)
		r.begin("v", disc)
		r.begin("a", disc)
		for range n {
			for _, id := range []string{"v", "a"} {
				if steps--; steps < 0 {
					return sent
				}
				r.part(id)
				if id == "v" {
					sent += perPart.Seconds()
				}
				if random.IntN(3) == 0 {
					w.watch(r, fmt.Sprintf("life %d", life))
				}
			}
		}
		r.Target(2, nil)
		r.Finish("v", 0)
		if steps--; steps < 0 {
			w.watch(r, fmt.Sprintf("life %d", life))
			return sent
		}
		r.finish(n, "a")
		disc = false
	}
}

// alike wants the renditions of a recording to be of one length at the end of each segment.
func alike(t *testing.T, tl *timeline.Timeline) {
	t.Helper()
	var ends []float64
	for _, l := range tl.Renditions {
		at := 0.0
		for i := range l.Chunks {
			at += l.Seconds(i)
			if len(ends) <= i {
				ends = append(ends, at)
			} else if d := at - ends[i]; d > 0.01 || d < -0.01 {
				t.Fatalf("segment %d: sound and picture are %.3f s apart", i, d)
			}
		}
	}
}

// TestNothingIsNumberedTwice: the disk is full and storage is away when the process dies. What was published is lost;
// its numbers and names are not given out again, on this machine or another.
func TestNothingIsNumberedTwice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		marked, reserved bool
	}{"this machine": {marked: true}, "another machine": {reserved: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, mark := filepath.Join(t.TempDir(), "m"), ""
			if tt.marked {
				mark = filepath.Join(t.TempDir(), "mark")
			}
			full := func() *journal.Journal {
				o := journal.Options{Dir: dir, MaxBacklog: 1, Mark: mark, Logger: slog.New(slog.DiscardHandler)}
				return journal.New(o)
			}
			w := newWitness(t)
			reserved := int64(0)
			one := newRig(Options{Mode: low, Journal: full(), Short: func() {}})
			one.store.before = func(context.Context, string) error {
				if len(one.store.entries) > 4 {
					return errAway
				}
				return nil
			}
			stop := one.run(t)
			one.start()
			for range 5 {
				one.segment(3, false)
				w.watch(one, "before")
				if n, live := one.Upcoming(); tt.reserved && live {
					reserved = n + 2
				}
			}
			stop()
			store := one.store
			store.before = nil
			two := newRig(Options{
				Mode: low, Timeline: store.timeline(t), Journal: full(), Generation: 1, Reserved: reserved,
				Store: store, Recorder: store,
			})
			two.store = store
			if next, _ := two.Upcoming(); next < 12 || next > 14 {
				t.Errorf("the next segment is %d", next)
			}
			two.start()
			stop = two.run(t)
			for range 3 {
				two.segment(3, true)
			}
			two.drain(t)
			stop()
			for _, s := range two.list(t, "v", now()).segs {
				switch known := w.given[s.uri] != nil; {
				case s.gap:
				case known:
					w.same(two, "after the crash", s.uri)
				case s.msn < w.next["v"]:
					t.Errorf("%s has the number of another one", s.uri)
				}
			}
		})
	}
}

// TestPartsOfWhatIsStored are listed and given after a crash, of a rendition that is made of another too.
func TestPartsOfWhatIsStored(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	w := newWitness(t)
	one := newRig(Options{Mode: low, Journal: journalIn(dir)})
	stop := one.run(t)
	one.start()
	for range 3 {
		one.segment(3, false)
	}
	one.drain(t)
	w.watch(one, "before")
	stop()
	two := newRig(Options{
		Mode: low, Timeline: one.store.timeline(t), Journal: journalIn(dir), Generation: 1, Store: one.store,
		Recorder: one.store,
	})
	two.store = one.store
	parts := len(w.parts)
	w.watchAgain(two, "after the crash")
	if parts != 18 || len(w.parts) != parts {
		t.Errorf("%d parts were listed, and %d are", parts, len(w.parts))
	}
	if err := two.Derived().Add("s", "v"); err != nil {
		t.Fatal(err)
	}
	of := two.list(t, "v", now()).segs
	for i, s := range two.list(t, "s", now()).segs {
		if len(s.parts) != len(of[i].parts) {
			t.Errorf("%s has %d parts, its source %d", s.uri, len(s.parts), len(of[i].parts))
		}
	}
	if ends, alike := two.Derived().PartEnds("s", 8); ends != nil || !alike {
		t.Errorf("parts that nobody has counted end at %v, where the source's do: %t", ends, alike)
	}
}

// TestSegmentThatTheDiskDidNotTake to its end was listed as a whole, and is not given out shorter: it is a gap of its
// length, and the parts of it that are there are.
func TestSegmentThatTheDiskDidNotTake(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]int64{"that went on": 9, "that did not": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, mark := filepath.Join(t.TempDir(), "m"), filepath.Join(t.TempDir(), "mark")
			open := func() *journal.Journal {
				return journal.New(journal.Options{
					Dir: dir, Patience: time.Minute, Mark: mark, Logger: slog.New(slog.DiscardHandler),
				})
			}
			w := newWitness(t)
			one := newRig(Options{Mode: low, Journal: open()})
			one.store.before = func(context.Context, string) error { return errAway }
			stop := one.run(t)
			one.start()
			for range 4 {
				one.segment(3, false)
			}
			w.watch(one, "before")
			one.opt.Journal.Published(11)
			stop()
			if err := os.Truncate(filepath.Join(dir, fmt.Sprint(cut, ".v.m4s")), 150); err != nil {
				t.Fatal(err)
			}
			two := newRig(Options{Mode: low, Timeline: &timeline.Timeline{}, Journal: open(), Generation: 1})
			for _, id := range []string{"v", "a"} {
				for _, s := range two.list(t, id, now()).segs {
					lost := id == "v" && s.msn == cut || s.msn == 11
					if s.msn < 7 {
						continue
					}
					if s.gap != lost || s.msn < 11 && s.dur != w.length[s.uri] {
						t.Errorf("%s lasts %v, gap %v", s.uri, s.dur, s.gap)
					}
					if !s.gap {
						w.same(two, "after the crash", s.uri)
					}
				}
			}
			w.same(two, "after the crash", hls.PartURI("v", cut, 0))
			if w.fetch(two, hls.PartURI("v", cut, 1)) != nil {
				t.Error("a part that is lost is given")
			}
		})
	}
}
