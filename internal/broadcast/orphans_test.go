package broadcast_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
	"millrace/internal/id"
	mediajournal "millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

// slateOf is a stream with a reconnect window that shows slate.
func slateOf(mode live.LatencyMode) func(*live.CreateInput) {
	return func(in *live.CreateInput) {
		seconds := 60.0
		in.LatencyMode, in.ReconnectWindow, in.SlateForStandard = mode, &seconds, true
	}
}

// takenUp waits until another node than a has a stream's broadcast, and says after how long.
func (w *world) takenUp(s id.LiveStream) time.Duration {
	w.t.Helper()
	began := time.Now()
	for w.row(s).Node == "a" {
		if time.Since(began) > time.Minute {
			w.t.Fatal("nobody has taken it up")
		}
		w.wait(50 * time.Millisecond)
	}
	return time.Since(began)
}

// TestTakenUpForSlate: when the process of a node has ended another one takes a broadcast up within seconds, without
// its encoder, if its viewers are waiting for slate. Everything else is left to the process for as long as before.
func TestTakenUpForSlate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream  func(*live.CreateInput)
		away    bool // the encoder has left before
		with    func(w *world, x *wires, a *node)
		expires bool // the row has to have expired for long
	}{
		"low latency":                   {stream: slateOf(live.Low)},
		"standard latency":              {stream: slateOf(live.Standard)},
		"while there was slate already": {stream: slateOf(live.Low), away: true},
		"without slate":                 {stream: window(60), expires: true},
		"without a window": {stream: func(in *live.CreateInput) {
			in.LatencyMode = live.Low
		}, expires: true},
		"it has its lock": {
			stream: slateOf(live.Low), expires: true, with: func(w *world, _ *wires, _ *node) { w.fleet.lock("a") },
		},
		"nothing refuses connections": {
			stream: slateOf(live.Low), expires: true, with: func(_ *world, x *wires, _ *node) { x.cut.Store(true) },
		},
		"the database was away": {
			stream: slateOf(live.Low), expires: true, with: func(w *world, x *wires, _ *node) {
				for _, n := range x.nodes[1:] {
					n.power.database.Store(true)
				}
				w.wait(4 * time.Second)
				for _, n := range x.nodes[1:] {
					n.power.database.Store(false)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				x, nodes := w.wired("a", "b", "c")
				s := w.stream(tt.stream)
				e := nodes[0].publish(s.StreamKey).send(13 * time.Second)
				if tt.away {
					e.stop()
					w.wait(2 * time.Second)
				}
				nodes[0].kill()
				if tt.with != nil {
					tt.with(w, x, nodes[0])
				}
				took := w.takenUp(s.ID)
				if least, most := 2*time.Second, 5*time.Second; !tt.expires && (took < least || took > most) {
					t.Errorf("it was taken up after %v, not after %v to %v", took, least, most)
				}
				if tt.expires && took < live.OrphanedAfter-2*time.Second {
					t.Errorf("it was taken up after %v", took)
				}
				var all broadcast.Adoptions
				for _, n := range nodes[1:] {
					w.wait(0)
					got := n.Adoptions()
					all.Own, all.Ended, all.Expired = all.Own+got.Own, all.Ended+got.Ended, all.Expired+got.Expired
				}
				want := broadcast.Adoptions{Ended: 1}
				if tt.expires {
					want = broadcast.Adoptions{Expired: 1}
				}
				if all != want {
					t.Errorf("counted are %+v, want %+v", all, want)
				}
				x.cut.Store(false)
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(10 * time.Second)
				w.expect(strings.Fields(begun + " disconnected idle")...)
			})
		})
	}
}

// TestLooksAgain: a node that takes long to take up one broadcast looks again before the next one. The process that
// had both may be back by then, and has what was not stored.
func TestLooksAgain(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		x, nodes := w.wired("a", "b")
		both := []live.Stream{w.stream(slateOf(live.Low)), w.stream(slateOf(live.Low))}
		for _, s := range both {
			nodes[0].publish(s.StreamKey).send(7 * time.Second)
		}
		nodes[0].kill()
		nodes[1].power.slow.Store(&slowness{call: all, long: 300 * time.Millisecond})
		taken := func() (n int) {
			for _, s := range both {
				if w.row(s.ID).Node != "a" {
					n++
				}
			}
			return n
		}
		for killed := time.Now(); taken() == 0; {
			if time.Since(killed) > live.OrphanedAfter {
				t.Fatal("none was taken up")
			}
			w.wait(50 * time.Millisecond)
		}
		x.cut.Store(true) // its machine does not refuse connections any more
		w.wait(4 * time.Second)
		if n := taken(); n != 1 {
			t.Errorf("%d were taken up", n)
		}
		nodes[1].power.slow.Store(nil)
		x.cut.Store(false)
		w.wait(live.OrphanedAfter)
		for _, s := range both {
			w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		}
		w.wait(10 * time.Second)
	})
}

// TestSlateAfterDeath shows slate at the next node from where the dead one ended, as if its encoder had left: nothing
// is missing between them, in the playlist or the recording, and the encoder goes on behind it at a third node.
func TestSlateAfterDeath(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Low, live.Standard} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				_, nodes := w.wired("a", "b", "c")
				s := w.stream(slateOf(mode))
				nodes[0].publish(s.StreamKey).send(16 * time.Second)
				w.wait(100 * time.Millisecond)
				before := segments(shown(nodes[0], s))
				died := time.Now()
				nodes[0].kill()
				w.takenUp(s.ID)
				at := nodes[slices.IndexFunc(nodes, func(n *node) bool { return n.name == w.row(s.ID).Node })]
				w.wait(6*time.Second - time.Since(died))
				list := shown(at, s)
				if mode == live.Standard && following(list) < len(before)+2 {
					t.Errorf("6 s after the death viewers are listed\n%s", list)
				}
				w.wait(4 * time.Second)
				list = shown(at, s)
				now := segments(list)
				for n, uri := range before {
					if listed, is := now[n]; is && listed != uri && listed != "gap" {
						t.Errorf("number %d was %s and is %s:\n%s", n, uri, listed, list)
					}
				}
				third := nodes[1]
				if third == at {
					third = nodes[2]
				}
				third.publish(s.StreamKey).send(9 * time.Second).stop()
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(10 * time.Second)
				w.expect(strings.Fields(begun + " disconnected connected recording disconnected idle")...)
				times, line := w.recorded(w.row(s.ID).RecentAssets[0])
				if len(times) != 3 || times[1].Type != "slate" || !near(times[2].Duration, 9) {
					t.Fatalf("recorded %+v", times)
				}
				dated(t, line)
			})
		})
	}
}

// dated checks that each segment is dated where the one before ends.
func dated(t *testing.T, line *timeline.Timeline) {
	t.Helper()
	video := line.Rendition(timeline.MainVideo)
	for i := 1; i < len(video.Chunks); i++ {
		start, last := line.Marks[i].Start, line.Marks[i-1].Start
		if start.IsZero() || last.IsZero() {
			continue
		}
		if off := start.Sub(last).Seconds() - video.Seconds(i-1); math.Abs(off) > 0.7 {
			t.Errorf("segment %d of %d is dated %.3f s off", i, len(video.Chunks), off)
		}
	}
}

// hasCopy is a node that has copied everything, of which nothing is left.
type hasCopy struct{}

func (hasCopy) Open(id.Media, int64, broadcast.Copied) broadcast.Copying { return notCopying{} }
func (hasCopy) Has(id.Media) bool                                        { return true }
func (hasCopy) Left(context.Context, id.Media) broadcast.Copied          { return broadcast.Copied{} }

type notCopying struct{}

func (notCopying) Taps() (own, derived mediajournal.Tap) { return nil, nil }
func (notCopying) Close(bool)                            {}

// TestTakenUpByTheCopy has the node that has copied a broadcast take it up, whichever looks first.
func TestTakenUpByTheCopy(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{0, 300 * time.Millisecond, 700 * time.Millisecond} {
		t.Run(later.String(), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				x, nodes := w.wired("a", "b")
				w.wait(later)
				x.nodes = append(x.nodes, w.start("c", slated(&stills{}, nil), func(o *broadcast.Options) {
					o.Others, o.Copies = others{x, o.Owner}, hasCopy{}
				}))
				s := w.stream(slateOf(live.Low))
				nodes[0].publish(s.StreamKey).send(13 * time.Second)
				nodes[0].kill()
				w.takenUp(s.ID)
				if got := w.row(s.ID).Node; got != "c" {
					t.Errorf("node %s has taken it up", got)
				}
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(10 * time.Second)
			})
		})
	}
}

// TestFleetIsStartedAgain ends all processes at the same time, and starts one after the other: each finds its own
// broadcasts, as nobody takes them for what a dead one has left.
func TestFleetIsStartedAgain(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		x, nodes := w.wired("a", "b")
		s := w.stream(slateOf(live.Low))
		nodes[0].publish(s.StreamKey).send(13 * time.Second)
		for _, n := range nodes {
			n.kill()
		}
		again := func(name id.Node) {
			w.start(name, slated(&stills{}, nil), func(o *broadcast.Options) { o.Others = others{x, o.Owner} })
		}
		w.wait(2 * time.Second)
		again("b")
		w.wait(8 * time.Second)
		if got := w.row(s.ID); got.Node != "a" {
			t.Errorf("node %s has taken what the other one is about to take up", got.Node)
		}
		again("a")
		if got := w.row(s.ID); got.Node != "a" || got.Generation != 1 {
			t.Errorf("the broadcast is of %v, generation %d", got.Owner, got.Generation)
		}
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(10 * time.Second)
	})
}

// TestEncoderComesWhileTakenUp has the encoder come to a third node when the row names a second one that has not heard
// of that yet, as the database responds late. That one is asked, and hands the broadcast over as soon as it has it.
func TestEncoderComesWhileTakenUp(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		_, nodes := w.wired("a", "b", "c")
		a, b, c := nodes[0], nodes[1], nodes[2]
		c.Leaving().Drain(true) // it takes up nothing
		s := w.stream(slateOf(live.Low))
		a.publish(s.StreamKey).send(13 * time.Second)
		came := make(chan *encoder, 1)
		told := func([]string) {
			c.Leaving().Drain(false)
			go func() {
				e, err := c.admit(s.StreamKey)
				if err != nil {
					t.Errorf("the encoder was not let in: %v", err)
				}
				came <- e
			}()
			pause(2 * time.Second)
		}
		b.power.committed.Store(&told)
		a.kill()
		e := <-came
		if e == nil {
			return
		}
		if !strings.Contains(w.logged(), "broadcast is handed over to another node") {
			t.Error("the second node has not handed it over")
		}
		e.send(9 * time.Second).stop()
		if got := w.row(s.ID); got.Node != "c" || got.Generation != 2 {
			t.Errorf("the broadcast is of %v, generation %d", got.Owner, got.Generation)
		}
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(10 * time.Second)
		if got := w.row(s.ID); len(got.RecentAssets) != 1 {
			t.Errorf("the stream is left as %+v", got)
		}
	})
}
