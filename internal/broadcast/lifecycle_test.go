package broadcast_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

func window(seconds float64) func(*live.CreateInput) {
	return func(in *live.CreateInput) { in.ReconnectWindow = &seconds }
}

func longest(seconds int) func(*live.CreateInput) {
	return func(in *live.CreateInput) { in.MaxContinuous = &seconds }
}

func isTest(in *live.CreateInput) { in.Test = true }

func audioOnly(in *live.CreateInput) { in.AudioOnly = true }

// whole is what every ordinary broadcast tells.
const (
	begun  = "connected asset.created recording active asset.ready"
	closed = "disconnected idle"
)

// TestLifecycle plays one stream's life after the other. The recordings are those that are there at its end.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream     []func(*live.CreateInput)
		play       func(w *world, n *node, s live.Stream)
		events     string
		recordings []time.Duration // lengths, of the first broadcast
		broadcasts int             // 1 when 0
	}{
		"an encoder comes and goes": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(59 * time.Second)
				if got := w.row(s.ID); got.Status() != live.StatusActive || got.ActiveAsset == "" {
					w.t.Errorf("within the window the stream is %s", got.State)
				}
				w.wait(2 * time.Second)
			},
			events: begun + " " + closed, recordings: []time.Duration{10 * time.Second},
		},
		"without a window it ends at once": {
			stream: []func(*live.CreateInput){window(0)},
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(0)
			},
			events: begun + " " + closed, recordings: []time.Duration{10 * time.Second},
		},
		"the encoder comes back in time": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(50 * time.Second)
				n.publish(s.StreamKey).send(5 * time.Second).stop()
				w.wait(61 * time.Second)
			},
			events:     begun + " disconnected connected recording " + closed,
			recordings: []time.Duration{10 * time.Second, 5 * time.Second},
		},
		"the encoder comes back too late": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
			},
			events: begun + " " + closed + " " + begun + " " + closed, recordings: []time.Duration{10 * time.Second},
			broadcasts: 2,
		},
		"a first connection too short to play": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(200 * time.Millisecond).stop()
				w.wait(5 * time.Second)
				if got := w.row(s.ID).State; got != live.Waiting {
					w.t.Errorf("the stream is %s", got)
				}
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
			},
			events: "connected asset.created recording disconnected|asset.ready connected recording active " +
				closed,
			recordings: []time.Duration{200 * time.Millisecond, 10 * time.Second},
		},
		"an encoder that flaps": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				for range 5 {
					n.publish(s.StreamKey).send(200 * time.Millisecond).stop()
				}
				w.wait(61 * time.Second)
			},
			events: begun + strings.Repeat(" disconnected connected recording", 5) + " " + closed,
			recordings: []time.Duration{
				10 * time.Second, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond,
				200 * time.Millisecond, 200 * time.Millisecond,
			},
		},
		"an encoder that flaps without a window": {
			stream: []func(*live.CreateInput){window(0)},
			play: func(w *world, n *node, s live.Stream) {
				for range 3 {
					n.publish(s.StreamKey).send(5 * time.Second).stop()
				}
				w.wait(0)
			},
			events:     begun + " " + closed + " " + begun + " " + closed + " " + begun + " " + closed,
			recordings: []time.Duration{5 * time.Second}, broadcasts: 3,
		},
		"completed": {
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey)
				ended := e.stream()
				w.wait(9950 * time.Millisecond)
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(59 * time.Second)
				if got := w.row(s.ID); got.State != live.Idle || e.dropped() != nil {
					w.t.Errorf("the stream is %s, the encoder was dropped: %v", got.State, e.dropped())
				}
				if err := <-ended; !errors.Is(err, ingest.ErrEnded) || w.since(time.Now()) != 70*time.Second {
					w.t.Errorf("the encoder was dropped after %v: %v", w.since(time.Now()), err)
				}
				w.wait(0)
			},
			events: begun + " idle disconnected", recordings: []time.Duration{10 * time.Second},
		},
		"completed, then the encoder leaves": {
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey).send(10 * time.Second)
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(5 * time.Second)
				e.stop()
				w.wait(0)
			},
			events: begun + " idle disconnected", recordings: []time.Duration{10 * time.Second},
		},
		"completed while the encoder is away": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(5 * time.Second)
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(0)
			},
			events: begun + " " + closed, recordings: []time.Duration{10 * time.Second},
		},
		"completed, then somebody publishes again": {
			play: func(w *world, n *node, s live.Stream) {
				first := n.publish(s.StreamKey)
				ended := first.stream()
				w.wait(9950 * time.Millisecond)
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				second := n.publish(s.StreamKey) // at once: the link that is kept does not hold the key
				second.send(90 * time.Second).stop()
				if err := <-ended; !errors.Is(err, ingest.ErrEnded) ||
					second.dropped() != nil && !errors.Is(second.dropped(), ingest.ErrEncoderEnded) {
					w.t.Errorf("the first encoder: %v; the second one: %v", err, second.dropped())
				}
				w.wait(61 * time.Second)
			},
			events: begun + " idle " + begun + " " + closed, recordings: []time.Duration{10 * time.Second},
			broadcasts: 2,
		},
		"disabled": {
			play: func(w *world, n *node, s live.Stream) {
				ended := n.publish(s.StreamKey).stream()
				w.wait(9950 * time.Millisecond)
				w.must(w.streams.Disable(w.ctx, env, s.ID, time.Now()))
				if err := <-ended; !errors.Is(err, ingest.ErrEnded) || w.since(time.Now()) != 10*time.Second {
					w.t.Errorf("the encoder was dropped after %v: %v", w.since(time.Now()), err)
				}
				w.wait(0)
				if _, err := n.admit(s.StreamKey); !errors.Is(err, ingest.ErrDisabled) {
					w.t.Errorf("a disabled stream says %v", err)
				}
				w.must(w.streams.Enable(w.ctx, env, s.ID, time.Now()))
			},
			events: begun + " disabled disconnected enabled", recordings: []time.Duration{10 * time.Second},
		},
		"deleted": {
			play: func(w *world, n *node, s live.Stream) {
				ended := n.publish(s.StreamKey).stream()
				w.wait(9950 * time.Millisecond)
				a := w.row(s.ID).ActiveAsset
				w.must(w.streams.Delete(w.ctx, env, s.ID, time.Now()))
				if err := <-ended; !errors.Is(err, ingest.ErrEnded) {
					w.t.Errorf("the encoder was dropped: %v", err)
				}
				w.wait(0)
				if _, err := w.db.LiveStreams().Find(w.ctx, s.ID); err == nil {
					w.t.Error("the row is still there")
				}
				if got := w.asset(a); got.IsLive || got.Status != asset.Ready {
					w.t.Errorf("the asset is %s, live %v", got.Status, got.IsLive)
				}
				if _, err := n.admit(s.StreamKey); !errors.Is(err, ingest.ErrUnknownKey) {
					w.t.Errorf("a deleted stream says %v", err)
				}
			},
			events: begun + " deleted", broadcasts: -1,
		},
		"as long as it may be": {
			stream: []func(*live.CreateInput){longest(60)},
			play: func(w *world, n *node, s live.Stream) {
				ended := n.publish(s.StreamKey).stream()
				if err := <-ended; !errors.Is(err, ingest.ErrEnded) || w.since(time.Now()) != 60*time.Second {
					w.t.Errorf("the encoder was dropped after %v: %v", w.since(time.Now()), err)
				}
				w.wait(time.Second)
				if got := w.row(s.ID).State; got != live.Idle {
					w.t.Errorf("after the longest time the stream is %s", got)
				}
			},
			events: begun + " " + closed, recordings: []time.Duration{60 * time.Second},
		},
		"as long as it may be, pauses included": {
			stream: []func(*live.CreateInput){longest(60), window(1000)},
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(30 * time.Second)
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(11 * time.Second)
			},
			events:     begun + " disconnected connected recording " + closed,
			recordings: []time.Duration{10 * time.Second, 10 * time.Second},
		},
		"a test": {
			stream: []func(*live.CreateInput){isTest},
			play: func(w *world, n *node, s live.Stream) {
				ended := n.publish(s.StreamKey).stream()
				w.wait(11 * time.Second)
				active := w.row(s.ID).ActiveAt
				if err := <-ended; !errors.Is(err, ingest.ErrEnded) ||
					time.Since(active).Round(time.Second) != 5*time.Minute {
					w.t.Errorf("the encoder was dropped %v after it became active: %v", time.Since(active), err)
				}
				w.wait(0)
				if _, err := n.admit(s.StreamKey); !errors.Is(err, ingest.ErrDisabled) {
					w.t.Errorf("a test that is over says %v", err)
				}
				if got := w.asset(w.row(s.ID).RecentAssets[0]); !got.Options.Test {
					w.t.Error("the recording is no test")
				}
				jobs, err := w.db.Unfinished(w.ctx, asset.JobExpire, string(w.row(s.ID).RecentAssets[0]))
				if w.must(err); jobs != 1 {
					w.t.Errorf("%d jobs delete the recording", jobs)
				}
				w.must(w.streams.Enable(w.ctx, env, s.ID, time.Now()))
			},
			events: begun + " disconnected disabled enabled", recordings: []time.Duration{304 * time.Second},
		},
		"nothing is sent": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).stop()
				w.wait(61 * time.Second)
				nothing(w, s.ID)
			},
			events: "connected asset.created disconnected asset.errored idle",
		},
		"nothing is sent for long": {
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey)
				w.wait(299 * time.Second)
				if e.dropped() != nil {
					w.t.Errorf("dropped early: %v", e.dropped())
				}
				w.wait(2 * time.Second)
				if !errors.Is(e.dropped(), ingest.ErrSilent) {
					w.t.Errorf("dropped: %v", e.dropped())
				}
				e.leave(e.dropped())
				w.wait(61 * time.Second)
				nothing(w, s.ID)
			},
			events: "connected asset.created disconnected asset.errored idle",
		},
		"only video where only audio is wanted": {
			stream: []func(*live.CreateInput){audioOnly},
			play: func(w *world, n *node, s live.Stream) {
				e := n.publish(s.StreamKey)
				e.noAudio = true
				e.send(10 * time.Second).stop()
				w.wait(61 * time.Second)
				nothing(w, s.ID)
			},
			events: "connected asset.created disconnected asset.errored idle",
		},
		"both where only audio is wanted": {
			stream: []func(*live.CreateInput){audioOnly},
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
				line := w.timeline(w.row(s.ID).RecentAssets[0])
				if len(line.Renditions) != 1 || line.Renditions[0].Kind != frame.Audio {
					w.t.Errorf("%d renditions", len(line.Renditions))
				}
			},
			events: begun + " " + closed, recordings: []time.Duration{10 * time.Second},
		},
		"the settings change on the way": {
			play: func(w *world, n *node, s live.Stream) {
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(10 * time.Second)
				short := 20.0
				_, err := w.streams.Patch(w.ctx, env, s.ID, live.PatchInput{ReconnectWindow: &short}, time.Now())
				w.must(err)
				w.wait(11 * time.Second)
			},
			events: begun + " disconnected updated idle", recordings: []time.Duration{10 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"), w.stream(tt.stream...)
				tt.play(w, n, s)
				w.wait(0)
				w.expect(strings.Fields(tt.events)...)
				if tt.broadcasts >= 0 {
					ended(w, s.ID, max(tt.broadcasts, 1), tt.recordings)
				}
			})
		})
	}
}

// ended checks what a stream and its assets look like between broadcasts.
func ended(w *world, s id.LiveStream, broadcasts int, lengths []time.Duration) {
	w.t.Helper()
	row := w.row(s)
	if row.State != live.Idle || row.ActiveAsset != "" || row.Owner == (live.Owner{}) || // who serves its end still
		row.Protocol != "" || row.EndWanted != "" {
		w.t.Errorf("the stream is left as %+v", row)
	}
	if int(row.Epoch) != broadcasts || len(row.RecentAssets) != broadcasts {
		w.t.Fatalf("epoch %d, recent assets %v, want %d broadcasts", row.Epoch, row.RecentAssets, broadcasts)
	}
	for i, a := range row.RecentAssets { // newest last
		got := w.asset(a)
		if got.IsLive || got.Status == asset.Preparing ||
			i > 0 && got.CreatedAt.Before(w.asset(row.RecentAssets[i-1]).CreatedAt) {
			w.t.Errorf("asset %d of %d is %s, live %v", i, broadcasts, got.Status, got.IsLive)
		}
		times, _ := w.recorded(a)
		if i > 0 {
			continue
		}
		var have []time.Duration
		for _, r := range times {
			have = append(have, time.Duration(r.Duration*float64(time.Second)))
		}
		// one picture
		if !slices.EqualFunc(have, lengths, func(a, b time.Duration) bool {
			return (a - b).Abs() <= 105*time.Millisecond
		}) {
			w.t.Errorf("recorded %v, want %v", have, lengths)
		}
	}
}

// nothing checks the asset of a broadcast that nothing could be recorded of.
func nothing(w *world, s id.LiveStream) {
	w.t.Helper()
	a := w.asset(w.row(s).RecentAssets[0])
	if a.Status != asset.Errored || a.Errors == nil ||
		!strings.Contains(strings.Join(a.Errors.Messages, " "), "nothing that could be recorded") {
		w.t.Errorf("the asset is %s: %+v", a.Status, a.Errors)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		if _, err := n.admit("no such key"); !errors.Is(err, ingest.ErrUnknownKey) {
			t.Errorf("an unknown key: %v", err)
		}
		e := n.publish(s.StreamKey)
		e.send(5 * time.Second)
		if _, err := n.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) {
			t.Errorf("a second encoder: %v", err)
		}
		n.power.database.Store(true)
		if _, err := n.admit(s.StreamKey); err == nil || errors.Is(err, ingest.ErrBusy) ||
			errors.Is(err, ingest.ErrUnknownKey) {
			t.Errorf("without a database: %v", err)
		}
		n.power.database.Store(false)
		e.send(5 * time.Second).stop()
		w.wait(0)
		w.expect(strings.Fields(begun + " disconnected")...)
	})
}

// TestSecondEncoderWhileTheFirstIsClosing lets an encoder back in although its last connection's end is not told yet.
func TestSecondEncoderWhileTheFirstIsClosing(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		first := n.publish(s.StreamKey).send(10 * time.Second)
		n.power.database.Store(true)
		first.stop()
		w.wait(2 * time.Second)
		admitted := make(chan error, 1)
		go func() {
			pause(1500 * time.Millisecond)
			n.power.database.Store(false)
		}()
		go func() {
			for {
				e, err := n.admit(s.StreamKey)
				if errors.Is(err, errCut) {
					pause(100 * time.Millisecond)
					continue
				}
				if err == nil {
					e.send(5 * time.Second).stop()
				}
				admitted <- err
				return
			}
		}()
		if err := <-admitted; err != nil {
			t.Errorf("refused: %v", err)
		}
		w.wait(61 * time.Second)
		w.expect(strings.Fields(begun + " disconnected connected recording " + closed)...)
		ended(w, s.ID, 1, []time.Duration{10 * time.Second, 5 * time.Second})
	})
}

// TestWhatCanNotBeRecorded gives the ingest protocol's reason to the asset, when there is nothing else in it.
func TestWhatCanNotBeRecorded(t *testing.T) {
	t.Parallel()
	const reason = "video codec VP8 is not supported, send H.264"
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		n.publish(s.StreamKey).leave(ingest.Unsupported(reason))
		w.wait(61 * time.Second)
		w.expect("connected", "asset.created", "disconnected", "asset.errored", "idle")
		if a := w.asset(w.row(s.ID).RecentAssets[0]); a.Status != asset.Errored || a.Errors == nil ||
			!slices.Equal(a.Errors.Messages, []string{reason}) {
			t.Errorf("the asset is %s: %+v", a.Status, a.Errors)
		}
	})
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		n.publish(s.StreamKey).send(10 * time.Second).leave(ingest.Unsupported(reason))
		w.wait(61 * time.Second)
		if a := w.asset(w.row(s.ID).RecentAssets[0]); a.Status != asset.Ready || a.Errors != nil {
			t.Errorf("the asset is %s: %+v", a.Status, a.Errors)
		}
	})
}
