package live_test

import (
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

func broadcasting() []live.State {
	return []live.State{live.Connected, live.Recording, live.Active, live.Waiting, live.Reconnecting}
}

// recovered is what broadcast finds after a crash: the broadcasts that are to be ended still.
func (w *world) recovered() []id.LiveStream {
	w.t.Helper()
	all, err := w.Broadcasting(w.ctx())
	w.must(err)
	var ids []id.LiveStream
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestComplete(t *testing.T) {
	t.Parallel()
	for _, state := range broadcasting() {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.on(state)
			w.must(w.Complete(w.ctx(), env, s.ID, w.now()))
			w.must(w.Complete(w.ctx(), env, s.ID, w.now())) // again is the same
			if got := w.state(s.ID, state); got.EndWanted != live.EndComplete {
				t.Errorf("end wanted is %q", got.EndWanted)
			}
			if len(w.notified) != 2 || w.notified[0] != s.ID {
				t.Errorf("the owner was told of %v", w.notified)
			}
			got, _, err := w.Hold(w.ctx(), s.ID, s.Writer())
			w.must(err)
			if got.EndWanted != live.EndComplete {
				t.Errorf("the owner reads %q", got.EndWanted)
			}
			w.events()
			_, err = w.End(w.ctx(), s.ID, s.Writer(), live.EndComplete, w.now())
			w.must(err)
			w.events("idle")
			if got := w.state(s.ID, live.Idle); got.EndWanted != live.EndNone || got.ActiveAsset != "" {
				t.Errorf("ended %+v", got)
			}
		})
	}
}

// TestEndTellsWhoWasConnected: whoever is connected at the end of a broadcast is told to be cut off, before the stream
// is idle or disabled. One whose connection outlives the broadcast is told when it has gone, and one that was away
// before was told then.
func TestEndTellsWhoWasConnected(t *testing.T) {
	t.Parallel()
	disable := func(w *world, s id.LiveStream) { w.must(w.Disable(w.ctx(), env, s, w.now())) }
	enable := func(w *world, s id.LiveStream) {
		disable(w, s)
		w.must(w.Enable(w.ctx(), env, s, w.now()))
	}
	remove := func(w *world, s id.LiveStream) { w.must(w.Delete(w.ctx(), env, s, w.now())) }
	for name, tt := range map[string]struct {
		why    live.EndReason
		before func(w *world, s id.LiveStream)
		told   []string // before the end
		cutOff bool     // who is connected
		last   string
	}{
		"reconnect window":           {why: live.EndWindow, cutOff: true, last: "idle"}, // its leaving was not told
		"longest time":               {why: live.EndMaxDuration, cutOff: true, last: "idle"},
		"crash":                      {why: live.EndCrash, cutOff: true, last: "idle"},
		"completed":                  {why: live.EndComplete, last: "idle"},
		"end of a test":              {why: live.EndTest, cutOff: true, last: "disabled"},
		"disabled":                   {why: live.EndDisable, before: disable, told: []string{"disabled"}, cutOff: true},
		"disabled at the test's end": {why: live.EndTest, before: disable, told: []string{"disabled"}, cutOff: true},
		"disabled, then enabled": {
			why: live.EndDisable, before: enable, told: []string{"disabled", "enabled"}, cutOff: true, last: "idle",
		},
		"disabled at the longest time": {
			why: live.EndMaxDuration, before: disable, told: []string{"disabled"}, cutOff: true,
		},
		"completed, then disabled": {why: live.EndComplete, before: disable, told: []string{"disabled"}},
		"deleted":                  {why: live.EndDelete, before: remove, told: []string{"deleted"}},
	} {
		for _, state := range broadcasting() {
			t.Run(name+", "+string(state), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := w.on(state)
				if tt.before != nil {
					tt.before(w, s.ID)
				}
				w.events(tt.told...)
				_, err := w.End(w.ctx(), s.ID, s.Writer(), tt.why, w.now())
				w.must(err)
				var want []string
				if tt.cutOff && state.HasEncoder() {
					want = append(want, "disconnected")
				}
				if tt.last != "" {
					want = append(want, tt.last)
				}
				w.events(want...)
			})
		}
	}
}

func TestDisable(t *testing.T) {
	t.Parallel()
	for _, state := range broadcasting() {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.on(state)
			w.must(w.Disable(w.ctx(), env, s.ID, w.now()))
			w.must(w.Disable(w.ctx(), env, s.ID, w.now()))
			w.events("disabled")
			got := w.state(s.ID, live.Disabled) // at once
			if got.EndWanted != live.EndDisable || got.ActiveAsset != s.ActiveAsset || got.Protocol != "" ||
				len(w.notified) == 0 {
				t.Errorf("disabled %+v, owner told %v", got, w.notified)
			}
			if r := w.recovered(); !slices.Contains(r, s.ID) { // a crash here loses nothing
				t.Errorf("recovered are %v", r)
			}
			// what the owner says before it knows
			w.wantKind(w.Active(w.ctx(), s.ID, s.Writer(), w.now()), fault.Conflict)
			_, err := w.Disconnected(w.ctx(), s.ID, s.Writer(), w.now())
			w.wantKind(err, fault.Conflict)
			_, err = w.End(w.ctx(), s.ID, s.Writer(), live.EndDisable, w.now())
			w.must(err)
			if state.HasEncoder() {
				w.events("disconnected")
			} // that it is disabled was told
			if got := w.state(s.ID, live.Disabled); got.ActiveAsset != "" || got.EndWanted != live.EndNone ||
				len(got.RecentAssets) != 1 {
				t.Errorf("ended %+v", got)
			}
			if r := w.recovered(); len(r) != 0 {
				t.Errorf("recovered after the end are %v", r)
			}
			w.must(w.Enable(w.ctx(), env, s.ID, w.now()))
			w.must(w.Enable(w.ctx(), env, s.ID, w.now()))
			w.events("enabled")
			w.state(s.ID, live.Idle)
		})
	}
}

// TestEnableBeforeEnd enables a stream whose broadcast has not been ended yet.
func TestEnableBeforeEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	w.must(w.Disable(w.ctx(), env, s.ID, w.now()))
	w.must(w.Enable(w.ctx(), env, s.ID, w.now()))
	w.events("disabled", "enabled")
	got := w.state(s.ID, live.Idle)
	if got.ActiveAsset == "" || got.EndWanted != live.EndDisable || len(w.recovered()) != 1 {
		t.Errorf("enabled %+v", got)
	}
	_, err := w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "new"), w.now())
	w.wantKind(err, fault.Conflict) // one broadcast at a time
	_, err = w.End(w.ctx(), s.ID, s.Writer(), live.EndDisable, w.now())
	w.must(err)
	w.events("disconnected", "idle")
	if got := w.state(s.ID, live.Idle); got.ActiveAsset != "" || got.EndWanted != live.EndNone {
		t.Errorf("ended %+v", got)
	}
	_, err = w.Connect(w.ctx(), encoderAt("node", s.StreamKey, "rtmp", "new"), w.now())
	w.must(err)
}

// TestEndDisable is the media plane's own wish, as for a test stream after five minutes.
func TestEndDisable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	_, err := w.End(w.ctx(), s.ID, s.Writer(), live.EndTest, w.now())
	w.must(err)
	w.events("disconnected", "disabled")
	w.state(s.ID, live.Disabled)
}

func TestCompleteThenDisable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	w.must(w.Complete(w.ctx(), env, s.ID, w.now()))
	w.must(w.Disable(w.ctx(), env, s.ID, w.now()))
	w.must(w.Complete(w.ctx(), env, s.ID, w.now())) // does not weaken it
	if got := w.state(s.ID, live.Disabled); got.EndWanted != live.EndDisable {
		t.Errorf("end wanted is %q", got.EndWanted)
	}
	_, err := w.End(w.ctx(), s.ID, s.Writer(), live.EndComplete, w.now()) // the owner heard of the first wish only
	w.must(err)
	w.state(s.ID, live.Disabled)
	w.events("disabled")
}

func TestDeleteIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{PlaybackPolicies: []playbackid.Policy{"public"}})
	w.must(w.Delete(w.ctx(), env, s.ID, w.now()))
	w.events("deleted")
	w.wantKind(w.Delete(w.ctx(), env, s.ID, w.now()), fault.NotFound)
	_, err := w.Find(w.ctx(), s.ID)
	w.wantKind(err, fault.NotFound)
	_, err = w.Connect(w.ctx(), encoderAt("n", s.StreamKey, "rtmp", "a"), w.now())
	w.wantKind(err, fault.NotFound)
	if !slices.Equal(w.notified, []id.LiveStream{s.ID}) { // its playback IDs are to stop at once
		t.Errorf("told %v", w.notified)
	}
	w.events()
}

func TestDeleteWhileBroadcasting(t *testing.T) {
	t.Parallel()
	for _, state := range broadcasting() {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.on(state)
			w.must(w.Delete(w.ctx(), env, s.ID, w.now()))
			w.events("deleted")
			if len(w.notified) != 1 {
				t.Errorf("the owner was told of %v", w.notified)
			}
			_, err := w.Get(w.ctx(), env, s.ID)
			w.wantKind(err, fault.NotFound)
			w.wantKind(w.Delete(w.ctx(), env, s.ID, w.now()), fault.NotFound)
			w.wantKind(w.Enable(w.ctx(), env, s.ID, w.now()), fault.NotFound)
			_, err = w.Connect(w.ctx(), encoderAt("n", s.StreamKey, "rtmp", "a"), w.now())
			w.wantKind(err, fault.NotFound)
			_, err = w.db.Access().PlaybackID(w.ctx(), s.PlaybackIDs[0].ID)
			w.wantKind(err, fault.NotFound) // new playback fails at once
			got, _, err := w.Hold(w.ctx(), s.ID, s.Writer())
			w.must(err)
			if got.EndWanted != live.EndDelete || !slices.Contains(w.recovered(), s.ID) {
				t.Errorf("the owner reads %+v, recovered are %v", got, w.recovered())
			}
			_, err = w.Disconnected(w.ctx(), s.ID, s.Writer(), w.now())
			w.wantKind(err, fault.Conflict)
			_, err = w.End(w.ctx(), s.ID, s.Writer(), live.EndDelete, w.now())
			w.must(err)
			_, err = w.Find(w.ctx(), s.ID)
			w.wantKind(err, fault.NotFound)
			if r := w.recovered(); len(r) != 0 {
				t.Errorf("recovered are %v", r)
			}
			w.events()
		})
	}
}

func TestRecentAssetsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{})
	full := w.find(s.ID)
	for range 100 {
		full.RecentAssets = append(full.RecentAssets, "old")
	}
	w.must(w.store.Save(w.ctx(), live.Change{From: live.Idle, Stream: full}))
	got, err := w.Connect(w.ctx(), encoderAt("n", s.StreamKey, "rtmp", "newest"), w.now())
	w.must(err)
	got, err = w.End(w.ctx(), s.ID, got.Writer(), live.EndWindow, w.now())
	w.must(err)
	if n := len(got.RecentAssets); n != 100 || got.RecentAssets[99] != "newest" {
		t.Errorf("%d recent assets, the last is %s", n, got.RecentAssets[n-1])
	}
}

func TestOthersEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	const other = id.Environment("other")
	_, get := w.Get(w.ctx(), other, s.ID)
	_, patch := w.Patch(w.ctx(), other, s.ID, live.PatchInput{}, w.now())
	_, reset := w.ResetStreamKey(w.ctx(), other, s.ID, w.now())
	_, add := w.AddPlaybackID(w.ctx(), other, s.ID, playbackid.Request{Policy: "public"}, w.now())
	_, pid := w.GetPlaybackID(w.ctx(), other, s.ID, s.PlaybackIDs[0].ID)
	for what, err := range map[string]error{
		"get": get, "patch": patch, "reset": reset, "add playback ID": add, "get playback ID": pid,
		"delete": w.Delete(w.ctx(), other, s.ID, w.now()), "enable": w.Enable(w.ctx(), other, s.ID, w.now()),
		"disable": w.Disable(w.ctx(), other, s.ID, w.now()), "complete": w.Complete(w.ctx(), other, s.ID, w.now()),
		"delete playback ID": w.DeletePlaybackID(w.ctx(), other, s.ID, s.PlaybackIDs[0].ID, w.now()),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", what, err)
		}
	}
	if list, err := w.List(w.ctx(), other, live.ListQuery{}); err != nil || len(list) != 0 {
		t.Errorf("list gives %v, %v", list, err)
	}
	w.events()
}

func TestPlaybackIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.create(live.CreateInput{PlaybackPolicies: []playbackid.Policy{"public", "signed"}})
	if len(s.PlaybackIDs) != 2 || s.PlaybackIDs[0].Policy != "public" || s.PlaybackIDs[1].Policy != "signed" {
		t.Fatalf("made with %v", s.PlaybackIDs)
	}
	p, err := w.AddPlaybackID(w.ctx(), env, s.ID, playbackid.Request{Policy: "drm", DRMConfigurationID: "d"}, w.now())
	w.must(err)
	for _, r := range []playbackid.Request{
		{Policy: "drm", DRMConfigurationID: "of another environment"}, {Policy: "drm"},
	} {
		if _, err = w.AddPlaybackID(w.ctx(), env, s.ID, r, w.now()); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", r, err)
		}
		for _, in := range []live.CreateInput{
			{AdvancedPolicies: []playbackid.Request{r}},
			{NewAsset: &assetopt.Options{AdvancedPolicies: []playbackid.Request{r}}},
		} {
			if _, err = w.Create(w.ctx(), env, in, w.now()); !fault.Is(err, fault.Invalid) ||
				!strings.Contains(err.Error(), "drm_configuration_id") {
				t.Errorf("%+v: %v", in, err)
			}
		}
	}
	got, err := w.GetPlaybackID(w.ctx(), env, s.ID, p.ID)
	w.must(err)
	if got != p || got.DRMConfigurationID != "d" {
		t.Errorf("got %+v, added %+v", got, p)
	}
	w.must(w.DeletePlaybackID(w.ctx(), env, s.ID, p.ID, w.now()))
	w.wantKind(w.DeletePlaybackID(w.ctx(), env, s.ID, p.ID, w.now()), fault.NotFound)
	_, err = w.GetPlaybackID(w.ctx(), env, s.ID, p.ID)
	w.wantKind(err, fault.NotFound)
	_, err = w.AddPlaybackID(w.ctx(), env, s.ID, playbackid.Request{Policy: "public", DRMConfigurationID: "d"}, w.now())
	w.wantKind(err, fault.Invalid)
	w.events("updated", "updated")
}

func TestListRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, q := range []live.ListQuery{{Page: -1}, {Limit: 101}, {Limit: -1}, {Status: "connected"}} {
		_, err := w.List(w.ctx(), env, q)
		w.wantKind(err, fault.Invalid)
	}
	_, err := w.Some(w.ctx(), env, make([]id.LiveStream, live.MaxSome+1))
	w.wantKind(err, fault.Invalid)
}
