package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const env = id.Environment("env")

// world is a service on a real store, with a clock that goes on by a second per call.
type world struct {
	*live.Service
	live.Broadcasts
	t        *testing.T
	db       *db.DB
	store    live.Store
	nodes    *nodes
	clock    time.Time
	mu       sync.Mutex
	notified []id.LiveStream // by Options.Changed, which may be called from several goroutines
	seen     int             // events read already
}

func newWorld(t *testing.T) *world {
	t.Helper()
	d := dbtest.Open(t, dbtest.SQLite(t))
	w := &world{t: t, db: d, clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.nodes = &nodes{Store: d.LiveStreams(), dead: map[live.Owner]bool{}}
	w.store = w.nodes
	w.Broadcasts = live.NewBroadcasts(w.store)
	w.Service = live.New(live.Options{Store: w.store, DRM: configurations, Changed: func(s id.LiveStream) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notified = append(w.notified, s)
	}})
	return w
}

// configurations are d, and e, with which nothing is given in clear.
func configurations(_ context.Context, _ id.Environment, name string) (playbackid.Configuration, error) {
	if name != "d" && name != "e" {
		return playbackid.Configuration{}, fault.New(fault.NotFound, "the DRM configuration does not exist")
	}
	return playbackid.Configuration{EncryptedOnly: name == "e"}, nil
}

func (w *world) now() time.Time {
	w.clock = w.clock.Add(time.Second)
	return w.clock
}

func (w *world) ctx() context.Context { return w.t.Context() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantKind(err error, want fault.Kind) {
	w.t.Helper()
	if err == nil || fault.KindOf(err) != want {
		w.t.Errorf("error %v of kind %d, want kind %d", err, fault.KindOf(err), want)
	}
}

// events checks what was told since the last call: "idle", … without the common prefix.
func (w *world) events(want ...string) []live.Stream {
	w.t.Helper()
	all, err := w.db.Events(w.ctx(), env, time.Time{}, 10_000)
	w.must(err)
	var got []string
	var data []live.Stream
	for _, e := range all[w.seen:] {
		got = append(got, strings.TrimPrefix(e.Type, "video.live_stream."))
		var s live.Stream
		w.must(json.Unmarshal(e.Data, &s))
		kind := "live_stream"
		if strings.HasPrefix(e.Type, "video.live_stream.simulcast_target.") {
			kind = "simulcast_target"
		}
		if e.ObjectKind != kind || e.ObjectID != string(s.ID) || e.Environment != env || s.ID == "" {
			w.t.Errorf("event %s is about %s %s of %s, its data about %s", e.Type, e.ObjectKind, e.ObjectID,
				e.Environment, s.ID)
		}
		data = append(data, s)
	}
	w.seen = len(all)
	if !slices.Equal(got, want) {
		w.t.Errorf("events %v, want %v", got, want)
	}
	return data
}

func (w *world) create(in live.CreateInput) live.Stream {
	w.t.Helper()
	s, err := w.Create(w.ctx(), env, in, w.now())
	w.must(err)
	want := []string{"created"}
	for range in.SimulcastTargets {
		want = append(want, "simulcast_target.created")
	}
	w.events(want...)
	return s
}

func (w *world) find(s id.LiveStream) live.Stream {
	w.t.Helper()
	got, err := w.Find(w.ctx(), s)
	w.must(err)
	return got
}

func (w *world) state(s id.LiveStream, want live.State) live.Stream {
	w.t.Helper()
	got := w.find(s)
	if got.State != want {
		w.t.Errorf("state %s, want %s", got.State, want)
	}
	return got
}

// on brings a fresh stream into a broadcast and a state, and forgets the events of the way.
func (w *world) on(state live.State) live.Stream {
	w.t.Helper()
	s := w.create(live.CreateInput{PlaybackPolicies: []playbackid.Policy{"public"}})
	s, err := w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "asset1"), w.now())
	w.must(err)
	steps := []struct {
		reached live.State
		step    func() error
	}{
		{live.Connected, func() error { return w.Recording(w.ctx(), s.ID, s.Writer(), false, w.now()) }},
		{live.Recording, func() error { return w.Active(w.ctx(), s.ID, s.Writer(), w.now()) }},
		{live.Active, func() error { _, lost := w.Disconnected(w.ctx(), s.ID, s.Writer(), w.now()); return lost }},
	}
	for _, step := range steps {
		if step.reached == state {
			break
		}
		if state == live.Waiting {
			_, err = w.Disconnected(w.ctx(), s.ID, s.Writer(), w.now())
			w.must(err)
			break
		}
		w.must(step.step())
	}
	all, err := w.db.Events(w.ctx(), env, time.Time{}, 10_000)
	w.must(err)
	w.seen, w.notified = len(all), nil
	return w.state(s.ID, state)
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{})
	got, err := w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "asset1"), w.now())
	w.must(err)
	if got.Epoch != 1 || got.ActiveAsset != "asset1" || got.Protocol != "rtmp" || got.Node != "node" ||
		got.Run != run("node").Run ||
		!got.StartedAt.Equal(w.clock) || got.Status() != live.StatusIdle {
		t.Errorf("connected %+v", got)
	}
	if d := w.events("connected"); d[0].ActiveAsset != "asset1" {
		t.Errorf("event names asset %q", d[0].ActiveAsset)
	}
	w.must(w.Recording(w.ctx(), s.ID, got.Writer(), false, w.now()))
	w.must(w.Active(w.ctx(), s.ID, got.Writer(), w.now()))
	w.events("recording", "active")
	if w.state(s.ID, live.Active).Status() != live.StatusActive {
		t.Error("status is not active")
	}
	got, err = w.Disconnected(w.ctx(), s.ID, got.Writer(), w.now())
	w.must(err)
	if got.State != live.Reconnecting || got.Protocol != "" || !got.DisconnectedAt.Equal(w.clock) ||
		got.Node != "node" || got.Status() != live.StatusActive {
		t.Errorf("disconnected %+v", got)
	}
	w.events("disconnected")
	elsewhere := encoderAt("node2", s.StreamKey, "rtmp", "asset2")
	for _, c := range []live.Connection{elsewhere, asked(elsewhere, s)} { // nobody was asked, or an earlier writer
		_, err = w.Connect(w.ctx(), c, w.now())
		if at, ok := errors.AsType[*live.ElsewhereError](err); !ok || at.Stream != s.ID ||
			at.Writer != got.Writer() || at.For <= 0 {
			t.Errorf("connecting to another node than the one that has the broadcast: %v", err)
		}
		w.wantKind(err, fault.Conflict)
	}
	w.events()
	got, err = w.Connect(w.ctx(), asked(elsewhere, got), w.now())
	w.must(err)
	if got.State != live.Active || got.ActiveAsset != "asset1" || got.Epoch != 1 || got.Node != "node2" ||
		!got.DisconnectedAt.IsZero() {
		t.Errorf("resumed %+v", got)
	}
	w.events("connected")
	// of the first encoder: told with active
	w.wantKind(w.Recording(w.ctx(), s.ID, got.Writer(), false, w.now()), fault.Conflict)
	w.must(w.Recording(w.ctx(), s.ID, got.Writer(), true, w.now()))
	if d := w.events("recording"); d[0].State != live.Active {
		t.Errorf("after a reconnect recording is told in state %s", d[0].State)
	}
	_, err = w.Disconnected(w.ctx(), s.ID, got.Writer(), w.now())
	w.must(err)
	w.events("disconnected")
	last := got
	got, err = w.End(w.ctx(), s.ID, got.Writer(), live.EndWindow, w.now())
	w.must(err)
	if d := w.events("idle"); d[0].ActiveAsset != "asset1" || d[0].State != live.Idle {
		t.Errorf("the event of the end names asset %q and state %s", d[0].ActiveAsset, d[0].State)
	}
	if !same(got, w.find(s.ID)) {
		t.Errorf("end gives %+v, the store has %+v", got, w.find(s.ID))
	}
	if got.State != live.Idle || got.ActiveAsset != "" || !slices.Equal(got.RecentAssets, []id.Asset{"asset1"}) ||
		got.Owner != last.Owner || // who serves its end still
		!got.StartedAt.IsZero() || !got.DisconnectedAt.IsZero() {
		t.Errorf("ended %+v", got)
	}
	_, err = w.End(w.ctx(), s.ID, last.Writer(), live.EndWindow, w.now())
	w.wantKind(err, fault.Conflict)
	got, err = w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "asset3"), w.now())
	w.must(err)
	if got.Epoch != 2 || got.ActiveAsset != "asset3" {
		t.Errorf("second broadcast %+v", got)
	}
	w.events("connected")
	for _, f := range []func() error{ // of the first broadcast
		func() error { return w.Recording(w.ctx(), s.ID, last.Writer(), false, w.now()) },
		func() error { _, err := w.Disconnected(w.ctx(), s.ID, last.Writer(), w.now()); return err },
		func() error { _, err := w.End(w.ctx(), s.ID, last.Writer(), live.EndWindow, w.now()); return err },
		func() error { _, _, err := w.Hold(w.ctx(), s.ID, last.Writer()); return err },
		func() error {
			return w.Recording(w.ctx(), s.ID, live.Writer{Epoch: 3, Owner: got.Owner}, false, w.now())
		},
	} {
		w.wantKind(f(), fault.Conflict)
	}
	w.events()
}

// same compares what a pointer leads to, and nil as empty.
func same(a, b live.Stream) bool {
	x, _ := json.Marshal(a.Settings)
	y, _ := json.Marshal(b.Settings)
	a.Settings, b.Settings = live.Settings{}, live.Settings{}
	return string(x) == string(y) && fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

func TestPlayableWithoutRecordingFact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Connected)
	w.must(w.Active(w.ctx(), s.ID, s.Writer(), w.now()))
	w.events("recording", "active")
	w.wantKind(w.Active(w.ctx(), s.ID, s.Writer(), w.now()), fault.Conflict)
	w.wantKind(w.Recording(w.ctx(), s.ID, s.Writer(), false, w.now()), fault.Conflict)
	w.events()
}

// TestLostBeforePlayable says that a stream which was never playable does not read active while its encoder is away.
func TestLostBeforePlayable(t *testing.T) {
	t.Parallel()
	for _, from := range []live.State{live.Connected, live.Recording} {
		w := newWorld(t)
		s := w.on(from)
		got, err := w.Disconnected(w.ctx(), s.ID, s.Writer(), w.now())
		w.must(err)
		if got.State != live.Waiting || got.Status() != live.StatusIdle || got.ActiveAsset == "" {
			t.Errorf("lost in %s: %+v", from, got)
		}
		got, err = w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "other"), w.now())
		w.must(err)
		if got.State != live.Connected || got.ActiveAsset != s.ActiveAsset || got.Epoch != s.Epoch {
			t.Errorf("back in %+v", got)
		}
		w.must(w.Recording(w.ctx(), s.ID, got.Writer(), false, w.now()))
		w.events("disconnected", "connected", "recording")
	}
}

func TestConnectRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	connect := func(key string, after time.Duration) error {
		_, err := w.Connect(w.ctx(), encoderAt("node2", key, "rtmp", "new"), w.now().Add(after))
		return err
	}
	w.wantKind(connect("unknown", 0), fault.NotFound)
	w.wantKind(connect("", 0), fault.NotFound)
	off := w.create(live.CreateInput{})
	w.must(w.Disable(w.ctx(), env, off.ID, w.now()))
	w.events("disabled")
	w.wantKind(connect(off.StreamKey, 0), fault.Denied)
	for _, state := range []live.State{live.Connected, live.Recording, live.Active} {
		w.wantKind(connect(w.on(state).StreamKey, 0), fault.Conflict)
	}
	away := w.on(live.Reconnecting)
	w.wantKind(connect(away.StreamKey, 61*time.Second), fault.Conflict) // the window of 60 s has passed
	w.must(w.Complete(w.ctx(), env, away.ID, w.now()))
	w.wantKind(connect(away.StreamKey, 0), fault.Conflict) // about to be ended
	w.events()
	old := w.on(live.Active).StreamKey
	all, err := w.List(w.ctx(), env, live.ListQuery{StreamKey: old})
	w.must(err)
	fresh, err := w.ResetStreamKey(w.ctx(), env, all[0].ID, w.now())
	w.must(err)
	w.events("updated")
	w.wantKind(connect(old, 0), fault.NotFound)
	if fresh.StreamKey == old || fresh.State != live.Active || fresh.SRTPassphrase != all[0].SRTPassphrase {
		t.Errorf("after a reset %+v", fresh)
	}
}

// TestTakeOver lets an encoder come back after the process that had it died.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	seen := w.now()
	w.must(w.See(w.ctx(), s.Owner, seen))
	w.nodes.kill(s.Owner)
	got, err := w.Connect(w.ctx(), encoderAt("node2", s.StreamKey, "rtmp", "other"), seen.Add(59*time.Second))
	w.must(err)
	if got.State != live.Active || got.ActiveAsset != s.ActiveAsset || got.Node != "node2" || got.Epoch != s.Epoch {
		t.Errorf("taken over %+v", got)
	}
	_, _, err = w.Hold(w.ctx(), s.ID, s.Writer())
	w.wantKind(err, fault.Conflict) // the old owner has lost it
	_, err = w.Connect(w.ctx(), encoderAt("node3", s.StreamKey, "rtmp", "other"), w.now())
	w.wantKind(err, fault.Conflict) // its owner lives
	w.must(w.See(w.ctx(), got.Owner, w.now()))
	w.nodes.kill(got.Owner)
	_, err = w.Connect(w.ctx(), encoderAt("node3", s.StreamKey, "rtmp", "other"), w.clock.Add(61*time.Second))
	w.wantKind(err, fault.Conflict) // the window has passed
	w.clock = w.clock.Add(time.Hour)
	w.events("disconnected", "connected")
}

func TestConnectRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{})
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		now := w.now()
		wg.Go(func() {
			_, errs[i] = w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", id.Asset(fmt.Sprint(i))), now)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		w.wantKind(err, fault.Conflict)
	}
	if won != 1 {
		t.Errorf("%d encoders were admitted, want 1", won)
	}
	w.events("connected")
}

// TestNothingIsLost lets many change one stream at the same time.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{})
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		now := w.now()
		wg.Go(func() {
			if i%2 == 0 {
				_, errs[i] = w.AddPlaybackID(w.ctx(), env, s.ID, playbackid.Request{Policy: "public"}, now)
				return
			}
			_, errs[i] = w.Patch(w.ctx(), env, s.ID, live.PatchInput{Passthrough: new(fmt.Sprint(i))}, now)
		})
	}
	wg.Wait()
	w.must(errors.Join(errs...))
	if got := w.find(s.ID); len(got.PlaybackIDs) != 8 || got.Settings.Passthrough == "" || got.Revision != 16 {
		t.Errorf("after 16 changes %d playback IDs, revision %d", len(got.PlaybackIDs), got.Revision)
	}
}

// TestReaddressed: Readdressed is called when playback IDs of a live stream change or it is deleted, and for no other
// change.
func TestReaddressed(t *testing.T) {
	t.Parallel()
	w, told := newWorld(t), 0
	s := live.New(live.Options{Store: w.store, Readdressed: func(id.LiveStream) { told++ }})
	st := w.create(live.CreateInput{})
	expect := func(what string, want int) {
		t.Helper()
		if told != want {
			t.Errorf("%s: told %d times, want %d", what, told, want)
		}
		told = 0
	}
	text := "of another"
	_, err := s.Patch(w.ctx(), env, st.ID, live.PatchInput{Passthrough: &text}, w.now())
	w.must(err)
	expect("a change of its passthrough", 0)
	made, err := s.AddPlaybackID(w.ctx(), env, st.ID, playbackid.Request{Policy: playbackid.Public}, w.now())
	w.must(err)
	expect("a new playback ID", 1)
	w.must(s.DeletePlaybackID(w.ctx(), env, st.ID, made.ID, w.now()))
	expect("a playback ID taken away", 1)
	w.must(s.Delete(w.ctx(), env, st.ID, w.now()))
	expect("its end", 1)
}
