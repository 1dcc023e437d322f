// Package handover lets nodes settle which of them has a broadcast: a node asks another to hand a broadcast over when
// its encoder has connected here (docs/decisions/0092), and a node whose database is away has the others promise to
// leave it what it leads (0095). It has the questions, and the handlers that answer them. It starts a goroutine for
// each node that it asks, and waits for them.
package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
)

// Path is where a node is asked by POST to hand a broadcast over. The query has the live stream and its writer:
// "stream", "epoch", "generation" and "run".
const Path = "/hand-over/v1"

// LostHeader is the field of the response that says how many milliseconds of the recording are lost; absent: none.
const LostHeader = "Millrace-Lost"

// mostLost bounds what is believed of it: a day.
const mostLost = 24 * time.Hour

// Broadcasts hands over this node's broadcasts; broadcast.Service fits.
type Broadcasts interface {
	// HandOver gives up the broadcast of a writer, and says what of it is lost; a fault.Conflict while its encoder
	// sends.
	HandOver(ctx context.Context, s id.LiveStream, w live.Writer) (lost time.Duration, err error)
}

// Handler hands this node's broadcasts over to the nodes that ask for them.
type Handler struct {
	Own  Broadcasts
	Self live.Owner // the process that this is
}

// ServeHTTP implements http.Handler: 204, or a fault as media/follow/wire has them.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lost, err := h.handOver(r.Context(), r.URL.Query())
	if err != nil {
		wire.Fail(w, err, false)
		return
	}
	if lost > 0 {
		w.Header().Set(LostHeader, strconv.FormatInt(max(lost.Milliseconds(), 1), 10))
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h Handler) handOver(ctx context.Context, q url.Values) (lost time.Duration, err error) {
	epoch, err := strconv.ParseInt(q.Get("epoch"), 10, 64)
	if err != nil {
		return 0, fault.New(fault.Invalid, "epoch must be a number")
	}
	generation, err := strconv.ParseInt(q.Get("generation"), 10, 64)
	if err != nil {
		return 0, fault.New(fault.Invalid, "generation must be a number")
	}
	if run := q.Get("run"); run != h.Self.Run { // an earlier process, which has nothing any more
		return 0, nil
	}
	return h.Own.HandOver(ctx, id.LiveStream(q.Get("stream")),
		live.Writer{Epoch: id.Epoch(epoch), Generation: generation, Owner: h.Self})
}

// Client asks other nodes for their broadcasts.
type Client struct {
	Owners follow.Directory
	Peer   follow.Peer
	Others *Others // as they were known last: a node whose row has expired may be there still; nil: nobody knows
}

// Ask asks the node of a writer to hand its broadcast over; lost is what of the recording that could not store. Its
// error is a fault.Conflict while the encoder sends to that node, and live.ErrRefused where that refuses connections.
// It is nil, too, where that process has ended or another node owns the broadcast by now: read the row again.
func (c Client) Ask(ctx context.Context, s id.LiveStream, w live.Writer) (lost time.Duration, err error) {
	c.Owners.Lost(s) // what is known may be of a second ago
	at, err := c.Owners.Owner(ctx, s)
	if fault.Is(err, fault.NotFound) && c.Others != nil {
		if n, known := c.Others.At(w.Owner); known {
			at.Node, err = n, nil
		}
	}
	if err != nil {
		return 0, fmt.Errorf("find node: %w", err)
	}
	if at.Node.ID != w.Node {
		return 0, nil
	}
	q := url.Values{
		"stream": {string(s)}, "epoch": {strconv.FormatInt(int64(w.Epoch), 10)},
		"generation": {strconv.FormatInt(w.Generation, 10)}, "run": {w.Run},
	}
	res, err := c.send(ctx, at.Node, q)
	if err != nil && !errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil {
		res, err = c.send(ctx, at.Node, q) // the connection that there was may have ended with its process
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = errors.Join(live.ErrRefused, err)
	}
	if err != nil {
		return 0, fmt.Errorf("ask node: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if res.StatusCode == http.StatusNoContent {
		return lostIn(res.Header)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
	if err != nil {
		return 0, fmt.Errorf("read response: %w", err)
	}
	return 0, wire.Failed(res.StatusCode, data)
}

func (c Client) send(ctx context.Context, to follow.Node, q url.Values) (*http.Response, error) {
	r := &http.Request{
		Method: http.MethodPost, Header: http.Header{}, URL: &url.URL{Path: Path, RawQuery: q.Encode()},
	}
	return c.Peer.Do(ctx, to, r.WithContext(ctx))
}

// lostIn is what a response says is lost.
func lostIn(h http.Header) (time.Duration, error) {
	said := h.Get(LostHeader)
	if said == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(said, 10, 64)
	if err != nil || ms < 0 || ms > mostLost.Milliseconds() {
		return 0, fault.New(fault.Internal, "the node says that %.20q milliseconds are lost", said)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
