package broadcast_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/ingest"
	"millrace/internal/media/timeline"
)

// wires are what the nodes of a world reach each other over.
type wires struct {
	nodes []*node
	cut   atomic.Bool // nobody reaches anybody
}

// others are the other nodes as one of them knows them.
type others struct {
	wires *wires
	self  live.Owner
}

func (o others) Look(context.Context) error { return nil }

func (o others) Promise(context.Context) error {
	if o.wires.cut.Load() {
		return errCut
	}
	var all []error
	for _, n := range o.wires.nodes {
		switch dead := n.power.dead.Load(); {
		case n.name == o.self.Node && dead:
			return errCut
		case n.name != o.self.Node && !dead:
			all = append(all, n.Promise(o.self))
		}
	}
	return errors.Join(all...)
}

func (o others) Refuses(_ context.Context, who live.Owner) bool {
	i := slices.IndexFunc(o.wires.nodes, func(n *node) bool { return n.name == who.Node })
	return !o.wires.cut.Load() && i >= 0 && o.wires.nodes[i].power.dead.Load()
}

// wired starts nodes that can be asked for what they lead, and for promises.
func (w *world) wired(names ...id.Node) (*wires, []*node) {
	w.t.Helper()
	x := &wires{}
	for _, name := range names {
		x.nodes = append(x.nodes, w.start(name, slated(&stills{}, nil), func(o *broadcast.Options) {
			o.Others = others{x, o.Owner}
			o.Ask = func(ctx context.Context, s id.LiveStream, by live.Writer) (time.Duration, error) {
				for _, n := range x.nodes {
					switch {
					case n.name != by.Node || x.cut.Load():
					case n.power.dead.Load():
						return 0, live.ErrRefused
					default:
						return n.HandOver(ctx, s, by)
					}
				}
				return 0, fault.New(fault.Unavailable, "no such node")
			}
		}))
	}
	return x, x.nodes
}

// shown is what a node's viewers are shown of a live stream's first rendition.
func shown(n *node, s live.Stream) string {
	v := n.viewer()
	return v.Expect("at "+string(n.name), http.StatusOK, v.Playlists(s.PlaybackIDs[0].ID)[0])
}

// segments are the URIs of a playlist's segments by number; "gap" of what is none.
func segments(playlist string) map[int]string {
	out, n, gap := map[int]string{}, 0, false
	for line := range strings.Lines(playlist) {
		line = strings.TrimSpace(line)
		first, sequence := strings.CutPrefix(line, "#EXT-X-MEDIA-SEQUENCE:")
		switch {
		case sequence:
			n, _ = strconv.Atoi(first)
		case line == "#EXT-X-GAP":
			gap = true
		case line != "" && line[0] != '#':
			if out[n] = line; gap {
				out[n] = "gap"
			}
			n, gap = n+1, false
		}
	}
	return out
}

// TestListsNothingUnowned cuts the node with the encoder off from the database while others have it: unless they
// promise to ask first, what its viewers are shown stays as it is from 2 s after its last renewal on, whether the
// encoder sends or there is slate, until its rows say again that the broadcast is its own. Then all that came
// meanwhile is listed.
func TestListsNothingUnowned(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cut, slate bool
		nodes      []id.Node
		stands     bool
	}{
		"others can't be asked":            {cut: true, nodes: []id.Node{"a", "b"}, stands: true},
		"others can't be asked, and slate": {cut: true, slate: true, nodes: []id.Node{"a", "b"}, stands: true},
		"others promise":                   {nodes: []id.Node{"a", "b", "c"}},
		"others promise, and slate":        {slate: true, nodes: []id.Node{"a", "b", "c"}},
		"there are none":                   {nodes: []id.Node{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				x, nodes := w.wired(tt.nodes...)
				a := nodes[0]
				s := w.stream(window(300), func(in *live.CreateInput) { in.LatencyMode = live.Low })
				e := a.publish(s.StreamKey).send(11300 * time.Millisecond)
				if tt.slate {
					e.stop()
				} else {
					e.stream()
				}
				w.wait(2 * time.Second)
				x.cut.Store(tt.cut)
				a.power.database.Store(true)
				w.wait(2 * time.Second)
				before := shown(a, s)
				long := 30 * time.Second
				if tt.stands {
					long = 8 * time.Second // before another node takes it for an orphan
				}
				w.wait(long)
				after := shown(a, s)
				if stands := before == after; stands != tt.stands {
					t.Errorf("what is shown stands still: %v, want %v:\n%s\n%s", stands, tt.stands, before, after)
				}
				x.cut.Store(false)
				a.power.database.Store(false)
				w.wait(3 * time.Second)
				at := shown(a, s)
				if n := following(at) - following(before); n < int(long/(2*time.Second)) {
					t.Errorf("%d segments more are listed than %v before:\n%s", n, long+3*time.Second, at)
				}
				if w.row(s.ID).Node != "a" {
					t.Errorf("the stream is %+v", w.row(s.ID))
				}
				if !tt.slate {
					e.hangUp()
				}
				w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
				w.wait(10 * time.Second)
				want := 11300*time.Millisecond + 7*time.Second + long
				if tt.slate {
					want = 11300 * time.Millisecond
				}
				times, line := w.recorded(w.row(s.ID).RecentAssets[0])
				if !near(times[0].Duration, want.Seconds()) || len(times) > 2 {
					t.Errorf("recorded %v, want %v first", times, want)
				}
				for _, r := range line.Renditions {
					if i := slices.IndexFunc(r.Chunks, func(c timeline.Chunk) bool { return c.Gap }); i >= 0 {
						t.Errorf("segment %d of %s is a gap", i, r.ID)
					}
				}
			})
		})
	}
}

// TestPromiseHolds has an encoder come to a node that has promised to ask: as long as the other one's encoder sends
// it is refused, though that node's row has expired long ago; when that encoder has left the broadcast is handed
// over. Nobody adopts it meanwhile.
func TestPromiseHolds(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		_, nodes := w.wired("a", "b")
		a, b := nodes[0], nodes[1]
		s := w.stream(window(300))
		first := a.publish(s.StreamKey).send(9 * time.Second)
		first.stream()
		w.wait(2 * time.Second)
		a.power.database.Store(true)
		w.wait(40 * time.Second)
		if got := w.row(s.ID); got.Node != "a" {
			t.Fatalf("the stream is another node's: %+v", got)
		}
		if _, err := b.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) {
			t.Errorf("a second encoder while the first one sends: %v", err)
		}
		first.hangUp()
		w.wait(2 * time.Second)
		second := b.publish(s.StreamKey).send(9 * time.Second)
		if got := w.row(s.ID); got.Node != "b" {
			t.Errorf("the stream is %+v", got)
		}
		a.power.database.Store(false)
		second.stop()
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(10 * time.Second)
		if got := w.row(s.ID); len(got.RecentAssets) != 1 {
			t.Errorf("the stream is left as %+v", got)
		}
	})
}

// TestNodesListOneAfterTheOther cuts the node with the encoder off from everything but its viewers, and has the
// encoder come to another node: it is let in when the first node's row has expired. Whatever is shown of a number at
// one node is never shown otherwise at the other one.
func TestNodesListOneAfterTheOther(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		x, nodes := w.wired("a", "b")
		a, b := nodes[0], nodes[1]
		s := w.stream(window(300), func(in *live.CreateInput) { in.LatencyMode = live.Low })
		first := a.publish(s.StreamKey).send(9 * time.Second)
		w.wait(0)
		x.cut.Store(true)
		a.power.database.Store(true)
		gone := first.stream()
		began := time.Now()
		second := b.publish(s.StreamKey)
		if took := time.Since(began); took < 2*time.Second || took > 4*time.Second {
			t.Errorf("the encoder waited %v for its place", took)
		}
		before := shown(a, s)
		second.send(9 * time.Second)
		if after := shown(a, s); after != before {
			t.Errorf("the first node lists beside the second one:\n%s\n%s", before, after)
		}
		at := shown(b, s)
		was, is := segments(before), segments(at)
		for n, uri := range was {
			if now, listed := is[n]; listed && now != uri && now != "gap" {
				t.Errorf("number %d was %s and is %s now:\n%s\n%s", n, uri, now, before, at)
			}
		}
		if following(at) < following(before)+3 {
			t.Errorf("the second node lists\n%s\nbehind\n%s", at, before)
		}
		x.cut.Store(false)
		a.power.database.Store(false)
		w.wait(2 * time.Second)
		if !errors.Is(first.dropped(), broadcast.ErrLeaseLost) {
			t.Errorf("the first encoder was dropped: %v", first.dropped())
		}
		<-gone
		second.stop()
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(10 * time.Second)
	})
}
