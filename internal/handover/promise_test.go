package handover_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/handover"
	"millrace/internal/id"
	"millrace/internal/media/follow"
)

// promising notes who asks for promises.
type promising struct {
	err error

	mu  sync.Mutex
	got []live.Owner
}

func (p *promising) Promise(o live.Owner) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, o)
	return p.err
}

// rows are the nodes as the database has them.
type rows []node.Node

func (r rows) Nodes(context.Context) ([]node.Node, error) { return r, nil }

// fleet is the nodes that can be asked, by their URL; nobody responds at others.
type fleet map[string]error

func (f fleet) Do(ctx context.Context, to follow.Node, r *http.Request) (*http.Response, error) {
	err, known := f[to.URL]
	if !known {
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	}
	if err != nil && fault.KindOf(err) == fault.Unavailable {
		return nil, err
	}
	w := httptest.NewRecorder()
	self := handover.Promises{Own: &promising{err: err}, From: func(context.Context) id.Node { return "self" }}
	self.ServeHTTP(w, r.Clone(ctx))
	return w.Result(), nil
}

// TestPromises asks all other nodes that may be there: none has promised unless all have.
func TestPromises(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	row := func(name string, seen time.Duration) node.Node {
		at := now.Add(-seen)
		return node.Node{
			Name: id.Node(name), Run: name + "1", AdvertiseURL: "http://" + name, SeenAt: at,
			ValidUntil: at.Add(3 * time.Second),
		}
	}
	left, unreachable := row("left", 10*time.Second), row("inside", 0)
	left.ValidUntil, unreachable.AdvertiseURL = left.SeenAt, ""
	away := fault.New(fault.Unavailable, "no route")
	self, taking := row("self", 0), fault.New(fault.Conflict, "taking")
	for name, tt := range map[string]struct {
		others []node.Node
		fleet  fleet
		fails  bool
	}{
		"there is no other": {nil, nil, false},
		"all promise": {
			rows{row("b", time.Second), row("c", time.Minute)}, fleet{"http://b": nil, "http://c": nil}, false,
		},
		"one is taking something": {
			rows{row("b", 0), row("c", 0)}, fleet{"http://b": nil, "http://c": taking}, true,
		},
		"one does not respond": {
			rows{row("b", 0), row("c", 0)}, fleet{"http://b": nil, "http://c": away}, true,
		},
		"one that was there a minute ago": {rows{row("b", time.Minute)}, fleet{"http://b": away}, true},
		"one has been gone for long":      {rows{row("b", 3*time.Minute)}, fleet{"http://b": away}, false},
		"one has left":                    {rows{left}, fleet{"http://left": away}, false},
		"one's process has ended":         {rows{row("b", 0)}, nil, false},
		"one can't be reached by others":  {rows{unreachable}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &handover.Others{
				Self: live.Owner{Node: "self", Run: "self1"}, Rows: append(rows{self}, tt.others...), Peer: tt.fleet,
			}
			if err := o.Promise(t.Context()); err == nil {
				t.Error("they have promised before it is known who they are")
			}
			if err := o.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := o.Promise(t.Context()); (err != nil) != tt.fails {
				t.Errorf("promise: %v", err)
			}
		})
	}
}

// TestRefuses: only a machine that refuses connections says that no process listens there, also where the first
// question went over a connection that had ended.
func TestRefuses(t *testing.T) {
	t.Parallel()
	there := live.Owner{Node: "there", Run: "run"}
	row := node.Node{
		Name: "there", Run: "run", AdvertiseURL: "http://there", SeenAt: time.Unix(1, 0), ValidUntil: time.Unix(4, 0),
	}
	for name, tt := range map[string]struct {
		away error
		who  live.Owner
		want bool
	}{
		"it is there":          {who: there},
		"it has ended":         {away: fmt.Errorf("dial: %w", syscall.ECONNREFUSED), who: there, want: true},
		"it has just ended":    {away: errBroken, who: there, want: true},
		"it can't be reached":  {away: fault.New(fault.Unavailable, "no route"), who: there},
		"it was started again": {away: syscall.ECONNREFUSED, who: live.Owner{Node: "there", Run: "before"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &peer{handler: http.NotFoundHandler(), away: tt.away}
			o := &handover.Others{Self: live.Owner{Node: "self", Run: "x"}, Rows: rows{row}, Peer: p}
			if o.Refuses(t.Context(), tt.who) {
				t.Error("nothing is known of it, and it refuses")
			}
			if err := o.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := o.Refuses(t.Context(), tt.who); got != tt.want {
				t.Errorf("it refuses: %v", got)
			}
		})
	}
}

// TestPromiseIsOfWhoAsks: a node promises what it is asked for by the node that signed the request, and by nobody
// else.
func TestPromiseIsOfWhoAsks(t *testing.T) {
	t.Parallel()
	for query, tt := range map[string]struct {
		from id.Node
		err  error
		code int
		want []live.Owner
	}{
		"?run=r1": {from: "b", code: http.StatusNoContent, want: []live.Owner{{Node: "b", Run: "r1"}}},
		"?run=r2": {
			from: "b", err: fault.New(fault.Conflict, "taking"), code: http.StatusConflict,
			want: []live.Owner{{Node: "b", Run: "r2"}},
		},
		"?run=":            {from: "b", code: http.StatusBadRequest},
		"?run=r3&node=c":   {from: "", code: http.StatusBadRequest},
		"?run=" + long(65): {from: "b", code: http.StatusBadRequest},
	} {
		own := &promising{err: tt.err}
		w := httptest.NewRecorder()
		handover.Promises{Own: own, From: func(context.Context) id.Node { return tt.from }}.ServeHTTP(w,
			httptest.NewRequestWithContext(t.Context(), http.MethodPost, handover.PromisePath+query, nil))
		if w.Code != tt.code || !slices.Equal(own.got, tt.want) {
			t.Errorf("%.20s of %q returns %d, promised is %v", query, tt.from, w.Code, own.got)
		}
	}
}

func long(n int) string { return string(slices.Repeat([]byte("r"), n)) }

// TestAskWhoHasNoRow asks a node whose row has expired where it was known last.
func TestAskWhoHasNoRow(t *testing.T) {
	t.Parallel()
	writer := live.Writer{Epoch: 1, Owner: live.Owner{Node: "there", Run: "run"}}
	own := &leads{}
	p := &expired{peer{node: "there", handler: handover.Handler{Own: own, Self: writer.Owner}}}
	known := &handover.Others{Rows: rows{{
		Name: "there", Run: "run", AdvertiseURL: "http://there", SeenAt: time.Unix(1, 0), ValidUntil: time.Unix(4, 0),
	}}}
	ask := handover.Client{Owners: p, Peer: p, Others: known}
	if _, err := ask.Ask(t.Context(), "stream", writer); !errors.Is(err, errNone) {
		t.Errorf("before it is known: %v", err)
	}
	if err := known.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := ask.Ask(t.Context(), "stream", writer); err != nil || len(own.asked) != 1 {
		t.Errorf("asked for %v: %v", own.asked, err)
	}
}

var errNone = fault.New(fault.NotFound, "no node has it")

// expired is a fleet whose directory knows no owner.
type expired struct{ peer }

func (e *expired) Owner(context.Context, id.LiveStream) (follow.Owner, error) {
	return follow.Owner{}, errNone
}
