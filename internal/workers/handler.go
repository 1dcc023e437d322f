package workers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/turns"
	"millrace/internal/presentation"
)

// Maker makes what others order; presentation.Source fits.
type Maker interface {
	Make(ctx context.Context, o presentation.Order) ([]byte, error)
}

// request is an order as it is sent.
type request struct {
	presentation.Order

	Viewer string `json:"viewer,omitempty"` // who waits, for turns
}

const (
	// maxOrder is how many bytes an order has as it is sent, in the query: with its headers a request between nodes may
	// have 16 KiB. A viewer's query, which is in orders for images, may be longer.
	maxOrder = 8 << 10
	// responding is how long a response may take, with what is waited for, and sending how long its bytes may.
	responding, sending = 2 * time.Minute, 20 * time.Second
	// mostUnsent is how many bytes of responses wait to be sent. Beyond that the node that asks tries another worker.
	mostUnsent = 256 << 20
)

// Handler serves the orders of other nodes.
type Handler struct {
	Maker  Maker
	Logger *slog.Logger

	unsent atomic.Int64
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q request
	text := r.URL.Query().Get("order")
	if len(text) > maxOrder || json.Unmarshal([]byte(text), &q) != nil { //nolint:musttag // written by this package
		wire.Fail(w, fault.New(fault.Invalid, "the order can't be read"), false)
		return
	}
	deadline := http.NewResponseController(w)
	_ = deadline.SetWriteDeadline(time.Now().Add(responding)) // what has none, as in tests, has a bound of its own
	ctx := turns.For(r.Context(), func() string { return q.Viewer })
	data, err := h.Maker.Make(ctx, q.Order)
	switch {
	case err != nil:
		if fault.Is(err, fault.Internal) && ctx.Err() == nil {
			h.Logger.ErrorContext(ctx, "an order of another node failed", "asset_id", q.Asset, "rendition", q.Rendition,
				"image", q.Image, "error", err)
		}
		wire.Fail(w, err, false)
		return
	case data == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	n := int64(len(data))
	defer h.unsent.Add(-n)
	if all := h.unsent.Add(n); all > mostUnsent && all > n { // one alone is always sent
		wire.Fail(w, fault.New(fault.TooMany, "too much waits to be sent to other nodes: ask again in a moment"), false)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_ = deadline.SetWriteDeadline(time.Now().Add(sending))
	if _, err = w.Write(data); err != nil {
		panic(http.ErrAbortHandler) // nobody takes what has come for the whole
	}
}
