package broadcast_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

// TestCrash kills a node and starts the service again.
func TestCrash(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		down    time.Duration // from the crash to the next start
		back    bool          // the encoder publishes again, at once
		journal bool          // the open segment's parts are on disk
		events  string
		lengths []time.Duration
	}{
		"the encoder is back in time, with a journal": {
			down: 20 * time.Second, back: true, journal: true,
			events: begun + " disconnected connected recording " + closed,
			// the sound was a part ahead, and the picture stands for that
			lengths: []time.Duration{10694 * time.Millisecond, 10 * time.Second},
		},
		"the encoder stays away, with a journal": {
			down: 20 * time.Second, journal: true, events: begun + " " + closed,
			lengths: []time.Duration{10694 * time.Millisecond},
		},
		"the encoder is back in time": {
			down: 20 * time.Second, back: true, events: begun + " disconnected connected recording " + closed,
			lengths: []time.Duration{8 * time.Second, 10 * time.Second}, // the third segment was open
		},
		"the encoder stays away": {
			down: 20 * time.Second, events: begun + " " + closed, lengths: []time.Duration{8 * time.Second},
		},
		"the window has passed": {
			down: time.Hour, events: begun + " " + closed, lengths: []time.Duration{8 * time.Second},
		},
		"the window has passed and the encoder is there": {
			down: time.Hour, back: true, events: begun + " " + closed + " " + begun + " " + closed,
			lengths: []time.Duration{8 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				if tt.journal {
					w.journals(t)
				}
				first, s := w.start("a"), w.stream()
				e := first.publish(s.StreamKey).send(11 * time.Second)
				first.kill()
				e.stop()
				w.wait(tt.down)
				second := w.start("a")
				w.wait(0)
				if tt.back {
					second.publish(s.StreamKey).send(10 * time.Second).stop()
				}
				w.wait(61 * time.Second)
				w.expect(strings.Fields(tt.events)...)
				ended(w, s.ID, strings.Count(tt.events, "idle"), tt.lengths)
				if a := w.asset(w.row(s.ID).RecentAssets[0]); a.Status != asset.Ready {
					t.Errorf("the asset is %s", a.Status)
				}
			})
		})
	}
}

// TestCrashAnywhere kills the node after each single write of a broadcast's life. Whatever it was, the next start puts
// things right, and nothing that was complete is lost.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() {
		step = 4
	}
	for writes := 1; ; writes += step {
		over := false
		run(t, func(w *world) {
			first, s := w.start("a"), w.stream()
			first.power.writes.Store(int64(writes))
			e, err := first.admit(s.StreamKey)
			if err == nil {
				e.send(10 * time.Second).stop()
			}
			w.wait(61 * time.Second)
			over = first.power.writes.Load() > 0 // it lived to the end
			first.kill()
			row := w.row(s.ID)
			had := 0
			if row.ActiveAsset != "" {
				rows, err := w.db.Assets().Timeline(w.ctx, row.ActiveAsset, 0)
				w.must(err)
				had = len(rows)
			}
			w.start("a")
			w.wait(61 * time.Second)
			got := w.row(s.ID)
			if got.State != live.Idle || got.ActiveAsset != "" {
				t.Fatalf("after write %d the stream is %s, asset %q", writes, got.State, got.ActiveAsset)
			}
			for _, a := range got.RecentAssets {
				after := w.asset(a)
				if after.IsLive || after.Status == asset.Preparing {
					t.Errorf("after write %d the asset is %s, live %v", writes, after.Status, after.IsLive)
				}
				if _, line := w.recorded(a); had > 0 && len(line.Entries()) < had {
					t.Errorf("after write %d: %d entries of %d", writes, len(line.Entries()), had)
				}
			}
			events := w.events()
			if slices.Contains(events, "connected") &&
				(!slices.Contains(events, "idle") || !slices.Contains(events, "asset.created")) {
				t.Errorf("after write %d were told %v", writes, events)
			}
		})
		if over || t.Failed() {
			if writes < 8 {
				t.Errorf("a broadcast has only %d writes", writes)
			}
			return
		}
	}
}

// TestShutdown: where a node is stopped and started again, as for an upgrade, the encoder continues the same asset,
// also without a reconnect window, whether its connection ended before or with the node.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		linked  bool // the encoder's connection is still there
		back    bool
		away    time.Duration // the node; 20 s when 0
		stream  []func(*live.CreateInput)
		events  string
		lengths []time.Duration
	}{
		"encoders gone first, then back": {
			back: true, events: begun + " disconnected connected recording " + closed,
			lengths: []time.Duration{11 * time.Second, 10 * time.Second},
		},
		"encoders gone first, and not back": {events: begun + " " + closed, lengths: []time.Duration{11 * time.Second}},
		"encoders still there": {
			linked: true, events: begun + " " + closed, lengths: []time.Duration{11 * time.Second},
		},
		"without a window": {
			stream: []func(*live.CreateInput){window(0)}, back: true,
			events:  begun + " disconnected connected recording " + closed,
			lengths: []time.Duration{11 * time.Second, 10 * time.Second},
		},
		"without a window, encoders still there": {
			linked: true, stream: []func(*live.CreateInput){window(0)}, back: true,
			events:  begun + " disconnected connected recording " + closed,
			lengths: []time.Duration{11 * time.Second, 10 * time.Second},
		},
		"without a window, back too late": {
			stream: []func(*live.CreateInput){window(0)}, away: 65 * time.Second, back: true,
			events:  begun + " " + closed + " " + begun + " " + closed,
			lengths: []time.Duration{11 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				first, s := w.start("a"), w.stream(tt.stream...)
				e := first.publish(s.StreamKey).send(11 * time.Second)
				if !tt.linked {
					e.leave(ingest.ErrShutdown)
				}
				first.end()
				if cause := e.dropped(); !errors.Is(cause, ingest.ErrShutdown) {
					t.Errorf("the encoder was dropped: %v", cause)
				}
				if got := w.row(s.ID); len(tt.stream) == 0 &&
					(got.State != live.Reconnecting || w.since(got.DisconnectedAt) != 11*time.Second) {
					t.Errorf("the stream is %s, disconnected after %v", got.State, w.since(got.DisconnectedAt))
				}
				if _, err := first.admit(s.StreamKey); err == nil {
					t.Error("a node that has stopped lets an encoder in")
				}
				w.wait(cmp.Or(tt.away, 20*time.Second))
				second := w.start("a")
				if tt.back {
					second.publish(s.StreamKey).send(10 * time.Second).stop()
				}
				w.wait(61 * time.Second)
				if !strings.Contains(tt.events, "disabled") {
					w.expect(strings.Fields(tt.events)...)
				}
				ended(w, s.ID, strings.Count(tt.events, "idle"), tt.lengths)
			})
		})
	}
}

// TestShutdownWithoutStorage does not hang.
func TestShutdownWithoutStorage(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		e := n.publish(s.StreamKey).send(11 * time.Second)
		n.power.storage.Store(true)
		n.power.database.Store(true)
		e.stop()
		n.end()
		if d := w.since(time.Now()); d > 25*time.Second {
			t.Errorf("it took until %v", d)
		}
		w.start("a")
		w.wait(61 * time.Second)
		ended(w, s.ID, 1, []time.Duration{8 * time.Second})
	})
	run(t, func(w *world) { // with a journal nothing is lost
		w.journals(t)
		n, s := w.start("a"), w.stream()
		e := n.publish(s.StreamKey).send(11 * time.Second)
		n.power.storage.Store(true)
		n.power.database.Store(true)
		e.send(20 * time.Second).stop()
		n.end()
		w.start("a")
		w.wait(61 * time.Second)
		ended(w, s.ID, 1, []time.Duration{31 * time.Second})
	})
}

// TestJournalOfAnother does not put what a node once had into a recording that has gone on elsewhere.
func TestJournalOfAnother(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(w *world, a, b *node, s live.Stream) *encoder{
		"the encoder moves back": func(w *world, a, _ *node, s live.Stream) *encoder {
			w.wait(10 * time.Second)
			return a.publish(s.StreamKey)
		},
		"the other one dies": func(w *world, a, b *node, s live.Stream) *encoder {
			b.kill()
			w.wait(50 * time.Second)
			return a.publish(s.StreamKey)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				w.journals(t)
				a, b, s := w.start("a"), w.start("b"), w.stream(window(100))
				e := a.publish(s.StreamKey).send(11 * time.Second)
				a.power.database.Store(true) // segments after this are in its journal only
				e.send(20 * time.Second)
				b.publish(s.StreamKey).send(17 * time.Second).stop()
				w.wait(0)
				e.leave(errCut)
				a.power.database.Store(false)
				w.wait(10 * time.Second)
				back(w, a, b, s).send(10 * time.Second).stop()
				w.wait(101 * time.Second)
				ended(w, s.ID, 1, []time.Duration{8 * time.Second, 17 * time.Second, 10 * time.Second})
			})
		})
	}
}

// TestTakeover has another node finish, or go on with, what a dead one left.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		back    time.Duration // after the crash the encoder publishes to the other node; 0: never
		events  string
		lengths []time.Duration
	}{
		"nobody comes": {events: begun + " " + closed, lengths: []time.Duration{8 * time.Second}},
		"before the lease is over": {
			back: 2 * time.Second, events: begun + " " + closed, lengths: []time.Duration{8 * time.Second},
		},
		"as soon as it is over": {
			back: 16 * time.Second, events: begun + " disconnected connected recording " + closed,
			lengths: []time.Duration{8 * time.Second, 10 * time.Second},
		},
		"after it has been adopted": {
			back: 40 * time.Second, events: begun + " disconnected connected recording " + closed,
			lengths: []time.Duration{8 * time.Second, 10 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				a, b := w.start("a"), w.start("b")
				w.start("c") // which competes with b for what a leaves
				s := w.stream()
				e := a.publish(s.StreamKey).send(11 * time.Second)
				a.kill()
				e.stop()
				w.wait(tt.back)
				if tt.back > 0 {
					other, err := b.admit(s.StreamKey)
					if busy := errors.Is(err, ingest.ErrBusy); busy != (tt.back < 10*time.Second) ||
						err != nil && !busy {
						t.Errorf("after %v: %v", tt.back, err)
					}
					if err == nil {
						other.send(10 * time.Second).stop()
					}
				}
				w.wait(2 * time.Minute)
				w.expect(strings.Fields(tt.events)...)
				ended(w, s.ID, 1, tt.lengths)
			})
		})
	}
}

// TestSpectator leaves what a dead node has left to those that have encoders, and takes up what it has led itself.
func TestSpectator(t *testing.T) {
	t.Parallel()
	spectator := func(o *broadcast.Options) { o.Spectator = true }
	run(t, func(w *world) {
		a := w.start("a")
		w.start("b", spectator)
		s := w.stream()
		e := a.publish(s.StreamKey).send(11 * time.Second)
		a.kill()
		e.stop()
		w.wait(10 * time.Minute)
		if row := w.row(s.ID); row.ActiveAsset == "" || row.Node != "a" {
			t.Errorf("without a node for encoders the broadcast is %q, of node %s", row.ActiveAsset, row.Node)
		}
		w.start("c")
		w.wait(2 * time.Minute)
		ended(w, s.ID, 1, []time.Duration{8 * time.Second})
	})
	run(t, func(w *world) {
		a, s := w.start("a"), w.stream()
		e := a.publish(s.StreamKey).send(11 * time.Second)
		a.kill()
		e.stop()
		w.wait(0)
		w.start("a", spectator)
		w.wait(2 * time.Minute)
		ended(w, s.ID, 1, []time.Duration{8 * time.Second})
	})
}

// TestEncoderMovesToAnotherNode has the encoder come back elsewhere while the node that it left is alive and about to
// wait for it.
func TestEncoderMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, b, s := w.start("a"), w.start("b"), w.stream()
		a.publish(s.StreamKey).send(11 * time.Second).stop()
		w.wait(0)
		b.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(0)
		a.publish(s.StreamKey).send(9 * time.Second).stop()
		w.wait(61 * time.Second)
		w.expect(strings.Fields(begun + " disconnected connected recording disconnected connected recording " +
			closed)...)
		ended(w, s.ID, 1, []time.Duration{11 * time.Second, 10 * time.Second, 9 * time.Second})
	})
}

// TestClockSetForward does not make a node take over what lives elsewhere.
func TestClockSetForward(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, s := w.start("a"), w.stream()
		gone := a.publish(s.StreamKey).stream()
		var ahead atomic.Int64
		w.start("b", func(o *broadcast.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		})
		w.wait(40 * time.Second)
		ahead.Store(int64(time.Hour))
		w.wait(2 * time.Minute)
		if got := w.row(s.ID); got.Node != "a" || got.State != live.Active {
			t.Errorf("the stream is %s on %s", got.State, got.Node)
		}
		w.must(w.streams.Disable(w.ctx, env, s.ID, time.Now())) // nobody tells a, it finds out
		if err := <-gone; !errors.Is(err, ingest.ErrEnded) {
			t.Errorf("the encoder was dropped: %v", err)
		}
		w.wait(0)
		if got := w.row(s.ID); got.ActiveAsset != "" || len(got.RecentAssets) != 1 {
			t.Errorf("the stream is left as %+v", got)
		}
	})
}

// TestLeaseLost has a node come back after another one has taken its broadcast over.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, s := w.start("a"), w.stream()
		old := a.publish(s.StreamKey)
		ended1 := old.stream()
		w.wait(11 * time.Second)
		a.power.database.Store(true) // it goes on, since nobody says otherwise
		b := w.start("b")
		w.wait(20 * time.Second)
		if old.dropped() != nil {
			t.Errorf("a node without a database dropped its encoder: %v", old.dropped())
		}
		other := b.publish(s.StreamKey).send(10 * time.Second)
		had := w.timeline(w.row(s.ID).ActiveAsset)
		w.objects.mu.Lock()
		puts := len(w.objects.puts)
		w.objects.mu.Unlock()
		a.power.database.Store(false)
		if err := <-ended1; !errors.Is(err, broadcast.ErrLeaseLost) {
			t.Errorf("the first node's encoder was dropped: %v", err)
		}
		w.wait(0)
		now := w.timeline(w.row(s.ID).ActiveAsset)
		if len(now.Marks) != len(had.Marks) || len(w.objects.puts) != puts {
			t.Errorf("the first node went on recording: %d segments after %d, objects %v", len(now.Marks),
				len(had.Marks), w.objects.puts[puts:])
		}
		if got := w.row(s.ID); got.State != live.Active || got.Node != "b" {
			t.Errorf("the stream is %s on %s", got.State, got.Node)
		}
		other.send(5 * time.Second).stop()
		w.wait(61 * time.Second)
		ended(w, s.ID, 1, []time.Duration{8 * time.Second, 15 * time.Second})
	})
}

// TestOutageMakesNoOrphans has the database be away for all nodes so long that every row expires. The first one that
// reaches it again leaves the broadcasts of others to those, which come a little later; one that stays away is dead.
func TestOutageMakesNoOrphans(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, b, s := w.start("a"), w.start("b"), w.stream()
		e := a.publish(s.StreamKey)
		ended1 := e.stream()
		w.wait(11 * time.Second)
		asset := w.row(s.ID).ActiveAsset
		a.power.database.Store(true)
		b.power.database.Store(true)
		w.wait(live.OrphanedAfter + 10*time.Second)
		b.power.database.Store(false)
		w.wait(live.OrphanedAfter - 2*time.Second)
		if got := w.row(s.ID); got.Node != "a" {
			t.Fatalf("b took the broadcast of a, which is there: %s", got.State)
		}
		a.power.database.Store(false)
		w.wait(5 * time.Second)
		if got := w.row(s.ID); e.dropped() != nil || got.Node != "a" || got.ActiveAsset != asset {
			t.Errorf("the encoder: %v; the broadcast is at %s", e.dropped(), got.Node)
		}
		a.power.database.Store(true)
		w.wait(live.OrphanedAfter + 10*time.Second)
		if got := w.row(s.ID); got.Node != "b" {
			t.Errorf("a is away alone, and b has not taken its broadcast: %s", got.State)
		}
		a.power.database.Store(false)
		<-ended1
	})
}

// TestOutage takes database or storage away while an encoder sends: the stream goes on, and everything is there in the
// end.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(p *power, off bool){
		"database": func(p *power, off bool) { p.database.Store(off) },
		"storage":  func(p *power, off bool) { p.storage.Store(off) },
		"both":     func(p *power, off bool) { p.database.Store(off); p.storage.Store(off) },
	} {
		for _, long := range []time.Duration{3 * time.Second, 2 * time.Minute} {
			t.Run(name+" for "+long.String(), func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					n, s := w.start("a"), w.stream(window(0))
					e := n.publish(s.StreamKey).send(10 * time.Second)
					cut(n.power, true)
					e.send(long)
					cut(n.power, false)
					e.send(10 * time.Second)
					if e.dropped() != nil {
						t.Errorf("the encoder was dropped: %v", e.dropped())
					}
					e.stop()
					w.wait(10 * time.Second)
					w.expect(strings.Fields(begun + " " + closed)...)
					ended(w, s.ID, 1, []time.Duration{20*time.Second + long})
				})
			})
			t.Run(name+" over the end for "+long.String(), func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					n, s := w.start("a"), w.stream(window(0))
					e := n.publish(s.StreamKey).send(10 * time.Second)
					cut(n.power, true)
					e.stop()
					w.wait(long)
					cut(n.power, false)
					w.wait(10 * time.Second)
					w.expect(strings.Fields(begun + " " + closed)...)
					ended(w, s.ID, 1, []time.Duration{10 * time.Second})
					if got := last[live.Stream](w, "disconnected"); w.since(got.UpdatedAt) != 10*time.Second {
						t.Errorf("disconnected after %v", w.since(got.UpdatedAt))
					}
				})
			})
		}
	}
}

// TestAssetGone ends a broadcast whose asset was taken away: there is nothing to record to.
func TestAssetGone(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		gone := n.publish(s.StreamKey).stream()
		w.wait(11 * time.Second)
		a := w.asset(w.row(s.ID).ActiveAsset)
		w.must(w.db.Assets().Delete(w.ctx, asset.Change{From: a.Status, Asset: a}))
		if err := <-gone; !errors.Is(err, ingest.ErrEnded) {
			t.Errorf("the encoder was dropped: %v", err)
		}
		w.wait(0)
		if got := w.row(s.ID); got.State != live.Idle || got.ActiveAsset != "" {
			t.Errorf("the stream is %s", got.State)
		}
		n.publish(s.StreamKey).send(5 * time.Second).stop()
		w.wait(61 * time.Second)
		if got := w.row(s.ID); got.Epoch != 2 || len(got.RecentAssets) != 2 ||
			w.asset(got.RecentAssets[1]).Status != asset.Ready {
			t.Errorf("the next broadcast left %+v", got)
		}
	})
}

// TestAssetReadyBeforeTheEndIsReported starts on what a crash between the asset's end and the stream's leaves.
func TestAssetReadyBeforeTheEndIsReported(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(w *world, s live.Stream){
		"at the next start": func(w *world, _ live.Stream) {
			w.start("a")
			w.wait(0)
		},
		"by the next encoder": func(w *world, s live.Stream) {
			n := w.start("b")
			w.wait(2 * time.Second)
			n.publish(s.StreamKey).send(5 * time.Second).stop()
			w.wait(61 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"), w.stream(window(100))
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(0)
				n.kill()
				a := w.row(s.ID).ActiveAsset
				w.must(w.assets.EndLive(w.ctx, a, asset.Writer{}, nil, time.Now()))
				w.finish(a)
				w.wait(14 * time.Second)
				before(w, s)
				got := w.row(s.ID)
				if got.State != live.Idle && got.Epoch == 1 || !slices.Contains(got.RecentAssets, a) {
					t.Errorf("the stream is left %s, %v", got.State, got.RecentAssets)
				}
				if w.asset(a).Index == "" {
					t.Error("the asset has lost its index")
				}
			})
		})
	}
}

// TestCrashOfATest counts the minutes of a test over the end of its process.
func TestCrashOfATest(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]time.Duration{
		"shortly": 10 * time.Second, "for longer than the test may be": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				first, s := w.start("a"), w.stream(isTest, window(1800))
				e := first.publish(s.StreamKey).send(2 * time.Minute)
				active := w.row(s.ID).ActiveAt
				first.kill()
				e.stop()
				w.wait(down)
				second := w.start("a")
				end := max(time.Until(active.Add(5*time.Minute)), 0)
				w.wait(end - end/1000)
				if got := w.row(s.ID).State; end > 0 && got != live.Reconnecting {
					t.Errorf("before the end of the test the stream is %s", got)
				}
				w.wait(time.Second)
				if got := w.row(s.ID); got.State != live.Disabled || got.ActiveAsset != "" {
					t.Errorf("after the test the stream is %s", got.State)
				}
				if _, err := second.admit(s.StreamKey); !errors.Is(err, ingest.ErrDisabled) {
					t.Errorf("after the test: %v", err)
				}
				w.expect(strings.Fields(begun + " disconnected disabled")...)
			})
		})
	}
}
