package broadcast_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/ingest"
)

// TestPanic has one publication break. Neither the key nor the next broadcast suffers.
func TestPanic(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write, close bool
		end          func(w *world, e *encoder, s live.Stream)
	}{
		"in a frame, then the connection closes": {write: true, end: func(w *world, e *encoder, _ live.Stream) {
			func() {
				defer func() {
					if recover() == nil {
						w.t.Error("no panic")
					}
				}()
				e.tuned = false
				e.picture, e.sound = 0, 0
				e.send(10 * time.Second)
			}()
			e.leave(errors.New("panic: as the connection says it"))
		}},
		"when the encoder leaves": {close: true, end: func(_ *world, e *encoder, _ live.Stream) { e.stop() }},
		"when the broadcast is completed": {close: true, end: func(w *world, e *encoder, s live.Stream) {
			w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
			w.wait(time.Second)
			e.stop()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"), w.stream()
				e := n.publish(s.StreamKey).send(10 * time.Second)
				broadcast.Break(e.sink, tt.write, tt.close)
				tt.end(w, e, s)
				w.wait(time.Second)
				if got := w.row(s.ID); got.State != live.Idle {
					t.Errorf("the stream is %s", got.State)
				}
				n.publish(s.StreamKey).send(10 * time.Second).stop()
				w.wait(61 * time.Second)
				ended(w, s.ID, 2, []time.Duration{9600 * time.Millisecond}) // what was in parts is kept
			})
		})
	}
}

// TestManyForOneKey lets many encoders ask at once: one of them gets the key.
func TestManyForOneKey(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		nodes := []*node{w.start("a"), w.start("b")}
		s := w.stream(window(0))
		for round := range 3 {
			var mu sync.Mutex
			var in []*encoder
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					e, err := nodes[i%2].admit(s.StreamKey)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						in = append(in, e)
					} else if !errors.Is(err, ingest.ErrBusy) {
						t.Errorf("refused with %v", err)
					}
				})
			}
			wg.Wait()
			if len(in) != 1 {
				t.Fatalf("round %d: %d were let in", round, len(in))
			}
			in[0].send(5 * time.Second).stop()
			w.wait(time.Second)
		}
		ended(w, s.ID, 3, []time.Duration{5 * time.Second})
	})
}

// chaos is two nodes, one stream and everything that can happen to them.
type chaos struct {
	w     *world
	rand  *rand.Rand
	s     live.Stream
	nodes []*node
	sends []*encoder
	did   []string
}

// act does one thing.
func (c *chaos) act() {
	w, n := c.w, c.rand.IntN(len(c.nodes))
	what := "nothing"
	switch c.rand.IntN(14) {
	case 0, 1, 2, 3:
		e, err := c.nodes[n].admit(c.s.StreamKey)
		if err == nil {
			c.sends = append(c.sends, e)
			e.stream()
		}
		what = fmt.Sprint("publish ", n, " ", err)
	case 4, 5:
		if len(c.sends) > 0 {
			i := c.rand.IntN(len(c.sends))
			c.sends[i].hangUp()
			c.sends = slices.Delete(c.sends, i, i+1)
			what = "stop"
		}
	case 6:
		what = fmt.Sprint("complete ", w.streams.Complete(w.ctx, env, c.s.ID, time.Now()))
	case 7:
		what = fmt.Sprint("disable ", w.streams.Disable(w.ctx, env, c.s.ID, time.Now()))
	case 8:
		what = fmt.Sprint("enable ", w.streams.Enable(w.ctx, env, c.s.ID, time.Now()))
	case 9:
		seconds := float64(c.rand.IntN(40))
		_, err := w.streams.Patch(w.ctx, env, c.s.ID, live.PatchInput{ReconnectWindow: &seconds}, time.Now())
		what = fmt.Sprint("window ", seconds, err)
	case 10:
		c.nodes[n].power.database.Store(!c.nodes[n].power.database.Load())
		what = fmt.Sprint("database ", n)
	case 11:
		c.nodes[n].power.storage.Store(!c.nodes[n].power.storage.Load())
		what = fmt.Sprint("storage ", n)
	case 12:
		c.nodes[n].kill()
		c.nodes[n] = w.start(id.Node([]string{"a", "b"}[n]))
		what = fmt.Sprint("kill ", n)
	case 13:
		if !c.nodes[n].power.database.Load() {
			c.nodes[n].end()
			c.nodes[n] = w.start(id.Node([]string{"a", "b"}[n]))
			what = fmt.Sprint("restart ", n)
		}
	}
	c.did = append(c.did, fmt.Sprintf("%v %s", w.since(time.Now()), what))
}

// calm ends everything, and checks what is left.
func (c *chaos) calm() {
	w, t := c.w, c.w.t
	for _, n := range c.nodes {
		n.power.database.Store(false)
		n.power.storage.Store(false)
	}
	for _, e := range c.sends {
		e.hangUp()
	}
	w.wait(5 * time.Minute)
	row := w.row(c.s.ID)
	if row.ActiveAsset != "" || row.EndWanted != "" || row.State != live.Idle && row.State != live.Disabled {
		t.Errorf("the stream is left as %+v", row)
	}
	if len(row.RecentAssets) != int(row.Epoch) {
		t.Errorf("%d assets of %d broadcasts", len(row.RecentAssets), row.Epoch)
	}
	for _, a := range row.RecentAssets {
		got := w.asset(a)
		if got.IsLive || got.Status == asset.Preparing || (got.Status == asset.Ready) != (got.Entries > 0) {
			t.Errorf("an asset is left %s, live %v, with %d entries", got.Status, got.IsLive, got.Entries)
		}
		w.recorded(a)
	}
	if t.Failed() {
		for _, d := range c.did {
			t.Log(d)
		}
	}
}

// TestChaos does anything at any time. Afterwards every asset is settled, and what is recorded is stored and adds up.
func TestChaos(t *testing.T) {
	t.Parallel()
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				if seed%2 == 0 {
					w.journals(t)
				}
				c := &chaos{w: w, rand: rand.New(rand.NewPCG(seed, 1)), s: w.stream(window(10))}
				c.nodes = []*node{w.start("a"), w.start("b")}
				for range 40 {
					c.act()
					w.wait(time.Duration(c.rand.IntN(8000)) * time.Millisecond)
				}
				c.calm()
			})
		})
	}
}
