package playback

import (
	"net/http"

	"millrace/internal/clientaddr"
	"millrace/internal/unsent"
)

// covered is how much of a response, in bytes, the connection or stream that it goes out on is counted with.
const covered = 4 << 10

// hold counts what a body keeps in memory until it is sent: all of it, or a piece at a time.
func (h *Handler) hold(r *http.Request, b Body) (release func(), err error) {
	if b.Reader != nil {
		return h.holdPiece(r)
	}
	return h.holdData(r, b.Data)
}

// holdPiece is hold for what is read while it is sent. A connection of HTTP/1.1 has one response at a time, and is
// counted as such.
func (h *Handler) holdPiece(r *http.Request) (release func(), err error) {
	if h.opt.Unsent == nil || r.Method == http.MethodHead || r.ProtoMajor < 2 {
		return func() {}, nil
	}
	return h.opt.Unsent.Hold(r.Context(), clientaddr.Network(h.opt.Clients.Of(r)), unsent.Piece)
}

// holdData is hold for what is in memory as a whole.
func (h *Handler) holdData(r *http.Request, data []byte) (release func(), err error) {
	if h.opt.Unsent == nil || r.Method == http.MethodHead || len(data) <= covered {
		return func() {}, nil
	}
	return h.opt.Unsent.HoldData(r.Context(), clientaddr.Network(h.opt.Clients.Of(r)), data)
}
