// Package handover asks another node to hand a broadcast over when its encoder has connected to this one. It has the
// client and the handler that answers it (docs/decisions/0092).
package handover

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
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
)

// Path is where a node is asked by POST to hand a broadcast over. The query has the live stream and its writer: "stream",
// "epoch", "generation" and "run".
const Path = "/hand-over/v1"

// Broadcasts hands over this node's broadcasts; broadcast.Service fits.
type Broadcasts interface {
	// HandOver gives up the broadcast of a writer; a fault.Conflict while its encoder sends.
	HandOver(ctx context.Context, s id.LiveStream, w live.Writer) error
}

// Handler hands this node's broadcasts over to the nodes that ask for them.
type Handler struct {
	Own  Broadcasts
	Self live.Owner // the process that this is
}

// ServeHTTP implements http.Handler: 204, or a fault as media/follow/wire has them.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.handOver(r.Context(), r.URL.Query()); err != nil {
		wire.Fail(w, err, false)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h Handler) handOver(ctx context.Context, q url.Values) error {
	epoch, err := strconv.ParseInt(q.Get("epoch"), 10, 64)
	if err != nil {
		return fault.New(fault.Invalid, "epoch must be a number")
	}
	generation, err := strconv.ParseInt(q.Get("generation"), 10, 64)
	if err != nil {
		return fault.New(fault.Invalid, "generation must be a number")
	}
	if run := q.Get("run"); run != h.Self.Run { // an earlier process, which has nothing any more
		return nil
	}
	return h.Own.HandOver(ctx, id.LiveStream(q.Get("stream")),
		live.Writer{Epoch: id.Epoch(epoch), Generation: generation, Owner: h.Self})
}

// Client asks other nodes for their broadcasts.
type Client struct {
	Owners follow.Directory
	Peer   follow.Peer
}

// Ask asks the node of a writer to hand its broadcast over. Its error is a fault.Conflict while the encoder sends to
// that node. It is nil, too, where that process has ended or another node owns the broadcast by now: read the row again.
func (c Client) Ask(ctx context.Context, s id.LiveStream, w live.Writer) error {
	c.Owners.Lost(s) // what is known may be of a second ago
	at, err := c.Owners.Owner(ctx, s)
	if err != nil {
		return fmt.Errorf("find node: %w", err)
	}
	if at.Node.ID != w.Node {
		return nil
	}
	q := url.Values{
		"stream": {string(s)}, "epoch": {strconv.FormatInt(int64(w.Epoch), 10)},
		"generation": {strconv.FormatInt(w.Generation, 10)}, "run": {w.Run},
	}
	r := &http.Request{
		Method: http.MethodPost, Header: http.Header{}, URL: &url.URL{Path: Path, RawQuery: q.Encode()},
	}
	res, err := c.Peer.Do(ctx, at.Node, r.WithContext(ctx))
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
