package window

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// makers are those who make the derived rendition "s" over the lives of a broadcast, live and when it is asked for, and
// the storage that has what they made. No two of them make the same bytes.
type makers struct {
	life     int
	segments map[int64][]byte // stored
	heads    map[int64][]byte
	queue    []Begun // published, and not stored yet
	made     int     // segments that were asked for
}

func newMakers() *makers { return &makers{segments: map[int64][]byte{}, heads: map[int64][]byte{}} }

// begin is another life of the broadcast.
func (m *makers) begin(r *rig) {
	m.life++
	m.queue = nil
	r.Derived().Making(true)
	_ = r.Derived().Add("s", "v") // there may be no source yet
}

// cut gives the parts of a segment.
func cut(segment []byte) [][]byte {
	all := bytes.SplitAfter(segment, []byte(">"))
	return all[:len(all)-1]
}

// ask makes a segment unless it is stored; nil: what it is made of is not stored either.
func (m *makers) ask(r *rig, msn int64) []byte {
	if m.segments[msn] != nil {
		return m.segments[msn]
	}
	r.store.mu.Lock()
	of := r.store.objects[r.key("v", msn)]
	r.store.mu.Unlock()
	if of == nil || r.store.before != nil {
		return nil
	}
	head := r.Derived().Head("s", msn)
	if head == nil {
		head = m.heads[msn]
	}
	segment := bytes.Clone(head)
	for k := len(cut(head)); k < bytes.Count(of, []byte("<")); k++ {
		segment = fmt.Appendf(segment, "<asked for in life %d: %d.%d>", m.life, msn, k)
	}
	m.segments[msn], m.made = segment, m.made+1
	return segment
}

// get is what is found of the rendition.
func (m *makers) get(r *rig, p Location) []byte {
	if p.NotEncoded {
		segment := m.ask(r, p.MSN)
		if p.Part < 0 || segment == nil {
			return segment
		}
		if parts := cut(segment); p.Part < len(parts) {
			return parts[p.Part]
		}
		return nil
	}
	if p.Data != nil {
		return p.Data
	}
	var msn int64
	if _, err := fmt.Sscanf(filepath.Base(p.Object), "%d.m4s", &msn); err != nil {
		r.store.order = append(r.store.order, err.Error())
		return nil
	}
	if stored := m.segments[msn]; int64(len(stored)) >= p.Offset+p.N {
		return stored[p.Offset:][:p.N]
	}
	return nil
}

// part publishes a part of a segment; false: it is not taken.
func (m *makers) part(r *rig, msn int64, k int) bool {
	if k == 0 {
		r.bufs["s"] = nil
	}
	buf := fmt.Appendf(bytes.Clone(r.bufs["s"]), "<live in life %d: %d.%d>", m.life, msn, k)
	if !r.Derived().AppendPart("s", msn, k, buf, partTicks, k == 0) {
		return false
	}
	r.bufs["s"] = buf
	return true
}

// seal publishes a segment as a whole.
func (m *makers) seal(r *rig, msn int64) {
	if r.Derived().Seal("s", msn) {
		m.queue = append(m.queue, Begun{ID: "s", MSN: msn, Data: r.bufs["s"], Whole: true})
	}
}

// upload stores what may be.
func (m *makers) upload(r *rig) {
	all, _ := r.Derived().Begun()
	m.queue = append(m.queue, all...)
	for len(m.queue) > 0 && r.store.before == nil {
		b := m.queue[0]
		if wait, err := r.storedSignal("v", int(b.MSN-r.first)); wait != nil {
			return
		} else if err != nil {
			r.Derived().Lost("s", b.MSN)
		} else if b.Whole {
			created := m.segments[b.MSN] == nil
			if created {
				m.segments[b.MSN] = b.Data
			}
			r.Derived().Stored("s", b.MSN, created)
		} else {
			if m.heads[b.MSN] == nil {
				m.heads[b.MSN] = b.Data
			}
			r.Derived().Stored("s", b.MSN, false)
		}
		m.queue = m.queue[1:]
	}
}

// uploadAll stores all, once the source's segments are stored.
func (m *makers) uploadAll(r *rig) {
	for len(m.queue) > 0 || r.Derived().Held() > 0 {
		m.upload(r)
		runtime.Gosched()
	}
}

// process is one life of a broadcast on a disk, with a storage.
func process(t *testing.T, store *storage, dir string, life int) *rig {
	t.Helper()
	return processWith(t, store, journalIn(dir), journalIn(dir+".derived"), life)
}

func processWith(t *testing.T, store *storage, own, derived *journal.Journal, life int) *rig {
	t.Helper()
	r := newRig(Options{
		Mode: low, Timeline: store.timeline(t), Journal: own, DerivedJournal: derived, Generation: int64(life),
		Store: store, Recorder: store,
	})
	r.store = store
	if r.at == 0 {
		r.at = timeline.Origin
	}
	return r
}

// TestDerivedPartsOverKills kills the process at any step of what is published of a derived rendition. Whoever goes on
// gives the same bytes under each name that was listed, with the storage there or away, and makes nothing again.
func TestDerivedPartsOverKills(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away bool // storage, from the segment on until the last process
		do   func(m *makers, r *rig)
		made int // segments that were asked for in the end, beside the first one
	}{
		"in a segment":                  {false, func(m *makers, r *rig) { m.part(r, 8, 0); m.part(r, 8, 1) }, 1},
		"in a segment, without storage": {true, func(m *makers, r *rig) { m.part(r, 8, 0); m.part(r, 8, 1) }, 1},
		"behind a segment": {true, func(m *makers, r *rig) {
			m.part(r, 8, 0)
			m.part(r, 8, 1)
			m.part(r, 8, 2)
			r.finish(3, "v", "a")
			m.seal(r, 8)
		}, 0},
		"given up": {true, func(m *makers, r *rig) {
			m.part(r, 8, 0)
			r.Derived().Skip("s", 9)
			r.finish(3, "v", "a")
			m.upload(r)
		}, 1},
		"stored": {false, func(m *makers, r *rig) {
			m.part(r, 8, 0)
			m.part(r, 8, 1)
			m.part(r, 8, 2)
			r.finish(3, "v", "a")
			m.seal(r, 8)
			m.uploadAll(r)
		}, 0},
		"asked for": {false, func(_ *makers, r *rig) {
			r.Derived().Skip("s", 9)
			r.finish(3, "v", "a")
			r.drain(t)
		}, 0},
		"its head is stored": {false, func(m *makers, r *rig) {
			m.part(r, 8, 0)
			r.Derived().Skip("s", 9)
			r.finish(3, "v", "a")
			m.uploadAll(r)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, store, m, w := filepath.Join(t.TempDir(), "m"), newStorage(), newMakers(), newWitness(t)
			w.below = m
			r := process(t, store, dir, 0)
			stop := r.run(t)
			r.start()
			m.begin(r)
			r.segment(3, false)
			r.drain(t)
			w.watch(r, "before")
			if tt.away {
				stop()
				store.before = func(context.Context, string) error { return errAway }
				stop = r.run(t)
			}
			r.Derived().Attach("s", 8)
			r.begin("v", false)
			r.begin("a", false)
			for range 3 {
				r.part("v")
				r.part("a")
			}
			tt.do(m, r)
			w.watch(r, "before")
			stop()
			if !w.parts["s/7.3.m4s"] { // as it was hinted
				t.Fatalf("listed are %v", w.parts)
			}
			first := m.made
			for life := 1; life < 4; life++ { // the last two find what the ones before them have found
				if life == 3 {
					store.before = nil
				}
				r = process(t, store, dir, life)
				m.begin(r)
				stop = r.run(t)
				r.Derived().Attach("s", 8)
				if m.part(r, 8, 0) {
					t.Error("what an earlier process has published, or others have asked for, is made live")
				}
				w.watchAgain(r, fmt.Sprint("life ", life))
				if store.before == nil {
					r.drain(t)
					m.upload(r)
					w.watchAgain(r, fmt.Sprint("stored in life ", life))
				}
				stop()
			}
			if m.made-first != tt.made || w.given["s/8.m4s"] == nil {
				t.Errorf("%d segments were made again, want %d", m.made-first, tt.made)
			}
		})
	}
}

// TestDerivedStormOfCrashes is TestStormOfCrashes with a derived rendition that is made live now and then, and given up
// now and then.
func TestDerivedStormOfCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "m")
			derivedStorm(t, seed, func(store *storage, life int) *rig { return process(t, store, dir, life) })
			if _, err := os.Stat(dir + ".derived"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("when all is stored the journal is left: %v", err)
			}
		})
		t.Run(fmt.Sprint("seed ", seed, ", each time on another machine"), func(t *testing.T) {
			t.Parallel()
			own, derived := &replica{}, &replica{}
			derivedStorm(t, seed, func(store *storage, life int) *rig {
				dir := filepath.Join(t.TempDir(), "m")
				return processWith(t, store, own.next(dir), derived.next(dir+".derived"), life)
			})
		})
	}
}

func derivedStorm(t *testing.T, seed uint64, begin func(store *storage, life int) *rig) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	store, m, w := newStorage(), newMakers(), newWitness(t)
	w.below, w.headsWait = m, true
	for life := range 12 {
		store.before = nil
		if random.IntN(2) == 0 {
			store.before = func(context.Context, string) error { return errAway }
		}
		r := begin(store, life)
		m.begin(r)
		stop := r.run(t)
		w.watchAgain(r, fmt.Sprintf("life %d begins", life))
		m.liveOn(w, r, random)
		stop()
	}
	store.before = nil
	r := begin(store, 100)
	m.begin(r)
	w.watchAgain(r, "the end")
	stop := r.run(t)
	r.drain(t)
	m.upload(r)
	w.watchAgain(r, "the end, stored")
	r.Close()
	r.drain(t)
	m.upload(r)
	w.watchAgain(r, "the end, closed")
	stop()
	if n := strings.Count(fmt.Sprint(w.given), "<live"); n < 20 && m.made < 5 {
		t.Errorf("%d parts and segments were live, %d segments were asked for", n, m.made)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// liveOn publishes a few parts and segments, those of the derived rendition a little behind, and ends anywhere.
func (m *makers) liveOn(w *witness, r *rig, random *rand.Rand) {
	steps := random.IntN(25)
	r.start()
	_ = r.Derived().Add("s", "v")
	when := fmt.Sprintf("life %d", m.life)
	for disc := m.life > 1; ; disc = false {
		n, made := 2+random.IntN(4), 0
		encodes := random.IntN(4) > 0
		msn, _ := r.Upcoming()
		if random.IntN(2) == 0 { // the last whole one too, if nobody has it
			r.Derived().Attach("s", msn-1)
			for k := range 1 + random.IntN(4) {
				if !m.part(r, msn-1, k) {
					break
				}
			}
			r.Derived().Skip("s", msn)
		}
		r.Derived().Attach("s", msn)
		r.begin("v", disc)
		r.begin("a", disc)
		for k := range n {
			r.part("v")
			r.part("a")
			for encodes && made <= k && random.IntN(4) > 0 {
				encodes = m.part(r, msn, made)
				made++
			}
			if encodes && random.IntN(8) == 0 {
				r.Derived().Skip("s", msn+1)
				encodes = false
			}
			if random.IntN(3) == 0 {
				m.upload(r)
			}
			if random.IntN(3) == 0 {
				w.watch(r, when)
			}
			if steps--; steps < 0 {
				return
			}
		}
		r.finish(n, "v", "a")
		for encodes && made < n && random.IntN(8) > 0 {
			encodes = m.part(r, msn, made)
			made++
		}
		if encodes && made == n {
			m.seal(r, msn)
		}
		r.Derived().Skip("s", msn+1)
		w.watch(r, when)
	}
}

// TestUnkeptPartsAreNotPublished: of a part that the journal does not take nobody is told; what is asked for is made as
// a whole.
func TestUnkeptPartsAreNotPublished(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := journal.New(journal.Options{Dir: dir, MaxBacklog: 1, Logger: slog.New(slog.DiscardHandler)})
	o := Options{DerivedJournal: j}
	r, m := derivedRig(t, o), newMakers()
	defer r.run(t)()
	r.Derived().Attach("s", 7)
	r.begin("v", false)
	r.begin("a", false)
	r.part("v")
	r.part("a")
	if m.part(r, 7, 0) {
		t.Error("a part is published that would not outlive the process")
	}
	r.Derived().Skip("s", 8)
	r.finish(1, "v", "a")
	if p, err := r.ReadPart(t.Context(), "s", 7, 0); err != nil || !p.NotEncoded {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestPartsThatCameTooLate: a part that was not published although it is in the journal is not given by the next
// process either: what was made in its place is.
func TestPartsThatCameTooLate(t *testing.T) {
	t.Parallel()
	dir, store, m, w := filepath.Join(t.TempDir(), "m"), newStorage(), newMakers(), newWitness(t)
	w.below = m
	r := process(t, store, dir, 0)
	stop := r.run(t)
	r.start()
	m.begin(r)
	r.segment(3, false)
	r.Derived().Attach("s", 8)
	r.begin("v", false)
	r.begin("a", false)
	r.part("v")
	r.part("a")
	if !m.part(r, 8, 0) {
		t.Fatal("the first part is not taken")
	}
	r.part("v")
	r.part("a")
	d, p, ok := r.Derived().claim("s", 8, 1, append(bytes.Clone(r.bufs["s"]), "<lost>"...))
	if !ok || !r.derived.journal.part(d.ID, 8, 0, &p, partTicks, false) {
		t.Fatal("the second part does not come into the journal")
	}
	r.mu.Lock() // the edge has waited for it, and has something else to do by now
	d.waiting = -1
	r.derived.journal.cut(d.ID, 8, &p)
	r.mu.Unlock()
	r.Derived().Skip("s", 9)
	r.finish(2, "v", "a")
	r.drain(t)
	w.watch(r, "before")
	if got := string(w.given["s/8.1.m4s"]); !strings.HasPrefix(got, "<asked for") {
		t.Fatalf("the second part is %q", got)
	}
	stop()
	delete(m.segments, 8) // it is on its way
	r = process(t, store, dir, 1)
	m.begin(r)
	if head := string(r.Derived().Head("s", 8)); !strings.HasPrefix(head, "<live") || strings.Contains(head, "lost") {
		t.Errorf("the head is %q", head)
	}
}

// TestSourceThatIsLost: a segment of a derived rendition whose source storage never got can't be stored either. It
// stays as long as that one, and is a gap then as that is.
func TestSourceThatIsLost(t *testing.T) {
	t.Parallel()
	r := derivedRig(t, Options{MaxHeld: 1})
	m := newMakers()
	r.Derived().Attach("s", 7)
	r.begin("v", false)
	r.begin("a", false)
	r.part("v")
	r.part("a")
	m.part(r, 7, 0)
	r.finish(1, "v", "a")
	m.seal(r, 7)
	m.upload(r)
	if r.Derived().Held() != 0 {
		t.Errorf("%d bytes wait for ever", r.Derived().Held())
	}
	if p, err := r.ReadSegment(t.Context(), "s", 7); err != nil || string(p.Data) != "<live in life 0: 7.0>" {
		t.Errorf("%+v, %v", p, err)
	}
	for range 4 {
		r.segment(3, false)
	}
	for _, id := range []string{"v", "s"} {
		if s := r.list(t, id, now()).segs[7]; s.uri != id+"/7.m4s" || !s.gap {
			t.Errorf("%+v", s)
		}
	}
	if _, err := r.ReadSegment(t.Context(), "s", 7); !errors.Is(err, ErrUnknown) {
		t.Errorf("a gap: %v", err)
	}
}
