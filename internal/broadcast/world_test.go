package broadcast_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/media/ingest"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/media/timeline"
	"millrace/internal/presentation"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/worker/finish"
)

const env = id.Environment("env")

// world is a database, a storage and the nodes that share them. Its clock is the bubble's: it goes on only when
// everybody waits.
type world struct {
	t       *testing.T
	ctx     context.Context
	db      *db.DB
	objects *objects
	access  *access.Service
	streams *live.Service // of the API
	assets  struct {
		*asset.Service
		*asset.Work
	}
	journal *journal
	changed func(id.LiveStream) // of the API's changes; the nodes that should hear of them at once
	began   time.Time
	disks   map[id.Node]string // the folder of each machine's journals; none without
	disk    func() string      // makes one; nil: there are none
	fleet   fleet
	runs    int // processes that were started
	log     *strings.Builder
	logMu   sync.Mutex
}

// run gives test a world in a bubble of its own.
func run(t *testing.T, test func(w *world)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "world.db")
	dbtest.Fill(t, path)
	synctest.Test(t, func(t *testing.T) {
		d, err := db.Open(t.Context(), db.Options{URL: path, MasterKey: masterkey.Of(masterkey.Key{})})
		if err != nil {
			t.Fatal(err)
		}
		// who hangs is let go before the machine's patience ends
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		w := &world{
			t: t, ctx: ctx, db: d, objects: &objects{data: map[string][]byte{}},
			access:  access.New(access.Options{Store: d.Access()}),
			journal: &journal{}, began: time.Now(), log: &strings.Builder{}, disks: map[id.Node]string{},
			fleet: fleet{valid: map[id.Node]row{}, ended: map[id.Node]bool{}},
		}
		w.streams = live.New(live.Options{
			Store: streamStore{Store: d.LiveStreams(), journal: w.journal, fleet: &w.fleet},
			Changed: func(s id.LiveStream) {
				if w.changed != nil {
					w.changed(s)
				}
			},
		})
		kept := asset.Options{Store: assetStore{Store: d.Assets(), journal: w.journal}}
		w.assets.Service, w.assets.Work = asset.New(kept), asset.NewWork(kept)
		defer func() {
			synctest.Wait()
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log("\n" + w.logged())
			}
		}()
		test(w)
	})
}

// Write takes log lines.
func (w *world) Write(p []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	if w.log.Len() > 1<<20 {
		return len(p), nil
	}
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.String()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// stream makes a live stream with a playback ID, whose assets have one too.
func (w *world) stream(change ...func(*live.CreateInput)) live.Stream {
	w.t.Helper()
	public := []playbackid.Policy{playbackid.Public}
	in := live.CreateInput{PlaybackPolicies: public, NewAsset: &assetopt.Options{PlaybackPolicies: public}}
	for _, c := range change {
		c(&in)
	}
	s, err := w.streams.Create(w.ctx, env, in, time.Now())
	w.must(err)
	return s
}

// node is one process of the service.
type node struct {
	*broadcast.Service
	w        *world
	name     id.Node
	playback *presentation.Source
	streams  live.Broadcasts
	assets   *asset.Work
	power    *power
	stop     context.CancelFunc
	done     chan error
	meter    metering.Meter
}

// power is what a node reaches the rest of the world with.
type power struct {
	database, storage, dead atomic.Bool  // cut off
	writes                  atomic.Int64 // the node dies with this one; 0: never
	committed               atomic.Pointer[func(types []string)]
	slow                    atomic.Pointer[slowness] // nil: nothing is
	calls                   atomic.Int64             // of the database, so far, but for what goes by the clock
	unrenewed               atomic.Bool              // its node's row is not renewed
	// What goes by the clock, for all broadcasts together; and the rows that were read one by one.
	looks, reservations, sights, holds atomic.Int64
}

// slowness is how a database keeps its callers waiting.
type slowness struct {
	call int64 // this one takes long, the first being 1; 0: none, all: each of them
	long time.Duration
	late bool // its work is done at once, and the response is late
}

const all = -1

// hold keeps a call waiting, for no longer than its caller does.
func (s *slowness) hold(ctx context.Context, call int64, late bool) error {
	if s == nil || s.call != all && s.call != call || s.late != late || s.call == 0 {
		return nil
	}
	t := time.NewTimer(s.long)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call is one call of the database.
func (p *power) call(ctx context.Context, do func() error) error {
	if p == nil {
		return do()
	}
	if err := p.reach(&p.database); err != nil {
		return err
	}
	n := p.calls.Add(1)
	if err := p.slow.Load().hold(ctx, n, false); err != nil {
		return err
	}
	err := do()
	if herr := p.slow.Load().hold(ctx, n, true); herr != nil {
		return herr
	}
	return err
}

// watch is a call that is made by the clock: it is not one of those that are counted, and takes long where all do.
func watch[T any](ctx context.Context, p *power, do func() (T, error)) (v T, err error) {
	if p == nil {
		return do()
	}
	if err = p.reach(&p.database); err != nil {
		return v, err
	}
	if err = p.slow.Load().hold(ctx, all, false); err != nil {
		return v, err
	}
	v, err = do()
	if herr := p.slow.Load().hold(ctx, all, true); herr != nil {
		return v, herr
	}
	return v, err
}

// held counts the rows that were read one by one.
func (p *power) held() {
	if p != nil {
		p.holds.Add(1)
	}
}

// query is call for what has a result.
func query[T any](ctx context.Context, p *power, do func() (T, error)) (v T, err error) {
	err = p.call(ctx, func() (err error) {
		v, err = do()
		return err
	})
	return v, err
}

// tell calls what waits for a commit, once.
func (p *power) tell(err error, events []event.Event) error {
	if p == nil || err != nil || len(events) == 0 {
		return err
	}
	if f := p.committed.Swap(nil); f != nil {
		var types []string
		for _, e := range events {
			types = append(types, short(e.Type))
		}
		(*f)(types)
	}
	return nil
}

var errCut = errors.New("connection refused")

func (p *power) reach(off *atomic.Bool) error {
	if p != nil && (off.Load() || p.dead.Load()) {
		return errCut
	}
	return nil
}

// wrote is what a write says once it is made: its maker may be dead now.
func (p *power) wrote(err error) error {
	if p == nil || p.writes.Load() == 0 {
		return err
	}
	if p.writes.Add(-1) == 0 {
		p.dead.Store(true)
		return errCut
	}
	return err
}

// start makes a node and runs it; it is stopped by the test's end at the latest.
func (w *world) start(name id.Node, change ...func(*broadcast.Options)) *node {
	w.t.Helper()
	n := &node{w: w, power: &power{}, done: make(chan error, 1)}
	w.runs++
	owner := live.Owner{Node: name, Run: fmt.Sprintf("%s%d", name, w.runs)}
	n.streams = live.NewBroadcasts(streamStore{w.db.LiveStreams(), n.power, w.journal, &w.fleet})
	n.assets = asset.NewWork(asset.Options{Store: assetStore{w.db.Assets(), n.power, w.journal}})
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", name)
	o := broadcast.Options{
		Streams: n.streams, Assets: n.assets, Store: nodeObjects{w.objects, n.power}, Owner: owner, Now: time.Now,
		Logger: log, Meter: &n.meter,
	}
	if w.disk != nil && w.disks[name] == "" {
		w.disks[name] = w.disk()
	}
	n.name, o.Journals.Dir = name, w.disks[name]
	for _, c := range change {
		c(&o)
	}
	n.Service = broadcast.New(o)
	n.playback = presentation.New(presentation.Options{
		Access: w.access, Assets: n.assets, Broadcasts: n.Service, Blob: nodeObjects{w.objects, n.power},
		Meter: &n.meter, Now: time.Now, Logger: log,
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
	n.stop = stop
	w.fleet.renew(owner, true)
	there, leave := context.WithCancel(context.WithoutCancel(w.ctx))
	var row sync.WaitGroup
	n.Renewed(time.Now(), rowValid)
	row.Go(func() { w.fleet.keep(there, owner, n.power, n.Renewed) })
	go func() {
		err := n.Run(ctx)
		leave()
		row.Wait()
		n.done <- err
	}()
	w.t.Cleanup(n.end)
	w.changed = n.Changed
	synctest.Wait() // it has looked after what was left behind
	return n
}

// end stops the node as a signal does, once its encoders are gone.
func (n *node) end() {
	n.stop()
	if n.done == nil {
		return
	}
	if err := <-n.done; err != nil && !errors.Is(err, context.Canceled) {
		n.w.t.Error(err)
	}
	n.done = nil
}

// kill takes the node's power away: from now on nothing it does has an effect.
func (n *node) kill() {
	n.w.t.Helper()
	synctest.Wait()
	n.power.dead.Store(true)
	n.w.fleet.end(n.name)
	if old := n.w.disks[n.name]; old != "" { // what it still writes is not what the next one finds
		n.w.disks[n.name] = n.w.disk()
		n.w.must(os.CopyFS(n.w.disks[n.name], os.DirFS(old)))
	}
}

// journals has the nodes keep journals from now on.
func (w *world) journals(t *testing.T) {
	t.Helper()
	root, n := t.TempDir(), 0
	w.disk = func() string {
		n++
		dir := filepath.Join(root, strconv.Itoa(n))
		w.must(os.Mkdir(dir, 0o700))
		return dir
	}
}

// admit asks for a publication.
func (n *node) admit(key string) (*encoder, error) { return n.admitOver("rtmp", key) }

func (n *node) admitOver(protocol, key string) (*encoder, error) {
	return n.admitMoving(protocol, key, nil)
}

// admitMoving asks for a publication of an encoder that can be asked to connect again by move.
func (n *node) admitMoving(protocol, key string, move func()) (*encoder, error) {
	ctx, sink, err := n.Admit(n.w.ctx, ingest.Publication{
		Protocol: protocol, Key: key, Remote: netip.MustParseAddrPort("192.0.2.1:4711"), Encoder: "test", Move: move,
	})
	if err != nil {
		return nil, err
	}
	return &encoder{t: n.w.t, ctx: ctx, sink: sink}, nil
}

// publish is admit for those that must be let in.
func (n *node) publish(key string) *encoder {
	n.w.t.Helper()
	e, err := n.admit(key)
	n.w.must(err)
	return e
}

func (n *node) viewer() playbacktest.Viewer { return playbacktest.New(n.w.t, n.playback) }

func (w *world) playbackID(a id.Asset) id.Playback { return w.asset(a).PlaybackIDs[0].ID }

// --- what is expected ---

// events gives the types of all events in the order in which they were committed, without the common prefix.
func (w *world) events() []string {
	w.t.Helper()
	got := w.journal.types()
	stored, err := w.db.Events(w.ctx, env, time.Time{}, 10000)
	w.must(err)
	var types []string
	for _, e := range stored {
		types = append(types, short(e.Type))
	}
	a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(types))
	if !slices.Equal(a, b) {
		w.t.Errorf("the database holds the events %v, committed were %v", b, a)
	}
	return got
}

func short(typ string) string {
	typ = strings.TrimPrefix(typ, "video.")
	return strings.Replace(typ, "live_stream.", "", 1)
}

// expect compares the events that were told, but for those of the resources' making. a|b is both in either order.
func (w *world) expect(want ...string) {
	w.t.Helper()
	var got []string
	for _, e := range w.events() {
		if e != "created" && !strings.HasPrefix(e, "asset.track.") {
			got = append(got, e)
		}
	}
	var exact []string
	for _, e := range want {
		a, b, both := strings.Cut(e, "|")
		if n := len(exact); both && n < len(got) && got[n] == b {
			a, b = b, a
		}
		if exact = append(exact, a); both {
			exact = append(exact, b)
		}
	}
	if !slices.Equal(got, exact) {
		w.t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(got, " "), strings.Join(exact, " "))
	}
}

// row is a stream as it is stored.
func (w *world) row(s id.LiveStream) live.Stream {
	w.t.Helper()
	st, err := w.db.LiveStreams().Find(w.ctx, s)
	w.must(err)
	return st
}

// asset is an asset as it is stored.
func (w *world) asset(a id.Asset) asset.Asset {
	w.t.Helper()
	got, err := w.db.Assets().Find(w.ctx, a)
	w.must(err)
	return got
}

// timeline is what is stored of a growing asset; every object of it must be there.
func (w *world) timeline(a id.Asset) *timeline.Timeline {
	w.t.Helper()
	rows, err := w.db.Assets().Timeline(w.ctx, a, 0)
	w.must(err)
	t := &timeline.Timeline{}
	for i, r := range rows {
		if r.Sequence != int64(i) {
			w.t.Errorf("row %d has the sequence number %d", i, r.Sequence)
		}
		e, err := timeline.Decode(r.Data)
		w.must(err)
		w.must(t.Apply(e))
	}
	for key := range t.Objects {
		if !w.objects.has(key) {
			w.t.Errorf("object %s is recorded and not stored", key)
		}
	}
	return t
}

// recorded checks an asset's recording times against its timeline, and gives them with the timeline.
func (w *world) recorded(a id.Asset) ([]asset.Recording, *timeline.Timeline) {
	w.t.Helper()
	t := w.timeline(a)
	row := w.asset(a)
	if !row.IsLive {
		var err error
		t, err = t.Concluded(row.Limit)
		w.must(err)
	}
	var sum float64
	for i, r := range row.Recordings {
		sum += r.Duration
		if r.Duration <= 0 || r.StartedAt.IsZero() || r.Type != "content" && r.Type != "slate" {
			w.t.Errorf("recording time %d is %+v", i, r)
		}
	}
	if d := t.Duration().Seconds(); sum < d-0.001*float64(len(row.Recordings)+1) ||
		sum > d+0.001*float64(len(row.Recordings)+1) {
		w.t.Errorf("recording times add up to %.3f s, the timeline is %.3f s long", sum, d)
	}
	return row.Recordings, t
}

// finish does what the queue would do after a broadcast.
func (w *world) finish(a id.Asset) {
	w.t.Helper()
	worker := &finish.Worker{Assets: w.assets, Store: w.objects, Now: time.Now}
	args := job.New(asset.JobFinish, string(a), asset.FinishArgs{Asset: a})
	w.must(worker.Handler().Work(w.ctx, job.Job{Kind: args.Kind, Args: args.Args, Attempt: 1, MaxAttempts: 1}))
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
	synctest.Wait()
}

// pause is wait without waiting for the others; for goroutines beside the test's.
func pause(d time.Duration) { time.Sleep(d) }

// since is how long after the world's beginning t is, in whole seconds.
func (w *world) since(t time.Time) time.Duration { return t.Sub(w.began).Round(time.Second) }

// --- stores that can be cut off, and say what they commit ---

// journal is every event in the order of the commits.
type journal struct {
	mu     sync.Mutex
	events []event.Event
}

func (j *journal) tell(err error, events []event.Event) error {
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.events = append(j.events, events...)
	}
	return err
}

func (j *journal) all() []event.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

func (j *journal) types() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, e := range j.events {
		out = append(out, short(e.Type))
	}
	return out
}

// last decodes what the last event of a type showed.
func last[T any](w *world, typ string) (v T) {
	w.t.Helper()
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	for _, e := range slices.Backward(w.journal.events) {
		if short(e.Type) == typ {
			w.must(json.Unmarshal(e.Data, &v))
			return v
		}
	}
	w.t.Fatalf("no event %s", typ)
	return v
}

type streamStore struct {
	live.Store
	power   *power
	journal *journal
	fleet   *fleet
}

func (s streamStore) Insert(ctx context.Context, c live.Change) error {
	return s.power.wrote(s.journal.tell(s.Store.Insert(ctx, c), c.Events))
}

func (s streamStore) Find(ctx context.Context, st id.LiveStream) (live.Stream, error) {
	return query(ctx, s.power, func() (live.Stream, error) { return s.Store.Find(ctx, st) })
}

func (s streamStore) ByKey(ctx context.Context, key string) (live.Stream, error) {
	return query(ctx, s.power, func() (live.Stream, error) { return s.Store.ByKey(ctx, key) })
}

func (s streamStore) Broadcasting(ctx context.Context) ([]live.Stream, error) {
	return query(ctx, s.power, func() ([]live.Stream, error) { return s.Store.Broadcasting(ctx) })
}

func (s streamStore) Save(ctx context.Context, c live.Change) error {
	return s.power.call(ctx, func() error {
		if c.Dead != (live.Owner{}) && s.fleet.sure(c.Dead) > 0 &&
			(!c.Gone || !s.fleet.unlocked(c.Dead.Node)) {
			return fault.New(fault.Conflict, "the owner is alive")
		}
		return s.power.wrote(s.power.tell(s.journal.tell(s.Store.Save(ctx, c), c.Events), c.Events))
	})
}

func (s streamStore) Delete(ctx context.Context, c live.Change) error {
	return s.power.call(ctx, func() error {
		return s.power.wrote(s.journal.tell(s.Store.Delete(ctx, c), c.Events))
	})
}

func (s streamStore) Standing(ctx context.Context, o, by live.Owner) (live.Standing, error) {
	return query(ctx, s.power, func() (live.Standing, error) {
		st, err := s.Store.Standing(ctx, o, by)
		st.Sure = s.fleet.sure(o)
		return st, err
	})
}

func (s streamStore) Unlocked(ctx context.Context, n id.Node) (bool, error) {
	return query(ctx, s.power, func() (bool, error) { return s.fleet.unlocked(n), nil })
}

func (s streamStore) Hold(
	ctx context.Context, st id.LiveStream, o live.Owner,
) (got live.Stream, sure time.Duration, err error) {
	err = s.power.call(ctx, func() error {
		s.power.held()
		sure = s.fleet.sure(o)
		got, _, err = s.Store.Hold(ctx, st, o)
		return err
	})
	return got, sure, err
}

func (s streamStore) Orphans(
	ctx context.Context, by live.Owner, starting bool, long time.Duration,
) ([]live.Stream, error) {
	return watch(ctx, s.power, func() ([]live.Stream, error) {
		all, err := s.Store.Orphans(ctx, by, starting, long)
		return slices.DeleteFunc(all, func(st live.Stream) bool {
			if st.Node == by.Node {
				return !starting && s.fleet.sure(st.Owner) > 0
			}
			return s.fleet.there(st.Node, long)
		}), err
	})
}

func (s streamStore) Held(ctx context.Context, o live.Owner) (held []live.Held, sure time.Duration, err error) {
	held, err = watch(ctx, s.power, func() ([]live.Held, error) {
		s.power.looks.Add(1)
		sure = s.fleet.sure(o)
		all, _, failed := s.Store.Held(ctx, o)
		return all, failed
	})
	return held, sure, err
}

func (s streamStore) Reserve(ctx context.Context, o live.Owner, all []live.Reservation) ([]id.LiveStream, error) {
	return watch(ctx, s.power, func() ([]id.LiveStream, error) {
		s.power.reservations.Add(1)
		return s.Store.Reserve(ctx, o, all)
	})
}

func (s streamStore) See(ctx context.Context, o live.Owner, at time.Time) error {
	_, err := watch(ctx, s.power, func() (struct{}, error) {
		s.power.sights.Add(1)
		return struct{}{}, s.Store.See(ctx, o, at)
	})
	return err
}

type assetStore struct {
	asset.Store
	power   *power
	journal *journal
}

func (as assetStore) Insert(ctx context.Context, c asset.Change) error {
	return as.power.call(ctx, func() error {
		return as.power.wrote(as.journal.tell(as.Store.Insert(ctx, c), c.Events))
	})
}

func (as assetStore) Find(ctx context.Context, a id.Asset) (asset.Asset, error) {
	return query(ctx, as.power, func() (asset.Asset, error) { return as.Store.Find(ctx, a) })
}

func (as assetStore) Save(ctx context.Context, c asset.Change) error {
	return as.power.call(ctx, func() error {
		return as.power.wrote(as.journal.tell(as.Store.Save(ctx, c), c.Events))
	})
}

func (as assetStore) Append(ctx context.Context, a id.Asset, by asset.Writer, entries []asset.TimelineEntry) error {
	return as.power.call(ctx, func() error { return as.power.wrote(as.Store.Append(ctx, a, by, entries)) })
}

func (as assetStore) Delete(ctx context.Context, c asset.Change) error {
	return as.power.wrote(as.journal.tell(as.Store.Delete(ctx, c), c.Events))
}

func (as assetStore) Timeline(ctx context.Context, a id.Asset, from int64) ([]asset.TimelineEntry, error) {
	return query(ctx, as.power, func() ([]asset.TimelineEntry, error) { return as.Store.Timeline(ctx, a, from) })
}
