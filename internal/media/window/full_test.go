package window

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// short is a mode whose sliding playlist leaves segments behind soon.
var short = Mode{Low: true, Leading: 2, Listed: 5 * time.Second, InMemory: 2}

// told is what a player remembers of a segment.
type told struct {
	dur float64
	dsn int64
	gap bool
}

// player remembers every playlist that it was given. Of what has changed it complains.
type player struct {
	msn, dsn, next map[string]int64 // by rendition
	segs           map[string]told  // by URI
	given          map[string][]byte
}

func newPlayer() *player {
	return &player{
		msn: map[string]int64{}, dsn: map[string]int64{}, next: map[string]int64{},
		segs: map[string]told{}, given: map[string][]byte{},
	}
}

func (p *player) clone() *player {
	return &player{maps.Clone(p.msn), maps.Clone(p.dsn), maps.Clone(p.next), maps.Clone(p.segs), maps.Clone(p.given)}
}

// watch reads the playlists, and the segments that it has not; all of them with again. It gives what is wrong.
func (p *player) watch(t *testing.T, r *rig, again bool) (wrong []string) {
	t.Helper()
	if _, err := r.Describe(); err != nil {
		return nil
	}
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, id := range []string{"v", "a"} {
		l := r.list(t, id, now())
		next := l.msn + int64(len(l.segs))
		if l.msn < p.msn[id] || l.dsn < p.dsn[id] || next < p.next[id] {
			complain("%s begins with %d, discontinuity %d, ends before %d; before with %d, %d, %d",
				id, l.msn, l.dsn, next, p.msn[id], p.dsn[id], p.next[id])
		}
		p.msn[id], p.dsn[id], p.next[id] = l.msn, l.dsn, next
		for _, of := range []list{l, r.list(t, id, Reload{MSN: -1, Part: -1, Event: true})} {
			for _, s := range of.segs {
				if s.msn >= short.Leading { // those in front of the first one are no segments
					wrong = append(wrong, p.look(t, r, &s, again)...)
				}
			}
		}
	}
	return wrong
}

func (p *player) look(t *testing.T, r *rig, s *listed, again bool) (wrong []string) {
	t.Helper()
	is := told{s.dur, s.dsn, s.gap}
	was, known := p.segs[s.uri]
	if known && (is.dur != was.dur || is.dsn != was.dsn || was.gap && !is.gap) {
		wrong = append(wrong, fmt.Sprintf("%s is %+v, was %+v", s.uri, is, was))
	}
	p.segs[s.uri] = is
	if before := p.given[s.uri]; !s.gap && (before == nil || again) {
		data := (&witness{t: t}).fetch(r, s.uri)
		if data == nil || before != nil && !bytes.Equal(before, data) {
			wrong = append(wrong, fmt.Sprintf("%s gives %q, gave %q", s.uri, data, before))
		}
		p.given[s.uri] = data
	}
	return wrong
}

// places are where a journal and what the machine's memory has of it lie.
type places struct{ disk, memory string }

func newPlaces(t *testing.T) places {
	t.Helper()
	dir := t.TempDir()
	p := places{filepath.Join(dir, "disk"), filepath.Join(dir, "memory")}
	if err := os.Mkdir(p.memory, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p places) open() *journal.Journal {
	return journal.New(journal.Options{
		Dir: filepath.Join(p.disk, "m"), Mark: filepath.Join(p.memory, "m"), Patience: time.Minute,
		Logger: slog.New(slog.DiscardHandler),
	})
}

// copied is a folder as it is now.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		rest, _ := filepath.Rel(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted meanwhile: it is recorded
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rest), 0o700)
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, os.WriteFile(filepath.Join(to, rest), data, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// killed is where a process can be killed: what players were told, and what the machine has in memory and on its disk.
type killed struct {
	at     string
	player *player
	places places
	rows   []timeline.Entry
	stored map[string][]byte
}

// TestFullDiskThenKilled: nothing reaches the disk from some moment on, storage is away, and some time later the
// process is killed. Whoever has seen a playlist then sees no number go back, and no segment last for another time,
// lie behind another number of discontinuities or have other bytes: what is lost is a gap where it was.
func TestFullDiskThenKilled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ recorded int }{"some is recorded": {3}, "nothing is recorded": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			moments := liveWithPlayer(t, tt.recorded)
			tries := 0
			for full := 0; full < len(moments); full += 6 {
				for at := full; at < len(moments); at += 5 {
					tries++
					goOnFrom(t, &moments[full], &moments[at])
				}
			}
			if tries < 40 {
				t.Errorf("only %d tries", tries)
			}
		})
	}
}

// TestAnotherMachineGoesOn: it knows no more than what is recorded and which numbers were reserved. No playlist begins
// with an earlier segment again, also when the one that goes on dies as well.
func TestAnotherMachineGoesOn(t *testing.T) {
	t.Parallel()
	for i, at := range liveWithPlayer(t, 4) {
		x, store := at.player, newStorage()
		store.entries, store.objects = at.rows, at.stored
		for life := range int64(2) {
			r := newRig(Options{
				Mode: short, Timeline: store.timeline(t), Generation: life + 1, Reserved: x.next["v"] + 2,
				Store: store, Recorder: store,
			})
			r.store = store
			if _, err := r.Describe(); err != nil {
				break // nothing is recorded
			}
			for _, id := range []string{"v", "a"} {
				l := r.list(t, id, now())
				if l.msn < x.msn[id] || l.msn+int64(len(l.segs)) < x.next[id] {
					t.Errorf("moment %d, life %d: %s begins with %d, began with %d", i, life+2, id, l.msn, x.msn[id])
				}
				x.msn[id], x.next[id] = l.msn, l.msn+int64(len(l.segs))
			}
			stop := r.run(t)
			r.drain(t)
			stop()
		}
	}
}

// liveWithPlayer has a process publish, with a player that looks after every step, and gives all of its moments. So
// many segments are recorded; then storage is away.
func liveWithPlayer(t *testing.T, recorded int) []killed {
	t.Helper()
	p := newPlaces(t)
	r := newRig(Options{Mode: short, Journal: p.open()})
	r.store.before = func(context.Context, string) error {
		if len(r.store.timeline(t).Marks) >= recorded {
			return errAway
		}
		return nil
	}
	defer r.run(t)()
	x := newPlayer()
	var out []killed
	step := func(at string) {
		for _, wrong := range x.watch(t, r, false) {
			t.Errorf("%s, in one life: %s", at, wrong)
		}
		out = append(out, killed{
			at: at, player: x.clone(), places: places{copied(t, p.disk), copied(t, p.memory)},
			rows: r.store.timeline(t).Entries(), stored: r.store.all(),
		})
	}
	r.start()
	for n := range 18 {
		publish(r, 5+n%2, n%3 == 2, func(what string) { step(fmt.Sprintf("segment %d, %s", n, what)) })
		if n < recorded {
			r.drain(t)
		}
	}
	if x.msn["v"] < 6 || x.dsn["v"] < 2 {
		t.Errorf("the playlist begins with %d, discontinuity %d: it has left too little behind", x.msn["v"], x.dsn["v"])
	}
	return out
}

// all is what is stored.
func (s *storage) all() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.objects)
}

// publish writes a segment of n parts in both renditions, the sound a little later, and calls step after everything
// that players can see.
func publish(r *rig, n int, disc bool, step func(what string)) {
	r.begin("v", disc)
	r.begin("a", disc)
	for k := range n {
		r.part("v")
		r.part("a")
		if k == n-2 {
			step("parts")
		}
	}
	r.Target(2, nil)
	r.Finish("v", 0)
	step("picture")
	r.finish(n, "a")
	step("whole")
}

// goOnFrom starts a process with what the disk had at one moment and the memory at another one, which goes on for a
// while, and one more behind that.
func goOnFrom(t *testing.T, full, at *killed) {
	t.Helper()
	p := places{copied(t, full.places.disk), copied(t, at.places.memory)}
	x, store := at.player.clone(), newStorage()
	store.entries, store.objects = at.rows, maps.Clone(at.stored)
	when := fmt.Sprintf("full at %s, killed at %s", full.at, at.at)
	for life := range int64(2) {
		r := newRig(Options{
			Mode: short, Timeline: store.timeline(t), Journal: p.open(), Generation: life + 1,
			Store: store, Recorder: store,
		})
		r.store = store
		store.before = func(context.Context, string) error { return errAway }
		if life == 1 { // storage is back
			store.before = nil
		}
		stop := r.run(t)
		if r.at == 0 {
			r.at = timeline.Origin
		}
		wrong := x.watch(t, r, true)
		r.start()
		for n := range 2 {
			publish(r, 3, n == 0, func(string) { wrong = append(wrong, x.watch(t, r, false)...) })
		}
		if life == 1 {
			r.drain(t)
			wrong = append(wrong, x.watch(t, r, true)...)
		}
		stop()
		if len(wrong) > 0 {
			t.Fatalf("%s, life %d: %d things are wrong, first: %s", when, life+2, len(wrong), wrong[0])
		}
		p.disk = copied(t, full.places.disk) // it is full still
	}
}
