package live_test

import (
	"testing"

	"millrace/internal/control/live"
	"millrace/internal/fault"
)

// TestSilentEncoder gives the place of an encoder that is connected and silent to another one, whatever the window.
func TestSilentEncoder(t *testing.T) {
	t.Parallel()
	for from, to := range map[live.State]live.State{
		live.Connected: live.Connected, live.Recording: live.Connected, live.Active: live.Active,
	} {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.on(from)
			_, err := w.Patch(w.ctx(), env, s.ID, live.PatchInput{ReconnectWindow: new(0.0)}, w.now())
			w.must(err)
			w.events("updated")
			other := s.Writer()
			other.Node = "other"
			_, err = w.Silence(w.ctx(), s.ID, other, true, w.now())
			w.wantKind(err, fault.Conflict) // it is not its encoder
			_, err = w.Silence(w.ctx(), s.ID, s.Writer(), true, w.now())
			w.must(err)
			_, err = w.Silence(w.ctx(), s.ID, s.Writer(), false, w.now())
			w.must(err)
			_, err = w.Connect(w.ctx(), asked(encoderAt("node2", s.StreamKey, "srt", "asset2"), s), w.now())
			w.wantKind(err, fault.Conflict) // it sends again
			_, err = w.Silence(w.ctx(), s.ID, s.Writer(), true, w.now())
			w.must(err)
			w.events()
			got, err := w.Connect(w.ctx(), asked(encoderAt("node2", s.StreamKey, "srt", "asset2"), s), w.now())
			w.must(err)
			if got.State != to || got.ActiveAsset != s.ActiveAsset || got.Epoch != s.Epoch || got.Node != "node2" ||
				got.Protocol != "srt" || got.Silent ||
				!got.DisconnectedAt.IsZero() {
				t.Errorf("taken over %+v", got)
			}
			w.events("disconnected", "connected")
			_, err = w.Connect(w.ctx(), asked(encoderAt("node3", s.StreamKey, "rtmp", "asset3"), got), w.now())
			w.wantKind(err, fault.Conflict)
			_, err = w.Silence(w.ctx(), s.ID, s.Writer(), true, w.now()) // from the one that has lost it
			w.wantKind(err, fault.Conflict)
		})
	}
}

// TestSilenceEnds says that nobody is silent any more who is away.
func TestSilenceEnds(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w *world, s live.Stream) (live.Stream, error){
		"away": func(w *world, s live.Stream) (live.Stream, error) {
			return w.Disconnected(w.ctx(), s.ID, s.Writer(), w.now())
		},
		"ended": func(w *world, s live.Stream) (live.Stream, error) {
			return w.End(w.ctx(), s.ID, s.Writer(), live.EndComplete, w.now())
		},
		"adopted": func(w *world, s live.Stream) (live.Stream, error) {
			w.nodes.kill(s.Owner)
			return w.Adopt(w.ctx(), s.ID, s.Writer(), run("other"), w.now())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.on(live.Active)
			_, err := w.Silence(w.ctx(), s.ID, s.Writer(), true, w.now())
			w.must(err)
			got, err := leave(w, s)
			w.must(err)
			if got.Silent {
				t.Errorf("still silent: %+v", got)
			}
			_, err = w.Silence(w.ctx(), s.ID, s.Writer(), true, w.now())
			w.wantKind(err, fault.Conflict)
		})
	}
}
