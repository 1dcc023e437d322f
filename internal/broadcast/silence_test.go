package broadcast_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

const replaced = "disconnected connected recording"

// TestSilence plays encoders that stay connected and send nothing.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream     []func(*live.CreateInput)
		play       func(w *world, n *node, s live.Stream)
		events     string
		recordings []time.Duration
	}{
		"another connection takes its place": {
			play: func(w *world, n *node, s live.Stream) {
				replace(w, n, s, n.publish(s.StreamKey).send(10*time.Second))
				w.wait(61 * time.Second)
			},
			events:     begun + " " + replaced + " " + closed,
			recordings: []time.Duration{10 * time.Second, 10 * time.Second},
		},
		"so it does without a window": {
			stream: []func(*live.CreateInput){window(0)},
			play: func(w *world, n *node, s live.Stream) {
				replace(w, n, s, n.publish(s.StreamKey).send(10*time.Second))
				w.wait(0)
			},
			events:     begun + " " + replaced + " " + closed,
			recordings: []time.Duration{10 * time.Second, 10 * time.Second},
		},
		"of one that never sent anything": {
			play: func(w *world, n *node, s live.Stream) {
				replace(w, n, s, n.publish(s.StreamKey))
				w.wait(61 * time.Second)
			},
			events:     "connected asset.created " + replaced + " active asset.ready " + closed,
			recordings: []time.Duration{10 * time.Second},
		},
		"over another protocol": {
			play: func(w *world, n *node, s live.Stream) {
				for _, protocol := range []string{"srt", "whip", "rtmp"} {
					e, err := n.admitOver(protocol, s.StreamKey)
					w.must(err)
					e.send(5 * time.Second)
					if got := w.row(s.ID).Protocol; got != protocol {
						w.t.Errorf("over %s the row says %q", protocol, got)
					}
					e.stop()
					w.wait(time.Second)
				}
				if got := w.asset(w.row(s.ID).ActiveAsset).Origin; got != asset.FromLiveSRT {
					w.t.Errorf("the asset is from %s", got)
				}
				w.wait(61 * time.Second)
			},
			events:     begun + " " + replaced + " " + replaced + " " + closed,
			recordings: []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second},
		},
		"three times": {
			stream: []func(*live.CreateInput){window(0)},
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey).send(10 * time.Second)
				for range 3 {
					w.wait(6 * time.Second)
					next := n.publish(s.StreamKey).send(5 * time.Second)
					e.leave(e.dropped())
					e = next
				}
				e.stop()
				w.wait(0)
			},
			events:     begun + strings.Repeat(" "+replaced, 3) + " " + closed,
			recordings: []time.Duration{10 * time.Second, 5 * time.Second, 5 * time.Second, 5 * time.Second},
		},
		"it goes on and keeps its place": {
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey).send(10 * time.Second)
				w.wait(60 * time.Second)
				e.send(10 * time.Second)
				if _, err := n.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) || e.dropped() != nil {
					w.t.Errorf("another encoder: %v; the first one: %v", err, e.dropped())
				}
				e.stop()
				w.wait(61 * time.Second)
			},
			events: begun + " " + closed, recordings: []time.Duration{20 * time.Second},
		},
		"dropped after five minutes, then the window runs": {
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey).send(10 * time.Second)
				w.wait(299 * time.Second)
				if e.dropped() != nil || w.row(s.ID).State != live.Active {
					w.t.Errorf("dropped early: %v", e.dropped())
				}
				w.wait(2 * time.Second)
				if !errors.Is(e.dropped(), ingest.ErrSilent) || w.row(s.ID).State != live.Reconnecting {
					w.t.Errorf("dropped: %v", e.dropped())
				}
				e.leave(e.dropped())
				w.wait(30 * time.Second)
				n.publish(s.StreamKey).send(5 * time.Second).stop()
				w.wait(61 * time.Second)
			},
			events:     begun + " disconnected connected recording " + closed,
			recordings: []time.Duration{10 * time.Second, 5 * time.Second},
		},
		"the silent one leaves in the same moment": {
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey).send(10 * time.Second)
				w.wait(6 * time.Second)
				leaves := func(types []string) { // between the admission's write and the broadcast's knowledge of it
					if !slices.Equal(types, []string{"disconnected", "connected"}) {
						w.t.Errorf("the admission told %v", types)
					}
					e.stop()
					synctest.Wait()
				}
				n.power.committed.Store(&leaves)
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
			},
			events:     begun + " disconnected connected " + replaced + " " + closed,
			recordings: []time.Duration{10 * time.Second, 10 * time.Second},
		},
		"the key is reset": {
			play: func(w *world, n *node, s live.Stream) {
				ended := n.publish(s.StreamKey).stream()
				w.wait(9950 * time.Millisecond)
				fresh, err := w.streams.ResetStreamKey(w.ctx, env, s.ID, time.Now())
				w.must(err)
				if err := <-ended; !errors.Is(err, ingest.ErrKeyReset) || w.since(time.Now()) != 10*time.Second {
					w.t.Errorf("the encoder was dropped after %v: %v", w.since(time.Now()), err)
				}
				w.wait(30 * time.Second)
				if _, err := n.admit(s.StreamKey); !errors.Is(err, ingest.ErrUnknownKey) {
					w.t.Errorf("the old key: %v", err)
				}
				n.publish(fresh.StreamKey).send(5 * time.Second).stop()
				w.wait(61 * time.Second)
			},
			events:     begun + " updated " + replaced + " " + closed,
			recordings: []time.Duration{10 * time.Second, 5 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"), w.stream(tt.stream...)
				tt.play(w, n, s)
				w.wait(0)
				w.expect(strings.Fields(tt.events)...)
				ended(w, s.ID, 1, tt.recordings)
			})
		})
	}
}

// replace lets an encoder in as soon as the first has been silent for five seconds, and no earlier.
func replace(w *world, n *node, s live.Stream, first *encoder) {
	w.t.Helper()
	w.wait(4500 * time.Millisecond)
	if _, err := n.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) || first.dropped() != nil {
		w.t.Errorf("after 4.5 s: %v; the first one: %v", err, first.dropped())
	}
	w.wait(500 * time.Millisecond)
	second := n.publish(s.StreamKey)
	if !errors.Is(first.dropped(), ingest.ErrReplaced) {
		w.t.Errorf("the first one was dropped: %v", first.dropped())
	}
	first.leave(first.dropped())
	second.send(10 * time.Second)
	if got := w.row(s.ID); got.Protocol != "rtmp" || got.Silent || got.State != live.Active {
		w.t.Errorf("with the second encoder the stream is %+v", got)
	}
	second.stop()
}

// TestSilenceElsewhere lets an encoder in on a node while it is silent on another one, which then has nothing to say
// any more.
func TestSilenceElsewhere(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, b, s := w.start("a"), w.start("b"), w.stream(window(0))
		first := a.publish(s.StreamKey).send(9 * time.Second)
		w.wait(4500 * time.Millisecond)
		if _, err := b.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) {
			t.Errorf("after 4.5 s: %v", err)
		}
		w.wait(500 * time.Millisecond)
		second := b.publish(s.StreamKey)
		first.send(time.Second) // what it still says is not recorded
		second.send(9 * time.Second)
		if first.dropped() == nil || second.dropped() != nil {
			t.Errorf("the first encoder: %v; the second one: %v", first.dropped(), second.dropped())
		}
		first.leave(first.dropped())
		second.stop()
		w.wait(time.Second)
		w.expect(strings.Fields(begun + " " + replaced + " " + closed)...)
		// its open segment was in the first node's memory
		ended(w, s.ID, 1, []time.Duration{8 * time.Second, 9 * time.Second})
	})
}
