package window

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// journalIn waits for the disk however long it takes: what was published is on it, also on a machine that is busy.
func journalIn(dir string) *journal.Journal {
	return journal.New(journal.Options{Dir: dir, Patience: time.Minute, Logger: slog.New(slog.DiscardHandler)})
}

// copyOf is what a killed process leaves on the disk.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "m")
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir) // it may not be there yet
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // deleted meanwhile: it is recorded
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// recovered is the record that a new process makes of what is left, told the encoder never came back.
func recovered(t *testing.T, before []timeline.Entry, dir string) (*timeline.Timeline, *storage) {
	t.Helper()
	tl, err := timeline.Build(before)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(Options{Mode: low, Timeline: tl, Journal: journalIn(dir)})
	r.store.entries = append(r.store.entries, before...)
	r.Close()
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the journal is still there: %v", err)
	}
	return r.store.timeline(t), r.store
}

// TestKilledAnywhere kills the process after every step of a broadcast whose storage is away, and counts what is lost.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	r := newRig(Options{Mode: low, Journal: journalIn(dir)})
	r.store.before = func(context.Context, string) error { return errAway }
	stop := r.run(t)
	type moment struct {
		dir          string
		whole        int // segments that were whole in both renditions
		wholeSeconds float64
		v, a         int  // parts of the open one
		listed       bool // it is whole in the video, and listed so
	}
	var moments []moment
	var m moment
	snap := func() {
		k := m
		k.dir = copyOf(t, dir)
		moments = append(moments, k)
	}
	r.start()
	snap()
	for n := range 5 {
		disc := n == 3
		r.begin("v", disc)
		r.begin("a", disc)
		snap()
		for range 4 {
			r.part("v")
			m.v++
			snap()
			r.part("a")
			m.a++
			snap()
		}
		r.part("v") // the video is a part ahead at the end of the segment
		m.v++
		snap()
		r.Target(2, nil)
		r.Finish("v", 0)
		m.listed = true
		snap()
		r.part("a")
		m.a++
		snap()
		r.finish(5, "a")
		m = moment{whole: m.whole + 1, wholeSeconds: m.wholeSeconds + 1.5}
	}
	final := copyOf(t, dir)
	full, objects := recovered(t, nil, final)
	stop()
	if len(full.Marks) != 5 || full.Target != 2 || !full.Marks[3].Discontinuity || full.Marks[2].Discontinuity {
		t.Fatalf("%d segments, target %d, %+v", len(full.Marks), full.Target, full.Marks)
	}
	for i, k := range moments {
		tl, got := recovered(t, nil, k.dir)
		least := k.wholeSeconds + 0.3*float64(min(k.v, k.a)) // what both renditions have
		most := k.wholeSeconds + 0.3*float64(max(k.v, k.a))
		if d := tl.Duration().Seconds(); d < least-0.001 || d > most+0.001 {
			t.Errorf("moment %d: %.3f s are left, want %.3f (%d whole, %d and %d parts)", i, d, least, k.whole, k.v,
				k.a)
		}
		for _, l := range tl.Renditions {
			for n, c := range l.Chunks {
				whole := full.Rendition(l.ID).Chunks[n]
				if l.ID == "a" && n == k.whole && k.a == 0 && c.Gap { // pictures that were listed stay, without sound
					continue
				}
				stays := n < k.whole || k.listed && l.ID == "v"
				if c.Gap || c.Time != whole.Time || stays && (c.Duration != whole.Duration || c.Size != whole.Size) ||
					!c.Independent || l.PartTarget != 300000 {
					t.Errorf("moment %d: %s %d is %+v", i, l.ID, n, c)
				}
				if data := got.objects[c.Object]; int64(len(data)) != c.Size ||
					!bytes.HasPrefix(objects.objects[whole.Object], data) {
					t.Errorf("moment %d: %s is %q", i, c.Object, data)
				}
			}
			if n := len(l.Chunks); n > 0 {
				if string(got.objects[l.Inits[0].Object]) != "init of "+l.ID {
					t.Errorf("moment %d: init %q", i, got.objects[l.Inits[0].Object])
				}
			}
		}
		if n := len(tl.Renditions); n == 2 && len(tl.Marks) > 0 {
			ends := [2]float64{}
			for k, l := range tl.Renditions {
				c := l.Chunks[len(l.Chunks)-1]
				ends[k] = seconds(c.Time+c.Duration, l.RenditionInfo)
			}
			if apart := ends[0] - ends[1]; apart > 0.001 || apart < -0.001 {
				t.Errorf("moment %d: renditions end %.3f s apart", i, apart)
			}
		}
	}
}

// TestKilledWhileStoring: what was recorded is not recorded again, what was not is, and the stream goes on behind it.
func TestKilledWhileStoring(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	one := newRig(Options{Mode: low, Journal: journalIn(dir)})
	stop := one.run(t)
	one.start()
	for range 3 {
		one.segment(3, false)
	}
	one.drain(t)
	before := one.store.entries
	files := copyOf(t, dir) // perhaps with files whose rows are stored
	one.store.mu.Lock()
	one.store.before = func(context.Context, string) error { return errAway }
	one.store.mu.Unlock()
	one.segment(3, false)
	one.begin("v", false)
	one.begin("a", false)
	one.part("v")
	one.part("a")
	late := copyOf(t, dir)
	stop()
	if tl, _ := recovered(t, before, files); len(tl.Marks) != 3 {
		t.Errorf("%d rows, want 3", len(tl.Marks))
	}

	tl, err := timeline.Build(before)
	if err != nil {
		t.Fatal(err)
	}
	two := newRig(Options{Mode: low, Timeline: tl, Journal: journalIn(late)})
	two.store.entries = append(two.store.entries, before...)
	if s := two.Standing(); s.At < 10+4*0.9+0.3-0.001 || s.At > 10+4*0.9+0.3+0.001 {
		t.Errorf("stands at %v", s.At)
	}
	l := two.list(t, "v", Reload{MSN: -1, Part: -1, Event: true})
	if len(l.segs) != 5 || l.segs[4].dur != 0.3 || l.target != 2 || l.partTarget != 0.3 {
		t.Errorf("got\n%s", l.text)
	}
	if p, err := two.ReadSegment(t.Context(), "a", 11); err != nil || len(p.Data) != 100 {
		t.Errorf("%+v %v", p, err)
	}
	done := two.run(t)
	two.announce("v", "a")
	two.Live(true)
	two.at = two.Standing().At
	two.segment(3, true)
	two.Close()
	two.drain(t)
	done()
	final := two.store.timeline(t)
	if len(final.Marks) != 6 || !final.Marks[5].Discontinuity || len(final.Rendition("v").Inits) != 1 {
		t.Errorf("%d rows, inits %+v", len(final.Marks), final.Rendition("v").Inits)
	}
}

// TestListedWithoutSound: pictures that were listed as a segment stay, though nothing of its sound was there yet.
func TestListedWithoutSound(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	r := newRig(Options{Mode: low, Journal: journalIn(dir)})
	r.store.before = func(context.Context, string) error { return errAway }
	stop := r.run(t)
	r.start()
	r.segment(2, false)
	r.begin("v", false)
	r.begin("a", false)
	r.part("v")
	r.part("v")
	r.Finish("v", 0)
	killed := copyOf(t, dir)
	stop()
	tl, _ := recovered(t, nil, killed)
	if v, a := tl.Rendition("v").Chunks, tl.Rendition("a").Chunks; len(v) != 2 || v[1].Duration != v[0].Duration ||
		v[1].Size == 0 || len(a) != 2 || !a[1].Gap {
		t.Errorf("pictures %+v\nsound %+v", v, a)
	}
}

// TestJournalWithoutOne: what comes behind a segment that the disk has lost is kept.
func TestJournalWithoutOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	one := newRig(Options{Mode: low, Journal: journalIn(dir)})
	one.store.before = func(context.Context, string) error { return errAway }
	stop := one.run(t)
	one.start()
	for range 4 {
		one.segment(3, false)
	}
	stop()
	for _, id := range []string{"v", "a"} {
		if err := os.Remove(filepath.Join(dir, "8."+id+".m4s")); err != nil {
			t.Fatal(err)
		}
	}
	tl, _ := recovered(t, nil, dir)
	if v := tl.Rendition("v").Chunks; len(v) != 4 || tl.First != 7 || v[0].Gap || !v[1].Gap || v[2].Gap || v[3].Gap {
		t.Errorf("%d rows from %d: %+v", len(v), tl.First, v)
	}
}

// TestRenditionsThatComeAndGoAreRecovered: one joins late, one leaves.
func TestRenditionsThatComeAndGoAreRecovered(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	r := newRig(Options{Mode: low, Journal: journalIn(dir)})
	r.store.before = func(context.Context, string) error { return errAway }
	stop := r.run(t)
	r.announce("v")
	r.Live(true)
	r.segment(2, false, "v")
	r.announce("v", "a")
	r.segment(2, false)
	if n := r.AddInit(frame.Video, 90000, timeline.Init{Rendition: "v", Codec: "new"}, []byte("new")); n != 1 {
		t.Fatal(n)
	}
	// the encoder is back without sound
	r.Begin("v", timeline.Mark{Start: r.wall, Discontinuity: true}, 1, int64(r.at*90000))
	r.part("v")
	r.bufs["v"], r.done["v"] = nil, 0
	r.Finish("v", 0)
	r.Begin("a", timeline.Mark{Start: r.wall, Discontinuity: true}, 0, int64(r.at*48000))
	r.Finish("a", 14400)
	r.Begin("v", timeline.Mark{Start: r.wall}, 1, int64(r.at*90000)+27000)
	r.part("v")
	stop()
	tl, got := recovered(t, nil, dir)
	gaps := ""
	for _, c := range tl.Rendition("a").Chunks {
		gaps += fmt.Sprint(c.Gap, " ")
	}
	v := tl.Rendition("v")
	if gaps != "true false true true " || len(v.Inits) != 2 || v.Chunks[3].Init != 1 ||
		string(got.objects[v.Inits[1].Object]) != "new" {
		t.Errorf("gaps %s inits %+v chunks %+v", gaps, v.Inits, v.Chunks)
	}
}

// TestJournalForgetsWhatIsStored while the broadcast goes on: on the disk is never more than storage lacks.
func TestJournalForgetsWhatIsStored(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	r := newRig(Options{Mode: low, Journal: journalIn(dir)})
	stop := r.run(t)
	r.start()
	for range 12 {
		r.segment(3, false)
	}
	r.drain(t)
	stop()
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".m4s" {
			left = append(left, e.Name())
		}
	}
	if len(left) != 0 {
		t.Errorf("left of segments that are stored: %v", left)
	}
}
