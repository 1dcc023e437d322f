package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/internode"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
)

// handOverPath is where a node is asked to hand a broadcast over; its query says which writer's.
const handOverPath = "/hand-over/v1"

// handingOver gives broadcasts up that other nodes ask for; broadcast.Service fits.
type handingOver interface {
	HandOver(ctx context.Context, s id.LiveStream, w live.Writer) error
}

// handOverHandler lets other nodes have this one's broadcasts.
type handOverHandler struct {
	own  handingOver
	self live.Owner
}

// ServeHTTP implements http.Handler.
func (h handOverHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.handOver(r.Context(), r.URL.Query()); err != nil {
		wire.Fail(w, err, false)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h handOverHandler) handOver(ctx context.Context, q url.Values) error {
	epoch, err := strconv.ParseInt(q.Get("epoch"), 10, 64)
	if err != nil {
		return fault.New(fault.Invalid, "epoch must be a number")
	}
	generation, err := strconv.ParseInt(q.Get("generation"), 10, 64)
	if err != nil {
		return fault.New(fault.Invalid, "generation must be a number")
	}
	if run := q.Get("run"); run != h.self.Run { // of an earlier process, which has nothing any more
		return nil
	}
	return h.own.HandOver(ctx, id.LiveStream(q.Get("stream")),
		live.Writer{Epoch: id.Epoch(epoch), Generation: generation, Owner: h.self})
}

// asksBy is how other nodes are asked for their broadcasts; nil: there is none that could be.
func asksBy(o *owners, c *internode.Client) func(ctx context.Context, s id.LiveStream, w live.Writer) error {
	if c == nil {
		return nil
	}
	return handOvers{o, peers{c}}.ask
}

// handOvers asks other nodes to hand their broadcasts over.
type handOvers struct {
	owners follow.Directory
	peer   follow.Peer
}

// ask asks the node that leads a broadcast to hand it over: fault.Conflict when its encoder is still there.
func (h handOvers) ask(ctx context.Context, s id.LiveStream, w live.Writer) error {
	h.owners.Lost(s) // what is known may be of a second ago
	at, err := h.owners.Owner(ctx, s)
	if err != nil {
		return fmt.Errorf("find node: %w", err)
	}
	if at.Node.ID != w.Node { // it has gone on meanwhile; the row is asked again
		return nil
	}
	q := url.Values{
		"stream": {string(s)}, "epoch": {strconv.FormatInt(int64(w.Epoch), 10)},
		"generation": {strconv.FormatInt(w.Generation, 10)}, "run": {w.Run},
	}
	r := &http.Request{
		Method: http.MethodPost, Header: http.Header{}, URL: &url.URL{Path: handOverPath, RawQuery: q.Encode()},
	}
	res, err := h.peer.Do(ctx, at.Node, r.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("ask node: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
	if err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	return wire.Failed(res.StatusCode, data)
}
