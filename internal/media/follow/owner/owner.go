// Package owner serves this node's broadcasts to the nodes that follow them, over HTTP, in the form of
// media/follow/wire. It shows what viewers would see here and decides nothing for them: rights, encryption and usage
// counts belong to the node that has the viewer. It must never know which nodes there are, nor how they prove who they
// are. It starts no goroutine.
package owner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/playback"
	"millrace/internal/media/window"
)

// Broadcasts are those whose edges this node has; broadcast.Service fits. It must not be what follows other nodes: two
// of them would ask each other in circles.
type Broadcasts interface {
	Watched(ctx context.Context, s id.LiveStream) (playback.Broadcast, error)
	OfAsset(ctx context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error)
	Earlier(ctx context.Context, s id.LiveStream, m id.Media) (playback.Broadcast, error)
}

// Edge is a broadcast that has an edge; edgeview.Broadcast fits.
type Edge interface {
	playback.Broadcast

	// Generation numbers who writes the broadcast.
	Generation() int64
	// Revised waits for another revision than the given one until ctx ends, and gives the current one.
	Revised(ctx context.Context, revision uint64) (current uint64, ended bool)
}

// Options configures a Handler.
type Options struct {
	Broadcasts Broadcasts
	Objects    delivered.Objects // what is stored
	Run        string            // different each time that the process starts
	// From is the node that a request is of.
	From   func(ctx context.Context) id.Node
	Logger *slog.Logger
}

// Prefix is that of the paths that a Handler serves, all by GET.
const Prefix = wire.Prefix

// Handler implements http.Handler for all paths below Prefix.
type Handler struct {
	opt Options

	mu    sync.Mutex
	asked map[id.Node]int // requests under way
}

// New returns a Handler.
func New(o Options) *Handler { return &Handler{opt: o, asked: map[id.Node]int{}} }

const (
	// mostAsked is how many requests of one node are under way at a time; those that wait for media count as well.
	mostAsked = 1000
	// beat is how long a request for a change waits when there is none: so often a node hears that this one is alive.
	beat = time.Second
	// sending is how long a node may take to read a response.
	sending = 20 * time.Second
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := h.opt.From(r.Context())
	if !h.enter(from) {
		wire.Fail(w, fault.New(fault.TooMany, "this node asks for too much at a time: ask again in a moment"), false)
		return
	}
	defer h.leave(from)
	if err := h.serve(w, r); err != nil {
		if fault.Is(err, fault.Internal) && r.Context().Err() == nil {
			h.opt.Logger.ErrorContext(r.Context(), "a response to another node failed", "node", from,
				"path", r.URL.Path, "error", err)
		}
		moved := (*wire.MovedError)(nil)
		wire.Fail(w, err, errors.As(err, &moved))
	}
}

func (h *Handler) enter(from id.Node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked[from] >= mostAsked {
		return false
	}
	h.asked[from]++
	return true
}

func (h *Handler) leave(from id.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked[from]--; h.asked[from] == 0 {
		delete(h.asked, from)
	}
}

// find is the broadcast that is asked about.
func (h *Handler) find(ctx context.Context, of wire.Of) (b Edge, err error) {
	var found playback.Broadcast
	switch {
	case of.Media != "":
		found, err = h.opt.Broadcasts.Earlier(ctx, of.Stream, of.Media)
	case of.Asset != "":
		found, err = h.opt.Broadcasts.OfAsset(ctx, of.Stream, of.Asset)
	default:
		found, err = h.opt.Broadcasts.Watched(ctx, of.Stream)
	}
	if err != nil {
		if of.Edition != "" || errors.Is(err, window.ErrMoved) {
			err = &wire.MovedError{Err: err}
		}
		return nil, err
	}
	b, ok := found.(Edge)
	if !ok {
		return nil, fault.New(fault.Internal, "%T has no edge", found)
	}
	if of.Edition != "" && of.Edition != h.edition(b) {
		return nil, &wire.MovedError{Err: fault.New(fault.Conflict, "another writer has the broadcast now")}
	}
	return b, nil
}

// edition names a writer of a broadcast on this node.
func (h *Handler) edition(b Edge) string {
	return h.opt.Run + "." + strconv.FormatInt(b.Generation(), 10)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	ask, of, err := wire.Parse(r.URL)
	if err != nil {
		return err
	}
	ctx := r.Context()
	b, err := h.find(ctx, of)
	if err != nil {
		return err
	}
	switch ask.What { //nolint:exhaustive // the others are shown by a view
	case wire.About:
		about := b.About()
		now, ended := b.Revised(ctx, ^uint64(0))
		return value(w, wire.Description{
			Media: about.Media, Asset: about.Asset, Title: about.Title, Began: about.Began, Edition: h.edition(b),
			Change: h.change(ctx, of.Stream, b, now, ended),
		}, nil)
	case wire.Changes:
		wait, cancel := context.WithTimeout(ctx, beat)
		defer cancel()
		now, ended := b.Revised(wait, ask.Revision)
		return value(w, h.change(ctx, of.Stream, b, now, ended), nil)
	}
	texts, err := ask.Names()
	if err != nil {
		return err
	}
	v := b.View(playback.Watch{Event: ask.Event, Texts: texts, Objects: h.opt.Objects})
	return show(ctx, w, v, ask)
}

func (h *Handler) change(ctx context.Context, s id.LiveStream, b Edge, revision uint64, ended bool) wire.Change {
	c := wire.Change{Revision: revision, Ended: ended, Texts: b.HasTexts()}
	watched, err := h.opt.Broadcasts.Watched(ctx, s)
	switch {
	case err == nil:
		c.Watched = watched.About().Media
	case errors.Is(err, window.ErrMoved): // its viewers see it until the next owner is known
		c.Watched = b.About().Media
	}
	return c
}

// value sends JSON.
func value(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the response can't be written")
	}
	w.Header().Set("Content-Type", "application/json")
	return send(w, delivered.Body{Data: data})
}

// head adds JSON to the header.
func head(w http.ResponseWriter, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the header can't be written")
	}
	w.Header().Set(name, string(data))
	return nil
}

// send sends bytes, which others are sent at the same time. Who does not read them in time is left.
func send(w http.ResponseWriter, b delivered.Body) error {
	r, size := b.Open()
	defer func() { _ = r.Close() }() // it was only read
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	// What can't be told so, as in tests, has a bound of its own.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sending))
	w.WriteHeader(http.StatusOK)
	var sent int64
	var err error
	if b.Reader == nil {
		var n int
		n, err = w.Write(b.Data)
		sent = int64(n)
	} else {
		sent, err = io.CopyN(w, r, size)
	}
	if err != nil || sent != size {
		panic(http.ErrAbortHandler) // nobody takes what has come for the whole
	}
	return nil
}
