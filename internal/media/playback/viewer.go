package playback

import (
	"context"
	"net/http"

	"millrace/internal/clientaddr"
	"millrace/internal/media/turns"
	"millrace/internal/media/watching"
)

// watcher is who asks, for counting: an address and a player.
func (h *Handler) watcher(r *http.Request) watching.Viewer {
	return watching.ViewerOf(h.opt.Clients.Of(r), r.Header.Get("User-Agent"))
}

// withViewer keeps a viewer's address with a request, so that what viewers share is shared between them: the address
// without its port, of IPv6 the /64 that a single customer has.
func (h *Handler) withViewer(r *http.Request) context.Context {
	return turns.For(r.Context(), func() string { return clientaddr.Network(h.opt.Clients.Of(r)) })
}

// Viewer says whose request it is. Empty: unknown.
func Viewer(ctx context.Context) string { return turns.Viewer(ctx) }
