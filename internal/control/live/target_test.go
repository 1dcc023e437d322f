package live_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	up, down, never = live.LinkUp, live.LinkDown, live.LinkImpossible
	prefix          = "simulcast_target."
)

func targets(n int) []live.SimulcastTarget {
	var all []live.SimulcastTarget
	for i := range n {
		all = append(all, live.SimulcastTarget{
			URL: fmt.Sprintf("rtmp://h%d/app", i), StreamKey: "secret", Passthrough: "p",
		})
	}
	return all
}

// shows checks the states of all targets as stored.
func (w *world) shows(s id.LiveStream, want ...live.TargetState) {
	w.t.Helper()
	got := w.find(s).Settings.SimulcastTargets
	if len(got) != len(want) {
		w.t.Fatalf("%d targets, want %d", len(got), len(want))
	}
	for i, t := range got {
		if t.State != want[i] {
			w.t.Errorf("target %d is %s, want %s", i, t.State, want[i])
		}
	}
}

func TestTargetsAreAddedWhileIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{SimulcastTargets: targets(5)})
	add := func(in live.SimulcastTarget) (live.SimulcastTarget, error) {
		return w.AddSimulcastTarget(w.ctx(), env, s.ID, in, w.now())
	}
	made, err := add(live.SimulcastTarget{
		ID: "mine", State: live.TargetFatal, URL: "srt://h:6000?streamid=x", Passthrough: "p",
	})
	w.must(err)
	if made.ID == "" || made.ID == "mine" || made.State != live.TargetIdle || made.Passthrough != "p" {
		t.Errorf("made %+v", made)
	}
	w.events(prefix + "created")
	if len(w.notified) != 1 {
		t.Errorf("the owner was told of %v", w.notified)
	}
	got, err := w.GetSimulcastTarget(w.ctx(), env, s.ID, made.ID)
	w.must(err)
	if got != made {
		t.Errorf("got %+v, made %+v", got, made)
	}
	_, err = add(targets(1)[0])
	w.wantKind(err, fault.Conflict)
	wantMessages(t, err, "a live stream may have at most 6 simulcast targets")
	_, err = add(live.SimulcastTarget{URL: "http://h", StreamKey: "\x00", Passthrough: strings.Repeat("x", 256)})
	wantMessages(t, err, "passthrough may have", "stream_key must not", "url must have the form")
	w.must(w.DeleteSimulcastTarget(w.ctx(), env, s.ID, made.ID, w.now()))
	w.events(prefix + "deleted")
	for _, absent := range []id.SimulcastTarget{made.ID, "", "\x00"} {
		_, err = w.GetSimulcastTarget(w.ctx(), env, s.ID, absent)
		w.wantKind(err, fault.NotFound)
		w.wantKind(w.DeleteSimulcastTarget(w.ctx(), env, s.ID, absent, w.now()), fault.NotFound)
	}
	first := w.find(s.ID).Settings.SimulcastTargets[0].ID
	_, err = w.GetSimulcastTarget(w.ctx(), "other", s.ID, first)
	w.wantKind(err, fault.NotFound)

	st, err := w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "asset1"), w.now())
	w.must(err)
	_, err = add(targets(1)[0])
	wantMessages(t, err, "simulcast targets may be added and deleted only while the live stream is idle")
	wantMessages(t, w.DeleteSimulcastTarget(w.ctx(), env, s.ID, first, w.now()),
		"simulcast targets may be added and deleted only while the live stream is idle")
	_, err = w.End(w.ctx(), s.ID, st.Writer(), live.EndComplete, w.now())
	w.must(err)
	_, err = add(targets(1)[0])
	w.must(err)
}

// TestTargetsFollowTheStream leads two targets through a broadcast with a reconnect.
func TestTargetsFollowTheStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{SimulcastTargets: targets(2)})
	a, b := s.Settings.SimulcastTargets[0].ID, s.Settings.SimulcastTargets[1].ID
	connect := func() live.Stream {
		t.Helper()
		st, err := w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "asset1"), w.now())
		w.must(err)
		return st
	}
	e := connect().Writer()
	w.shows(s.ID, live.TargetStarting, live.TargetStarting)
	w.events("connected", prefix+"starting", prefix+"starting")
	step := func(target id.SimulcastTarget, f live.TargetFact, events ...string) {
		t.Helper()
		w.must(w.Target(w.ctx(), s.ID, e, target, f, w.now()))
		w.events(events...)
	}
	step(a, up, prefix+"broadcasting")
	step(a, down, prefix+"errored")
	w.wantKind(w.Target(w.ctx(), s.ID, e, a, down, w.now()), fault.Conflict) // it is known
	step(a, up, prefix+"broadcasting")
	step(b, never, prefix+"errored")
	w.shows(s.ID, live.TargetBroadcasting, live.TargetFatal)
	later := e
	later.Epoch++
	w.wantKind(w.Target(w.ctx(), s.ID, later, a, down, w.now()), fault.Conflict)
	w.wantKind(w.Target(w.ctx(), s.ID, e, "absent", down, w.now()), fault.NotFound)

	_, err := w.Disconnected(w.ctx(), s.ID, e, w.now())
	w.must(err)
	w.shows(s.ID, live.TargetIdle, live.TargetFatal) // it is not tried again for this asset
	w.events("disconnected", prefix+"idle")
	w.wantKind(w.Target(w.ctx(), s.ID, e, a, up, w.now()), fault.Conflict) // told too late
	e = connect().Writer()
	w.shows(s.ID, live.TargetStarting, live.TargetFatal)
	w.events("connected", prefix+"starting")
	_, err = w.End(w.ctx(), s.ID, e, live.EndComplete, w.now())
	w.must(err)
	w.shows(s.ID, live.TargetIdle, live.TargetIdle)
	w.events("idle", prefix+"idle", prefix+"idle")
	w.wantKind(w.Target(w.ctx(), s.ID, e, a, up, w.now()), fault.Conflict)
}

// TestTargetsWithoutTheirOwner is what becomes of targets when the node that forwarded to them is gone.
func TestTargetsWithoutTheirOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{SimulcastTargets: targets(1)})
	st, err := w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "asset1"), w.now())
	w.must(err)
	w.must(w.Target(w.ctx(), s.ID, st.Writer(), s.Settings.SimulcastTargets[0].ID, up, w.now()))
	w.events("connected", prefix+"starting", prefix+"broadcasting")
	w.nodes.kill(st.Owner)
	st, err = w.Connect(w.ctx(), encoderAt("other", s.StreamKey, "rtmp", "asset2"), w.now())
	w.must(err)
	w.shows(s.ID, live.TargetStarting)
	w.events("disconnected", "connected", prefix+"starting")
	w.must(w.Target(w.ctx(), s.ID, st.Writer(), s.Settings.SimulcastTargets[0].ID, up, w.now()))
	w.events(prefix + "broadcasting")
	w.nodes.kill(st.Owner)
	st, err = w.Adopt(w.ctx(), s.ID, st.Writer(), run("third"), w.now())
	w.must(err)
	w.shows(s.ID, live.TargetIdle)
	w.events("disconnected", prefix+"idle")
	w.must(w.Delete(w.ctx(), env, s.ID, w.now()))
	w.events("deleted")
	_, err = w.End(w.ctx(), s.ID, st.Writer(), live.EndDelete, w.now())
	w.must(err)
	w.events()
}

// TestTargetEventData checks that an event carries the target as it is then, and the stream's own events the states of
// its targets.
func TestTargetEventData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{SimulcastTargets: targets(1)})
	_, err := w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "asset1"), w.now())
	w.must(err)
	all, err := w.db.Events(w.ctx(), env, time.Time{}, 10)
	w.must(err)
	want := s.Settings.SimulcastTargets[0]
	want.State, want.StreamKey = live.TargetStarting, "" // secrets are not stored
	for _, e := range all {
		if e.Resource != string(s.ID) {
			t.Errorf("%s is ordered with %q, want the stream", e.Type, e.Resource)
		}
		var target live.SimulcastTarget
		var stream live.Stream
		switch e.Type {
		case "video.live_stream.simulcast_target.starting":
			w.must(json.Unmarshal(e.Data, &target))
		case "video.live_stream.connected":
			w.must(json.Unmarshal(e.Data, &stream))
			target = stream.Settings.SimulcastTargets[0]
		default:
			continue
		}
		if target != want {
			t.Errorf("%s: %+v, want %+v", e.Type, target, want)
		}
	}
}
