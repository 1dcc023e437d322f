package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
)

// PromisePath is where a node asks another one by POST to promise that it takes none of its broadcasts without
// asking. The query has the "run" of the node that asks.
const PromisePath = "/promise/v1"

// Promising makes this node's promises; broadcast.Service fits.
type Promising interface {
	// Promise promises to take no broadcast of an owner without asking it; a fault.Conflict while it takes one.
	Promise(o live.Owner) error
}

// Promises is the handler for other nodes that ask for a promise: 204, or a fault as media/follow/wire has them.
type Promises struct {
	Own  Promising
	From func(ctx context.Context) id.Node // whose a request is
}

// ServeHTTP implements http.Handler.
func (p Promises) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := live.Owner{Node: p.From(r.Context()), Run: r.URL.Query().Get("run")}
	var err error = fault.New(fault.Invalid, "run must be given")
	if o.Node != "" && o.Run != "" && len(o.Run) <= maxRun {
		err = p.Own.Promise(o)
	}
	if err != nil {
		wire.Fail(w, err, false)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// maxRun bounds the name of a run.
const maxRun = 64

// knownFor is for how long a node counts that has not renewed its row: it may come back at any time.
const knownFor = 2 * time.Minute

// Others are the other nodes of an installation, as they were read last. It implements broadcast.Others.
type Others struct {
	Self live.Owner
	Rows interface {
		Nodes(ctx context.Context) ([]node.Node, error)
	}
	Peer follow.Peer

	mu    sync.Mutex
	read  bool
	known []node.Node
}

// Look reads which other nodes there are. All times are the database's.
func (o *Others) Look(ctx context.Context) error {
	all, err := o.Rows.Nodes(ctx)
	if err != nil {
		return fmt.Errorf("read nodes: %w", err)
	}
	var newest time.Time
	for _, n := range all {
		if n.SeenAt.After(newest) {
			newest = n.SeenAt
		}
	}
	var known []node.Node
	for _, n := range all {
		left := !n.ValidUntil.After(n.SeenAt) // in order
		if n.Name != o.Self.Node && n.Run != "" && !left && newest.Sub(n.SeenAt) < knownFor {
			known = append(known, n)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read, o.known = true, known
	return nil
}

// nodes are the others, once they have been read.
func (o *Others) nodes() ([]node.Node, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known, o.read
}

// At is where a process was reached when the nodes were read last.
func (o *Others) At(who live.Owner) (follow.Node, bool) {
	known, _ := o.nodes()
	for _, n := range known {
		if n.Name == who.Node && n.Run == who.Run && n.AdvertiseURL != "" {
			return follow.Node{ID: n.Name, URL: n.AdvertiseURL}, true
		}
	}
	return follow.Node{}, false
}

// Promise asks all of them at the same time, each for itself. A machine that refuses connections has no such node any
// more.
func (o *Others) Promise(ctx context.Context) error {
	known, read := o.nodes()
	if !read {
		return fault.New(fault.Unavailable, "it was never read which other nodes there are")
	}
	said := make([]error, len(known))
	var asked sync.WaitGroup
	for i, n := range known {
		asked.Go(func() {
			said[i] = fault.Guard(func() error {
				if err := o.ask(ctx, n); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
					return fmt.Errorf("ask node %s for its promise: %w", n.Name, err)
				}
				return nil
			})
		})
	}
	asked.Wait()
	return errors.Join(said...)
}

func (o *Others) ask(ctx context.Context, n node.Node) error {
	if n.AdvertiseURL == "" {
		return fault.New(fault.Unavailable, "the node can't be reached by others")
	}
	r := &http.Request{
		Method: http.MethodPost, Header: http.Header{},
		URL: &url.URL{Path: PromisePath, RawQuery: url.Values{"run": {o.Self.Run}}.Encode()},
	}
	res, err := o.Peer.Do(ctx, follow.Node{ID: n.Name, URL: n.AdvertiseURL}, r.WithContext(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
	if err != nil {
		return err
	}
	return wire.Failed(res.StatusCode, data)
}

// Refuses reports whether the machine of a process refuses connections: it does not listen there any more. False where
// nobody knows the process. What it responds to the question, which is of no use, does not matter.
func (o *Others) Refuses(ctx context.Context, who live.Owner) bool {
	at, known := o.At(who)
	for try := 0; known && try < 2 && ctx.Err() == nil; try++ {
		r := &http.Request{Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{Path: PromisePath}}
		res, err := o.Peer.Do(ctx, at, r.WithContext(ctx))
		switch {
		case err == nil:
			_ = res.Body.Close() // nothing of it was read
			return false
		case errors.Is(err, syscall.ECONNREFUSED):
			return true
		} // the connection that there was may have ended with its process
	}
	return false
}
