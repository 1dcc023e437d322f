package live_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// run is a process of a node.
func run(node id.Node) live.Owner { return live.Owner{Node: node, Run: "run of " + string(node)} }

// encoderAt is an encoder that has come to a node that leads nothing.
func encoderAt(node id.Node, key, protocol string, a id.Asset) live.Connection {
	return live.Connection{StreamKey: key, Protocol: protocol, NewAsset: a, Owner: run(node)}
}

// asked is a connection whose node has asked the one that leads the broadcast.
func asked(c live.Connection, s live.Stream) live.Connection {
	c.Asked = s.Writer()
	return c
}

// nodes is a store whose database knows several nodes, all of which live but for the dead.
type nodes struct {
	live.Store
	mu   sync.Mutex
	dead map[live.Owner]bool
	free bool // nobody has the lock on any node's name
}

// kill has owners be dead.
func (n *nodes) kill(all ...live.Owner) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range all {
		n.dead[o] = true
	}
}

func (n *nodes) sure(o live.Owner) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead[o] {
		return 0
	}
	return time.Second
}

func (n *nodes) Standing(ctx context.Context, o, by live.Owner) (live.Standing, error) {
	s, err := n.Store.Standing(ctx, o, by)
	s.Sure = n.sure(o)
	return s, err
}

func (n *nodes) Save(ctx context.Context, c live.Change) error {
	if c.Dead != (live.Owner{}) && n.sure(c.Dead) > 0 && (!c.Gone || !n.free) {
		return fault.New(fault.Conflict, "the owner is alive")
	}
	return n.Store.Save(ctx, c)
}

func (n *nodes) Unlocked(context.Context, id.Node) (bool, error) { return n.free, nil }

// TestTakeFromWhoIsGone has an encoder come to another node while the owner's row is valid: the broadcast is taken
// where that owner refuses connections and the lock on its name is free, and by nothing less.
func TestTakeFromWhoIsGone(t *testing.T) {
	t.Parallel()
	for _, state := range []live.State{live.Active, live.Reconnecting} {
		for name, tt := range map[string]struct {
			refused, free bool
			earlier       bool          // it was an earlier writer that was refused
			promised      time.Duration // to the owner
			want          bool
		}{
			"its process has ended":               {refused: true, free: true, want: true},
			"it lives":                            {},
			"it refuses connections":              {refused: true},
			"it has lost its connection":          {free: true},
			"it had refused before it took it":    {refused: true, free: true, earlier: true},
			"its process has ended, and promised": {refused: true, free: true, promised: 2 * time.Second},
		} {
			t.Run(string(state)+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.nodes.free = tt.free
				s := w.on(state)
				c := encoderAt("other", s.StreamKey, "rtmp", "new")
				c.Bound = func(live.Owner) time.Duration { return tt.promised }
				if tt.refused {
					c.Refused = s.Writer()
				}
				if tt.earlier {
					c.Refused.Generation--
				}
				got, err := w.Connect(w.ctx(), c, w.now())
				if tt.want {
					w.must(err)
					if got.Owner != c.Owner || got.ActiveAsset != s.ActiveAsset || got.Generation != s.Generation+1 {
						t.Errorf("it is %+v", got)
					}
					return
				}
				at, elsewhere := errors.AsType[*live.ElsewhereError](err)
				if !elsewhere || at.Writer != s.Writer() || tt.promised > 0 && at.For != tt.promised {
					t.Errorf("error %v", err)
				}
				if after := w.find(s.ID); after.Owner != s.Owner {
					t.Errorf("the owner is %+v", after.Owner)
				}
			})
		}
	}
}

// TestLateFacts has everything that a writer can say come from one that the row does not name any more: an earlier
// epoch, an earlier generation, an earlier run of the node, another node. None of it changes anything.
func TestLateFacts(t *testing.T) {
	t.Parallel()
	facts := map[string]func(w *world, s id.LiveStream, by live.Writer) error{
		"recording": func(w *world, s id.LiveStream, by live.Writer) error {
			return w.Recording(w.ctx(), s, by, true, w.now())
		},
		"active": func(w *world, s id.LiveStream, by live.Writer) error { return w.Active(w.ctx(), s, by, w.now()) },
		"disconnected": func(w *world, s id.LiveStream, by live.Writer) error {
			_, err := w.Disconnected(w.ctx(), s, by, w.now())
			return err
		},
		"silence": func(w *world, s id.LiveStream, by live.Writer) error {
			_, err := w.Silence(w.ctx(), s, by, true, w.now())
			return err
		},
		"warning": func(w *world, s id.LiveStream, by live.Writer) error {
			return w.Warn(w.ctx(), s, by, live.Warning{Type: "t", Message: "m"}, w.now())
		},
		"end": func(w *world, s id.LiveStream, by live.Writer) error {
			_, err := w.End(w.ctx(), s, by, live.EndWindow, w.now())
			return err
		},
		"adoption": func(w *world, s id.LiveStream, by live.Writer) error {
			_, err := w.Adopt(w.ctx(), s, by, by.Owner, w.now())
			return err
		},
		"hold": func(w *world, s id.LiveStream, by live.Writer) error {
			_, _, err := w.Hold(w.ctx(), s, by)
			return err
		},
	}
	for of, other := range map[string]func(by *live.Writer){
		"an earlier epoch":      func(by *live.Writer) { by.Epoch-- },
		"an earlier generation": func(by *live.Writer) { by.Generation-- },
		"an earlier run":        func(by *live.Writer) { by.Run = "earlier" },
		"another node":          func(by *live.Writer) { by.Node = "other" },
	} {
		for what, say := range facts {
			t.Run(what+" of "+of, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := w.on(live.Active)
				by := s.Writer()
				other(&by)
				before := w.find(s.ID)
				w.wantKind(say(w, s.ID, by), fault.Conflict)
				if after := w.find(s.ID); !same(before, after) {
					t.Errorf("it has become %+v", after)
				}
				w.events()
			})
		}
	}
}

// TestGeneration counts those who write a broadcast: a process that leads it already stays the same writer when its
// encoder comes back, and one that does not is another, also where it was one before.
func TestGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Reconnecting)
	was := s.Writer()
	connect := func(node id.Node, led live.Writer, want int64) live.Writer {
		t.Helper()
		c := encoderAt(node, s.StreamKey, "rtmp", "new")
		c.Asked = was
		c.Led = func(id.LiveStream) live.Writer { return led }
		st, err := w.Connect(w.ctx(), c, w.now())
		w.must(err)
		if st.Generation != want || st.Owner != run(node) || st.ActiveAsset != s.ActiveAsset {
			t.Errorf("generation %d of %v, want %d: %+v", st.Generation, st.Owner, want, st)
		}
		was = st.Writer()
		_, err = w.Disconnected(w.ctx(), s.ID, was, w.now())
		w.must(err)
		return was
	}
	first := connect("node", s.Writer(), 0)
	connect("other", live.Writer{}, 1)
	back := connect("node", first, 2)
	connect("node", back, 2)
	connect("node", live.Writer{}, 3)
}
