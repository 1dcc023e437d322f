package db_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// here is the process that asks, there one that has a broadcast.
func here() live.Owner  { return live.Owner{Node: "here", Run: "mine"} }
func there() live.Owner { return live.Owner{Node: "there", Run: "its"} }

// register writes the row of an owner's node, valid for so long from now.
func register(t *testing.T, d *db.DB, o live.Owner, valid time.Duration) {
	t.Helper()
	_, _, err := d.Nodes().Register(t.Context(), node.Node{
		Name: o.Node, Run: o.Run, Roles: []string{node.RoleAll},
	}, valid)
	must(t, err)
}

// led is a stream whose broadcast o leads.
func led(t *testing.T, d *db.DB, name string, o live.Owner) live.Stream {
	t.Helper()
	s := fullStream(name)
	s.Owner = o
	insertStreams(t, d, s)
	return s
}

// TestTakeFromTheDead changes a row on the condition that its owner is dead: that is what its node's row says, by the
// database's clock, of its run.
func TestTakeFromTheDead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rows  func(t *testing.T, d *db.DB)
		alive bool // on PostgreSQL; on SQLite nobody else is
	}{
		"no row": {func(*testing.T, *db.DB) {}, false},
		"valid":  {func(t *testing.T, d *db.DB) { register(t, d, there(), time.Hour) }, true},
		"not valid any more": {func(t *testing.T, d *db.DB) {
			register(t, d, there(), -time.Millisecond)
		}, false},
		"it has left": {func(t *testing.T, d *db.DB) {
			register(t, d, there(), time.Hour)
			must(t, d.Nodes().Leave(t.Context(), there().Node, there().Run, time.Hour))
		}, false},
		"started again": {func(t *testing.T, d *db.DB) {
			register(t, d, there(), time.Hour)
			register(t, d, live.Owner{Node: there().Node, Run: "next"}, time.Hour)
		}, false},
		"another node": {func(t *testing.T, d *db.DB) {
			register(t, d, live.Owner{Node: "third", Run: there().Run}, time.Hour)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, url string) {
				d := dbtest.Open(t, url)
				store, s := d.LiveStreams(), led(t, d, "a", there())
				tt.rows(t, d)
				alive := tt.alive && url[:8] == "postgres"
				got, err := store.Standing(t.Context(), there(), here())
				must(t, err)
				if got.Alive() != alive || !got.Seen.IsZero() {
					t.Errorf("it stands so: %+v", got)
				}
				c := live.Change{From: s.State, FromEpoch: s.Epoch, Stream: s, Dead: there()}
				c.Stream.Owner = here()
				if err = store.Save(t.Context(), c); alive {
					wantKind(t, err, fault.Conflict)
				} else {
					must(t, err)
				}
				after, err := store.Find(t.Context(), s.ID)
				must(t, err)
				if after.Owner == here() == alive {
					t.Errorf("the owner is %v", after.Owner)
				}
			})
		})
	}
}

// TestTakeFromTheGone changes a row on the condition that nobody has the lock on its owner's name, whose row is valid.
// PostgreSQL shows names as numbers, of which half are negative to those who lock.
func TestTakeFromTheGone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d, fleet := dbtest.Open(t, url), url[:8] == "postgres"
		store := d.LiveStreams()
		for _, name := range []id.Node{"a", "b", "c", "d", "e", "f"} {
			o := live.Owner{Node: name, Run: "its"}
			s := led(t, d, string(name), o)
			register(t, d, o, time.Hour)
			take := live.Change{From: s.State, FromEpoch: s.Epoch, Stream: s, Dead: o, Gone: true}
			take.Stream.Owner = here()
			unlocked := func(want bool) {
				t.Helper()
				if free, err := store.Unlocked(t.Context(), name); err != nil || free != want {
					t.Errorf("node %s is unlocked: %v, %v", name, free, err)
				}
			}
			if fleet {
				its, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
				must(t, err)
				must(t, its.Occupy(t.Context(), name, 0))
				unlocked(false)
				wantKind(t, store.Save(t.Context(), take), fault.Conflict)
				must(t, its.Close())
			}
			unlocked(fleet)
			living := take
			living.Gone = false
			if err := store.Save(t.Context(), living); fleet {
				wantKind(t, err, fault.Conflict)
				must(t, store.Save(t.Context(), take))
			} else {
				must(t, err)
			}
		}
	})
}

// TestLockOfAnotherDatabase: another installation on the same server has a node of the same name.
func TestLockOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	d, other := dbtest.Open(t, dbtest.Postgres(t)), dbtest.Open(t, dbtest.Postgres(t))
	must(t, other.Occupy(t.Context(), there().Node, 0))
	if free, err := d.LiveStreams().Unlocked(t.Context(), there().Node); err != nil || !free {
		t.Errorf("it is unlocked: %v, %v", free, err)
	}
}

// TestTakingIsASign: who takes a broadcast is there in the same moment, also if it dies before it can say so again.
func TestTakingIsASign(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, s := d.LiveStreams(), led(t, d, "a", here())
		must(t, store.Save(t.Context(), live.Change{From: s.State, FromEpoch: s.Epoch, Stream: s, Seen: at(7)}))
		if got, err := store.Standing(t.Context(), here(), here()); err != nil || !got.Seen.Equal(at(7)) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestOwnRunLives: nobody is dead for itself, on either database.
func TestOwnRunLives(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, s := d.LiveStreams(), led(t, d, "a", here())
		register(t, d, here(), time.Hour)
		got, err := store.Standing(t.Context(), here(), here())
		must(t, err)
		if got.Sure <= 0 || got.Sure > time.Hour {
			t.Errorf("it stands so: %+v", got)
		}
		wantKind(t, store.Save(t.Context(), live.Change{From: s.State, FromEpoch: s.Epoch, Stream: s, Dead: here()}),
			fault.Conflict)
		_, sure, err := store.Hold(t.Context(), s.ID, here())
		if must(t, err); sure <= 0 || sure > time.Hour {
			t.Errorf("it is sure for %v", sure)
		}
		must(t, store.See(t.Context(), here(), at(5)))
		must(t, store.See(t.Context(), here(), at(9)))
		must(t, store.ForgetOwners(t.Context(), at(9).Add(48*time.Hour)))
		if got, err = store.Standing(t.Context(), here(), here()); err != nil || !got.Seen.Equal(at(9)) {
			t.Errorf("%+v, %v", got, err)
		}
		s.ActiveAsset = ""
		must(t, store.Save(t.Context(), live.Change{From: s.State, FromEpoch: s.Epoch, Stream: s}))
		must(t, store.ForgetOwners(t.Context(), at(9).Add(time.Hour)))
		if got, err = store.Standing(t.Context(), here(), here()); err != nil || !got.Seen.Equal(at(9)) {
			t.Errorf("within a day: %+v, %v", got, err)
		}
		must(t, store.ForgetOwners(t.Context(), at(9).Add(25*time.Hour)))
		if got, err = store.Standing(t.Context(), here(), here()); err != nil || !got.Seen.IsZero() {
			t.Errorf("after a day: %+v, %v", got, err)
		}
	})
}

// TestHeld lists what a process leads, and nothing of another node or run.
func TestHeld(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		store := d.LiveStreams()
		s := led(t, d, "a", here())
		led(t, d, "b", live.Owner{Node: here().Node, Run: "earlier"})
		led(t, d, "c", live.Owner{Node: "there", Run: here().Run})
		over := idleStream("env", "d", at(0))
		over.Owner = here()
		insertStreams(t, d, over)
		register(t, d, here(), time.Hour)
		got, sure, err := store.Held(t.Context(), here())
		must(t, err)
		want := []live.Held{{Stream: s.ID, Epoch: s.Epoch, Generation: s.Generation, Revision: s.Revision}}
		if !slices.Equal(got, want) || sure <= 0 || sure > time.Hour {
			t.Errorf("it holds %+v for %v, want %+v", got, sure, want)
		}
		if url[:8] != "postgres" {
			return
		}
		register(t, d, live.Owner{Node: here().Node, Run: "next"}, time.Hour)
		if got, sure, err = store.Held(t.Context(), here()); err != nil || sure != 0 || len(got) != 1 {
			t.Errorf("after its row was taken over: %+v for %v, %v", got, sure, err)
		}
	})
}

// TestOrphans are the broadcasts of nodes that are gone for a while, and of earlier runs of one's own.
func TestOrphans(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		store := d.LiveStreams()
		own := live.Owner{Node: here().Node, Run: "before"}
		for name, o := range map[string]live.Owner{
			"1own": own, "2mine": here(), "3lives": {Node: "lives", Run: "x"}, "4late": {Node: "late", Run: "x"},
			"5gone": {Node: "gone", Run: "x"}, "6again": {Node: "again", Run: "before"},
			"7never": {Node: "never", Run: "x"},
			"8lease": {Node: "lease"},
		} {
			led(t, d, name, o)
		}
		register(t, d, own, time.Hour)
		register(t, d, live.Owner{Node: "lives", Run: "x"}, time.Hour)
		register(t, d, live.Owner{Node: "late", Run: "x"}, -time.Second)
		register(t, d, live.Owner{Node: "gone", Run: "x"}, -live.OrphanedAfter-time.Second)
		register(t, d, live.Owner{Node: "again", Run: "now"}, time.Hour) // it takes up what it had itself
		orphans := func(starting bool, long time.Duration) []string {
			t.Helper()
			all, err := store.Orphans(t.Context(), here(), starting, long)
			must(t, err)
			return names(all)
		}
		starting := []string{"s-1own", "s-5gone", "s-7never", "s-8lease"}
		later, registered := starting[1:], starting
		if url[:8] != "postgres" { // there nobody else is
			starting = []string{"s-1own", "s-3lives", "s-4late", "s-5gone", "s-6again", "s-7never", "s-8lease"}
			later, registered = starting, starting
		}
		if got := orphans(true, live.OrphanedAfter); !slices.Equal(got, starting) {
			t.Errorf("at the start: %v, want %v", got, starting)
		}
		if got := orphans(false, live.OrphanedAfter); !slices.Equal(got, later) {
			t.Errorf("while the earlier run may live: %v, want %v", got, later)
		}
		register(t, d, here(), time.Hour)
		if got := orphans(false, live.OrphanedAfter); !slices.Equal(got, registered) {
			t.Errorf("registered: %v, want %v", got, registered)
		}
		late := []string{"s-1own", "s-4late", "s-5gone", "s-7never", "s-8lease"}
		if url[:8] != "postgres" {
			late = registered
		}
		if got := orphans(false, 0); !slices.Equal(got, late) {
			t.Errorf("of nodes whose rows are out of date: %v, want %v", got, late)
		}
	})
}

// TestUnlockedOrphans tells apart the broadcasts of nodes whose rows are out of date for a moment: those on whose names
// nobody has the lock may have ended, and the others are left out.
func TestUnlockedOrphans(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d, fleet := dbtest.Open(t, url), url[:8] == "postgres"
		for name, valid := range map[string]time.Duration{
			"1ended": -time.Second, "2hangs": -time.Second, "3lives": time.Hour,
			"4gone": -live.OrphanedAfter - time.Second, "5hangs long": -live.OrphanedAfter - time.Second,
		} {
			o := live.Owner{Node: id.Node(name), Run: "its"}
			led(t, d, name, o)
			register(t, d, o, valid)
			if fleet && strings.Contains(name, "hangs") {
				its, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
				must(t, err)
				t.Cleanup(func() { must(t, its.Close()) })
				must(t, its.Occupy(t.Context(), o.Node, 0))
			}
		}
		want := map[bool][]string{
			true: {"s-4gone", "s-5hangs long"}, false: {"s-4gone", "s-5hangs long", "s-1ended unlocked"},
		}
		if !fleet { // there nobody else is
			all := []string{"s-1ended", "s-2hangs", "s-3lives", "s-4gone", "s-5hangs long"}
			want = map[bool][]string{true: all, false: all}
		}
		for starting, want := range want {
			all, err := live.NewBroadcasts(d.LiveStreams()).Orphans(t.Context(), here(), starting)
			must(t, err)
			var got []string
			for _, o := range all {
				name := string(o.ID)
				if o.Unlocked {
					name += " unlocked"
				}
				got = append(got, name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("starting %v: %q, want %q", starting, got, want)
			}
		}
	})
}

// TestReserve writes numbers for those only who lead the broadcast, many at once, and no change of the row takes them
// back.
func TestReserve(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.LiveStreams()
		a, b := led(t, d, "a", here()), led(t, d, "b", here())
		over := idleStream("env", "c", at(0))
		over.Owner = here()
		insertStreams(t, d, over)
		reserve := func(o live.Owner, all ...live.Reservation) []id.LiveStream {
			t.Helper()
			done, err := store.Reserve(t.Context(), o, all)
			must(t, err)
			slices.Sort(done)
			return done
		}
		reserved := func(s live.Stream) live.Stream {
			t.Helper()
			got, err := store.Find(t.Context(), s.ID)
			must(t, err)
			return got
		}
		of := func(s live.Stream, next, was int64) live.Reservation {
			return live.Reservation{Stream: s.ID, Epoch: s.Epoch, Generation: s.Generation, Next: next, Was: was}
		}
		if got := reserve(here(), of(a, 10, live.Whatever), of(b, 20, live.Whatever),
			of(over, 1, live.Whatever)); !slices.Equal(got, []id.LiveStream{a.ID, b.ID}) {
			t.Errorf("reserved for %v", got)
		}
		if x, y := reserved(a), reserved(b); x.Reserved != 10 || y.Reserved != 20 || x.Revision != a.Revision {
			t.Errorf("reserved %d and %d, revision %d", x.Reserved, y.Reserved, x.Revision)
		}
		epoch, generation := of(a, 99, live.Whatever), of(a, 99, live.Whatever)
		epoch.Epoch--
		generation.Generation--
		for what, got := range map[string][]id.LiveStream{
			"an earlier epoch":      reserve(here(), epoch),
			"an earlier generation": reserve(here(), generation),
			"an earlier run":        reserve(live.Owner{Node: here().Node, Run: "before"}, of(a, 99, live.Whatever)),
			"another node":          reserve(live.Owner{Node: "there", Run: here().Run}, of(a, 99, live.Whatever)),
			"what was before":       reserve(here(), of(a, 99, 9)),
			"nothing":               reserve(here()),
		} {
			if len(got) != 0 || reserved(a).Reserved != 10 {
				t.Errorf("%s reserved for %v, %d", what, got, reserved(a).Reserved)
			}
		}
		if got := reserve(here(), of(a, 7, 10)); len(got) != 1 || reserved(a).Reserved != 7 {
			t.Errorf("given back for %v, %d are reserved", got, reserved(a).Reserved)
		}
		must(t, store.Save(t.Context(), live.Change{From: a.State, FromEpoch: a.Epoch, Stream: a})) // read before
		if got := reserved(a).Reserved; got != 7 {
			t.Errorf("a change has reserved %d", got)
		}
		a = reserved(a)
		next := live.Change{From: a.State, FromEpoch: a.Epoch, Stream: a}
		next.Stream.Epoch, next.Stream.Reserved = a.Epoch+1, 0
		must(t, store.Save(t.Context(), next))
		if got := reserved(a).Reserved; got != 0 {
			t.Errorf("the next broadcast begins with %d", got)
		}
	})
}

// TestMigrateOwners: a broadcast that a version before owned by a lease is an orphan, away since that was renewed last.
func TestMigrateOwners(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		led(t, d, "going", live.Owner{Node: "there"})
		led(t, d, "away", live.Owner{Node: "there"})
		must(t, d.MigrateTo(t.Context(), 39))
		for _, statement := range []string{
			"UPDATE live_streams SET lease_until = 100000, started_at = 50000, disconnected_at = 0, end_wanted = ''",
			"UPDATE live_streams SET state = 'reconnecting', disconnected_at = 77000 WHERE id = 's-away'",
		} {
			must(t, d.Exec(t.Context(), statement))
		}
		must(t, d.Close())
		d = dbtest.Open(t, url)
		all, err := d.LiveStreams().Orphans(t.Context(), here(), true, live.OrphanedAfter)
		must(t, err)
		if got := names(all); !slices.Equal(got, []string{"s-away", "s-going"}) {
			t.Fatalf("orphans are %v", got)
		}
		service := live.NewBroadcasts(d.LiveStreams())
		for i, away := range []int64{77, 85} {
			got, err := service.Adopt(t.Context(), all[i].ID, all[i].Writer(), here(), time.Unix(120, 0))
			must(t, err)
			if got.State != live.Reconnecting || got.DisconnectedAt.Unix() != away || got.Owner != here() ||
				got.Generation != 5 {
				t.Errorf("adopted %+v", got)
			}
		}
	})
}
