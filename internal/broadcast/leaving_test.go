package broadcast_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

// leaves expects a node to have let go of its encoder, which streams.
func (e *encoder) leaves() {
	e.t.Helper()
	if err := <-e.ended; !errors.Is(err, ingest.ErrShutdown) {
		e.t.Errorf("the encoder was let go of: %v", err)
	}
}

// attended expects so many encoders at a node, and so many that it has let go of.
func (n *node) attended(connected, gone int) {
	n.w.t.Helper()
	n.w.wait(0)
	if c, g := n.Leaving().Attended(); c != connected || g != gone {
		n.w.t.Errorf("%d encoders are connected and %d are awaited, want %d and %d", c, g, connected, gone)
	}
}

// TestNodeLeaves: a node that leaves lets its encoder go where a segment ends, and takes none. Though there is no
// reconnect window the encoder continues the same asset at another node, which has not to wait for anything; and at the
// same node, should that stay.
func TestNodeLeaves(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Low, live.Standard} {
		for name, tt := range map[string]struct {
			away      time.Duration
			stays     bool // the encoder comes back to the node that wanted to leave
			noVideo   bool
			broadcast int
		}{
			"the encoder is back at once":       {broadcast: 1},
			"it is back after most of a minute": {away: 58 * time.Second, broadcast: 1},
			"it is back too late":               {away: 61 * time.Second, broadcast: 2},
			"the node stays":                    {away: 58 * time.Second, stays: true, broadcast: 1},
			"it sends sound alone":              {noVideo: true, broadcast: 1},
		} {
			t.Run(string(mode)+", "+name, func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					a := w.start("a")
					b := w.start("b", asking(a))
					s := w.stream(window(0), func(in *live.CreateInput) {
						in.LatencyMode, in.AudioOnly = mode, tt.noVideo
					})
					first := a.publish(s.StreamKey)
					first.noVideo = tt.noVideo
					first.stream()
					w.wait(8300 * time.Millisecond)
					a.attended(1, 0)
					a.Leaving().Drain(true)
					first.leaves()
					if whole := first.picture%fps == 0; !tt.noVideo && (!whole || first.picture != 9*fps) {
						t.Errorf("the encoder has sent %d pictures when it is let go of", first.picture)
					}
					a.attended(0, 1)
					if _, err := a.admit(s.StreamKey); !errors.Is(err, ingest.ErrShutdown) {
						t.Errorf("a node that leaves takes an encoder: %v", err)
					}
					w.wait(tt.away)
					next := b
					if tt.stays {
						a.Leaving().Drain(false)
						next = a
					}
					began := time.Now()
					second := next.publish(s.StreamKey)
					if took := time.Since(began); took > 100*time.Millisecond {
						t.Errorf("the encoder waited %v for its place", took)
					}
					second.noVideo = tt.noVideo
					second.send(10 * time.Second).stop()
					w.wait(5 * time.Second) // less than a minute: the second one has just left
					if got := w.row(s.ID); len(got.RecentAssets) != tt.broadcast || got.ActiveAsset != "" ||
						got.Orphaned {
						t.Errorf("the stream is left as %+v", got)
					}
					if tt.noVideo || tt.broadcast > 1 {
						return
					}
					times, _ := w.recorded(w.row(s.ID).RecentAssets[0])
					if len(times) != 2 || !near(times[0].Duration, 9) || !near(times[1].Duration, 10) {
						t.Errorf("recorded %v", times)
					}
				})
			})
		}
	}
}

// TestNodeLeavesInTime has an encoder send no key frame for a minute, and one that is silent: neither holds up a node
// that leaves for longer than five seconds.
func TestNodeLeavesInTime(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"no key frame": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				a, s := w.start("a"), w.stream(window(0))
				e := a.publish(s.StreamKey)
				e.group = 600
				if silent {
					e.send(8 * time.Second)
				} else {
					e.stream()
					w.wait(8 * time.Second)
				}
				a.Leaving().Drain(true)
				w.wait(4900 * time.Millisecond)
				a.attended(1, 0)
				w.wait(200 * time.Millisecond)
				a.attended(0, 1)
				if !errors.Is(e.dropped(), ingest.ErrShutdown) {
					t.Errorf("the encoder is dropped: %v", e.dropped())
				}
				w.wait(61 * time.Second) // it does not come back
				if got := w.row(s.ID); got.ActiveAsset != "" || len(got.RecentAssets) != 1 {
					t.Errorf("the stream is left as %+v", got)
				}
			})
		})
	}
}

// TestNodeStaysAfterAll has the node change its mind before the encoder is let go of.
func TestNodeStaysAfterAll(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, s := w.start("a"), w.stream(window(0))
		e := a.publish(s.StreamKey)
		e.stream()
		w.wait(8300 * time.Millisecond)
		a.Leaving().Drain(true)
		w.wait(300 * time.Millisecond)
		a.Leaving().Drain(false)
		w.wait(10 * time.Second)
		if e.dropped() != nil {
			t.Errorf("the encoder was dropped: %v", e.dropped())
		}
		e.hangUp()
		w.wait(time.Second)
		w.expect(strings.Fields(begun + " " + closed)...)
	})
}

// TestAskedEncoderStays: an encoder that was asked to move, and whose node stays after all, keeps its place and its
// reconnect window.
func TestAskedEncoderStays(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a := w.start("a")
		b := w.start("b", asking(a))
		s := w.stream(window(0))
		e, err := a.admitMoving("rtmp", s.StreamKey, func() {})
		w.must(err)
		e.stream()
		w.wait(8300 * time.Millisecond)
		a.Leaving().Drain(true)
		w.wait(300 * time.Millisecond)
		a.Leaving().Drain(false)
		w.wait(10 * time.Second)
		if _, err = b.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) || e.dropped() != nil {
			t.Errorf("another encoder: %v; the first one is dropped: %v", err, e.dropped())
		}
		e.hangUp()
		w.wait(time.Second)
		w.expect(strings.Fields(begun + " " + closed)...)
	})
}

// TestNodeAsksToMove: an encoder that can be asked to connect again comes to another node before it leaves the first
// one, which gives way though it sends. One that does not come is let go of after all.
func TestNodeAsksToMove(t *testing.T) {
	t.Parallel()
	for name, comes := range map[string]bool{"it comes": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				a := w.start("a")
				b := w.start("b", asking(a))
				s := w.stream(window(0))
				asked := 0
				first, err := a.admitMoving("rtmp", s.StreamKey, func() { asked++ })
				w.must(err)
				first.stream()
				w.wait(8300 * time.Millisecond)
				if _, err = b.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) {
					t.Errorf("a second encoder before the first one is asked: %v", err)
				}
				a.Leaving().Drain(true)
				w.wait(3 * time.Second)
				if first.dropped() != nil || asked != 1 {
					t.Errorf("asked %d times, and dropped: %v", asked, first.dropped())
				}
				if comes {
					b.publish(s.StreamKey).send(10 * time.Second).stop()
					if !errors.Is(first.dropped(), ingest.ErrReplaced) {
						t.Errorf("the first encoder was dropped: %v", first.dropped())
					}
				} else {
					first.leaves()
					if sent := first.picture; sent != 14*fps {
						t.Errorf("the encoder has sent %d pictures when it is let go of", sent)
					}
					b.publish(s.StreamKey).send(10 * time.Second).stop()
				}
				w.wait(5 * time.Second)
				w.expect(strings.Fields(begun + " disconnected connected recording " + closed)...)
			})
		})
	}
}
