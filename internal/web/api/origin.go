package api

import (
	"log/slog"
	"net/http"
	"net/url"
)

const textCrossOrigin = "A page of another origin may not change anything; send the request from a server, or from a " +
	"page of this service"

// sameOrigin refuses requests that change something and that a browser sends for a page of another origin (CSRF):
// browsers add the Basic credentials that a person once entered. Clients that are no browsers name no origin and pass.
// It takes nothing away from pages that have credentials of their own: their browsers ask for CORS headers first, which
// this API does not send.
func (s *server) sameOrigin(next http.Handler) http.Handler {
	guard := http.NewCrossOriginProtection()
	if u, err := url.Parse(s.public); err == nil && u.Host != "" { // a proxy may send another Host header
		if err := guard.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			s.log.Warn("public URL has no origin", slog.Any("error", err))
		}
	}
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuseUnread(w, r, newError(http.StatusForbidden, typeForbidden, textCrossOrigin))
	}))
	return guard.Handler(next)
}
